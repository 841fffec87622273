// Package rig owns a whole Slipway with a Kubernetes control plane for tests: a real API server with our kinds, the
// engine on a real store, controllers that speak to it, and robots that play the hardware through the engine's doors. It
// never replaces a part of ours by another; nothing of it opens a port but the control plane, on loopback.
//
// Start reading at New. A test says what should happen with Client, and watches what becomes of it with WaitFor.
package rig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/live"
	"slipway.dev/slipway/inventory/secret"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/kubernetes/apply"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/join"
	"slipway.dev/slipway/kubernetes/manager"
	"slipway.dev/slipway/kubernetes/node"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/test/kube/cluster"
)

// Setup adds controllers to a manager, such as metal.Setup.
type Setup = func(mgr crmanager.Manager, env controllers.Env) error

// LeaseHolder is who holds the lease of controllers with Options.Elected.
const LeaseHolder = "the-rig"

// LogEnv shows what engine and controllers log, for people who look for a fault.
const LogEnv = "SLIPWAY_RIG_LOG"

// Options say what a rig has.
type Options struct {
	Hosts  int               // accepted, inspected hosts with controllers that obey at once
	Labels map[string]string // of those hosts
	Setup  []Setup           // the controllers that run; none when empty
	Site   string            // first part of provider ids; "lab" when empty
	// NoRobots leaves the machines dead: they are switched on and never come to the network.
	NoRobots bool
	// Schemes add kinds to the scheme, besides those of client-go and of Slipway.
	Schemes []func(*runtime.Scheme) error
	// Modes are what is installed in the cluster; stand-alone kinds when empty.
	Modes []inventory.ClusterMode
	// Namespaces and WatchFilter narrow what controllers look at.
	Namespaces  []string
	WatchFilter string
	// Elected has the controllers act only while they hold the lease, and is told each time that they may.
	Elected func()
	// Nodes empties the nodes of machines that go; nil empties none.
	Nodes func(*Rig) operation.Nodes
	Log   *slog.Logger // of the engine and the controllers; none when nil
}

// Rig is a Slipway with a cluster attached. Everything of it ends with its test.
type Rig struct {
	Cluster    *cluster.Cluster
	Client     client.Client // of an administrator, without a cache
	Config     *rest.Config  // the same
	Kubeconfig []byte        // the same
	Store      *sqlstore.Store

	t       testing.TB
	o       Options
	scheme  *runtime.Scheme
	box     *secret.Box
	bank    *fake.Bank
	calls   counter
	ahead   atomic.Int64 // nanoseconds that the engine's clock is ahead
	hub     atomic.Pointer[live.Hub]
	engine  atomic.Pointer[provision.Engine]
	local   atomic.Pointer[backend.Local]
	serving atomic.Pointer[context.Context] // of the server of the moment
	playing sync.WaitGroup                  // what robots do
	over    context.Context

	mu          sync.Mutex
	robots      []*Robot
	byName      map[string]*Robot
	server      *running // engine, hub, joiner
	controllers *running
}

// running is something that was started and can be stopped.
type running struct {
	stop context.CancelFunc
	done chan error
}

func run(parts ...func(context.Context) error) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{stop: cancel, done: make(chan error, 1)}
	go func() {
		var all sync.WaitGroup
		errs := make([]error, len(parts))
		for i, part := range parts {
			all.Go(func() { errs[i] = part(ctx) })
		}
		all.Wait()
		r.done <- errors.Join(errs...)
	}()
	return r
}

func (r *running) end() error {
	if r == nil {
		return nil
	}
	r.stop()
	return <-r.done
}

