package duty

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/storetest"
)

// world is a database that several processes reach over bad lines, in the time of synctest. Like PostgreSQL under package sqlstore, it lets
// one transaction write at a time, ends one whose process is silent for too long, and may lose the answer to a commit.
//
// It keeps instances, duties, events, and the work that was written under duties.
type world struct {
	turn chan struct{} // who has its element writes
	seed uint64
	from time.Time

	mu        sync.Mutex
	committed rows
	skew      time.Duration // of the clock of the database
	trace     []string
	broken    []string // what must not happen, and has
	sum       uint64   // see hash
}

type rows struct {
	instances map[string]inventory.Instance
	duties    map[string]inventory.Duty
	events    []string
	works     []work
}

// work is a write under a duty, by who decided on it in what epoch.
type work struct {
	duty, instance string
	epoch          int64
}

// idleFor is how long a transaction may do nothing.
const idleFor = 2 * time.Second

func newWorld(seed uint64) *world {
	return &world{
		turn: make(chan struct{}, 1), seed: seed, from: time.Now(),
		committed: rows{instances: map[string]inventory.Instance{}, duties: map[string]inventory.Duty{}},
	}
}

func (w *world) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, fmt.Sprintf("%10.4f ", time.Since(w.from).Seconds())+fmt.Sprintf(format, args...))
}

// fails notes that something happened which must not.
func (w *world) fails(format string, args ...any) {
	said := fmt.Sprintf(format, args...)
	w.say("WRONG: %s", said)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, said)
}

// hash is the same for worlds in which the same happened. What happens at the same moment has no order.
func (w *world) hash() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := fnv.New64()
	h.Write([]byte(strings.Join(slices.Sorted(slices.Values(w.trace)), "\n")))
	return h.Sum64()
}

func (w *world) rows() rows {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.committed
}

// commit checks what was written under duties, and stores it.
func (w *world) commit(next rows) {
	was := w.rows()
	for _, done := range next.works[len(was.works):] {
		if d := next.duties[done.duty]; d.Holder != done.instance || d.Epoch != done.epoch {
			w.fails("%s wrote under duty %s in epoch %d; in epoch %d it is with %q", done.instance, done.duty, done.epoch, d.Epoch, d.Holder)
		}
	}
	for name, d := range next.duties {
		if d.Epoch < was.duties[name].Epoch {
			w.fails("the epoch of duty %s fell to %d", name, d.Epoch)
		}
	}
	for _, e := range next.events[len(was.events):] {
		w.say("event: %s", e)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.committed = next
}

// edit changes the rows as an admin does.
func (w *world) edit(fn func(tx inventory.Tx) error) error {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	tx := &memoryTx{world: w, rows: w.rows().clone()}
	if err := fn(tx); err != nil {
		return err
	}
	w.commit(tx.rows)
	return nil
}

func (r rows) clone() rows {
	r.instances, r.duties = maps.Clone(r.instances), maps.Clone(r.duties)
	return r
}

// line is the way of a process to the database. Its state can be changed while it is in use.
type line struct {
	mu       sync.Mutex
	resumed  chan struct{} // not nil while the process is paused
	cutUntil time.Time     // nothing comes through
	slow     time.Duration // what a way takes at most
	lossy    float64       // the share of answers that get lost

	dead chan struct{} // closed when the process is killed
}

var errLost = inventory.Errorf(inventory.Unavailable, "the database cannot be reached")

// ready waits while the process is paused. It fails in a process that was killed. When the pause is longer than most, and most is not 0, it
// calls late once.
func (l *line) ready(most time.Duration, late func()) error {
	for {
		l.mu.Lock()
		resumed := l.resumed
		l.mu.Unlock()
		select {
		case <-l.dead:
			return errLost
		default:
		}
		if resumed == nil {
			return nil
		}
		var timer <-chan time.Time
		if most > 0 {
			timer = time.After(most)
		}
		select {
		case <-resumed:
		case <-timer:
			most = 0
			late()
		case <-l.dead:
		}
	}
}

// passes waits as a process does: when it was paused meanwhile, it goes on after that.
func (l *line) passes(d time.Duration) error {
	select {
	case <-time.After(d):
	case <-l.dead:
	}
	return l.ready(0, nil)
}

func (l *line) isCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.cutUntil)
}

