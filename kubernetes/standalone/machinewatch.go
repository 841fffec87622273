package standalone

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/node"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// The indexes of MetalMachines in the cache.
const (
	byTarget = "spec.bootstrap.join.targetRef.name"
	bySecret = "secrets"
)

// indexMachines adds the indexes by join target and by Secret. Each change of these would else read all MetalMachines.
func indexMachines(mgr manager.Manager) error {
	err := controllers.Index(mgr, &v1alpha1.MetalMachine{}, byTarget, func(mm *v1alpha1.MetalMachine) []string {
		if !translate.IsNode(mm) {
			return nil
		}
		return []string{mm.Spec.Bootstrap.Join.TargetRef.Name}
	})
	return cmp.Or(err, controllers.Index(mgr, &v1alpha1.MetalMachine{}, bySecret, secretsOf))
}

// secretsOf returns the names of the Secrets that a machine needs, sorted.
func secretsOf(mm *v1alpha1.MetalMachine) []string {
	var names []string
	if b := mm.Spec.Bootstrap; b != nil && b.DataSecretName != "" {
		names = append(names, b.DataSecretName)
	}
	for _, u := range translate.MachineSecrets(mm, contract.Owner{}) {
		names = append(names, u.Secret)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// listMachines lists MetalMachines from the cache.
func listMachines(ctx context.Context, c client.Client, options ...client.ListOption) ([]v1alpha1.MetalMachine, error) {
	var list v1alpha1.MetalMachineList
	if err := c.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("list MetalMachines: %w", err)
	}
	return list.Items, nil
}

// requests asks for a Reconcile of each object.
func requests(mms []v1alpha1.MetalMachine) []reconcile.Request {
	var all []reconcile.Request
	for i := range mms {
		all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&mms[i])})
	}
	return all
}

// objects finds the MetalMachines that some news concern. Most events name the owner of their machine; for the others it
// remembers the machines and hosts that Reconciles saw. mu guards the maps.
type objects struct {
	env    controllers.Env
	client client.Client
	boots  *controllers.Bootstraps
	log    *slog.Logger

	mu    sync.Mutex
	names map[string]types.NamespacedName           // by name in the inventory
	hosts map[inventory.HostID]types.NamespacedName // whose machine a host is
}

func newObjects(env controllers.Env, c client.Client, boots *controllers.Bootstraps, log *slog.Logger) *objects {
	return &objects{
		env: env, client: c, boots: boots, log: log,
		names: map[string]types.NamespacedName{}, hosts: map[inventory.HostID]types.NamespacedName{},
	}
}

// remember notes which object a machine and its host belong to.
func (r *objects) remember(key types.NamespacedName, v *contract.View) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[v.Machine.Name] = key
	if v.Host != nil {
		r.hosts[v.Host.ID] = key
	}
}

// forget drops the machines of an object.
func (r *objects) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.names, func(_ string, k types.NamespacedName) bool { return k == key })
	maps.DeleteFunc(r.hosts, func(_ inventory.HostID, k types.NamespacedName) bool { return k == key })
}

// listed lists MetalMachines. It only logs an error: the cache fails when the manager ends, and then nobody waits for them.
func (r *objects) listed(ctx context.Context, options ...client.ListOption) []v1alpha1.MetalMachine {
	mms, err := listMachines(ctx, r.client, options...)
	if err != nil {
		r.log.Warn("MetalMachines not listed", "err", err)
	}
	return mms
}

func (r *objects) ofTarget(ctx context.Context, o client.Object) []reconcile.Request {
	return requests(r.listed(ctx, client.InNamespace(o.GetNamespace()), client.MatchingFields{byTarget: o.GetName()}))
}

func (r *objects) ofSecret(ctx context.Context, o client.Object) []reconcile.Request {
	return requests(r.listed(ctx, client.InNamespace(o.GetNamespace()), client.MatchingFields{bySecret: o.GetName()}))
}

// ofNamespace returns the machines without a host: only for them it matters which pools the namespace may use.
func (r *objects) ofNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	mms := r.listed(ctx, client.InNamespace(o.GetName()))
	return requests(slices.DeleteFunc(mms, func(mm v1alpha1.MetalMachine) bool { return mm.Spec.ClaimID != "" }))
}

