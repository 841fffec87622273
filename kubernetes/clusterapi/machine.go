package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/translate"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
)

// Reconcile implements reconcile.Reconciler.
func (r *machines) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	sm, err := find(ctx, r.client, req.Namespace, req.Name, &infrav1.SlipwayMachine{})
	if err != nil {
		return reconcile.Result{}, err
	}
	if sm == nil { // a cache that is late or narrow must not end a machine
		there, err := find(ctx, r.direct, req.Namespace, req.Name, &infrav1.SlipwayMachine{})
		if err != nil || there != nil {
			return reconcile.Result{}, err
		}
		r.boots.Forget(req.NamespacedName)
		return reconcile.Result{}, r.orphans.Look(ctx, req.NamespacedName, "")
	}
	if !r.isOurs(sm) {
		return reconcile.Result{}, nil
	}
	// A copy: all readers of the cache share its objects.
	p := &pass{sm: sm.DeepCopy(), owner: r.ownerOf(sm).String()}
	if sm.Status.ObservedGeneration == 0 || sm.Spec.ClaimID == "" { // it is new: another one may have had its name
		if err := r.orphans.Look(ctx, req.NamespacedName, p.owner); err != nil {
			return reconcile.Result{}, err
		}
	}
	if p.family, err = r.familyOf(ctx, sm); err != nil {
		return reconcile.Result{}, err
	}
	// Read before anything is decided: a pause and an offer depend on it.
	p.facts.IsDeleting = !sm.DeletionTimestamp.IsZero()
	if err := r.offer(ctx, p); err != nil { // paused as well: that is how objects are moved
		return reconcile.Result{}, err
	}
	switch {
	// A pause comes before a deletion. clusterctl move deletes the object here, and its host must run on.
	case isPaused(p.Cluster, sm):
		return reconcile.Result{}, r.pause(ctx, p)
	case p.facts.IsDeleting:
		return reconcile.Result{}, r.delete(ctx, p)
	case p.Machine == nil || p.Cluster == nil:
		return reconcile.Result{}, nil // Cluster API has not put its owner in yet, or it is gone
	}
	err = r.run(ctx, p)
	return reconcile.Result{RequeueAfter: p.again}, err
}

// run brings the machine of an object to the state that its spec describes. The claim goes into the spec before
// anything goes into the status.
func (r *machines) run(ctx context.Context, p *pass) error {
	// Before the machine exists: the finalizer keeps the object until its host is released.
	if err := controllers.AddFinalizer(ctx, r.client, p.sm, metalv1.FinalizerSlipwayMachine, ManagerMachine); err != nil {
		return err
	}
	if err := r.look(ctx, p); err != nil {
		return err
	}
	// A claim in the spec and no machine of this owner: the object was moved here, or made again.
	if p.view == nil && p.sm.Spec.ClaimID != "" {
		if err := r.adopt(ctx, p); err != nil {
			return err
		}
	} else if err := r.request(ctx, p); err != nil {
		return err
	}
	// Before the status says that there is a host: a move of the object takes the spec only.
	if err := r.bind(ctx, p); err != nil {
		return err
	}
	if err := r.bootstrap(ctx, p); err != nil {
		return err
	}
	if b := &p.facts.Bootstrap; p.view != nil && b.Reason != "" {
		if err := translate.Hold(ctx, r.env.Appliance, &p.view.Machine, b.Message); err != nil {
			return err
		}
	}
	// A workload cluster that fails must not hide the rest: the status is written in any case.
	err := r.observe(ctx, p)
	return errors.Join(err, r.report(ctx, p))
}

