// Package attach_test owns the tests that attach real API servers at run time: what is installed there, what stops an
// attachment and what it says then, that it comes back by itself, that one of several appliances acts, and that nothing
// is left of a cluster that was detached.
package attach_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/live"
	"slipway.dev/slipway/inventory/secret"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/manager"
	"slipway.dev/slipway/kubernetes/standalone"
	metal "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/test/kube/cluster"
)

// TestMain sends what the Kubernetes libraries log to nowhere, as an appliance without --log-level debug does.
func TestMain(m *testing.M) {
	manager.RouteLogs(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// limit is how long a test waits for anything.
const limit = 90 * time.Second

// acting counts, by cluster, the managers that may act at the moment, of all appliances of this process.
type acting struct {
	mu    sync.Mutex
	n     map[string]int
	worst map[string]int
}

func (a *acting) change(cluster string, by int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n == nil {
		a.n, a.worst = map[string]int{}, map[string]int{}
	}
	a.n[cluster] += by
	a.worst[cluster] = max(a.worst[cluster], a.n[cluster])
}

// side is an appliance: all of it that attaching needs.
type side struct {
	t        testing.TB
	store    *sqlstore.Store
	box      *secret.Box
	local    *backend.Local
	attacher *manager.Attacher
	acting   *acting
	name     string
	panics   atomic.Value // name of the cluster whose controllers break down
	isReal   atomic.Bool  // the stand-alone controllers run as well
	stopOnce sync.Once
	stopAll  func()
}

func (s *side) Open(ctx context.Context, name string) (plain []byte, err error) {
	err = s.store.Read(ctx, func(tx inventory.Tx) error {
		x, err := tx.Secrets().Find(name)
		if err != nil {
			return err
		}
		plain, err = s.box.Open(name, x.Sealed)
		return err
	})
	return plain, err
}

// newSide starts an appliance whose controllers write their appliance's name into each MetalMachine.
func newSide(t testing.TB, name, version string, a *acting) *side {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	s := &side{t: t, acting: a, name: name}
	s.panics.Store("")
	s.store, err = sqlstore.Open(context.Background(), sqlstore.Config{Path: filepath.Join(dir, "slipway.db")})
	must(t, err)
	s.box, err = secret.NewBox([]byte("0123456789abcdef0123456789abcdef"))
	must(t, err)
	log := slog.New(slog.DiscardHandler)
	hub := live.New(live.Config{Store: s.store})
	s.store.OnCommit(hub.Wake)
	var ulids atomic.Int64
	engine := provision.New(provision.Config{Store: s.store, Now: time.Now, Log: log, NewULID: func() string { return fmt.Sprint("u", ulids.Add(1)) }})
	s.local = backend.NewLocal(backend.LocalConfig{Engine: engine, Store: s.store, Events: hub, Secrets: s.box})
	s.attacher = manager.New(manager.Config{
		Store: s.store, Secrets: s, Appliance: s.local, Sets: []manager.Set{s.marks()}, Identity: name, Version: version, Log: log,
		Pause: 100 * time.Millisecond, ProbeEvery: 200 * time.Millisecond,
		Lease: manager.Lease{Duration: 6 * time.Second, Renew: 4 * time.Second, Retry: 500 * time.Millisecond},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = hub.Serve(ctx) })
	wg.Go(func() {
		if err := s.attacher.Serve(ctx); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	s.stopAll = func() { cancel(); wg.Wait() }
	t.Cleanup(func() { s.stop(); _ = s.store.Close() })
	return s
}

// stop ends the appliance, as a restart does.
func (s *side) stop() { s.stopOnce.Do(s.stopAll) }

const markAnnotation = "example.com/marked-by"

func (s *side) marks() manager.Set {
	return manager.Set{Mode: inventory.ModeStandalone, AddToScheme: metal.AddToScheme, Setup: func(mgr crmanager.Manager, env controllers.Env) error {
		if s.panics.Load() == env.Cluster {
			panic("a bug")
		}
		if env.ClusterUID == "" {
			return errors.New("the cluster has no UID")
		}
		if s.isReal.Load() {
			if err := standalone.Setup(mgr, env); err != nil {
				return err
			}
		}
		err := mgr.Add(crmanager.RunnableFunc(func(ctx context.Context) error { // runs where the manager leads
			s.acting.change(env.ClusterUID, 1)
			defer s.acting.change(env.ClusterUID, -1)
			<-ctx.Done()
			return nil
		}))
		if err != nil {
			return err
		}
		return builder.ControllerManagedBy(mgr).Named("marks").For(&metal.MetalMachine{}).Complete(reconcile.Func(
			func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				m := &metal.MetalMachine{}
				if err := mgr.GetClient().Get(ctx, r.NamespacedName, m); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				if len(m.ManagedFields) > 0 {
					return reconcile.Result{}, errors.New("managed fields are cached")
				}
				if m.Annotations[markAnnotation] == s.name {
					return reconcile.Result{}, nil
				}
				patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, markAnnotation, s.name)
				return reconcile.Result{}, mgr.GetClient().Patch(ctx, m, client.RawPatch("application/merge-patch+json", []byte(patch)))
			}))
	}}
}

// attach attaches a cluster as the API does: a sealed kubeconfig, and a row.
func (s *side) attach(c inventory.Cluster, kubeconfig []byte) {
	s.t.Helper()
	c.Kubeconfig, c.State = manager.KubeconfigSecret(c.Name), inventory.ClusterAttaching
	must(s.t, c.Validate())
	s.give(c.Name, kubeconfig)
	must(s.t, s.store.Write(context.Background(), func(tx inventory.Tx) error {
		if err := tx.Clusters().Create(&c, time.Now()); err != nil {
			return err
		}
		return tx.AddEvent(&inventory.Event{At: time.Now(), Kind: inventory.EventChanged, Subject: "cluster/" + c.Name})
	}))
}

// give stores the kubeconfig of a cluster, whether there is one or not.
func (s *side) give(name string, kubeconfig []byte) {
	s.t.Helper()
	must(s.t, s.local.SaveSecret(context.Background(), manager.KubeconfigSecret(name), "", kubeconfig))
}

func (s *side) find(name string) (c inventory.Cluster, err error) {
	err = s.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		c, err = tx.Clusters().Find(name)
		return err
	})
	return c, err
}

