package standalone

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// protectedAgain is how often delete asks again for a protected host: no event says that the protection ended.
const protectedAgain = time.Minute

// delete asks the inventory to delete the machine, reports the progress, and removes the finalizer once the machine
// is gone. The machine is gone when its old system cannot run any more (fenced), or when its host is clean.
func (r *machines) delete(ctx context.Context, p *pass) error {
	if !controllerutil.ContainsFinalizer(p.mm, v1alpha1.FinalizerMachine) {
		return nil
	}
	if _, err := r.findTarget(ctx, p); err != nil {
		return err
	}
	// A machine that goes waits for no data and no turn.
	p.facts.Bootstrap.IsWanted = false
	if p.view == nil {
		return r.letGo(ctx, p)
	}
	_, isForced := p.mm.Annotations[v1alpha1.AnnotationForceDelete]
	if err := r.refresh(ctx, p); err != nil {
		return err
	}
	m := &p.view.Machine
	// Once when the deletion begins, and once more when somebody forces it. Each further pass only reports.
	if m.DeletedAt.IsZero() || isForced && !m.IsForced {
		r.tellf(p.mm, corev1.EventTypeNormal, v1alpha1.ReasonDeleting, "%s", farewell(p, isForced))
		_, err := r.env.Appliance.DeleteMachine(ctx, m.Name, isForced)
		if inventory.IsKind(err, inventory.Forbidden) || translate.IsInvalid(err) { // its host is protected
			p.facts.Refused, p.again = controllers.Explain(err), protectedAgain
			return r.report(ctx, p)
		}
		if err != nil && !inventory.IsKind(err, inventory.NotFound) {
			return fmt.Errorf("delete machine %s: %w", m.Name, err)
		}
		if err := r.look(ctx, p); err != nil {
			return err
		}
		if p.view == nil {
			return r.letGo(ctx, p)
		}
	}
	return r.report(ctx, p)
}

// farewell says in an event what happens to the host.
func farewell(p *pass, isForced bool) string {
	switch {
	case p.view.Host == nil:
		return "the machine has no host: it goes at once"
	case isForced:
		return "host " + p.view.Host.Name + " is released by force: not drained, not fenced, not wiped; it goes into quarantine"
	}
	return "host " + p.view.Host.Name + " is released"
}

// refresh takes over what may still change while a machine is deleted: hooks, and the drain. Placement and names
// stay.
func (r *machines) refresh(ctx context.Context, p *pass) error {
	o := r.options(p)
	o.Name, o.NotPools = p.view.Machine.Name, p.view.Machine.Placement.NotPools
	wanted, err := translate.MetalMachine(p.mm, o)
	if err != nil { // then it goes as it was asked for before
		return nil
	}
	m, isNew := translate.Apply(p.view.Machine, wanted, false)
	// Apply changes these while there is no host. A machine that is being deleted needs no other host.
	m.Placement, m.Pool, m.Hostname = p.view.Machine.Placement, p.view.Machine.Pool, p.view.Machine.Hostname
	if !isNew || translate.IsSame(p.view.Machine, m) {
		return nil
	}
	updated, err := r.env.Appliance.UpdateMachine(ctx, m)
	if err != nil {
		return fmt.Errorf("update machine %s: %w", m.Name, err)
	}
	p.view.Machine = updated
	return nil
}

// letGo deletes the secrets of the object from the inventory, and removes the finalizer last. If the process dies in
// between, the next Reconcile deletes the rest.
func (r *machines) letGo(ctx context.Context, p *pass) error {
	owner := p.owner.String()
	for _, u := range translate.MachineSecrets(p.mm, p.owner) {
		if err := r.env.Appliance.DeleteSecret(ctx, u.Name, owner); err != nil && !inventory.IsKind(err, inventory.Conflict) {
			return fmt.Errorf("delete secret %s: %w", u.Name, err)
		}
		r.mu.Lock()
		delete(r.sealed, u.Name)
		r.mu.Unlock()
	}
	r.forget(client.ObjectKeyFromObject(p.mm), owner)
	return controllers.RemoveFinalizer(ctx, r.client, p.mm, v1alpha1.FinalizerMachine, managerMachine)
}

// forget drops what is in memory of a machine that is gone.
func (r *machines) forget(key types.NamespacedName, owner string) {
	r.turns.forget(owner)
	r.boots.Forget(key)
	r.objects.forget(key)
	r.reporter.forget(owner)
}

// orphan says on the object that was there, whose events outlive it, that its machine runs on.
func (r *machines) orphan(key types.NamespacedName, m *inventory.Machine) {
	r.turns.forget(m.Owner)
	// The object is gone. Events need only its kind, namespace and name.
	about := &v1alpha1.MetalMachine{}
	about.Namespace, about.Name = key.Namespace, key.Name
	about.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindMetalMachine))
	r.tellf(about, corev1.EventTypeWarning, "Orphaned",
		"machine %s runs on without this object, whose finalizer was removed: create it again with claimID %s, or delete the machine in Slipway", m.Name, m.ClaimID)
}
