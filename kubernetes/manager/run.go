package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	metal "slipway.dev/slipway/kubernetes/v1alpha1"
)

// LeaseNamespace holds the lease that lets one process at a time run the controllers of a cluster.
const LeaseNamespace = "slipway-system"

// watchFilterLabel is Cluster API's label for objects that are for one of several managers.
const watchFilterLabel = "cluster.x-k8s.io/watch-filter"

// Lease holds the times of leadership. The zero value is the default, which costs six small writes a minute. It hands
// over within a minute when a leader dies, and at once when it stops.
type Lease struct{ Duration, Renew, Retry time.Duration }

// Options configure one manager.
type Options struct {
	Appliance contract.Appliance
	Cluster   string // its name, for people
	// UID is what the cluster is known by, as the appliance has checked it; "" takes what the cluster says. A server that says
	// another one afterwards is refused: whose machines it has depends on it.
	UID string
	// BoundTo is the UID of the cluster that the appliance's token is bound to, "" for none.
	BoundTo     string
	Namespaces  []string
	WatchFilter string
	Sets        []Set
	// LeaseNamespace is where the lease is, LeaseNamespace when empty; Identity is who holds it: "" runs without a lease.
	LeaseNamespace string
	Identity       string
	Lease          Lease
	OnElected      func() // called once the controllers may run
	Log            *slog.Logger
	Egress         *egress.Policy
	// Health is the address that answers /healthz and /readyz; "" for none.
	Health string
}

// LeaseName names the lease of managers that would do the same work. Managers for other namespaces or labels have
// another one, and run at the same time.
func (o Options) LeaseName() string {
	if len(o.Namespaces) == 0 && o.WatchFilter == "" {
		return "slipway"
	}
	// A hash, because a name has 63 characters at most. Sorted, so that the order of flags makes no second lease.
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, slices.Sorted(slices.Values(o.Namespaces)), o.WatchFilter)
	return fmt.Sprintf("slipway-%08x", h.Sum32())
}

// ManagerOptions returns the options of every manager of ours. Several live in one process, come and go, and serve no
// metrics. They never cache Secrets and ConfigMaps: a typed Get is one request, and a watch sees metadata only.
func ManagerOptions(scheme *runtime.Scheme, o Options) manager.Options {
	// A Reconcile that hangs must not keep its cluster from being attached again: after stop it is left alone. Attached
	// clusters have controllers of the same names, so that names are not checked.
	yes, stop := true, 10*time.Second
	opts := manager.Options{
		Scheme: scheme, Logger: logrOf(o.Log), Metrics: metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: cmp.Or(o.Health, "0"), PprofBindAddress: "0", GracefulShutdownTimeout: &stop,
		Controller: config.Controller{SkipNameValidation: &yes},
		Cache:      cache.Options{DefaultTransform: slim},
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}},
		}},
	}
	if len(o.Namespaces) > 0 {
		opts.Cache.DefaultNamespaces = map[string]cache.Config{}
		for _, n := range o.Namespaces {
			opts.Cache.DefaultNamespaces[n] = cache.Config{}
		}
	}
	if o.WatchFilter != "" && scheme.Recognizes(metal.GroupVersion.WithKind("MetalMachine")) {
		// The filter is in the watch, and not in the controllers: objects of other managers are not even read.
		only := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{watchFilterLabel: o.WatchFilter})}
		opts.Cache.ByObject = map[client.Object]cache.ByObject{&metal.MetalMachine{}: only, &metal.JoinTarget{}: only}
	}
	return opts
}

// slim removes from cached objects what no controller reads: the managed fields, and kubectl's copy of the object,
// which holds the values of a Secret.
func slim(in any) (any, error) {
	if o, err := apimeta.Accessor(in); err == nil {
		o.SetManagedFields(nil)
		if a := o.GetAnnotations(); a[corev1.LastAppliedConfigAnnotation] != "" {
			delete(a, corev1.LastAppliedConfigAnnotation)
			o.SetAnnotations(a)
		}
	}
	return in, nil
}

// Scheme returns the kinds that controllers read and write.
func Scheme(sets []Set) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	adders := []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, eventsv1.AddToScheme}
	for _, s := range sets {
		if s.AddToScheme != nil {
			adders = append(adders, s.AddToScheme)
		}
	}
	for _, add := range adders {
		if err := add(scheme); err != nil {
			return nil, inventory.Errorf(inventory.Internal, "cannot speak Kubernetes: %w", err)
		}
	}
	return scheme, nil
}

// Run runs the controllers of one cluster until ctx ends or they cannot continue, which is an error. When it returns,
// its goroutines and connections have ended.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	for {
		// Only new rights start the controllers again at once. After all other ends the caller waits before it tries again.
		err := runOnce(ctx, cfg, o)
		if !errors.Is(err, errReach) || ctx.Err() != nil {
			return err
		}
		o.Log.Info("controllers start again", "why", err)
	}
}

