// Package clusterapi is the infrastructure provider for Cluster API, contract v1beta2. It holds the controllers of
// SlipwayCluster, SlipwayMachine, SlipwayMachineTemplate and SlipwayRemediation. The controllers never choose a host
// or touch one: they ask a contract.Appliance for every effect. They never keep bootstrap data.
//
// As in package standalone, the lasting state is in the objects and in the inventory, and memory holds caches.
// clusterctl move takes spec and annotations to another cluster, but no status. So what must survive a move, such as
// the claim, is in the spec.
//
// Start reading at Setup, then Reconcile in the file of each kind. kit.go and owner.go hold what the kinds share.
package clusterapi

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/kubernetes/controllers"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/node"
)

// needed are the kinds of Cluster API that the controllers read. Without them no controller starts.
var needed = []schema.GroupKind{
	{Group: clusterv1.GroupVersion.Group, Kind: "Cluster"}, {Group: clusterv1.GroupVersion.Group, Kind: "Machine"},
}

// lastCRD is the definition that awaiting watches: the installation of Cluster API brings it together with the other
// kinds.
const lastCRD = "machines.cluster.x-k8s.io"

// AddToScheme registers the kinds that the controllers read and write.
func AddToScheme(s *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme} {
		if err := add(s); err != nil {
			return err
		}
	}
	return nil
}

// Setup adds the controllers to a manager that has not started, and registers their kinds in its scheme. The scheme
// must not be shared with another manager. In a cluster without Cluster API it only watches one definition; the
// controllers start when that appears, without a restart.
func Setup(mgr manager.Manager, env controllers.Env) error {
	if err := AddToScheme(mgr.GetScheme()); err != nil {
		return fmt.Errorf("register the kinds of Cluster API: %w", err)
	}
	k := &kit{
		env: env, client: mgr.GetClient(), direct: mgr.GetAPIReader(), events: mgr.GetEventRecorder("slipway"),
		log: cmp.Or(env.Log, slog.New(slog.DiscardHandler)).With("cluster", env.Cluster),
	}
	k.yard = &yard{appliance: env.Appliance}
	if isServed(mgr.GetRESTMapper()) {
		return k.start(mgr)
	}
	// A controller that is added now would fail: its informers find no kinds, and the manager would end.
	return mgr.Add(&awaiting{mgr: mgr, kit: k})
}

// isServed reports whether the API server serves all kinds that the controllers need.
func isServed(mapper apimeta.RESTMapper) bool {
	for _, gk := range needed {
		if _, err := mapper.RESTMapping(gk, clusterv1.GroupVersion.Version); err != nil {
			return false
		}
	}
	return true
}

// start adds the controllers. The manager may run already: it starts what is added to it later.
func (k *kit) start(mgr manager.Manager) (err error) {
	// One feed and one set of clusters for all controllers: each event and each watch comes once.
	if k.feed, err = controllers.NewFeed(mgr, k.env); err != nil {
		return err
	}
	k.nodes = node.NewSet(k.log, k.env.Egress)
	if err := mgr.Add(k.nodes); err != nil {
		return err
	}
	if err := index(mgr); err != nil {
		return err
	}
	for what, setup := range map[string]func(manager.Manager, *kit) error{
		"machines": setupMachines, "clusters": setupClusters, "templates": setupTemplates, "remediations": setupRemediations,
	} {
		if err := setup(mgr, k); err != nil {
			return fmt.Errorf("set up the controller of %s: %w", what, err)
		}
	}
	return nil
}

// awaiting starts the controllers once Cluster API is installed.
type awaiting struct {
	mgr manager.Manager
	kit *kit
}

// Start implements manager.Runnable. It returns when Cluster API is there or ctx is done. Its cache is its own, so
// the watch ends when Start returns.
func (a *awaiting) Start(ctx context.Context) error {
	// Definitions have no namespace. An account with rights in namespaces only cannot watch them.
	if a.kit.env.Reach.Narrow() {
		return a.poll(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	crd := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
	seen, err := cache.New(a.mgr.GetConfig(), cache.Options{
		HTTPClient: a.mgr.GetHTTPClient(), Scheme: a.mgr.GetScheme(), Mapper: a.mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{crd: {Field: fields.OneTermEqualSelector("metadata.name", lastCRD)}},
	})
	if err != nil {
		return fmt.Errorf("watch for Cluster API: %w", err)
	}
	// Without blocking: the cache starts below.
	informer, err := seen.GetInformer(ctx, crd, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch for Cluster API: %w", err)
	}
	// Room for one: a second change before the first is handled needs no look of its own.
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { tell() }, UpdateFunc: func(any, any) { tell() },
	}); err != nil {
		return fmt.Errorf("watch for Cluster API: %w", err)
	}
	var watching sync.WaitGroup
	watching.Go(func() { _ = seen.Start(ctx) })
	defer watching.Wait()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed: // once when it is made and again when it is established
			if a.isServedSoon(ctx) {
				a.kit.log.Info("cluster api appeared")
				return a.kit.start(a.mgr)
			}
		}
	}
}

// poll asks every 30 s whether Cluster API is there, for an account that may not watch definitions.
func (a *awaiting) poll(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(30 * time.Second):
			if isServed(a.mgr.GetRESTMapper()) {
				a.kit.log.Info("cluster api appeared")
				return a.kit.start(a.mgr)
			}
		}
	}
}

// isServedSoon waits up to 20 s: the API server establishes a definition some moments before it serves the kind.
func (a *awaiting) isServedSoon(ctx context.Context) bool {
	for range 20 {
		if isServed(a.mgr.GetRESTMapper()) {
			return true
		}
		if sleep.For(ctx, time.Second) != nil {
			return false
		}
	}
	return false
}
