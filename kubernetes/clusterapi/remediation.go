package clusterapi

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/translate"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
)

const (
	// The defaults of a remediation.
	defaultRetries = 1
	defaultTimeout = 600 * time.Second
	// taintFor is how long a node is out of service while its host is off: pods are deleted and volumes detached then.
	taintFor = time.Minute
	// fenceWithin bounds the wait for the host to be off.
	fenceWithin = 2 * time.Minute
)

const (
	// The conditions of a SlipwayRemediation in addition to Ready and Paused.
	conditionFenced     = "Fenced"     // the host is off, and its node out of service
	conditionRemediated = "Remediated" // False: what is being tried, or that nothing is left
)

// finalizerRemediation keeps a remediation until its node is back in service.
const finalizerRemediation = metalv1.Prefix + "slipwayremediation"

// remediations repairs Machines that a MachineHealthCheck found unhealthy. Its progress is in the status of the
// object, so a restart continues at the same step.
type remediations struct {
	*kit
	now   func() time.Time
	taint tainter
}

// tainter takes the node of a machine out of service, or puts it back.
type tainter func(ctx context.Context, f family, v *contract.View, on bool) error

func setupRemediations(mgr manager.Manager, k *kit) error {
	r := &remediations{kit: k, now: time.Now}
	r.taint = k.outOfService
	return builder.ControllerManagedBy(mgr).Named("slipwayremediation").
		For(&infrav1.SlipwayRemediation{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(clusterChanged{})).
		WatchesRawSource(controllers.On(k.feed, 100*time.Millisecond, r.ofEvent)).
		WithOptions(options(2)).
		Complete(r)
}

func (r *remediations) ofCluster(ctx context.Context, o client.Object) (all []reconcile.Request) {
	ofCluster := client.MatchingLabels{clusterv1.ClusterNameLabel: o.GetName()}
	all, _ = controllers.Requests(ctx, r.client, &infrav1.SlipwayRemediationList{}, client.InNamespace(o.GetNamespace()), ofCluster)
	return all
}

// ofEvent returns all remediations when the power or the operation of a host changed: there are few, if any.
func (r *remediations) ofEvent(ev inventory.Event) (all []reconcile.Request) {
	if ev.Kind != inventory.EventPower && ev.Kind != inventory.EventOperation {
		return nil
	}
	all, _ = controllers.Requests(context.Background(), r.client, &infrav1.SlipwayRemediationList{}) // from the cache
	return all
}

// Reconcile implements reconcile.Reconciler.
func (r *remediations) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	sr, err := find(ctx, client.Reader(r.client), req.Namespace, req.Name, &infrav1.SlipwayRemediation{})
	if err != nil || sr == nil || !r.isOurs(sr) {
		return reconcile.Result{}, err
	}
	sr = sr.DeepCopy()
	f, err := r.familyOf(ctx, sr)
	if err != nil {
		return reconcile.Result{}, err
	}
	if isPaused(f.Cluster, sr) {
		cs, isNew := translate.Pause(sr.Status.Conditions, true, pausedBy(f.Cluster, sr), sr.Generation, r.now())
		if isNew {
			sr.Status.Conditions = cs
			err = r.write(ctx, sr)
		}
		return reconcile.Result{}, err
	}
	var v *contract.View
	if f.Machine != nil {
		if v, err = r.viewOf(ctx, f.Machine); err != nil {
			return reconcile.Result{}, err
		}
	}
	// Before the checks below: the finalizer must go even if the Machine is gone.
	if !sr.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, r.end(ctx, sr, f, v)
	}
	if f.Machine == nil || f.Cluster == nil || v == nil || v.Claim == nil || len(sr.Spec.Steps) == 0 {
		return reconcile.Result{}, nil // nothing to repair yet
	}
	return r.climb(ctx, sr, f, v)
}

// viewOf returns the machine of a Machine in the inventory, or nil.
func (r *remediations) viewOf(ctx context.Context, m *clusterv1.Machine) (*contract.View, error) {
	name := machineOf(m)
	if name == "" {
		return nil, nil
	}
	sm, err := find(ctx, client.Reader(r.client), m.Namespace, name, &infrav1.SlipwayMachine{})
	if err != nil || sm == nil {
		return nil, err
	}
	v, err := r.env.Appliance.FindMachine(ctx, r.ownerOf(sm).String())
	if inventory.IsKind(err, inventory.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read machine of %s: %w", m.Name, err)
	}
	return &v, nil
}