// runOnce runs the controllers as far as the account goes now; it ends with errReach when that changes.
func runOnce(ctx context.Context, cfg *rest.Config, o Options) error {
	cfg, hangUp := ownConnections(cfg)
	defer hangUp() // runs last: until then a Reconcile that is ending may still write its status
	// A client without a cache, because these questions decide how the cache is made.
	p, err := newPeer(o.Cluster, cfg)
	if err != nil {
		return err
	}
	defer p.hangUp()
	if err := p.narrow(ctx, o.Namespaces); err != nil {
		return err
	}
	// Before the manager: one informer that may not read its namespace would keep the whole cache from its first sync.
	reach, err := p.reach(ctx, o.Namespaces)
	if err != nil {
		return err
	}
	if o.LeaseNamespace == "" {
		o.LeaseNamespace = p.leaseIn(o.Namespaces)
	}
	scheme, err := Scheme(o.Sets)
	if err != nil {
		return err
	}
	opts := ManagerOptions(scheme, o)
	only(&opts, reach)
	if o.Identity != "" {
		if err := elect(cfg, o, &opts); err != nil {
			return err
		}
	}
	mgr, err := manager.New(cfg, opts)
	if err != nil {
		return fmt.Errorf("make the manager of cluster %s: %w", o.Cluster, err)
	}
	// Asked again over the connections of this manager: since session asked, another cluster may have taken the address.
	uid, err := uidOf(ctx, mgr.GetAPIReader(), o.Namespaces)
	if err != nil {
		return err
	}
	// Before Setup: no controller may run in a cluster that is not the one that was checked, or that the token is for.
	if err := isSame(o.Cluster, o.UID, uid); err != nil {
		return err
	}
	if err := isBound(o.BoundTo, uid); err != nil {
		return err
	}
	env := controllers.Env{
		Appliance: backend.ForCluster(o.Appliance, uid, namespacesOf(mgr.GetAPIReader(), o.Namespaces)), Cluster: o.Cluster, ClusterUID: uid, Namespaces: o.Namespaces, WatchFilter: o.WatchFilter, Log: o.Log, Egress: o.Egress,
		Reach: reach,
	}
	for _, s := range o.Sets {
		if err := s.Setup(mgr, env); err != nil {
			return fmt.Errorf("set up the %s controllers of cluster %s: %w", s.Mode, o.Cluster, err)
		}
	}
	if o.Health != "" {
		// A pod that waits for the lease is well, and takes over when the other one goes. A probe that asks for more would
		// have it restarted for nothing.
		always := func(*http.Request) error { return nil }
		if err := mgr.AddHealthzCheck("ping", always); err != nil {
			return err
		}
		if err := mgr.AddReadyzCheck("ping", always); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	// In a goroutine of its own: Elected is closed while Start runs, which returns only at the end.
	if o.OnElected != nil {
		wg.Go(func() {
			select {
			case <-ctx.Done():
			case <-mgr.Elected():
				o.OnElected()
			}
		})
	}
	// changed is read after Wait only. follow ends the manager, and Run starts one with a cache that fits the new rights.
	var changed error
	wg.Go(func() {
		if changed = p.follow(ctx, o.Namespaces, reach); changed != nil {
			cancel()
		}
	})
	// Start fails when the lease is lost. Then another process may lead, and nothing here may write any more.
	err = mgr.Start(ctx)
	cancel()
	wg.Wait()
	return cmp.Or(changed, err)
}

// only keeps the cache of Secrets' metadata to the namespaces whose Secrets may be read.
func only(opts *manager.Options, r *controllers.Reach) {
	if !r.IsLimited {
		return
	}
	secrets := &metav1.PartialObjectMetadata{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	in := map[string]cache.Config{}
	for _, ns := range r.Secrets {
		in[ns] = cache.Config{}
	}
	if opts.Cache.ByObject == nil {
		opts.Cache.ByObject = map[client.Object]cache.ByObject{}
	}
	opts.Cache.ByObject[secrets] = cache.ByObject{Namespaces: in}
}

// namespacesOf reads the labels of the namespaces that the controllers watch.
func namespacesOf(c client.Reader, names []string) backend.Namespaces {
	kind := corev1.SchemeGroupVersion.WithKind("Namespace")
	return func(ctx context.Context) (all []map[string]string, err error) {
		ctx, cancel := context.WithTimeout(ctx, callFor)
		defer cancel()
		if len(names) == 0 {
			// Asked of the API server, and not of a cache: the answer is used for some seconds, and decides who may use a host.
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
			err := c.List(ctx, list)
			for i := range list.Items {
				all = append(all, list.Items[i].Labels)
			}
			return all, err
		}
		for _, name := range names {
			n := &metav1.PartialObjectMetadata{}
			n.SetGroupVersionKind(kind)
			if err := c.Get(ctx, client.ObjectKey{Name: name}, n); client.IgnoreNotFound(err) != nil {
				return nil, err
			}
			all = append(all, n.Labels)
		}
		return all, nil
	}
}

// elect has the manager hold a lease.
func elect(cfg *rest.Config, o Options, opts *manager.Options) error {
	l := o.Lease
	if l.Duration == 0 {
		l = Lease{60 * time.Second, 40 * time.Second, 10 * time.Second}
	}
	own := rest.CopyConfig(cfg)
	own.Timeout = l.Renew / 2 // a renewal that hangs must leave time for another
	leases, err := coordination.NewForConfig(own)
	if err != nil {
		return fmt.Errorf("speak to the leases of cluster %s: %w", o.Cluster, err)
	}
	namespace := cmp.Or(o.LeaseNamespace, LeaseNamespace)
	opts.LeaderElection = true
	opts.LeaderElectionResourceLockInterface = &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.LeaseName()}, Client: leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity},
	}
	// When this process stops in order, another one need not wait for the end of the lease.
	opts.LeaderElectionReleaseOnCancel = true
	// A leader that cannot renew gives up before others may take the lease. The difference is for writes that are still on
	// their way.
	opts.LeaseDuration, opts.RenewDeadline, opts.RetryPeriod = &l.Duration, &l.Renew, &l.Retry
	return nil
}

