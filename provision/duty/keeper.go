package duty

import (
	"cmp"
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

// Config holds the settings of a Keeper. Store, ID and Name are required.
type Config struct {
	Store inventory.Store
	// Instance says who this is: ID, Name, Addresses, Links and Version.
	inventory.Instance
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

	seen    atomic.Pointer[seen]
	answers atomic.Int64         // how often the database has answered Run
	takenN  atomic.Int64         // duties
	told    atomic.Pointer[Told] // replaced whole
	works   works

	mu      sync.Mutex
	wanted  map[string]bool
	changed chan struct{} // closed and replaced with each change of held
	poked   chan struct{}

	// The rest is of the goroutine that calls Register and Run.

	watch     watch
	former    map[string]int64 // duties, with their epochs, of the run before this one
	formerAt  time.Duration    // when that run gave its last sign of life, or earlier
	isDrained bool
	undrains  bool // see Undrain
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
		cfg: cfg, run: rand.Text(), wanted: map[string]bool{}, watch: watch{},
		changed: make(chan struct{}), poked: make(chan struct{}, 1),
	}
	k.works = works{n: map[string]int{}, changed: k.poke}
	k.held.Store(&map[string]grant{})
	k.told.Store(&Told{Addresses: cfg.Addresses, Links: cfg.Links})
	k.seen.Store(&seen{})
	return k
}

// Undrain has Register end a drain of this instance. It is for when no other instance is left that could.
func (k *Keeper) Undrain() { k.undrains = true }

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

// Epoch returns the epoch in which the instance has a duty at this moment; ok is false when it does not have it.
func (k *Keeper) Epoch(name string) (epoch int64, ok bool) {
	g, ok := k.grant(name)
	return g.epoch, ok
}

func (k *Keeper) grant(name string) (grant, bool) {
	g, ok := (*k.held.Load())[name]
	return g, ok && k.cfg.Elapsed() < g.until
}

// Tell changes what the instance tells. The others see it with its next sign of life, which comes at once.
func (k *Keeper) Tell(change func(*Told)) {
	k.mu.Lock()
	was := k.told.Load()
	is := *was
	change(&is)
	is.Addresses, is.Links = slices.Clone(is.Addresses), slices.Clone(is.Links)
	k.told.Store(&is)
	k.mu.Unlock()
	if !is.equals(was) {
		k.poke()
	}
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

func (k *Keeper) poke() {
	select {
	case k.poked <- struct{}{}:
	default:
	}
}
