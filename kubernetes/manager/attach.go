// Package manager owns the Kubernetes clusters that are attached at run time. It checks whether a cluster can be
// used, installs the kinds in it, and runs one manager of controllers per cluster. A manager starts, stops and comes
// back without touching the others. The package knows nothing of what the controllers do.
//
// Start reading at Attacher.Serve (which clusters are wanted), then session.go (the life of one), then run.go (one
// manager). A detached cluster costs nothing.
package manager

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
)

// Set is a set of controllers that runs in attached clusters. The package calls its functions for every start of a
// manager.
type Set struct {
	Mode        inventory.ClusterMode
	AddToScheme func(*runtime.Scheme) error // the kinds that its controllers read and write; nil adds none
	Setup       func(manager.Manager, controllers.Env) error
}

// Secrets opens stored secrets by name.
type Secrets interface {
	Open(ctx context.Context, name string) ([]byte, error)
}

// Config holds what an Attacher needs. Store, Secrets, Appliance, Sets and Identity are required.
type Config struct {
	Store     inventory.Store
	Secrets   Secrets
	Appliance contract.Appliance
	Sets      []Set
	// Identity tells this appliance from others that attach the same cluster. It stays the same over restarts, so that
	// they need not wait for a lease of their own to end.
	Identity string
	Egress   *egress.Policy // which addresses clusters may be at; nil: anywhere
	Version  string         // of this program: what a newer one has installed is left as it is
	Now      func() time.Time
	Log      *slog.Logger
	// Pause is the first wait before a cluster is tried again that does not answer. It doubles up to 30 times its
	// value. 0 means 1 s.
	Pause time.Duration
	// ProbeEvery is how often Slipway asks a cluster for a sign of life: 30 s when 0.
	ProbeEvery time.Duration
	Lease      Lease
}

// Attacher attaches clusters. Many goroutines may call its methods. mu guards the maps, and is never held during a
// call to a cluster.
type Attacher struct {
	cfg Config
	// Has room for one: many changes at once are one look at the clusters.
	wake chan struct{}

	mu       sync.Mutex
	followed map[string]*follower // by name of the cluster
	leaving  map[string]bool      // being detached: not to be started again
	isOver   bool
}

// follower is the goroutine that keeps one cluster attached. stamp changes when it has to begin again.
type follower struct {
	stamp string
	stop  context.CancelFunc
	done  chan struct{}
}

// New returns an Attacher. It attaches nothing before Serve.
func New(cfg Config) *Attacher {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.Pause = cmp.Or(cfg.Pause, time.Second)
	cfg.ProbeEvery = cmp.Or(cfg.ProbeEvery, 30*time.Second)
	return &Attacher{cfg: cfg, wake: make(chan struct{}, 1), followed: map[string]*follower{}, leaving: map[string]bool{}}
}

// lookEvery is how often the stored clusters are read without an event, in case one was lost.
const lookEvery = time.Minute

// Serve attaches the clusters of the inventory, and follows it as they change. A cluster that cannot be reached does
// not delay any other. Serve returns nil when ctx ends, after everything that it started has ended.
func (a *Attacher) Serve(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	// First all followers end, then the watch. When Serve has returned, nothing of it calls the store any more.
	defer a.stopAll()
	wg.Go(func() { a.watch(ctx) })
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := a.look(ctx); err != nil && ctx.Err() == nil {
			a.cfg.Log.Warn("attached clusters not read", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-a.wake:
		}
	}
}

// Wake makes Serve read the clusters now. It never blocks.
func (a *Attacher) Wake() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// watch wakes when a cluster or its kubeconfig has changed.
func (a *Attacher) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := a.cfg.Appliance.Watch(ctx, func(e inventory.Event) {
			// The zero event comes when the stream begins: what happened before it has no event any more.
			if e.Kind == "" || e.Kind == inventory.EventChanged && (strings.HasPrefix(e.Subject, "cluster/") || strings.HasPrefix(e.Subject, "secret/")) {
				a.Wake()
			}
		})
		if ctx.Err() == nil {
			a.cfg.Log.Debug("events of clusters not read", "err", err)
			_ = sleep.For(ctx, a.cfg.Pause)
		}
	}
}

