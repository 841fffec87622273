package standalone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/node"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

const (
	// machinesAtOnce bounds the Reconciles that run at once. Each mostly waits for the API server or the store; those
	// that wait for the store share its transactions.
	machinesAtOnce = 16
	// placedWithin is how long the status stays silent about a new machine without a host. Nearly every machine has
	// its host by then, which saves one write.
	placedWithin = 2 * time.Second
)

// setupMachines adds the controller of MetalMachines to a manager.
func setupMachines(mgr manager.Manager, env controllers.Env, feed *controllers.Feed, nodes *node.Set) error {
	log := cmp.Or(env.Log, slog.New(slog.DiscardHandler))
	log = log.With("cluster", env.Cluster)
	boots := &controllers.Bootstraps{}
	r := &machines{
		reporter: &reporter{client: mgr.GetClient(), events: mgr.GetEventRecorder("slipway"), now: time.Now, told: map[string]string{}},
		env:      env, feed: feed, client: mgr.GetClient(), direct: mgr.GetAPIReader(), log: log, nodes: nodes, boots: boots, now: time.Now,
		objects: newObjects(env, mgr.GetClient(), boots, log), sealed: map[string]string{},
	}
	r.orphans = &controllers.Orphans{Env: &r.env, Kind: v1alpha1.KindMetalMachine, Log: log, Deleted: r.forget, Kept: r.orphan}
	r.turns = newTurns(r.seed)
	if err := indexMachines(mgr); err != nil {
		return err
	}
	b := builder.ControllerManagedBy(mgr).Named("metalmachine").
		For(&v1alpha1.MetalMachine{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		WithOptions(controller.Options{MaxConcurrentReconciles: machinesAtOnce}).
		Watches(&v1alpha1.JoinTarget{}, handler.EnqueueRequestsFromMapFunc(r.objects.ofTarget), builder.WithPredicates(targetNews)).
		WatchesRawSource(controllers.On(feed, 50*time.Millisecond, r.objects.ofEvent)).
		WatchesRawSource(controllers.Once(feed, r.objects.all)).
		WatchesRawSource(nodes.Source(r.objects.ofNode)).
		WatchesRawSource(r.turns.source())
	if env.Reach.HasSecrets() {
		b = b.WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.objects.ofSecret))
	}
	if !env.Reach.Narrow() { // else no watch of Namespaces works
		b = b.WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.objects.ofNamespace), builder.WithPredicates(predicate.LabelChangedPredicate{}))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("set up the controller of MetalMachines: %w", err)
	}
	return nil
}