// New makes a rig. Rigs on one control plane, see Main, take turns: a test that wants several cases at a time makes one
// rig, and runs them as parallel subtests in namespaces and on hosts of their own.
func New(t testing.TB, o Options) *Rig {
	t.Helper()
	if o.Site == "" {
		o.Site = "lab"
	}
	if o.Log == nil && os.Getenv(LogEnv) != "" {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	shared.logs.Do(func() { manager.RouteLogs(o.Log) })
	r := &Rig{t: t, o: o, byName: map[string]*Robot{}, scheme: schemeOf(t, o)}
	r.Cluster = controlPlane(t)
	r.Kubeconfig = r.Cluster.Admin()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(r.Kubeconfig)
	r.must(err)
	cfg.QPS = -1
	r.Config = cfg
	r.Client, err = client.New(cfg, client.Options{Scheme: r.scheme})
	r.must(err)
	r.install()
	r.openStore()
	ctx, over := context.WithCancel(context.Background())
	r.over = ctx
	r.bank = fake.New(fake.Options{Changed: r.powered})
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(r.History(120))
		}
		r.StopControllers()
		over()
		r.must(r.server.end())
		r.playing.Wait()
		r.must(errors.Join(r.bank.Close(), r.Store.Close()))
		r.tidy()
	})
	r.startServer()
	r.AddHosts(o.Hosts, o.Labels)
	r.StartControllers()
	return r
}

