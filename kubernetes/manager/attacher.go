package manager

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/kubeconfig"
)

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

// Wake makes Serve read the clusters now. It never blocks.
func (a *Attacher) Wake() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func modesOf(c inventory.Cluster) []inventory.ClusterMode {
	if len(c.Modes) == 0 {
		return inventory.ClusterModes()
	}
	return c.Modes
}

// sets returns the controllers that run for a cluster.
func (a *Attacher) sets(c inventory.Cluster) []Set {
	return slices.DeleteFunc(slices.Clone(a.cfg.Sets), func(s Set) bool { return !c.Runs(s.Mode) })
}

// open reads a kubeconfig and makes the clients. It opens no connection yet.
func (a *Attacher) open(name, what string, text []byte) (*peer, error) {
	cfg, err := kubeconfig.Parse(what, text)
	if err != nil {
		return nil, err
	}
	// Many machines at once are many small requests; the API server has limits of its own that are fairer than ours.
	cfg.QPS, cfg.Burst = 500, 1000
	cfg.Dial = a.cfg.Egress.DialCluster
	return newPeer(name, cfg)
}

// connect opens the kubeconfig of a cluster.
func (a *Attacher) connect(ctx context.Context, c inventory.Cluster) (*peer, error) {
	text, err := a.cfg.Secrets.Open(ctx, c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return a.open(c.Name, "secret "+c.Kubeconfig+" of cluster "+c.Name, text)
}