// until waits for a state whose reason and hint hold some words.
func (s *side) until(name string, state inventory.ClusterState, words ...string) inventory.Cluster {
	s.t.Helper()
	var c inventory.Cluster
	cluster.Until(s.t, limit, fmt.Sprintf("cluster %s is %s %q for %s", name, state, words, s.name), func() (err error) {
		if c, err = s.find(name); err != nil {
			return err
		}
		for _, w := range words {
			if !strings.Contains(c.Reason+" "+c.Hint, w) {
				return fmt.Errorf("%s, %q, %q does not say %q", c.State, c.Reason, c.Hint, w)
			}
		}
		if c.State != state {
			return fmt.Errorf("it is %s: %s", c.State, c.Reason)
		}
		return nil
	})
	return c
}

// untilIssue waits until the issue of a cluster is open, or not.
func (s *side) untilIssue(name string, isOpen bool) {
	s.t.Helper()
	cluster.Until(s.t, limit, fmt.Sprintf("the issue of cluster %s is open: %v", name, isOpen), func() error {
		return s.store.Read(context.Background(), func(tx inventory.Tx) error {
			all, err := tx.ListIssues(false, "")
			if err != nil {
				return err
			}
			n := 0
			for _, i := range all {
				if i.Key == inventory.IssueCluster+"/"+name && i.Hint != "" {
					n++
				}
			}
			if (n == 1) != isOpen {
				return fmt.Errorf("%d such issues", n)
			}
			return nil
		})
	})
}

// admin is an administrator of a cluster.
type admin struct {
	client.Client
	t testing.TB
}

func adminOf(t testing.TB, c *cluster.Cluster) *admin {
	t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(c.Admin())
	must(t, err)
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, metal.AddToScheme(scheme))
	cl, err := client.New(cfg, client.Options{Scheme: scheme})
	must(t, err)
	return &admin{cl, t}
}

// machine makes a MetalMachine, when the kind is served.
func (a *admin) machine(name string, finalizers ...string) *metal.MetalMachine {
	a.t.Helper()
	m := &metal.MetalMachine{}
	m.Namespace, m.Name, m.Finalizers = "default", name, finalizers
	m.Spec.OS.Profile = "debian"
	cluster.Until(a.t, limit, "MetalMachine "+name+" is made", func() error {
		if err := a.Create(context.Background(), m); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
	return m
}

// untilMarked waits until controllers of an appliance have seen a MetalMachine.
func (a *admin) untilMarked(name, by string) {
	a.t.Helper()
	cluster.Until(a.t, limit, "MetalMachine "+name+" is marked by "+by, func() error {
		m := &metal.MetalMachine{}
		if err := a.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: name}, m); err != nil {
			return err
		}
		if got := m.Annotations[markAnnotation]; got != by {
			return fmt.Errorf("marked by %q", got)
		}
		return nil
	})
}

func (a *admin) crd(name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	return u, a.Get(context.Background(), client.ObjectKey{Name: name}, u)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