// targetNews passes the changes of a join target that machines wait for.
var targetNews = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok := e.ObjectOld.(*v1alpha1.JoinTarget)
		now, ok2 := e.ObjectNew.(*v1alpha1.JoinTarget)
		if !ok || !ok2 {
			return true
		}
		status := func(t *v1alpha1.JoinTarget, kind string) metav1.ConditionStatus {
			if c := apimeta.FindStatusCondition(t.Status.Conditions, kind); c != nil {
				return c.Status
			}
			return ""
		}
		return old.Generation != now.Generation || old.Status.InitHolder != now.Status.InitHolder ||
			old.DeletionTimestamp.IsZero() != now.DeletionTimestamp.IsZero() ||
			old.Annotations[v1alpha1.AnnotationCascade] != now.Annotations[v1alpha1.AnnotationCascade] ||
			status(old, v1alpha1.ControlPlaneInitialized) != status(now, v1alpha1.ControlPlaneInitialized) ||
			status(old, v1alpha1.Reachable) != status(now, v1alpha1.Reachable) ||
			status(old, conditionMirrored) != status(now, conditionMirrored)
	},
}

// telling are the kinds of events that change the status of a machine.
var telling = []string{
	inventory.EventMachine, inventory.EventOperation, inventory.EventClaimed, inventory.EventFreed, inventory.EventBootstrapWanted,
	inventory.EventStateChanged, inventory.EventConfigSent, inventory.EventReported, inventory.EventHostChanged,
}

// ofEvent returns the machine of an event of the inventory.
func (r *objects) ofEvent(ev inventory.Event) []reconcile.Request {
	if isNewsForRefused(ev) {
		return r.refused()
	}
	if !slices.Contains(telling, ev.Kind) {
		return nil
	}
	key, ok := r.keyOf(ev)
	if !ok {
		return nil
	}
	if ev.Kind == inventory.EventBootstrapWanted {
		// Before the request is queued: the pass that follows must know that the host asks for its data.
		r.boots.Ask(key)
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// isNewsForRefused reports whether an event creates or changes something that the spec of a machine may name.
func isNewsForRefused(ev inventory.Event) bool {
	switch kind, _, _ := strings.Cut(ev.Subject, "/"); ev.Kind {
	case inventory.EventChanged:
		return slices.Contains([]string{"profile", "image", "pool", "host", "layer", "secret"}, kind)
	case inventory.EventHostDiscovered:
		return true
	}
	return false
}

// refused returns the machines with an invalid spec: what they name may exist now.
func (r *objects) refused() []reconcile.Request {
	mms := r.listed(context.Background())
	return requests(slices.DeleteFunc(mms, func(mm v1alpha1.MetalMachine) bool {
		return mm.Status.FailureReason != v1alpha1.FailureInvalidConfiguration
	}))
}

func (r *objects) keyOf(ev inventory.Event) (types.NamespacedName, bool) {
	// Owners are stored, and what this process remembers is not. After a restart only events with an owner find their object,
	// and Once finds the others.
	if owner := contract.OwnerOf(ev); owner != "" {
		return r.env.ObjectOf(owner, v1alpha1.KindMetalMachine)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if name := controllers.MachineOf(ev); name != "" {
		key, ok := r.names[name]
		return key, ok
	}
	key, ok := r.hosts[ev.HostID]
	return key, ok && ev.HostID != ""
}

// all returns the objects of all machines of this cluster in the inventory, also those whose objects are gone. It
// runs once after the start.
func (r *objects) all(ctx context.Context) ([]reconcile.Request, error) {
	views, err := r.env.Appliance.ListMachines(ctx, r.env.ClusterUID+"/")
	if err != nil {
		return nil, fmt.Errorf("list machines of the cluster: %w", err)
	}
	var all []reconcile.Request
	for i := range views {
		if key, ok := r.env.ObjectOf(views[i].Machine.Owner, v1alpha1.KindMetalMachine); ok && r.env.Watches(key.Namespace) {
			all = append(all, reconcile.Request{NamespacedName: key})
		}
	}
	mms, err := listMachines(ctx, r.client) // those that the appliance lost
	return append(all, requests(mms)...), err
}

// ofNode returns the machines that a change in a workload cluster concerns: the machine of node n, or all machines
// when n is nil.
func (r *objects) ofNode(key string, n *node.Node) []reconcile.Request {
	target, ok := splitKey(key)
	if !ok {
		return nil
	}
	mms := r.listed(context.Background(), client.InNamespace(target.Namespace), client.MatchingFields{byTarget: target.Name})
	if n == nil {
		return requests(mms)
	}
	return requests(slices.DeleteFunc(mms, func(mm v1alpha1.MetalMachine) bool {
		switch {
		case mm.Status.NodeRef != nil:
			// A machine that knows its node waits for news of that node only.
			return mm.Status.NodeRef.Name != n.Name
		case n.ProviderID != "" && n.ProviderID == mm.Spec.ProviderID:
			return false
		}
		return mm.Spec.ClaimID == "" // any that waits for its node may be meant
	}))
}