func schemeOf(t testing.TB, o Options) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme, addOurs}, o.Schemes...) {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (r *Rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// install brings our kinds into the cluster; again changes nothing.
func (r *Rig) install() {
	r.t.Helper()
	modes := r.o.Modes
	if len(modes) == 0 {
		modes = []inventory.ClusterMode{inventory.ModeStandalone}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r.must(manager.Install(ctx, r.Config, modes, "v0.0.0-test"))
}

func (r *Rig) openStore() {
	r.t.Helper()
	dir, err := filepath.EvalSymlinks(r.t.TempDir())
	r.must(err)
	r.Store, err = sqlstore.Open(context.Background(), sqlstore.Config{Path: filepath.Join(dir, "slipway.db")})
	r.must(err)
	r.box, err = secret.NewBox([]byte("0123456789abcdef0123456789abcdef"))
	r.must(err)
	r.Store.OnCommit(func() {
		if h := r.hub.Load(); h != nil {
			h.Wake()
		}
	})
	r.must(r.Store.Write(context.Background(), r.seed))
}

// Now is the engine's time.
func (r *Rig) Now() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }

// Skip lets the engine's clock jump ahead: what it waits for is late then. Controllers keep the time of the wall.
func (r *Rig) Skip(d time.Duration) { r.ahead.Add(int64(d)) }

// startServer starts what `slipway serve` has besides doors.
func (r *Rig) startServer() {
	r.t.Helper()
	vault := vault{r.box, r.Store}
	joiner := join.New(join.Config{Store: r.Store, Secrets: vault, Now: r.Now, Log: r.o.Log, ServingCerts: true, PollFor: 200 * time.Millisecond})
	engine := r.newEngine(joiner)
	hub := live.New(live.Config{Store: r.Store, Log: r.o.Log})
	r.engine.Store(engine)
	r.hub.Store(hub)
	r.local.Store(backend.NewLocal(backend.LocalConfig{Engine: engine, Store: r.Store, Events: hub, Secrets: r.box, Site: r.o.Site, By: "cluster test"}))
	keeper := apply.NewKeeper(apply.KeeperConfig{
		Appliance: r.local.Load(), Secrets: vault, Log: r.o.Log, Every: 200 * time.Millisecond,
		Planes: node.New(node.Config{Store: r.Store, Secrets: vault, Site: r.o.Site, Log: r.o.Log}),
	})
	ctx, over := context.WithCancel(context.Background())
	r.serving.Store(&ctx)
	r.server = run(engine.Serve, hub.Serve, joiner.Serve, keeper.Serve, func(ctx context.Context) error { <-ctx.Done(); over(); return nil })
}

// StartControllers starts the controllers of Options.Setup, as an attached cluster has them.
func (r *Rig) StartControllers() {
	r.t.Helper()
	if len(r.o.Setup) == 0 || r.controllers != nil {
		return
	}
	cfg := rest.CopyConfig(r.Config)
	cfg.Wrap(r.calls.wrap)
	set := manager.Set{
		Mode:        inventory.ModeStandalone,
		AddToScheme: func(s *runtime.Scheme) error { return addAll(s, r.o.Schemes) },
		Setup: func(mgr crmanager.Manager, env controllers.Env) error {
			for _, setup := range r.o.Setup {
				if err := setup(mgr, env); err != nil {
					return err
				}
			}
			return nil
		},
	}
	o := manager.Options{
		Appliance: r.Appliance(), Cluster: "test", Namespaces: r.o.Namespaces, WatchFilter: r.o.WatchFilter,
		Sets: []manager.Set{set}, Log: r.o.Log,
	}
	if r.o.Elected != nil {
		o.Identity, o.OnElected = LeaseHolder, r.o.Elected
	}
	r.controllers = run(func(ctx context.Context) error {
		for { // as the attacher does: a manager that ends is started again
			err := manager.Run(ctx, cfg, o)
			if ctx.Err() != nil {
				return nil
			}
			r.o.Log.Warn("controllers ended", "err", err)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
}

// StopControllers stops them: what happens in the cluster from now on is seen later.
func (r *Rig) StopControllers() {
	r.t.Helper()
	if err := r.controllers.end(); err != nil {
		r.t.Errorf("controllers: %v", err)
	}
	r.controllers = nil
}

// Restart kills the engine and the controllers, and starts new ones on the same store. Machines run on meanwhile.
func (r *Rig) Restart() {
	r.t.Helper()
	r.StopControllers()
	r.must(r.server.end())
	r.startServer()
	r.StartControllers()
}

// StopAPI stops the cluster's API server, and StartAPI starts it again.
func (r *Rig) StopAPI() { r.Cluster.StopAPI() }

// StartAPI starts the cluster's API server again.
func (r *Rig) StartAPI() { r.Cluster.StartAPI() }

// TB is what the rig was made for.
func (r *Rig) TB() testing.TB { return r.t }

// Engine returns the engine of the moment, and Appliance what controllers are given.
func (r *Rig) Engine() *provision.Engine { return r.engine.Load() }

// Appliance is what controllers are given.
func (r *Rig) Appliance() contract.Appliance { return r.local.Load() }

// Calls returns how often the controllers have called the API server since the rig was made.
func (r *Rig) Calls() Calls { return r.calls.read() }

// After has fn called behind each call of the controllers to the API server, before they read its answer; nil ends that.
func (r *Rig) After(fn func(Call, *http.Request)) {
	r.calls.mu.Lock()
	defer r.calls.mu.Unlock()
	r.calls.after = fn
}

// Namespace makes a namespace for a test, which goes with it.
func (r *Rig) Namespace(t testing.TB, labels ...string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("t%d", shared.ns.Add(1)), Labels: map[string]string{}}}
	for pair := range slices.Chunk(labels, 2) {
		ns.Labels[pair[0]] = pair[1]
	}
	r.Must(t, ns)
	return ns.Name
}

// Must creates objects.
func (r *Rig) Must(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := r.Client.Create(context.Background(), o); err != nil {
			t.Fatalf("create %s %s: %v", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
		}
	}
}

// Get reads an object by the name and namespace that it has.
func (r *Rig) Get(t testing.TB, o client.Object) {
	t.Helper()
	if err := r.Client.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
}

// Write changes the inventory behind everybody's back.
func (r *Rig) Write(t testing.TB, fn func(inventory.Tx) error) {
	t.Helper()
	if err := r.Store.Write(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

// Read looks into the inventory.
func (r *Rig) Read(t testing.TB, fn func(inventory.Tx) error) {
	t.Helper()
	if err := r.Store.Read(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}