// wanted is a cluster, with a text that changes when it must be attached again: a new row, new settings or a new
// kubeconfig.
type wanted struct {
	inventory.Cluster
	stamp string
}

func (a *Attacher) list(ctx context.Context) (map[string]wanted, error) {
	out := map[string]wanted{}
	err := a.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		clear(out)
		all, err := tx.Clusters().List(inventory.Page{})
		if err != nil {
			return err
		}
		for _, c := range all {
			// The version of the secret is in the stamp: a renewed kubeconfig attaches the cluster again by itself.
			s, err := tx.Secrets().Find(c.Kubeconfig)
			if err != nil {
				return err
			}
			out[c.Name] = wanted{c, fmt.Sprintf("%s %d %s %d", c.CreatedAt, c.Version, c.Kubeconfig, s.Version)}
		}
		return nil
	})
	return out, err
}

// look starts and stops followers, so that they match the stored clusters.
func (a *Attacher) look(ctx context.Context) error {
	clusters, err := a.list(ctx)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, f := range a.followed {
		if c, ok := clusters[name]; !ok || c.stamp != f.stamp {
			f.stop()
			// A changed one stays in the map: start waits for its end before the new one begins.
			if !ok {
				delete(a.followed, name)
			}
		}
	}
	for name, c := range clusters {
		f := a.followed[name]
		// A cluster that is being detached keeps its row until the last step. It must not be attached again meanwhile.
		if f != nil && f.stamp == c.stamp || a.leaving[name] || a.isOver {
			continue
		}
		a.followed[name] = a.start(ctx, c, f)
	}
	return nil
}

// start follows a cluster once its former follower has ended. Two managers for one cluster at the same time would act
// on the same objects under one identity, which the lease cannot prevent.
func (a *Attacher) start(ctx context.Context, c wanted, former *follower) *follower {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{stamp: c.stamp, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		defer cancel()
		if former != nil {
			<-former.done
		}
		a.follow(ctx, c.Cluster)
	}()
	return f
}

func (a *Attacher) stopAll() {
	a.mu.Lock()
	a.isOver = true
	all := a.followed
	a.followed = map[string]*follower{}
	a.mu.Unlock()
	// All are stopped first and waited for afterwards. They give up their leases side by side, and not one after the other.
	for _, f := range all {
		f.stop()
	}
	for _, f := range all {
		<-f.done
	}
}

// follow keeps a cluster attached through all failures.
func (a *Attacher) follow(ctx context.Context, c inventory.Cluster) {
	log := a.cfg.Log.With("cluster", c.Name)
	wait := a.cfg.Pause
	for ctx.Err() == nil {
		// The pause begins again only when the controllers run. A cluster that answers and then fails is tried less and less often.
		err := a.guarded(ctx, c, func() { wait = a.cfg.Pause })
		if ctx.Err() != nil {
			return
		}
		e := asError(c.Name, err)
		log.Warn("cluster not attached", "reason", e.Msg, "hint", e.Hint, "err", e.Err, "again", wait)
		// Unreachable is what time may mend. All else waits for a person.
		state := inventory.ClusterFailed
		if e.Kind == inventory.Unavailable {
			state = inventory.ClusterUnreachable
		}
		// The same failure again writes nothing: note compares it with the row.
		a.note(ctx, c, func(n *inventory.Cluster) { n.State, n.Reason, n.Hint = state, e.Msg, e.Hint })
		_ = sleep.For(ctx, wait/2+rand.N(wait/2+1)) // spread, so that clusters behind one router do not return together
		wait = min(2*wait, 30*a.cfg.Pause)
	}
}

// guarded runs one session and turns a panic into its error: it must not end the other clusters.
func (a *Attacher) guarded(ctx context.Context, c inventory.Cluster, up func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = inventory.Errorf(inventory.Internal, "cluster %s: its controllers broke down: %v", c.Name, p)
		}
	}()
	return a.session(ctx, c, up)
}
