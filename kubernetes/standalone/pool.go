package standalone

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

const (
	// The field managers of MetalPools.
	managerPool       = "slipway-pool"        // the finalizer
	managerPoolStatus = "slipway-pool-status" // the status
)

const (
	// countAfter collects the events of all hosts before one count of a pool.
	countAfter = 2 * time.Second
	// poolAgain is how often the controller tries again to save a pool whose name is taken, or to delete one that
	// machines name.
	poolAgain = 30 * time.Second
)

// pools reconciles MetalPools.
type pools struct {
	env    controllers.Env
	client client.Client
	log    *slog.Logger
	now    func() time.Time
}

// setupPools adds the controller of MetalPools to a manager.
func setupPools(mgr manager.Manager, env controllers.Env, feed *controllers.Feed) error {
	log := cmp.Or(env.Log, slog.New(slog.DiscardHandler))
	r := &pools{env: env, client: mgr.GetClient(), log: log.With("cluster", env.Cluster), now: time.Now}
	b := builder.ControllerManagedBy(mgr).Named("metalpool").
		For(&v1alpha1.MetalPool{}, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, finalizersChanged{}))).
		WatchesRawSource(controllers.On(feed, countAfter, r.ofEvent)).
		WatchesRawSource(controllers.Once(feed, r.all))
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("set up the controller of MetalPools: %w", err)
	}
	return nil
}

// counting are the kinds of events that move a host from one count to another, or into a pool.
var counting = []string{
	inventory.EventStateChanged, inventory.EventClaimed, inventory.EventFreed, inventory.EventHostChanged, inventory.EventHostDeleted,
	inventory.EventHostDiscovered, inventory.EventWiped, inventory.EventInspected,
}

func (r *pools) ofEvent(ev inventory.Event) []reconcile.Request {
	if !slices.Contains(counting, ev.Kind) && !strings.HasPrefix(ev.Subject, "pool/") {
		return nil
	}
	all, err := r.all(context.Background())
	if err != nil {
		r.log.Warn("pools not listed", "err", err)
	}
	return all
}

func (r *pools) all(ctx context.Context) (all []reconcile.Request, err error) {
	if all, err = controllers.Requests(ctx, r.client, &v1alpha1.MetalPoolList{}); err != nil {
		return nil, fmt.Errorf("list MetalPools: %w", err)
	}
	return all, nil
}

// owner returns the owner of a pool: the object of that name, without its UID. So an object that was restored from a
// backup owns the same pool.
func (r *pools) owner(mp *v1alpha1.MetalPool) contract.Owner {
	return contract.Owner{ClusterUID: r.env.ClusterUID, Kind: v1alpha1.KindMetalPool, Name: mp.Name}
}

// Reconcile implements reconcile.Reconciler.
func (r *pools) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var mp v1alpha1.MetalPool
	if err := r.client.Get(ctx, req.NamespacedName, &mp); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !mp.DeletionTimestamp.IsZero() {
		return r.remove(ctx, &mp)
	}
	// Before the pool is there: a deletion must find the finalizer, or the pool stays.
	if err := controllers.AddFinalizer(ctx, r.client, &mp, v1alpha1.FinalizerPool, managerPool); err != nil {
		return reconcile.Result{}, err
	}
	p, err := translate.Pool(&mp, r.owner(&mp))
	if err == nil {
		err = r.env.Appliance.SavePool(ctx, p)
	}
	switch {
	case translate.IsInvalid(err), inventory.IsKind(err, inventory.Invalid):
		// Only a change of the object helps. It wakes this controller, so that no retry is needed.
		return reconcile.Result{}, r.tell(ctx, &mp, string(v1alpha1.FailureInvalidConfiguration), controllers.Explain(err))
	case inventory.IsKind(err, inventory.Conflict):
		return reconcile.Result{RequeueAfter: poolAgain}, r.tell(ctx, &mp, "NameTaken", controllers.Explain(err))
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("save pool %s: %w", mp.Name, err)
	}
	return reconcile.Result{}, r.tell(ctx, &mp, "", "")
}

// remove deletes the pool of an object, and then the finalizer. A pool that machines name stays, and so does the
// object, until they are gone.
func (r *pools) remove(ctx context.Context, mp *v1alpha1.MetalPool) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(mp, v1alpha1.FinalizerPool) {
		return reconcile.Result{}, nil
	}
	err := r.env.Appliance.DeletePool(ctx, mp.Name, r.owner(mp).String())
	if inventory.IsKind(err, inventory.Conflict) && r.isOurs(ctx, mp) {
		return reconcile.Result{RequeueAfter: poolAgain}, r.tell(ctx, mp, v1alpha1.ReasonDeleting, controllers.Explain(err))
	}
	if err != nil && !inventory.IsKind(err, inventory.Conflict) {
		return reconcile.Result{}, fmt.Errorf("delete pool %s: %w", mp.Name, err)
	}
	return reconcile.Result{}, controllers.RemoveFinalizer(ctx, r.client, mp, v1alpha1.FinalizerPool, managerPool)
}

// isOurs reports whether the pool of that name belongs to the object. If the list fails it says yes: a finalizer too
// long is better than a lost pool.
func (r *pools) isOurs(ctx context.Context, mp *v1alpha1.MetalPool) bool {
	all, err := r.env.Appliance.ListPools(ctx)
	return err != nil || slices.ContainsFunc(all, func(p inventory.Pool) bool { return p.Name == mp.Name && p.Owner == r.owner(mp).String() })
}

// tell writes the status when it differs: the reason of a refusal, or the counts of hosts.
func (r *pools) tell(ctx context.Context, mp *v1alpha1.MetalPool, reason, message string) error {
	s := v1alpha1.MetalPoolStatus{ObservedGeneration: mp.Generation, Conditions: slices.Clone(mp.Status.Conditions)}
	if reason == "" {
		// Counted at the time of the write. Events of hosts come in bursts, and On makes one Reconcile of them.
		n, err := r.env.Appliance.CountPool(ctx, mp.Name)
		if err != nil {
			return fmt.Errorf("count the hosts of pool %s: %w", mp.Name, err)
		}
		s.Total, s.Available, s.Claimed, s.Cleaning, s.Failed = int32(n.Total), int32(n.Available), int32(n.Claimed), int32(n.Cleaning), int32(n.Failed)
		setCondition(&s.Conditions, mp.Generation, r.now(), v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	} else {
		setCondition(&s.Conditions, mp.Generation, r.now(), v1alpha1.Ready, metav1.ConditionFalse, reason, message)
	}
	if equality.Semantic.DeepEqual(s, mp.Status) {
		return nil
	}
	return client.IgnoreNotFound(controllers.ApplyStatus(ctx, r.client, mp, v1alpha1.GroupVersion.WithKind(v1alpha1.KindMetalPool), managerPoolStatus, &s))
}
