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
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
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

// makingAgain is how often the controller looks at a cluster that is being made.
const makingAgain = 5 * time.Second

// setupTargets adds the controller of JoinTargets to a manager.
func setupTargets(mgr manager.Manager, env controllers.Env, nodes *node.Set) error {
	log := cmp.Or(env.Log, slog.New(slog.DiscardHandler))
	r := &targets{
		env: env, client: mgr.GetClient(), events: mgr.GetEventRecorder("slipway"), log: log.With("cluster", env.Cluster), nodes: nodes, now: time.Now,
	}
	err := controllers.Index(mgr, &v1alpha1.JoinTarget{}, bySecret, func(jt *v1alpha1.JoinTarget) []string {
		names := []string{kubeconfigRef(jt).Name}
		for _, u := range translate.TargetSecrets(jt) {
			names = append(names, u.Secret)
		}
		slices.Sort(names)
		return slices.Compact(names)
	})
	if err != nil {
		return err
	}
	b := builder.ControllerManagedBy(mgr).Named("jointarget").
		For(&v1alpha1.JoinTarget{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Watches(&v1alpha1.MetalMachine{}, handler.EnqueueRequestsFromMapFunc(ofMachine), builder.WithPredicates(planeNews)).
		WatchesRawSource(nodes.Source(func(key string, n *node.Node) []reconcile.Request {
			if k, ok := splitKey(key); ok && n == nil {
				return []reconcile.Request{{NamespacedName: k}}
			}
			return nil
		}))
	if env.Reach.HasSecrets() {
		b = b.WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.ofSecret))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("set up the controller of JoinTargets: %w", err)
	}
	return nil
}

func ofMachine(_ context.Context, o client.Object) []reconcile.Request {
	mm, ok := o.(*v1alpha1.MetalMachine)
	if !ok || !translate.IsNode(mm) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: mm.Namespace, Name: mm.Spec.Bootstrap.Join.TargetRef.Name}}}
}

// planeNews passes the changes of machines that matter to their target: new control planes, and their progress.
var planeNews = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool {
		mm, ok := e.Object.(*v1alpha1.MetalMachine)
		return ok && translate.IsControlPlane(mm)
	},
	UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok := e.ObjectOld.(*v1alpha1.MetalMachine)
		now, ok2 := e.ObjectNew.(*v1alpha1.MetalMachine)
		return ok && ok2 && translate.IsControlPlane(now) && old.Status.Phase != now.Status.Phase
	},
}

func (r *targets) ofSecret(ctx context.Context, o client.Object) []reconcile.Request {
	in := client.InNamespace(o.GetNamespace())
	all, err := controllers.Requests(ctx, r.client, &v1alpha1.JoinTargetList{}, in, client.MatchingFields{bySecret: o.GetName()})
	if err != nil {
		r.log.Warn("join targets of a secret not listed", "err", err)
	}
	return all
}

// Reconcile implements reconcile.Reconciler.
func (r *targets) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var jt v1alpha1.JoinTarget
	err := r.client.Get(ctx, req.NamespacedName, &jt)
	if apierrors.IsNotFound(err) {
		// The watch of its cluster would run on without end.
		r.nodes.Drop(req.Namespace + "/" + req.Name)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read JoinTarget %s: %w", req, err)
	}
	p := &targetPass{jt: jt.DeepCopy()}
	p.owner = contract.Owner{ClusterUID: r.env.ClusterUID, Namespace: jt.Namespace, Kind: v1alpha1.KindJoinTarget, Name: jt.Name, UID: string(jt.UID)}
	switch {
	case pausedBy(&jt) != "":
		return reconcile.Result{}, nil
	case !jt.DeletionTimestamp.IsZero():
		err = r.delete(ctx, p)
	default:
		err = r.run(ctx, p)
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	return reconcile.Result{RequeueAfter: p.again}, err
}