// climb tries the steps in order. Each has its time, and as many attempts as the spec says. The MachineHealthCheck
// deletes the object once the Machine is healthy.
func (r *remediations) climb(ctx context.Context, sr *infrav1.SlipwayRemediation, f family, v *contract.View) (reconcile.Result, error) {
	st := &sr.Status
	limit, timeout := max(sr.Spec.RetryLimit, defaultRetries), defaultTimeout
	if s := sr.Spec.TimeoutSeconds; s > 0 {
		timeout = time.Duration(s) * time.Second
	}
	at := 0
	for i, s := range sr.Spec.Steps {
		if s == st.Step {
			at = i
		}
	}
	if st.LastAttempt != nil {
		// The time of the last attempt is in the status. A restart of this process does not begin it again.
		if left := st.LastAttempt.Add(timeout).Sub(r.now()); left > 0 {
			return reconcile.Result{RequeueAfter: left}, nil
		}
		if st.Retries >= limit {
			at++
			// The object stays, so that people see that nothing helped.
			if at >= len(sr.Spec.Steps) {
				return reconcile.Result{}, r.tell(ctx, sr, metav1.Condition{
					Type: conditionRemediated, Status: metav1.ConditionFalse, Reason: "Exhausted", Message: "all steps were tried, and the Machine is still not healthy",
				})
			}
			// The next step has attempts of its own.
			st.Retries = 0
		}
	}
	step := sr.Spec.Steps[at]
	// The attempt comes before the note of it. After a crash in between the step is tried once more, which does less harm
	// than a step that is noted and never done.
	wait, err := r.attempt(ctx, sr, f, v, step)
	if err != nil || wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, err
	}
	now := metav1.NewTime(r.now().Truncate(time.Second))
	st.Step, st.LastAttempt = step, &now
	st.Retries++
	r.events.Eventf(sr, nil, corev1.EventTypeNormal, string(step), "Remediate", "attempt %d of %d", st.Retries, limit)
	err = r.tell(ctx, sr, metav1.Condition{Type: conditionRemediated, Status: metav1.ConditionFalse, Reason: string(step), Message: "waits for the Machine to become healthy"})
	return reconcile.Result{RequeueAfter: timeout}, err
}

// attempt does one step. wait is when to look again while the step is not done.
func (r *remediations) attempt(ctx context.Context, sr *infrav1.SlipwayRemediation, f family, v *contract.View, step infrav1.RemediationStep) (wait time.Duration, err error) {
	name := v.Machine.Name
	switch step {
	case infrav1.StepReplace:
		// Slipway does not delete the Machine. Its owner does, within the limits that its rollout allows.
		return 0, r.handToOwner(ctx, f.Machine)
	case infrav1.StepReprovision:
		_, err = r.env.Appliance.Remediate(ctx, name, []string{"reinstall"})
	case infrav1.StepPowerCycle:
		if sr.Spec.OutOfServiceTaint != nil && *sr.Spec.OutOfServiceTaint {
			if wait, err = r.fence(ctx, sr, f, v); err != nil || wait > 0 {
				return wait, err
			}
		}
		_, err = r.env.Appliance.Remediate(ctx, name, []string{"power-cycle"})
	}
	if inventory.IsKind(err, inventory.Conflict) { // something is done with the host already
		// The attempt does not count: nothing was tried.
		return 10 * time.Second, nil
	}
	if err != nil {
		return 0, fmt.Errorf("remediate machine %s: %w", name, err)
	}
	return 0, nil
}

// fence switches a host off, and takes its node out of service for a minute once the controller says that the host is
// off. It removes the taint before the host runs again.
//
// The taint deletes pods and detaches volumes at once: on a host that still runs, two pods could write to one volume.
// So without a management controller fence sets no taint.
func (r *remediations) fence(ctx context.Context, sr *infrav1.SlipwayRemediation, f family, v *contract.View) (wait time.Duration, err error) {
	if isTrue(sr.Status.Conditions, conditionFenced) {
		since := transition(sr.Status.Conditions, conditionFenced)
		if left := since.Add(taintFor).Sub(r.now()); left > 0 {
			return left, nil
		}
		// The host is switched on by the power cycle that follows. Its node must be in service before its kubelet comes back.
		if err := r.taint(ctx, f, v, false); err != nil {
			return 0, err
		}
		return 0, r.tell(ctx, sr, metav1.Condition{Type: conditionFenced, Status: metav1.ConditionFalse, Reason: "InService"})
	}
	if hasFenced(sr) {
		return 0, nil
	}
	before := sr.DeepCopy()
	// Before the taint is set: a remediation that is deleted in between must not leave the node out of service.
	if controllerutil.AddFinalizer(sr, finalizerRemediation) {
		if err := r.client.Patch(ctx, sr, client.MergeFrom(before), client.FieldOwner(ManagerRemediation)); err != nil {
			return 0, fmt.Errorf("add the finalizer: %w", err)
		}
	}
	host, err := r.env.Appliance.FindHost(ctx, v.Host.ID)
	if err != nil {
		return 0, fmt.Errorf("read host %s: %w", v.Host.Name, err)
	}
	// Only the power that the host's controller reports counts. An order to switch the host off proves nothing.
	if host.BMC == nil || host.BMC.Power != inventory.PowerOff {
		if host.BMC == nil {
			return 0, nil // nobody can verify that it is off: without that no node is taken out of service
		}
		if err := r.env.Appliance.Power(ctx, v.Host.ID, bmc.Off); err != nil && !inventory.IsKind(err, inventory.Conflict) {
			return 0, fmt.Errorf("switch host %s off: %w", v.Host.Name, err)
		}
		return fenceWithin, nil // the event of its power wakes us
	}
	if err := r.taint(ctx, f, v, true); err != nil {
		return 0, err
	}
	err = r.tell(ctx, sr, metav1.Condition{Type: conditionFenced, Status: metav1.ConditionTrue, Reason: "OutOfService", Message: "the host is off and its node out of service"})
	return taintFor, err
}

