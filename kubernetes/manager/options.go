package manager

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
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
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	metal "slipway.dev/slipway/kubernetes/v1alpha1"
)

// Set is a set of controllers that runs in attached clusters. The package calls its functions for every start of a
// manager.
type Set struct {
	Mode        inventory.ClusterMode
	AddToScheme func(*runtime.Scheme) error // the kinds that its controllers read and write; nil adds none
	Setup       func(manager.Manager, controllers.Env) error
}

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
