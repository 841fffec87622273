package apply

import (
	"context"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// Delete takes back what the objects want, in the opposite order. Machines are fenced and wiped behind it; hosts stay in
// the inventory. Deleting what is not there is no error.
func (a *Applier) Delete(ctx context.Context, objects []Object, done func(Change)) error {
	r, all, err := a.start(objects)
	if err != nil {
		return err
	}
	// What refers to others goes first, as each of them is refused while something still uses it.
	slices.Reverse(all)
	for i := range all {
		o := &all[i]
		c := Change{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Op: Deleted}
		switch x := o.object.(type) {
		case nil: // a Secret goes with whoever names it
			continue
		case *v1alpha1.MetalMachine:
			err = r.deleteMachine(ctx, o, x, &c)
		case *v1alpha1.JoinTarget:
			err = r.deleteTarget(ctx, o, x, &c)
		case *v1alpha1.MetalPool:
			if !r.DryRun {
				err = r.Appliance.DeletePool(ctx, o.Name, o.owner().String())
			}
		case *v1alpha1.MetalHost:
			// A host outlives its object. Its hardware and its history are in the inventory, and another machine may use it.
			c.Op, c.Detail = Kept, "the inventory keeps hosts: slipway host delete "+o.Name
		}
		if err != nil {
			return o.failed(err)
		}
		done(c)
	}
	return nil
}

func (r *run) deleteMachine(ctx context.Context, o *Object, mm *v1alpha1.MetalMachine, c *Change) error {
	v, err := r.Appliance.FindMachine(ctx, o.owner().String())
	switch {
	case inventory.IsKind(err, inventory.NotFound):
		c.Op = Absent
		return nil
	case err != nil:
		return err
	case v.Machine.HostID != "":
		c.Op, c.Detail = Deleting, "machine "+v.Machine.Name+": its host is fenced and wiped"
	}
	if r.DryRun {
		return nil
	}
	// A machine without a host is gone after this call. Otherwise the engine drains, fences and wipes, and a repeated call
	// does no harm. NotFound: somebody else deleted it since it was read.
	if _, err := r.Appliance.DeleteMachine(ctx, v.Machine.Name, false); err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	// The engine still needs the machine's row, but none of its secrets: wiping asks for no configuration.
	uses := translate.MachineSecrets(mm, o.owner())
	if hasData(mm) {
		uses = append(uses, translate.SecretUse{Name: translate.DataSecretName(o.owner(), translate.DataFrom(mm))})
	}
	return r.forget(ctx, o, uses)
}

func (r *run) deleteTarget(ctx context.Context, o *Object, jt *v1alpha1.JoinTarget, c *Change) error {
	name := translate.Name(jt.Namespace, jt.Name)
	if _, err := r.Appliance.FindTarget(ctx, name); inventory.IsKind(err, inventory.NotFound) {
		c.Op = Absent
	} else if err != nil {
		return err
	}
	if r.DryRun {
		return nil
	}
	// Refused while a machine names the target. Machines that still have a host are not gone yet, and then people repeat the
	// command.
	if err := r.Appliance.DeleteTarget(ctx, name, o.owner().String()); err != nil {
		return err
	}
	// The secrets come after the target: a stored target must never name a secret that is gone. If this process dies here, a
	// repeated delete finds no target and still deletes them.
	uses := translate.TargetSecrets(jt)
	if translate.IsInit(jt) {
		uses = append(uses, translate.SecretUse{Name: translate.PKIName(jt)}, translate.SecretUse{Name: translate.KubeconfigName(jt)})
	}
	return r.forget(ctx, o, uses)
}

// forget deletes the secrets that were stored for an object. It is safe to repeat.
func (r *run) forget(ctx context.Context, o *Object, uses []translate.SecretUse) error {
	for _, u := range uses {
		err := r.Appliance.DeleteSecret(ctx, u.Name, o.owner().String())
		if inventory.IsKind(err, inventory.Conflict) { // a person stored it, so a person deletes it
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}
