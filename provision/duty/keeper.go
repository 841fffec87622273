package duty

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	heartbeatEvery = time.Second            // a third of the shortest term
	retryEvery     = 250 * time.Millisecond // when the database did not answer
	answerWithin   = 3 * time.Second        // after which a heartbeat that waits for its turn is given up
)

// Config holds the settings of a Keeper. Store, ID and Name are required.
type Config struct {
	Store inventory.Store
	// ID, Name, Addresses and Version are those of inventory.Instance.
	ID, Name  string
	Addresses []string
	Version   string
	// IsAlone says that no other process can use the database, as with a file of SQLite in a locked data directory. The instance then holds
	// what it wants until it stops, and writes no signs of life: nobody reads them.
	IsAlone bool
	Elapsed func() time.Duration // a clock that nobody can set; nil is that of the kernel
	Log     *slog.Logger         // gets each change of a duty; nil discards them
}

// Keeper holds duties for one instance. Many goroutines may call Holds, Want and While.
type Keeper struct {
	cfg  Config
	run  string
	held atomic.Pointer[map[string]grant] // replaced whole, so that packets read it without a lock

	mu      sync.Mutex
	wanted  map[string]bool
	works   map[string]int // how many works run under a duty; it is not given up before they have ended
	changed chan struct{}  // closed and replaced with each change of held
	poked   chan struct{}

	// The rest is of the goroutine that calls Register and Run.

	watch     watch
	former    map[string]int64 // duties, with their epochs, of the run before this one
	formerAt  time.Duration    // when that run gave its last sign of life, or earlier
	isDrained bool
	isCutOff  bool // the last heartbeat failed
}

// grant is a duty as the instance holds it.
type grant struct {
	epoch int64
	until time.Duration // by the own clock: afterwards, another instance may have it
}

// forever is the end of a grant that no other instance can take.
const forever = time.Duration(math.MaxInt64)

// New makes a Keeper. Register, then Run, make it work.
func New(cfg Config) *Keeper {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Elapsed == nil {
		cfg.Elapsed = sinceBoot
	}
	k := &Keeper{
		cfg: cfg, run: rand.Text(), wanted: map[string]bool{}, works: map[string]int{}, watch: watch{},
		changed: make(chan struct{}), poked: make(chan struct{}, 1),
	}
	k.held.Store(&map[string]grant{})
	return k
}

// Want says which duties the instance would do, in place of those it wanted before.
func (k *Keeper) Want(names ...string) {
	k.mu.Lock()
	k.wanted = map[string]bool{}
	for _, name := range names {
		k.wanted[name] = true
	}
	k.mu.Unlock()
	k.poke()
}

// Holds reports whether the instance has a duty at this moment. It reads memory and a clock only.
func (k *Keeper) Holds(name string) bool {
	_, ok := k.grant(name)
	return ok
}

func (k *Keeper) grant(name string) (grant, bool) {
	g, ok := (*k.held.Load())[name]
	return g, ok && k.cfg.Elapsed() < g.until
}

