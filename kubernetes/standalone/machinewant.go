package standalone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig"
)

// request makes the machine in the inventory, or updates it. What can never work goes into the status, and is no
// error: a retry would not help.
func (r *machines) request(ctx context.Context, p *pass) error {
	// A claim in the spec and no machine: the object was moved here, or made again.
	if p.view == nil && p.mm.Spec.ClaimID != "" {
		return r.adopt(ctx, p)
	}
	o := r.options(p)
	if p.view == nil || p.view.Claim == nil {
		bars, err := r.tenancy(ctx, p)
		if err != nil {
			return err
		}
		o.NotPools = bars
		if p.facts.NoHostReason != "" && p.view == nil {
			return nil
		}
	} else {
		// A claim freezes the placement. Pools that were closed since then do not take the host away.
		o.NotPools = p.view.Machine.Placement.NotPools
	}
	if p.view != nil {
		o.Name = p.view.Machine.Name
		o.Role = roleOf(p)
	}
	wanted, err := translate.MetalMachine(p.mm, o)
	if err != nil {
		if translate.IsInvalid(err) {
			p.facts.Invalid = err
			return nil
		}
		return err
	}
	p.wanted = wanted
	return r.save(ctx, p)
}

// save stores the machine. The inventory refuses a machine that names a missing secret, so save seals the Secrets
// first.
func (r *machines) save(ctx context.Context, p *pass) (err error) {
	if needsHold(p.mm) && !isWritten(p) {
		// While a Secret is missing nothing is saved. Its appearance wakes the object.
		if err := r.seal(ctx, p); err != nil || p.facts.Invalid != nil || p.facts.Bootstrap.Reason != "" {
			return err
		}
	}
	if p.view == nil {
		err = r.create(ctx, p)
	} else {
		err = r.update(ctx, p)
	}
	if inventory.IsKind(err, inventory.Forbidden) { // an admin may say that what it names is for this machine
		p.again = controllers.TakeAgain
	}
	if translate.IsInvalid(err) || inventory.IsKind(err, inventory.Forbidden) {
		p.facts.Invalid = errors.New(controllers.Explain(err))
		return nil
	}
	return err
}

// roleOf returns the role that the inventory gave the machine. The first control plane keeps the role Init until its
// cluster exists. Then it becomes like the others, so that a reinstallation makes no second cluster.
func roleOf(p *pass) machineconfig.Role {
	_, config := splitMarks(p.view.Machine.Config)
	if translate.RoleOf(config) != machineconfig.Init || isTrue(p.target, v1alpha1.ControlPlaneInitialized) && p.view.Delivered {
		return ""
	}
	return machineconfig.Init
}

// create makes the machine. If another owner has the name, it uses one with a part of the UID, which nobody else can
// have. If the process dies after it, look finds the machine by its owner.
func (r *machines) create(ctx context.Context, p *pass) error {
	p.wanted.Config = withMarks(p.wanted.Config, marks{at: p.mm.Annotations[v1alpha1.AnnotationReprovisionAt], rebooted: p.mm.Annotations[v1alpha1.AnnotationRebootAt]})
	// Before the call: the object may go while it runs.
	r.orphans.Made(p.owner.String())
	_, err := r.env.Appliance.CreateMachine(ctx, p.wanted)
	if inventory.IsKind(err, inventory.Conflict) {
		p.wanted.Name = translate.NameFor(p.mm.Namespace, p.mm.Name, string(p.mm.UID))
		_, err = r.env.Appliance.CreateMachine(ctx, p.wanted)
	}
	if err != nil {
		return fmt.Errorf("create machine %s: %w", p.wanted.Name, err)
	}
	p.isCreated = true
	r.feed.Asked()
	return r.look(ctx, p)
}

