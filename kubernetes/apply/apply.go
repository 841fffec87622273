package apply

import (
	"context"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// Apply brings the inventory to what the objects want. It calls done for each object, and ends at the first that fails.
// Objects before that stay applied, and applying the files again continues.
func (a *Applier) Apply(ctx context.Context, objects []Object, done func(Change)) error {
	r, all, err := a.start(objects)
	if err != nil {
		return err
	}
	// The order is that of sorted. The first error ends the loop, because later objects may need the one that failed.
	for i := range all {
		o := &all[i]
		if o.object == nil {
			continue // a Secret is stored for the one who names it
		}
		c := Change{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
		switch x := o.object.(type) {
		case *v1alpha1.MetalPool:
			err = r.pool(ctx, o, x, &c)
		case *v1alpha1.JoinTarget:
			err = r.target(ctx, o, x, &c)
		case *v1alpha1.MetalHost:
			err = r.host(ctx, o, x, &c)
		case *v1alpha1.MetalMachine:
			err = r.machine(ctx, o, x, &c)
		}
		if err != nil {
			return o.failed(err)
		}
		done(c)
	}
	return nil
}

// pool stores a pool, unless the inventory has the same one.
func (r *run) pool(ctx context.Context, o *Object, mp *v1alpha1.MetalPool, c *Change) error {
	p, err := translate.Pool(mp, o.owner())
	if err != nil {
		return err
	}
	// Read first, so that a pool that is the same already causes no write and no event.
	all, err := r.Appliance.ListPools(ctx)
	if err != nil {
		return err
	}
	c.Op = Created
	if i := slices.IndexFunc(all, func(s inventory.Pool) bool { return s.Name == p.Name }); i >= 0 {
		stored := all[i]
		// A file has no words for these fields. They keep their stored values, or each apply would remove them.
		p.CreatedAt, p.UpdatedAt, p.Version, p.BurnInFor = stored.CreatedAt, stored.UpdatedAt, stored.Version, stored.BurnInFor
		if c.Op = Changed; translate.IsSame(stored, p) {
			c.Op = Unchanged
			return nil
		}
	}
	if r.DryRun {
		return nil
	}
	return r.Appliance.SavePool(ctx, p)
}

// target stores a join target with the Secrets that it names. For a new cluster the appliance then makes the authorities.
func (r *run) target(ctx context.Context, o *Object, jt *v1alpha1.JoinTarget, c *Change) error {
	t, err := translate.JoinTarget(jt, o.owner())
	if err != nil {
		return err
	}
	// With IsInit the appliance itself creates the authorities of the cluster. Controllers leave it out, because they create
	// them in a Secret of their own cluster.
	t.IsInit = translate.IsInit(jt)
	if t.IsInit && jt.Spec.KubeconfigSecretRef != nil {
		return &translate.Invalid{Field: "spec.kubeconfigSecretRef", Msg: "a cluster that is still to be made has no kubeconfig yet: leave it out, and take it from slipway target kubeconfig " + t.Name}
	}
	stored, err := r.Appliance.FindTarget(ctx, t.Name)
	switch {
	case inventory.IsKind(err, inventory.NotFound):
		c.Op = Created
		if t.IsInit {
			c.Detail = "its authorities are made; when a control plane runs: slipway target kubeconfig " + t.Name
		}
	case err != nil:
		return err
	default:
		// The authority and the time of initialisation come from the cluster itself, never from a file.
		t.CreatedAt, t.UpdatedAt, t.Version, t.CA, t.InitializedAt = stored.CreatedAt, stored.UpdatedAt, stored.Version, stored.CA, stored.InitializedAt
		if t.IsInit && !stored.IsInit {
			return &translate.Invalid{Field: "spec.init", Msg: "target " + t.Name + " is a cluster that was there before: delete it first, or give this one another name"}
		}
		if c.Op = Changed; translate.IsSame(stored, t) {
			c.Op = Unchanged
		}
	}
	// Secrets first: a target that names a secret which is not stored yet would be refused.
	// They are stored even if the target is unchanged, because a value may be new.
	if err := r.seal(ctx, o, translate.TargetSecrets(jt), c); err != nil || r.DryRun || c.Op == Unchanged {
		return err
	}
	return r.Appliance.SaveTarget(ctx, t)
}