// uidOf returns what a cluster is known by: the UID of its namespace kube-system; where the account may not read that, the
// UID of the first of the namespaces that the controllers watch.
func uidOf(ctx context.Context, c client.Reader, namespaces []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	n := &metav1.PartialObjectMetadata{}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	// No field of a cluster says who it is. This namespace exists as long as the cluster, and cannot be deleted.
	err := c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, n)
	if apierrors.IsForbidden(err) && len(namespaces) > 0 {
		return uidOfNamespace(ctx, c, first(namespaces))
	}
	return string(n.UID), err
}

// isSame compares the UID that a cluster reports with the one of before, "" for the first time. A server behind the
// same address may be another cluster after a rebuild.
func isSame(name, before, uid string) error {
	if !inventory.IsClusterUID(uid) {
		return inventory.Errorf(inventory.Invalid, "cluster %s does not say who it is: %q is no UID", name, inventory.Clean(uid, 64)).
			WithHint("a cluster is known by the UID of its namespace kube-system: kubectl get namespace kube-system -o jsonpath={.metadata.uid}")
	}
	if before != "" && before != uid {
		return inventory.Errorf(inventory.Conflict, "cluster %s says now that it is another one: its UID was %s and is %s", name, inventory.Clean(before, 64), inventory.Clean(uid, 64)).
			WithHint("if it is a new cluster: slipway cluster detach %s, then attach it again, and name its pools again", name)
	}
	return nil
}

// isBound refuses the token of another cluster: everything would be refused, object by object.
func isBound(to, uid string) error {
	if to == "" || to == uid {
		return nil
	}
	return inventory.Errorf(inventory.Forbidden, "the token is for the cluster with the UID %s, and this one has the UID %s", inventory.Clean(to, 64), inventory.Clean(uid, 64)).
		WithHint("an admin of Slipway makes one for this cluster: slipway token create NAME --cluster %s", inventory.Clean(uid, 64))
}

// ownConnections returns a copy of a configuration whose connections are closed by hangUp. client-go shares them between
// all clients with the same credentials, and would keep them open.
func ownConnections(cfg *rest.Config) (own *rest.Config, hangUp func()) {
	own = rest.CopyConfig(cfg)
	if own.QPS == 0 { // client-go would let five requests a second through; the server has its own limits
		own.QPS, own.Burst = 500, 1000
	}
	if own.Proxy == nil {
		own.Proxy = http.ProxyFromEnvironment // one that says its proxy is not shared
	}
	if own.UserAgent == "" || strings.HasPrefix(own.UserAgent, "slipway") {
		own.UserAgent = "slipway"
	}
	var (
		mu  sync.Mutex
		all []http.RoundTripper
	)
	own.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		mu.Lock()
		defer mu.Unlock()
		// Each client wraps its own transport, also those that controller-runtime makes later: so the lock.
		all = append(all, rt)
		return rt
	})
	return own, func() {
		mu.Lock()
		defer mu.Unlock()
		for _, rt := range all {
			utilnet.CloseIdleConnectionsFor(rt)
		}
	}
}