// Reconcile implements reconcile.Reconciler. Its order is fixed: first what the inventory has, then what the object
// wants, and the status last.
func (r *machines) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var mm v1alpha1.MetalMachine
	err := r.client.Get(ctx, req.NamespacedName, &mm)
	if apierrors.IsNotFound(err) {
		var there v1alpha1.MetalMachine // the cache has objects with our watch filter only
		if err := r.direct.Get(ctx, req.NamespacedName, &there); !apierrors.IsNotFound(err) {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, r.orphans.Look(ctx, req.NamespacedName, "")
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read MetalMachine %s: %w", req, err)
	}
	// A copy: all readers of the cache share its objects.
	p := &pass{mm: mm.DeepCopy(), owner: r.ownerOf(&mm)}
	p.facts.IsDeleting = !mm.DeletionTimestamp.IsZero()
	if mm.Status.ObservedGeneration == 0 || mm.Spec.ClaimID == "" { // it is new: another one may have had its name
		// The machine of that former object would hold its host for nobody.
		if err := r.orphans.Look(ctx, req.NamespacedName, p.owner.String()); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := r.look(ctx, p); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.offer(ctx, p); err != nil { // paused as well: that is how objects are moved
		return reconcile.Result{}, err
	}
	switch by := pausedBy(&mm); {
	// A pause stops a deletion too: who moves an object deletes it here, and its host must run on.
	case by != "":
		err = r.pause(ctx, p, by)
	case p.facts.IsDeleting:
		err = r.delete(ctx, p)
	default:
		err = r.run(ctx, p)
	}
	if isConflict(err) { // somebody wrote at the same time; what they wrote is looked at first
		return reconcile.Result{RequeueAfter: time.Second, Priority: new(controllers.Told)}, nil
	}
	// Behind the objects that are new: nothing was done for those yet.
	return reconcile.Result{RequeueAfter: p.again, Priority: new(controllers.Told)}, err
}

func isConflict(err error) bool {
	return apierrors.IsConflict(err) || inventory.IsKind(err, inventory.Conflict)
}

// run brings the machine of an object to the state that its spec describes. Each step saves its result before the
// next begins. The finalizer comes before the machine exists, so that no deletion can leave a host behind.
func (r *machines) run(ctx context.Context, p *pass) error {
	if err := controllers.AddFinalizer(ctx, r.client, p.mm, v1alpha1.FinalizerMachine, managerMachine); err != nil {
		return err
	}
	isReady, err := r.findTarget(ctx, p)
	if err != nil {
		return err
	}
	// Without its join target the machine has no place in a cluster. The status says what is missing, and a change of the
	// target wakes the object.
	if isReady {
		if err := r.request(ctx, p); err != nil {
			return err
		}
	}
	// Nearly every new machine gets its host at once. Its claim is an event, and then one status says everything.
	if p.isCreated && p.view != nil && p.view.Claim == nil { // its claim wakes us
		p.again = placedWithin
		return nil
	}
	if err := r.bind(ctx, p); err != nil {
		return err
	}
	if err := r.bootstrap(ctx, p); err != nil {
		return err
	}
	// The reason goes to the machine as well. People who look at the host in Slipway read there why it stays off.
	if b := &p.facts.Bootstrap; p.view != nil && b.Reason != "" {
		if err := translate.Hold(ctx, r.env.Appliance, &p.view.Machine, b.Message); err != nil {
			return err
		}
	}
	// A workload cluster that fails must not hide the rest: the status is written in any case.
	err = r.observe(ctx, p)
	r.noteTurn(p)
	return errors.Join(err, r.report(ctx, p))
}

// offer tells the inventory which cluster may take over the machine, as the annotation of the object says.
func (r *machines) offer(ctx context.Context, p *pass) error {
	to := p.mm.Annotations[v1alpha1.AnnotationHandOverTo]
	if to == r.env.ClusterUID { // it came here with the object
		to = ""
	}
	if p.view == nil || p.view.Machine.OfferedTo == to || p.facts.IsDeleting {
		return nil
	}
	err := r.env.Appliance.Offer(ctx, p.owner.String(), to)
	if inventory.IsKind(err, inventory.Invalid) {
		r.once(p, "offer", to, func() {
			r.tellf(p.mm, corev1.EventTypeWarning, "BadHandOver", "annotation %s: %s", v1alpha1.AnnotationHandOverTo, controllers.Explain(err))
		})
		return nil
	}
	if err != nil {
		return fmt.Errorf("offer machine %s: %w", p.view.Machine.Name, err)
	}
	return r.look(ctx, p)
}

// pause keeps new steps from beginning, and writes only the condition Paused. A machine without a host gets a hook
// before its claim. A running installation continues; its result shows when the pause ends.
func (r *machines) pause(ctx context.Context, p *pass, by string) error {
	if p.view != nil && p.view.Machine.HostID == "" && p.view.Machine.DeletedAt.IsZero() {
		hold := inventory.Hook{Step: inventory.PreClaim, Owner: translate.HoldOwner}
		isHeld := slices.ContainsFunc(p.view.Machine.Hooks, func(h inventory.Hook) bool {
			return h.Step == hold.Step && h.Owner == hold.Owner && h.AckedAt.IsZero()
		})
		if !isHeld {
			m := p.view.Machine
			m.Hooks = append(slices.DeleteFunc(slices.Clone(m.Hooks), func(h inventory.Hook) bool { return h.Step == hold.Step && h.Owner == hold.Owner }), hold)
			// A conflict when the machine got its host meanwhile. The next Reconcile sees the host and holds nothing.
			if _, err := r.env.Appliance.UpdateMachine(ctx, m); err != nil {
				return fmt.Errorf("hold machine %s: %w", m.Name, err)
			}
		}
	}
	// No report while the object is paused: the tool that moves it must not see other conditions change.
	text, phase := "annotation "+by+"; remove it to go on", p.mm.Status.Phase
	cs, isNew := translate.Pause(p.mm.Status.Conditions, true, text, p.mm.Generation, r.now())
	if p.facts.IsDeleting {
		phase = v1alpha1.PhaseDeleting
		cs, isNew = translate.PausedEnd(p.mm.Status.Conditions, text, p.mm.Generation, r.now())
	}
	if !isNew && phase == p.mm.Status.Phase {
		return nil
	}
	if phase != p.mm.Status.Phase {
		at := metav1.NewTime(r.now().Truncate(time.Second))
		p.mm.Status.Phase, p.mm.Status.LastUpdated = phase, &at
	}
	p.mm.Status.Conditions = cs
	return r.writeStatus(ctx, p.mm)
}

// bind writes claim and provider ID into the spec. They must survive a move of the object, and a move loses the
// status; so bind runs before report.
func (r *machines) bind(ctx context.Context, p *pass) error {
	if p.view == nil || p.view.Claim == nil {
		return nil
	}
	s := &p.mm.Spec
	if claim := string(p.view.Claim.ID); s.ClaimID != claim || s.ProviderID != p.view.ProviderID {
		isNewHost := s.ClaimID != ""
		if err := r.applySpec(ctx, p.mm, managerClaim, map[string]any{"claimID": claim, "providerID": p.view.ProviderID}); err != nil {
			return fmt.Errorf("write the claim: %w", err)
		}
		s.ClaimID, s.ProviderID = claim, p.view.ProviderID
		// The event comes after the patch, so that no event names a claim that the object does not have.
		note := "claimed host %s"
		if isNewHost {
			note = "has a new claim, on host %s"
		}
		r.tellf(p.mm, corev1.EventTypeNormal, v1alpha1.ReasonClaimed, note, p.view.Host.Name)
		p.isClaimed = true
	}
	// The claim is in the spec now: an object that goes from here on may have been moved.
	r.orphans.Bound(p.owner.String())
	return r.writeVersions(ctx, p)
}

// writeVersions writes the installed version into the spec, once. Later versions of the join target then do not
// change what this machine is.
func (r *machines) writeVersions(ctx context.Context, p *pass) error {
	v := &p.mm.Spec.Versions
	if p.target == nil || v.Kubelet != "" || v.ControlPlane != "" {
		return nil
	}
	version := translate.VersionOf(p.mm, p.target)
	if version == "" {
		return nil
	}
	versions := map[string]any{"kubelet": version}
	v.Kubelet = version
	if translate.IsControlPlane(p.mm) {
		versions["controlPlane"], v.ControlPlane = version, version
	}
	if err := r.applySpec(ctx, p.mm, managerVersions, map[string]any{"versions": versions}); err != nil {
		return fmt.Errorf("write the versions back: %w", err)
	}
	return nil
}
