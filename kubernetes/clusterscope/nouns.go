package clusterscope

import (
	"context"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

// SavePool implements contract.Nouns. A cluster that is kept to pools makes none: one of its own could hold the hosts of
// others.
func (a *Appliance) SavePool(ctx context.Context, p inventory.Pool) error {
	if err := a.own(p.Owner); err != nil {
		return err
	}
	r, err := a.rule(ctx)
	if err != nil {
		return err
	}
	if len(r.only) > 0 {
		return inventory.Errorf(inventory.Invalid, "this cluster is kept to pools that an admin of Slipway named, and makes none of its own").
			WithHint("use one of them, or have the pool made in Slipway: slipway pool create; slipway cluster access NAME shows which it may use")
	}
	return others("pool", p.Name, a.Appliance.SavePool(ctx, p))
}

// DeletePool implements contract.Nouns.
func (a *Appliance) DeletePool(ctx context.Context, name, owner string) error {
	if err := a.own(owner); err != nil {
		return err
	}
	err := a.Appliance.DeletePool(ctx, name, owner)
	if a.ownsPool(ctx, name, owner) { // then it says who uses the object's own pool
		return err
	}
	return others("pool", name, err)
}

// ownsPool reports whether a pool is that of an object.
func (a *Appliance) ownsPool(ctx context.Context, name, owner string) bool {
	all, err := a.Appliance.ListPools(ctx)
	return err == nil && slices.ContainsFunc(all, func(p inventory.Pool) bool { return p.Name == name && p.Owner == owner })
}

// SaveTarget implements contract.Nouns.
func (a *Appliance) SaveTarget(ctx context.Context, t inventory.JoinTarget) error {
	if err := a.own(t.Owner); err != nil {
		return err
	}
	return others("join target", t.Name, a.discreet(ctx, beside(t.Owner), a.Appliance.SaveTarget(ctx, t)))
}

// FindTarget implements contract.Nouns. A target of another cluster is as one that does not exist.
func (a *Appliance) FindTarget(ctx context.Context, name string) (inventory.JoinTarget, error) {
	t, err := a.Appliance.FindTarget(ctx, name)
	if err == nil && !a.isOwn(t.Owner) {
		return inventory.JoinTarget{}, inventory.Errorf(inventory.NotFound, "there is no join target %s", inventory.Clean(name, 80))
	}
	return t, err
}

// DeleteTarget implements contract.Nouns.
func (a *Appliance) DeleteTarget(ctx context.Context, name, owner string) error {
	if err := a.own(owner); err != nil {
		return err
	}
	err := a.Appliance.DeleteTarget(ctx, name, owner)
	if t, problem := a.Appliance.FindTarget(ctx, name); problem == nil && t.Owner == owner {
		return err
	}
	return others("join target", name, err)
}

// InitHolder implements contract.Nouns.
func (a *Appliance) InitHolder(ctx context.Context, target string) (string, error) {
	if _, err := a.FindTarget(ctx, target); err != nil {
		return "", err
	}
	return a.Appliance.InitHolder(ctx, target)
}

// SaveSecret implements contract.Nouns.
func (a *Appliance) SaveSecret(ctx context.Context, name, owner string, value []byte) error {
	if err := a.own(owner); err != nil {
		return err
	}
	return others("secret", name, a.Appliance.SaveSecret(ctx, name, owner, value))
}

// DeleteSecret implements contract.Nouns.
func (a *Appliance) DeleteSecret(ctx context.Context, name, owner string) error {
	if err := a.own(owner); err != nil {
		return err
	}
	return others("secret", name, a.Appliance.DeleteSecret(ctx, name, owner))
}

// ClusterAccess implements contract.Nouns: the cluster's own.
func (a *Appliance) ClusterAccess(ctx context.Context, _ string) (inventory.ClusterAccess, error) {
	return a.Appliance.ClusterAccess(ctx, a.scope.UID)
}

// ListPools implements contract.Nouns. Objects of other clusters are not named.
func (a *Appliance) ListPools(ctx context.Context) ([]inventory.Pool, error) {
	all, err := a.Appliance.ListPools(ctx)
	for i := range all {
		if from := contract.ClusterOf(all[i].Owner); from != inventory.FromPeople && from != a.scope.UID {
			all[i].Owner = hiddenOwner
		}
	}
	return all, err
}

// CountPool implements contract.Nouns. A cluster that is kept to pools counts these.
func (a *Appliance) CountPool(ctx context.Context, name string) (contract.PoolCount, error) {
	r, err := a.rule(ctx)
	if err != nil {
		return contract.PoolCount{}, err
	}
	if len(r.only) > 0 && !slices.ContainsFunc(r.only, func(p pool) bool { return p.name == name }) {
		return contract.PoolCount{}, inventory.Errorf(inventory.NotFound, "there is no pool %s that this cluster may use", inventory.Clean(name, 80))
	}
	return a.Appliance.CountPool(ctx, name)
}

// FindProfile implements contract.Nouns. Controllers ask which image it installs; its configuration may be anybody's.
func (a *Appliance) FindProfile(ctx context.Context, name string) (inventory.Profile, error) {
	p, err := a.Appliance.FindProfile(ctx, name)
	return inventory.Profile{Name: p.Name, Image: p.Image, Revision: p.Revision, Version: p.Version}, err
}

var _ contract.Nouns = (*Appliance)(nil)