// update brings the machine up to date, as far as its update policy allows.
func (r *machines) update(ctx context.Context, p *pass) error {
	stored := p.view.Machine
	if !stored.DeletedAt.IsZero() { // it was deleted in the appliance: Slipway orders nothing for it any more
		return nil
	}
	if err := translate.Frozen(stored, p.wanted); err != nil {
		p.facts.Unsupported = err
	}
	// The marks are no part of what is wanted. They are taken off for the comparison, and put back below.
	was, config := splitMarks(stored.Config)
	bare := stored
	bare.Config = config
	// From the moment when the hook is acknowledged, the host may read its configuration at any time.
	isBooting := stored.HostID != "" && !translate.IsHeld(&stored)
	now := was
	p.facts.Changed = translate.Changed(bare, p.wanted)
	isAgain := false
	if isBooting {
		isAgain = r.reprovision(p, &now)
	}
	m, _ := translate.Apply(bare, p.wanted, !isBooting || isAgain)
	if !isBooting && stored.HostID != "" { // its installation has begun with what it is made of
		m.Profile, m.Image = stored.Profile, stored.Image
	}
	if r := translate.RoleOf(p.wanted.Config); isBooting && r == machineconfig.ControlPlane && translate.RoleOf(m.Config) == machineconfig.Init {
		config, err := translate.WithRole(m.Config, r)
		if err != nil {
			return err
		}
		m.Config = config
	}
	// The marks of before the call come back, so that an update for another reason forgets nothing.
	m.Config = withMarks(m.Config, now)
	if !translate.IsSame(stored, m) {
		updated, err := r.env.Appliance.UpdateMachine(ctx, m)
		if err != nil {
			return fmt.Errorf("update machine %s: %w", m.Name, err)
		}
		p.view.Machine = updated
	}
	return r.again(ctx, p, now)
}

// reprovision decides whether to install the machine again. It notes the claim that the reinstallation ends, in the
// configuration of the machine. So a reinstallation happens once, wherever the process dies: a new claim does not
// match the note.
func (r *machines) reprovision(p *pass, now *marks) bool {
	if p.view.Claim == nil || p.view.Host == nil || p.view.Host.State != inventory.Active || p.view.Operation != nil {
		return false // it is not installed, or something else is under way
	}
	claim := string(p.view.Claim.ID)
	at := p.mm.Annotations[v1alpha1.AnnotationReprovisionAt]
	if at != "" && at != now.at && r.isDue(p, at) {
		// Both are stored in one transaction with the new configuration, before the call that reinstalls.
		now.at, now.claim = at, claim
		return true
	}
	if p.facts.Changed == "" {
		// A former pass noted the claim and died before the call. The reinstallation is still to be asked for.
		return now.claim == claim
	}
	switch policy := p.mm.Spec.UpdatePolicy; {
	case p.facts.Unsupported != nil:
	case policy == v1alpha1.UpdateReprovision:
		now.claim = claim
		return true
	case policy != v1alpha1.UpdateOnDelete && policy != "": // an object that an older API server took
		p.facts.Unsupported = fmt.Errorf("spec.updatePolicy: %s is not supported: use OnDelete or Reprovision", policy)
	}
	return false
}

// again reinstalls or reboots the machine, as the marks say. A reboot is noted after it was asked for: a crash in
// between may reboot twice, but forgets no reboot.
func (r *machines) again(ctx context.Context, p *pass, now marks) error {
	if p.view.Claim == nil || p.view.Operation != nil || p.view.Host == nil || p.view.Host.State != inventory.Active {
		return nil
	}
	name := p.view.Machine.Name
	if now.claim == string(p.view.Claim.ID) {
		r.tellf(p.mm, corev1.EventTypeNormal, "Reprovisioning", "host %s is reinstalled", p.view.Host.Name)
		// The reinstallation makes a new claim. So the note of the old one does not match any more, and the call is not
		// repeated.
		if _, err := r.env.Appliance.Reinstall(ctx, name); err != nil {
			return fmt.Errorf("install %s again: %w", name, err)
		}
		return r.look(ctx, p)
	}
	at := p.mm.Annotations[v1alpha1.AnnotationRebootAt]
	// A reboot that was carried out is in the marks, so that a restart of this process does not repeat it.
	if at == "" || at == now.rebooted || !r.isDue(p, at) {
		return nil
	}
	r.tellf(p.mm, corev1.EventTypeNormal, "Rebooting", "host %s is rebooted", p.view.Host.Name)
	if _, err := r.env.Appliance.Remediate(ctx, name, []string{"power-cycle"}); err != nil {
		return fmt.Errorf("reboot %s: %w", name, err)
	}
	if err := r.look(ctx, p); err != nil || p.view == nil {
		return err
	}
	now.rebooted = at
	m := p.view.Machine
	_, config := splitMarks(m.Config)
	m.Config = withMarks(config, now)
	if _, err := r.env.Appliance.UpdateMachine(ctx, m); err != nil {
		return fmt.Errorf("note the reboot of %s: %w", name, err)
	}
	return r.look(ctx, p)
}