// While runs fn whenever the instance holds a duty, until ctx ends. The context of fn is bound to the duty (see Fenced) and ends with it.
// While waits for fn then. It returns when fn returns by itself.
func (k *Keeper) While(ctx context.Context, name string, fn func(context.Context) error) error {
	for {
		changed := k.changes()
		g, ok := k.grant(name)
		if ok {
			if isOver, err := k.during(ctx, name, g.epoch, fn); isOver {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// during runs fn while the instance holds a duty in one epoch. IsOver says that While has ended as well.
func (k *Keeper) during(ctx context.Context, name string, epoch int64, fn func(context.Context) error) (isOver bool, err error) {
	held, end := context.WithCancel(context.WithValue(ctx, boundKey{}, bound{name, epoch}))
	defer end()
	done := make(chan error, 1)
	k.count(name, 1)
	go func() {
		defer k.count(name, -1)
		done <- fn(held)
	}()
	for {
		changed := k.changes()
		g, ok := k.grant(name)
		if !ok || g.epoch != epoch {
			end()
			<-done // what it says is that it was ended
			return false, nil
		}
		select {
		case err := <-done:
			return true, err
		case <-changed:
		case <-time.After(g.until - k.cfg.Elapsed()):
		}
	}
}

// Run shows signs of life, and takes and gives up duties, until ctx ends. Then it gives up what it has, at once. It returns a Conflict when
// another process runs as this instance.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.leave()
	for {
		wait, err := k.beat(ctx)
		if inventory.IsKind(err, inventory.Conflict) || inventory.IsKind(err, inventory.NotFound) {
			return err
		}
		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.poked:
		case <-timer:
		}
	}
}

// beat is one transaction of Run. It returns when the next one is due, 0 for no time.
func (k *Keeper) beat(ctx context.Context) (wait time.Duration, err error) {
	wanted := k.wants()
	k.drop(func(name string) bool { return !wanted[name] }) // before the others can read it
	var t turn
	asked := k.cfg.Elapsed()
	within, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	err = k.cfg.Store.Write(within, func(tx inventory.Tx) error {
		t = turn{keeper: k, tx: tx, wanted: wanted, held: map[string]int64{}}
		return t.run()
	})
	switch {
	case inventory.IsKind(err, inventory.Conflict) || inventory.IsKind(err, inventory.NotFound):
		return 0, inventory.Errorf(inventory.Conflict, "this instance, %s, has lost its place in the database: %v", k.cfg.Name, err).
			WithHint("it was away, and another process was started with its name or a copy of its data directory: slipway instance list")
	case err != nil && ctx.Err() != nil:
		return 0, nil
	case err != nil:
		k.cutOff(err)
		return retryEvery, nil
	}
	k.hold(t.held, asked)
	t.log()
	if k.isCutOff {
		k.isCutOff = false
		k.cfg.Log.Info("the database answers again", "duties", slices.Sorted(maps.Keys(t.held)))
	}
	if k.isDrained != t.self.IsDrained {
		k.isDrained = t.self.IsDrained
		k.cfg.Log.Info("an admin has changed whether this instance holds duties", "drained", k.isDrained)
		k.poke()
	}
	if k.cfg.IsAlone {
		return 0, nil
	}
	return t.wait, nil
}

// wants returns the duties that the instance would do now.
func (k *Keeper) wants() map[string]bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.isDrained {
		return nil
	}
	return maps.Clone(k.wanted)
}

// hold replaces the duties of the instance by those that a transaction has left it. Asked is the own time before that began.
func (k *Keeper) hold(epochs map[string]int64, asked time.Duration) {
	held := make(map[string]grant, len(epochs))
	for name, epoch := range epochs {
		g := grant{epoch: epoch, until: forever}
		if !k.cfg.IsAlone {
			g.until = asked + heldFor(name)
		}
		held[name] = g
	}
	k.set(held)
}

// drop stops holding some duties. Nothing is written.
func (k *Keeper) drop(which func(name string) bool) {
	was := *k.held.Load()
	held := maps.Clone(was)
	maps.DeleteFunc(held, func(name string, _ grant) bool { return which(name) })
	if len(held) < len(was) {
		k.set(held)
	}
}

func (k *Keeper) set(held map[string]grant) {
	k.held.Store(&held)
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.changed)
	k.changed = make(chan struct{})
}

// changes returns a channel that closes with the next change of what is held.
func (k *Keeper) changes() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}

// Look makes the keeper look at the duties at once. Without it, one that another instance gives up is free for up to a second.
func (k *Keeper) Look() { k.poke() }

// count notes that a work under a duty begins or ends.
func (k *Keeper) count(name string, by int) {
	k.mu.Lock()
	k.works[name] += by
	k.mu.Unlock()
	k.poke()
}

// isBusy reports whether work runs under a duty. Others would begin with theirs as soon as they can read that it was given up.
func (k *Keeper) isBusy(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.works[name] > 0
}

func (k *Keeper) poke() {
	select {
	case k.poked <- struct{}{}:
	default:
	}
}

// cutOff notes that the database did not answer. What is held ends by itself.
func (k *Keeper) cutOff(err error) {
	k.watch.forget()
	if !k.isCutOff {
		k.isCutOff = true
		k.cfg.Log.Warn("the database does not answer: the duties of this instance end soon, unless it does again", "err", err)
	}
	now := k.cfg.Elapsed()
	k.drop(func(name string) bool {
		g := (*k.held.Load())[name]
		if now < g.until {
			return false
		}
		k.cfg.Log.Warn("duty has ended here: the database has not answered for too long", "duty", name)
		return true
	})
}