// hasFenced reports whether the node was out of service for the present attempt. An attempt that the inventory
// refused, because the host is busy, is still the same one.
func hasFenced(sr *infrav1.SlipwayRemediation) bool {
	for _, c := range sr.Status.Conditions {
		if c.Type == conditionFenced && c.Status == metav1.ConditionFalse {
			return sr.Status.LastAttempt == nil || c.LastTransitionTime.After(sr.Status.LastAttempt.Time)
		}
	}
	return false
}

// transition returns since when a condition has its status. That time is in the object, and so survives a restart.
func transition(cs []metav1.Condition, kind string) time.Time {
	for _, c := range cs {
		if c.Type == kind {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// handToOwner asks the owner of a Machine to replace it. It does nothing when somebody asked before.
func (r *remediations) handToOwner(ctx context.Context, m *clusterv1.Machine) error {
	for _, c := range m.Status.Conditions {
		// The owner knows already. A second write would only change the time.
		if c.Type == clusterv1.MachineOwnerRemediatedCondition && c.Status == metav1.ConditionFalse {
			return nil
		}
	}
	before := m.DeepCopy()
	m = m.DeepCopy()
	set := metav1.Condition{
		Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, Reason: clusterv1.MachineOwnerRemediatedWaitingForRemediationReason,
		Message: "Slipway could not repair the Machine: its owner has to replace it", LastTransitionTime: metav1.NewTime(r.now().Truncate(time.Second)), ObservedGeneration: m.Generation,
	}
	kept := m.Status.Conditions[:0:0]
	for _, c := range m.Status.Conditions {
		if c.Type != set.Type {
			kept = append(kept, c)
		}
	}
	m.Status.Conditions = append(kept, set)
	if err := r.client.Status().Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(ManagerRemediation)); err != nil {
		return fmt.Errorf("ask the owner of Machine %s to replace it: %w", m.Name, err)
	}
	return nil
}

// end puts the node back in service when somebody deletes the object. The finalizer ensures that it runs.
func (r *remediations) end(ctx context.Context, sr *infrav1.SlipwayRemediation, f family, v *contract.View) error {
	if !controllerutil.ContainsFinalizer(sr, finalizerRemediation) {
		return nil
	}
	// The MachineHealthCheck deletes the object as soon as the Machine is healthy, perhaps within the minute of the taint.
	if f.Machine != nil && v != nil && isTrue(sr.Status.Conditions, conditionFenced) {
		if err := r.taint(ctx, f, v, false); err != nil {
			return err
		}
	}
	before := sr.DeepCopy()
	controllerutil.RemoveFinalizer(sr, finalizerRemediation)
	if err := r.client.Patch(ctx, sr, client.MergeFrom(before), client.FieldOwner(ManagerRemediation)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	return nil
}

func (r *remediations) write(ctx context.Context, sr *infrav1.SlipwayRemediation) error {
	return controllers.ApplyStatus(ctx, r.client, sr, infrav1.GroupVersion.WithKind(infrav1.KindSlipwayRemediation), ManagerRemediation, &sr.Status)
}

// tell sets a condition, and writes the status when it changed.
func (r *remediations) tell(ctx context.Context, sr *infrav1.SlipwayRemediation, c metav1.Condition) error {
	// Compared with the object in the cache, because earlier steps of this pass have changed sr.
	was, err := find(ctx, client.Reader(r.client), sr.Namespace, sr.Name, &infrav1.SlipwayRemediation{})
	if err != nil || was == nil {
		return err
	}
	now := r.now()
	cs := sr.Status.Conditions
	told := []metav1.Condition{c}
	for _, o := range cs {
		if o.Type != c.Type {
			told = append(told, o)
		}
	}
	cs, _ = translate.MergeConditions(cs, told, sr.Generation, now)
	cs, _ = translate.Pause(cs, false, "", sr.Generation, now)
	sr.Status.Conditions = cs
	if equality.Semantic.DeepEqual(was.Status, sr.Status) {
		return nil
	}
	return r.write(ctx, sr)
}