func (l *line) quality() (slow time.Duration, lossy float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slow, l.lossy
}

// link is a store over a line. Each goroutine has its own, so that its random numbers do not depend on what others do.
type link struct {
	world *world
	line  *line
	rnd   *rand.Rand
	epoch int64 // if not 0, FindDuty says this one: a fence without the check of epochs
}

func (l *link) way() time.Duration {
	slow, _ := l.line.quality()
	return time.Duration(l.rnd.Int64N(int64(2*time.Millisecond + slow)))
}

// Read implements inventory.Store.
func (l *link) Read(ctx context.Context, fn func(inventory.Tx) error) error {
	if err := l.line.passes(l.way()); err != nil || l.line.isCut() {
		return errLost
	}
	if err := fn(&memoryTx{world: l.world, rows: l.world.rows().clone(), epoch: l.epoch}); err != nil {
		return err
	}
	return l.line.passes(l.way())
}

// Write implements inventory.Store.
func (l *link) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	if err := l.line.passes(l.way()); err != nil {
		return err
	}
	if l.line.isCut() {
		_ = l.line.passes(time.Second)
		return errLost
	}
	if ctx.Err() != nil {
		return errLost
	}
	select {
	case l.world.turn <- struct{}{}:
	case <-ctx.Done():
		return errLost
	case <-l.line.dead:
		return errLost
	}
	var once sync.Once
	end := func() { once.Do(func() { <-l.world.turn }) }
	defer end()
	isEnded := false
	tx := &memoryTx{world: l.world, rows: l.world.rows().clone(), epoch: l.epoch}
	// The server ends a transaction whose process does nothing. Others write before the process wakes up.
	tx.step = func() error {
		<-time.After(time.Duration(l.rnd.Int64N(int64(time.Millisecond))))
		if err := l.line.ready(idleFor, func() { isEnded = true; end() }); err != nil {
			return err
		}
		if isEnded {
			return errLost
		}
		return nil
	}
	if err := fn(tx); err != nil {
		_ = l.line.passes(l.way())
		return err
	}
	if err := tx.step(); err != nil {
		return err
	}
	_, lossy := l.line.quality()
	isLost := l.rnd.Float64() < lossy || l.line.isCut()
	if isLost && l.rnd.IntN(2) == 0 { // the COMMIT itself gets lost
		return errLost
	}
	l.world.commit(tx.rows)
	end()
	if err := l.line.passes(l.way()); err != nil {
		return err
	}
	if isLost {
		_ = l.line.passes(time.Second)
		return inventory.Errorf(inventory.Unavailable, "it is not known whether the change was stored")
	}
	return nil
}

// memoryTx is a transaction of a world.
type memoryTx struct {
	inventory.Tx // nil: this store has nothing else
	world        *world
	rows         rows
	epoch        int64
	step         func() error // what a statement takes; nil takes nothing
}

func (t *memoryTx) steps() error {
	if t.step == nil {
		return nil
	}
	return t.step()
}

func none(noun, key string) error {
	return inventory.Errorf(inventory.NotFound, "there is no %s %s", noun, key)
}

// work notes a write under a duty.
func (t *memoryTx) work(duty, instance string, epoch int64) {
	t.rows.works = append(t.rows.works[:len(t.rows.works):len(t.rows.works)], work{duty, instance, epoch})
}

// AddEvent implements inventory.HistoryTx.
func (t *memoryTx) AddEvent(events ...*inventory.Event) error {
	for _, e := range events {
		t.rows.events = append(t.rows.events[:len(t.rows.events):len(t.rows.events)], e.Detail)
	}
	return t.steps()
}

