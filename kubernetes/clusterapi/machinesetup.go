package clusterapi

import (
	"context"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/node"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
)

// The indexes of the cache.
const (
	byDataSecret = "capi.dataSecretName" // Machines by the Secret that they boot with
	byExtra      = "capi.extraConfig"    // SlipwayMachines by the Secrets that they add
)

// index adds the indexes that the controllers need. It must run before the informers of these kinds start.
func index(mgr manager.Manager) error {
	err := controllers.Index(mgr, &clusterv1.Machine{}, byDataSecret, func(m *clusterv1.Machine) []string {
		if m.Spec.Bootstrap.DataSecretName == nil || machineOf(m) == "" {
			return nil
		}
		return []string{*m.Spec.Bootstrap.DataSecretName}
	})
	if err != nil {
		return err
	}
	return controllers.Index(mgr, &infrav1.SlipwayMachine{}, byExtra, func(sm *infrav1.SlipwayMachine) (names []string) {
		for _, x := range sm.Spec.ExtraConfig {
			names = append(names, x.SecretRef.Name)
		}
		return names
	})
}

// setupMachines adds the controller of SlipwayMachines to a manager.
func setupMachines(mgr manager.Manager, k *kit) error {
	r := &machines{
		kit: k, cache: mgr.GetCache(), boots: &controllers.Bootstraps{},
		orphans: &controllers.Orphans{Env: &k.env, Kind: infrav1.KindSlipwayMachine, Log: k.log},
	}
	o := &objects{kit: k, boots: r.boots}
	b := builder.ControllerManagedBy(mgr).Named("slipwaymachine").
		For(&infrav1.SlipwayMachine{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, ownersChanged{}))).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(o.ofMachine), builder.WithPredicates(machineChanged{})).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(o.ofCluster), builder.WithPredicates(clusterChanged{})).
		WatchesRawSource(controllers.On(k.feed, 20*time.Millisecond, o.ofEvent)).
		WatchesRawSource(controllers.Once(k.feed, o.all)).
		WatchesRawSource(k.nodes.Source(o.ofNode)).
		WithOptions(options(8))
	if k.env.Reach.HasSecrets() {
		b = b.WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(o.ofSecret))
	}
	return b.Complete(r)
}

// objects finds the SlipwayMachines that some news concern.
type objects struct {
	*kit
	boots *controllers.Bootstraps
}

// ofMachine returns the object of a Machine. A change of the Machine may name its bootstrap data.
func (r *objects) ofMachine(_ context.Context, o client.Object) []reconcile.Request {
	m, ok := o.(*clusterv1.Machine)
	if !ok || machineOf(m) == "" {
		return nil
	}
	return request(m.Namespace, machineOf(m))
}

// ofCluster returns all machines of a Cluster: they wait for its infrastructure, its control plane or the end of a pause.
func (r *objects) ofCluster(ctx context.Context, o client.Object) []reconcile.Request {
	return r.listed(ctx, client.InNamespace(o.GetNamespace()), client.MatchingLabels{clusterv1.ClusterNameLabel: o.GetName()})
}

// ofSecret returns the objects that boot with a Secret, as bootstrap data or as extraConfig.
func (r *objects) ofSecret(ctx context.Context, o client.Object) (all []reconcile.Request) {
	var ms clusterv1.MachineList
	if err := r.client.List(ctx, &ms, client.InNamespace(o.GetNamespace()), client.MatchingFields{byDataSecret: o.GetName()}); err == nil {
		for i := range ms.Items {
			all = append(all, r.ofMachine(ctx, &ms.Items[i])...)
		}
	}
	return append(all, r.listed(ctx, client.InNamespace(o.GetNamespace()), client.MatchingFields{byExtra: o.GetName()})...)
}

func (r *objects) listed(ctx context.Context, opts ...client.ListOption) (all []reconcile.Request) {
	all, _ = controllers.Requests(ctx, r.client, &infrav1.SlipwayMachineList{}, opts...) // the cache fails only when it ends
	return all
}

// ofEvent returns the objects that an event of the inventory concerns.
func (r *objects) ofEvent(ev inventory.Event) []reconcile.Request {
	if ev.Kind == inventory.EventChanged && (strings.HasPrefix(ev.Subject, "profile/") || strings.HasPrefix(ev.Subject, "image/") || strings.HasPrefix(ev.Subject, "pool/")) {
		return r.unclaimed()
	}
	name, ok := r.env.ObjectOf(contract.OwnerOf(ev), infrav1.KindSlipwayMachine)
	if !ok {
		return nil
	}
	if ev.Kind == inventory.EventBootstrapWanted {
		// Before the request is queued: the pass that follows must know that the host asks for its data.
		r.boots.Ask(name)
	}
	return []reconcile.Request{{NamespacedName: name}}
}

// unclaimed returns the objects without a host: what they need may exist now.
func (r *objects) unclaimed() (all []reconcile.Request) {
	var sms infrav1.SlipwayMachineList
	if err := r.client.List(context.Background(), &sms); err != nil { // from the cache
		return nil
	}
	for i := range sms.Items {
		if sms.Items[i].Spec.ClaimID == "" {
			all = append(all, request(sms.Items[i].Namespace, sms.Items[i].Name)...)
		}
	}
	return all
}

// all returns all objects, and the machines in the inventory whose objects may be gone. It runs once after the start,
// because events of the time before are lost.
func (r *objects) all(ctx context.Context) ([]reconcile.Request, error) {
	views, err := r.env.Appliance.ListMachines(ctx, r.env.ClusterUID+"/")
	if err != nil {
		return nil, err
	}
	all := r.listed(ctx)
	for _, v := range views {
		if name, ok := r.env.ObjectOf(v.Machine.Owner, infrav1.KindSlipwayMachine); ok && r.env.Watches(name.Namespace) {
			all = append(all, reconcile.Request{NamespacedName: name})
		}
	}
	return all, nil
}

// machineChanged passes Machines in which something changed that the controller reads. It drops changes of the
// status, which are frequent.
type machineChanged struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (machineChanged) Update(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*clusterv1.Machine)
	is, ok2 := e.ObjectNew.(*clusterv1.Machine)
	return !ok || !ok2 || was.Generation != is.Generation || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() ||
		!maps.Equal(was.Labels, is.Labels) || !maps.Equal(was.Annotations, is.Annotations)
}

// ofNode returns the machines that a node of a workload cluster may be: the one with its provider ID, and those
// without a node. n is nil when all may have changed.
func (r *objects) ofNode(key string, n *node.Node) (all []reconcile.Request) {
	namespace, cluster, _ := strings.Cut(key, "/")
	var sms infrav1.SlipwayMachineList
	opts := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster}}
	if err := r.client.List(context.Background(), &sms, opts...); err != nil { // from the cache
		r.log.Warn("machines of a node not listed", "cluster", key, "err", err)
		return nil
	}
	for i := range sms.Items {
		sm := &sms.Items[i]
		if n == nil || sm.Spec.ProviderID != "" && sm.Spec.ProviderID == n.ProviderID || !isTrue(sm.Status.Conditions, metalv1.NodeJoined) {
			all = append(all, request(sm.Namespace, sm.Name)...)
		}
	}
	return all
}