// adopt takes over the machine that holds the claim of the object. Somebody made the object again, or moved it from
// another cluster; on the host nothing happens. It never takes a machine from an object that still exists, nor from
// another namespace.
func (r *machines) adopt(ctx context.Context, p *pass) error {
	id := inventory.ClaimID(p.mm.Spec.ClaimID)
	missing := func(format string, args ...any) error {
		p.facts.NoHostReason, p.facts.NoHost = v1alpha1.ReasonHostMissing, fmt.Sprintf(format, args...)
		return nil
	}
	v, err := r.env.Appliance.Takeable(ctx, id, p.owner.String())
	if inventory.IsKind(err, inventory.Forbidden) {
		p.again = controllers.TakeAgain
		return missing("%s", controllers.Explain(err))
	}
	if inventory.IsKind(err, inventory.NotFound) {
		return missing("claim %s is gone: its machine was deleted in Slipway; delete this object too, or create it without claimID and providerID", id)
	}
	if err != nil {
		return fmt.Errorf("read claim %s: %w", id, err)
	}
	if p.mm.Spec.ProviderID != "" && p.mm.Spec.ProviderID != v.ProviderID {
		p.facts.Invalid = errors.New("spec.providerID is not that of claim " + string(id) + ": leave it out, and Slipway writes it")
		return nil
	}
	if !v.Machine.DeletedAt.IsZero() {
		return missing("the machine of claim %s is being deleted", id)
	}
	if text := v.Machine.Owner; text != "" {
		old, err := contract.ParseOwner(text)
		switch {
		case err != nil:
			return missing("claim %s belongs to %s", id, text)
		case old.Kind != v1alpha1.KindMetalMachine || old.Namespace != p.mm.Namespace:
			return missing("claim %s belongs to the %s %s in namespace %s", id, old.Kind, old.Name, old.Namespace)
		// The owner is an object of this cluster. The API server says whether it still exists, because the cache may lag
		// behind.
		case old.ClusterUID == r.env.ClusterUID:
			var other v1alpha1.MetalMachine
			err := r.direct.Get(ctx, types.NamespacedName{Namespace: old.Namespace, Name: old.Name}, &other)
			if err == nil && string(other.UID) == old.UID {
				return missing("claim %s belongs to the MetalMachine %s", id, old.Name)
			}
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("read the owner of claim %s: %w", id, err)
			}
		}
	}
	if isHandedOver, err := r.handOver(ctx, p, id); err != nil || !isHandedOver {
		return err
	}
	r.tellf(p.mm, corev1.EventTypeNormal, "Adopted", "took over machine %s with host %s", v.Machine.Name, v.Machine.HostID)
	if err := r.look(ctx, p); err != nil || p.view == nil {
		return err
	}
	// The machine has this object as its owner now. What the object wants may differ from what the former one wanted.
	return r.request(ctx, p)
}

// handOver takes over the machine of a claim. It may be Forbidden although Takeable allowed it: somebody can withdraw
// the grant in between.
func (r *machines) handOver(ctx context.Context, p *pass, id inventory.ClaimID) (bool, error) {
	_, err := r.env.Appliance.HandOver(ctx, id, p.owner.String())
	if inventory.IsKind(err, inventory.Forbidden) {
		p.facts.NoHostReason, p.facts.NoHost, p.again = v1alpha1.ReasonHostMissing, controllers.Explain(err), controllers.TakeAgain
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("take over claim %s: %w", id, err)
	}
	return true, nil
}

// tenancy returns the pools that the namespace may not use, and records in p when the machine names one of them.
func (r *machines) tenancy(ctx context.Context, p *pass) (bars []string, err error) {
	pools, err := r.env.PoolsFor(ctx, r.client, r.direct, p.mm.Namespace)
	if err != nil {
		return nil, err
	}
	for _, pool := range pools.Closed() {
		bars = append(bars, pool.Name)
		if pl := p.mm.Spec.Placement; pl != nil && pl.Pool == pool.Name {
			p.facts.NoHostReason = v1alpha1.ReasonInsufficientResources
			p.facts.NoHost = fmt.Sprintf("pool %s is not for namespace %s: its allowedNamespaces are %s", pool.Name, p.mm.Namespace, pool.AllowedNamespaces)
		}
	}
	slices.Sort(bars)
	return bars, nil
}

// isDue reports whether the time in an annotation has come. A text that is no time is never due, and causes one
// event.
func (r *machines) isDue(p *pass, at string) bool {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		r.once(p, "time", at, func() {
			r.tellf(p.mm, corev1.EventTypeWarning, "BadTime", "%q in an annotation is not a time: write it as 2026-01-31T12:00:00Z", at)
		})
		return false
	}
	left := t.Sub(r.now())
	if left > 0 && (p.again == 0 || left < p.again) {
		p.again = left
	}
	return left <= 0
}