// offer tells the inventory which cluster may take over the machine, as the annotation of the object says.
func (r *machines) offer(ctx context.Context, p *pass) error {
	to, isSaid := p.sm.Annotations[metalv1.AnnotationHandOverTo]
	if to == r.env.ClusterUID { // it came here with the object
		to = ""
	}
	if err := r.look(ctx, p); err != nil || p.view == nil || p.view.Machine.OfferedTo == to || p.facts.IsDeleting {
		return err
	}
	err := r.env.Appliance.Offer(ctx, p.owner, to)
	if isSaid && inventory.IsKind(err, inventory.Invalid) {
		r.events.Eventf(p.sm, nil, corev1.EventTypeWarning, "BadHandOver", "Offer", "annotation %s: %s", metalv1.AnnotationHandOverTo, controllers.Explain(err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("offer machine %s: %w", p.view.Machine.Name, err)
	}
	return nil
}

// request makes the machine in the inventory, or updates it. What can never work goes into the status, and is no
// error: a retry would not help.
func (r *machines) request(ctx context.Context, p *pass) error {
	// The contract of Cluster API: a machine waits until its cluster has an endpoint and failure domains.
	if p.view == nil && !isProvisioned(p.Cluster) {
		p.waiting = &metav1.Condition{
			Reason: metalv1.ReasonWaitingForInfrastructure, Message: "the infrastructure of cluster " + p.Cluster.Name + " is not provisioned",
		}
		return nil
	}
	// Pure, and the same for the same object. So a repeated pass asks for the same machine.
	wanted, err := translate.SlipwayMachine(p.sm, r.options(p))
	if err == nil {
		err = r.tenancy(ctx, p.sm.Namespace, &wanted)
	}
	if err == nil && p.view == nil {
		err = r.create(ctx, p, wanted)
	} else if err == nil {
		err = r.update(ctx, p, wanted)
	}
	if err != nil && isLasting(err) {
		p.facts.Invalid = err
		return nil
	}
	return err
}

// options returns the parts of a machine that its object does not contain.
func (r *machines) options(p *pass) translate.Options {
	o := translate.Options{
		Owner: r.ownerOf(p.sm), Hostname: p.Machine.Name, IsHeld: true, FailureDomain: p.Machine.Spec.FailureDomain,
		ReuseKey: r.reuseKey(p.Machine, p.sm), BootstrapFrom: r.env.Cluster + "/" + p.sm.Namespace + "/" + p.Machine.Name,
	}
	if p.Machine.Spec.Bootstrap.DataSecretName != nil {
		o.BootstrapFrom = r.env.Cluster + "/" + p.sm.Namespace + "/" + *p.Machine.Spec.Bootstrap.DataSecretName
	}
	return o
}

// create makes the machine. If another owner has the name, it uses one with a part of the UID. If the process dies
// after it, look finds the machine by its owner.
func (r *machines) create(ctx context.Context, p *pass, wanted inventory.Machine) error {
	if err := r.vip(ctx, p, &wanted); err != nil {
		return err
	}
	_, err := r.env.Appliance.CreateMachine(ctx, wanted)
	if inventory.IsKind(err, inventory.Conflict) {
		// The UID is in the second name, so that nobody else can have it.
		wanted.Name = translate.NameFor(p.sm.Namespace, p.sm.Name, string(p.sm.UID))
		_, err = r.env.Appliance.CreateMachine(ctx, wanted)
	}
	if err != nil {
		return fmt.Errorf("create machine %s: %w", wanted.Name, err)
	}
	return r.look(ctx, p)
}

// update carries over what may change on a claimed machine: hooks, the source of bootstrap data, and the group that
// may reuse its host. A set that was moved here has another group. Without a claim everything goes over. A claimed
// machine otherwise stays as it is: Cluster API replaces machines instead of changing them.
func (r *machines) update(ctx context.Context, p *pass, wanted inventory.Machine) error {
	stored := p.view.Machine
	wanted.Name = stored.Name
	if err := r.vip(ctx, p, &wanted); err != nil {
		return err
	}
	m, isNew := translate.Apply(stored, wanted, p.view.Claim == nil)
	if p.view.Claim != nil {
		was := stored
		was.BootstrapFrom = wanted.BootstrapFrom // it comes after the claim
		p.facts.Changed = translate.Changed(was, wanted)
	}
	// Cluster API names the Secret only when its bootstrap provider has written it, mostly after the claim.
	if m.BootstrapFrom != wanted.BootstrapFrom {
		m.BootstrapFrom, isNew = wanted.BootstrapFrom, true
	}
	if key := wanted.Placement.ReuseKey; key != m.Placement.ReuseKey && m.Placement.Reuse != "" && key != "" {
		m.Placement.ReuseKey, isNew = key, true
	}
	if !isNew {
		return nil
	}
	if _, err := r.env.Appliance.UpdateMachine(ctx, m); err != nil {
		return fmt.Errorf("update machine %s: %w", m.Name, err)
	}
	return r.look(ctx, p)
}

// adopt takes over the machine whose claim the object names. Somebody moved the object here, or made it again; on the
// host nothing happens.
func (r *machines) adopt(ctx context.Context, p *pass) error {
	id := inventory.ClaimID(p.sm.Spec.ClaimID)
	v, err := r.env.Appliance.Takeable(ctx, id, p.owner)
	if inventory.IsKind(err, inventory.Forbidden) {
		p.facts.Invalid, p.again = refused(err), controllers.TakeAgain
		return nil
	}
	if inventory.IsKind(err, inventory.NotFound) {
		p.waiting = &metav1.Condition{
			Reason: metalv1.ReasonHostMissing, Message: "claim " + p.sm.Spec.ClaimID + " does not exist any more: its host was released or removed",
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read claim %s: %w", id, err)
	}
	// Takeable asks the inventory, and mayAdopt asks this cluster. Both must agree.
	if why, err := r.mayAdopt(ctx, p, &v); err != nil || why != "" {
		if why != "" {
			p.facts.Invalid = &translate.Invalid{Field: "spec.claimID", Msg: why}
		}
		return err
	}
	// The inventory decides in one transaction. Of two objects that ask for one claim, one gets it.
	_, err = r.env.Appliance.HandOver(ctx, id, p.owner)
	if inventory.IsKind(err, inventory.Forbidden) {
		p.facts.Invalid, p.again = refused(err), controllers.TakeAgain
		return nil
	}
	if err != nil {
		return fmt.Errorf("take over claim %s: %w", id, err)
	}
	r.log.Info("machine taken over", "machine", v.Machine.Name, "from", v.Machine.Owner, "to", p.owner)
	r.events.Eventf(p.sm, nil, corev1.EventTypeNormal, "Adopted", "Adopt", "host of claim %s is this machine's; nothing was done on it", id)
	if err := r.look(ctx, p); err != nil || p.view == nil {
		return err
	}
	return r.request(ctx, p)
}

// refused returns the refusal of the inventory as an error of spec.claimID, with its hint.
func refused(err error) error {
	var e *inventory.Error
	if !errors.As(err, &e) {
		return err
	}
	msg := e.Msg
	if e.Hint != "" {
		msg += "; " + e.Hint
	}
	return &translate.Invalid{Field: "spec.claimID", Msg: msg}
}

// mayAdopt returns why an object must not take over a machine that the inventory would give it, or "".
//
// An owner in this cluster that still exists keeps its machine. The namespace must be allowed to use the host:
// knowing a claim is not enough. A wrong provider ID could not be corrected later. mayAdopt asks the API server for
// the owner, because a cache may not have it yet.
func (r *machines) mayAdopt(ctx context.Context, p *pass, v *contract.View) (why string, err error) {
	if id := p.sm.Spec.ProviderID; id != "" && id != v.ProviderID {
		return "spec.providerID is not that of the claim: leave it out, and Slipway writes it", nil
	}
	if !v.Machine.DeletedAt.IsZero() {
		return "the machine of this claim is being deleted", nil
	}
	if v.Host != nil {
		if err := r.tenancyOfHost(ctx, p.sm.Namespace, v.Host); isLasting(err) {
			return err.Error(), nil
		} else if err != nil {
			return "", err
		}
	}
	o, err := contract.ParseOwner(v.Machine.Owner)
	if err != nil || o.ClusterUID != r.env.ClusterUID {
		return "", nil // nobody's, or moved from another cluster
	}
	var was client.Object = &infrav1.SlipwayMachine{}
	if o.Kind != infrav1.KindSlipwayMachine {
		was = &metalv1.MetalMachine{}
	}
	// The UID tells the same object from another one of the same name.
	got, err := find(ctx, r.direct, o.Namespace, o.Name, was)
	if err != nil {
		return "", err
	}
	if got != nil && string(got.GetUID()) == o.UID {
		return fmt.Sprintf("the claim is held by %s %s/%s", o.Kind, o.Namespace, o.Name), nil
	}
	return "", nil
}

// bind writes the claim into the spec before anything else: a move of the object loses the status.
func (r *machines) bind(ctx context.Context, p *pass) error {
	if p.view == nil || p.view.Claim == nil {
		return nil
	}
	id := string(p.view.Claim.ID)
	if p.sm.Spec.ClaimID == id && p.sm.Spec.ProviderID == p.view.ProviderID {
		return nil
	}
	spec := map[string]any{"claimID": id, "providerID": p.view.ProviderID}
	if _, err := controllers.ApplySpec(ctx, r.client, p.sm, infrav1.GroupVersion.WithKind(infrav1.KindSlipwayMachine), ManagerClaim, spec); err != nil {
		return fmt.Errorf("write the claim: %w", err)
	}
	if p.sm.Spec.ClaimID == "" {
		r.events.Eventf(p.sm, nil, corev1.EventTypeNormal, "HostClaimed", "Claim", "host %s", p.view.Host.Name)
	}
	p.sm.Spec.ClaimID, p.sm.Spec.ProviderID = id, p.view.ProviderID
	return nil
}

// pause writes that an object is paused, and starts nothing. An installation that has begun may finish, so its host
// still gets the bootstrap data. pause deletes a machine without a claim in the spec of its object: its host was
// never switched on. The object asks again wherever it goes.
func (r *machines) pause(ctx context.Context, p *pass) error {
	if err := r.look(ctx, p); err != nil {
		return err
	}
	switch {
	case p.view != nil && p.sm.Spec.ClaimID == "" && !p.facts.IsDeleting && p.view.Machine.DeletedAt.IsZero() && translate.IsHeld(&p.view.Machine):
		if _, err := r.env.Appliance.DeleteMachine(ctx, p.view.Machine.Name, false); err != nil &&
			!inventory.IsKind(err, inventory.NotFound) {
			return fmt.Errorf("take machine %s back: %w", p.view.Machine.Name, err)
		}
	// A host that installs has asked for its data, and would wait until the pause ends.
	case p.view != nil && p.Machine != nil:
		if err := r.answer(ctx, p); err != nil {
			return err
		}
	}
	by := pausedBy(p.Cluster, p.sm)
	cs, isNew := translate.Pause(p.sm.Status.Conditions, true, by, p.sm.Generation, time.Now())
	if p.facts.IsDeleting {
		// Else the status would go on to say that the machine runs.
		cs, isNew = translate.PausedEnd(p.sm.Status.Conditions, by, p.sm.Generation, time.Now())
	}
	if !isNew {
		return nil
	}
	p.sm.Status.Conditions = cs
	return client.IgnoreNotFound(r.writeStatus(ctx, p.sm))
}