func (r *targets) run(ctx context.Context, p *targetPass) error {
	if err := controllers.AddFinalizer(ctx, r.client, p.jt, v1alpha1.FinalizerTarget, managerTarget); err != nil {
		return err
	}
	err := r.mirror(ctx, p)
	// A refusal is part of the status. ask still runs: machines that have joined need to know whether the cluster answers.
	if no, ok := errors.AsType[*refused](err); ok {
		p.tell(conditionMirrored, metav1.ConditionFalse, no.reason, no.message)
		err = nil
	} else if err == nil {
		p.tell(conditionMirrored, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
	}
	if err != nil {
		return err
	}
	if err := r.ask(ctx, p); err != nil {
		return err
	}
	return r.report(ctx, p)
}

// ask asks the cluster whether it answers, and whether its control plane is initialized. Once initialized, it stays
// so: an outage must not look like a cluster that is still to be made.
func (r *targets) ask(ctx context.Context, p *targetPass) error {
	jt := p.jt
	if translate.IsInit(jt) {
		if err := r.findHolder(ctx, p); err != nil {
			return err
		}
	}
	was := isTrue(jt, v1alpha1.ControlPlaneInitialized)
	if !translate.CanLookInto(jt) {
		p.tell(v1alpha1.Reachable, metav1.ConditionUnknown, reasonNotAsked, "there is no kubeconfig to ask with")
		p.tell(v1alpha1.ControlPlaneInitialized, metav1.ConditionTrue, reasonAssumed, "the cluster has a token already")
		return nil
	}
	cluster, err := clusterOf(ctx, r.client, r.env.Reach, r.nodes, jt)
	if err == nil {
		err = cluster.Check(ctx)
	}
	// A cluster that was there before counts as initialized once it answers.
	isInitialized := was || !translate.IsInit(jt) && err == nil
	if err != nil {
		p.tell(v1alpha1.Reachable, metav1.ConditionFalse, reasonUnreachable, controllers.Explain(err))
		// The watch of its nodes may not run yet, so that no event says when it answers.
		p.again = unreachableAgain
	} else {
		p.tell(v1alpha1.Reachable, metav1.ConditionTrue, reasonAnswers, "")
		if !isInitialized {
			plane, err := cluster.ControlPlane(ctx)
			isInitialized = err == nil && plane.IsInitialized
		}
	}
	switch {
	case isInitialized:
		p.tell(v1alpha1.ControlPlaneInitialized, metav1.ConditionTrue, reasonInitialized, "")
	case translate.IsInit(jt):
		message := "no control plane machine has begun"
		if jt.Status.InitHolder != "" {
			message = "machine " + jt.Status.InitHolder + " makes the cluster"
			p.again = makingAgain
		}
		p.tell(v1alpha1.ControlPlaneInitialized, metav1.ConditionFalse, reasonWaitingInit, message)
	default:
		p.tell(v1alpha1.ControlPlaneInitialized, metav1.ConditionUnknown, reasonUnreachable, "the cluster does not answer")
	}
	return nil
}

// findHolder reads from the inventory which machine makes the cluster, and translates it to the name of the object.
func (r *targets) findHolder(ctx context.Context, p *targetPass) error {
	name, err := r.env.Appliance.InitHolder(ctx, translate.Name(p.jt.Namespace, p.jt.Name))
	if err != nil {
		return fmt.Errorf("read who makes the cluster of %s: %w", p.jt.Name, err)
	}
	holder := name
	if name != "" {
		mms, err := listMachines(ctx, r.client, client.InNamespace(p.jt.Namespace), client.MatchingFields{byTarget: p.jt.Name})
		if err != nil {
			return err
		}
		for i := range mms {
			mm := &mms[i]
			// A machine has the second name when another owner had the first.
			if n := translate.Name(mm.Namespace, mm.Name); n == name || translate.NameFor(mm.Namespace, mm.Name, string(mm.UID)) == name {
				holder = mm.Name
			}
		}
	}
	// Only in memory: report writes it together with the conditions.
	p.jt.Status.InitHolder = holder
	return nil
}

// report writes the status when it changed. It compares with the object in the cache, because earlier steps changed
// p.jt.
func (r *targets) report(ctx context.Context, p *targetPass) error {
	var was v1alpha1.JoinTarget
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(p.jt), &was); err != nil {
		return client.IgnoreNotFound(err)
	}
	st := was.Status.DeepCopy()
	now := r.now()
	// Times of conditions change only with their status, so that a pass without news writes nothing.
	if cs, isNew := translate.MergeConditions(was.Status.Conditions, p.told, p.jt.Generation, now); isNew {
		st.Conditions = cs
	}
	st.ObservedGeneration, st.InitHolder = p.jt.Generation, p.jt.Status.InitHolder
	if equality.Semantic.DeepEqual(&was.Status, st) {
		return nil
	}
	return client.IgnoreNotFound(controllers.ApplyStatus(ctx, r.client, p.jt, v1alpha1.GroupVersion.WithKind(v1alpha1.KindJoinTarget), managerTarget, st))
}