// DatabaseTime implements inventory.InstanceTx.
func (t *memoryTx) DatabaseTime() (time.Time, error) {
	t.world.mu.Lock()
	skew := t.world.skew
	t.world.mu.Unlock()
	return time.Now().Add(skew), t.steps()
}

// FindInstance implements inventory.InstanceTx.
func (t *memoryTx) FindInstance(id string) (inventory.Instance, error) {
	i, ok := t.rows.instances[id]
	if !ok {
		return i, none("instance", id)
	}
	return i, t.steps()
}

// FindInstanceByName implements inventory.InstanceTx.
func (t *memoryTx) FindInstanceByName(name string) (inventory.Instance, error) {
	for _, i := range t.rows.instances {
		if i.Name == name {
			return i, t.steps()
		}
	}
	return inventory.Instance{}, none("instance", name)
}

// ListInstances implements inventory.InstanceTx.
func (t *memoryTx) ListInstances() ([]inventory.Instance, error) {
	return slices.SortedFunc(maps.Values(t.rows.instances), func(a, b inventory.Instance) int { return strings.Compare(a.Name, b.Name) }), t.steps()
}

// SaveInstance implements inventory.InstanceTx.
func (t *memoryTx) SaveInstance(i inventory.Instance) error {
	if other, err := t.FindInstanceByName(i.Name); err == nil && other.ID != i.ID {
		return inventory.Errorf(inventory.Conflict, "there is an instance %s already", i.Name)
	}
	t.rows.instances[i.ID] = i
	return t.steps()
}

// Heartbeat implements inventory.InstanceTx.
func (t *memoryTx) Heartbeat(id, run string, now time.Time) error {
	if i := t.rows.instances[id]; i.Run == run {
		i.HeartbeatN, i.SeenAt = i.HeartbeatN+1, now
		t.rows.instances[id] = i
	}
	return t.steps()
}

// DeleteInstance implements inventory.InstanceTx.
func (t *memoryTx) DeleteInstance(id string) error {
	for _, d := range t.rows.duties {
		if d.Holder == id {
			return inventory.Errorf(inventory.Conflict, "instance %s holds duty %s", id, d.Name)
		}
	}
	if _, ok := t.rows.instances[id]; !ok {
		return none("instance", id)
	}
	delete(t.rows.instances, id)
	return t.steps()
}

// FindDuty implements inventory.InstanceTx.
func (t *memoryTx) FindDuty(name string) (inventory.Duty, error) {
	d, ok := t.rows.duties[name]
	if !ok {
		return d, none("duty", name)
	}
	if t.epoch != 0 {
		d.Epoch = t.epoch
	}
	return d, t.steps()
}

// ListDuties implements inventory.InstanceTx.
func (t *memoryTx) ListDuties() ([]inventory.Duty, error) {
	return slices.SortedFunc(maps.Values(t.rows.duties), func(a, b inventory.Duty) int { return strings.Compare(a.Name, b.Name) }), t.steps()
}

// SaveDuty implements inventory.InstanceTx.
func (t *memoryTx) SaveDuty(d inventory.Duty) error {
	if d.Holder != "" {
		if _, err := t.FindInstance(d.Holder); err != nil {
			return inventory.Errorf(inventory.Invalid, "duty %s: there is no instance %s", d.Name, d.Holder)
		}
	}
	t.rows.duties[d.Name] = d
	return t.steps()
}

// TestTheWorldKeepsTheContract: what the simulation shows counts only if its store answers as the databases do.
func TestTheWorldKeepsTheContract(t *testing.T) {
	storetest.RunInstances(t, func(t *testing.T) inventory.Store {
		return &link{world: newWorld(1), line: &line{dead: make(chan struct{})}, rnd: rand.New(rand.NewPCG(1, 1))}
	})
}