// delete waits until no machine names the target, and removes it and its secrets from the inventory. With the
// annotation cascade it deletes the machines too, workers first.
func (r *targets) delete(ctx context.Context, p *targetPass) error {
	if !controllerutil.ContainsFinalizer(p.jt, v1alpha1.FinalizerTarget) {
		return nil
	}
	mms, err := listMachines(ctx, r.client, client.InNamespace(p.jt.Namespace), client.MatchingFields{byTarget: p.jt.Name})
	if err != nil {
		return err
	}
	if len(mms) > 0 {
		// Without the annotation the target only waits. A whole cluster goes only when somebody asks for it.
		if p.jt.Annotations[v1alpha1.AnnotationCascade] == "true" {
			if err := r.cascade(ctx, mms); err != nil {
				return err
			}
		}
		p.again = makingAgain
		p.tell(conditionMirrored, metav1.ConditionFalse, reasonInUse, "machines name it still: delete them, or set the annotation "+v1alpha1.AnnotationCascade+`: "true"`)
		return r.report(ctx, p)
	}
	owner := p.owner.String()
	// The finalizer goes last. If the process dies before, the next Reconcile deletes what is left.
	if err := r.env.Appliance.DeleteTarget(ctx, translate.Name(p.jt.Namespace, p.jt.Name), owner); err != nil &&
		!inventory.IsKind(err, inventory.Conflict) {
		return fmt.Errorf("delete join target: %w", err)
	}
	// Also those of a cluster that was never made: deleting a missing secret is no error.
	names := []string{translate.PKIName(p.jt), translate.KubeconfigName(p.jt)}
	for _, u := range translate.TargetSecrets(p.jt) {
		names = append(names, u.Name)
	}
	for _, name := range names {
		if err := r.env.Appliance.DeleteSecret(ctx, name, owner); err != nil && !inventory.IsKind(err, inventory.Conflict) {
			return fmt.Errorf("delete secret %s: %w", name, err)
		}
	}
	r.nodes.Drop(targetKey(p.jt))
	return controllers.RemoveFinalizer(ctx, r.client, p.jt, v1alpha1.FinalizerTarget, managerTarget)
}

// cascade deletes the machines of a cluster: the workers, and the control planes when no worker is left. Without
// control planes no worker could be drained. The budgets of the pools decide how many go at a time.
func (r *targets) cascade(ctx context.Context, mms []v1alpha1.MetalMachine) error {
	isWorker := func(mm v1alpha1.MetalMachine) bool { return !translate.IsControlPlane(&mm) }
	workersLeft := slices.ContainsFunc(mms, isWorker)
	for i := range mms {
		mm := &mms[i]
		if !mm.DeletionTimestamp.IsZero() || workersLeft && !isWorker(*mm) {
			continue
		}
		r.events.Eventf(mm, nil, corev1.EventTypeNormal, v1alpha1.ReasonDeleting, "Reconcile", "its JoinTarget is deleted, with cascade")
		// Another object may have the name since the list was read: the UID spares it.
		if err := r.client.Delete(ctx, mm, client.Preconditions{UID: &mm.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete MetalMachine %s: %w", mm.Name, err)
		}
	}
	return nil
}
