package backend

import (
	"context"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

// scopedNouns are the pools, join targets and secrets of one cluster, and what it may read.
type scopedNouns struct{ *scoped }

var _ contract.Nouns = scopedNouns{}

// SavePool implements contract.Nouns. A cluster that is kept to pools makes none: one of its own could hold the hosts of
// others.
func (a scopedNouns) SavePool(ctx context.Context, p inventory.Pool) error {
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
	return others("pool", p.Name, a.all.SavePool(ctx, p))
}

// DeletePool implements contract.Nouns.
func (a scopedNouns) DeletePool(ctx context.Context, name, owner string) error {
	if err := a.own(owner); err != nil {
		return err
	}
	err := a.all.DeletePool(ctx, name, owner)
	if a.ownsPool(ctx, name, owner) { // then it says who uses the object's own pool
		return err
	}
	return others("pool", name, err)
}

// ownsPool reports whether a pool is that of an object.
func (a scopedNouns) ownsPool(ctx context.Context, name, owner string) bool {
	all, err := a.all.ListPools(ctx)
	return err == nil && slices.ContainsFunc(all, func(p inventory.Pool) bool { return p.Name == name && p.Owner == owner })
}

// SaveTarget implements contract.Nouns.
func (a scopedNouns) SaveTarget(ctx context.Context, t inventory.JoinTarget) error {
	if err := a.own(t.Owner); err != nil {
		return err
	}
	return others("join target", t.Name, a.discreet(ctx, beside(t.Owner), a.all.SaveTarget(ctx, t)))
}

// FindTarget implements contract.Nouns. A target of another cluster is as one that does not exist.
func (a scopedNouns) FindTarget(ctx context.Context, name string) (inventory.JoinTarget, error) {
	t, err := a.all.FindTarget(ctx, name)
	if err == nil && !a.isOwn(t.Owner) {
		return inventory.JoinTarget{}, inventory.Errorf(inventory.NotFound, "there is no join target %s", inventory.Clean(name, 80))
	}
	return t, err
}

// DeleteTarget implements contract.Nouns.
func (a scopedNouns) DeleteTarget(ctx context.Context, name, owner string) error {
	if err := a.own(owner); err != nil {
		return err
	}
	err := a.all.DeleteTarget(ctx, name, owner)
	if t, problem := a.all.FindTarget(ctx, name); problem == nil && t.Owner == owner {
		return err
	}
	return others("join target", name, err)
}

// InitHolder implements contract.Nouns.
func (a scopedNouns) InitHolder(ctx context.Context, target string) (string, error) {
	if _, err := a.FindTarget(ctx, target); err != nil {
		return "", err
	}
	return a.all.InitHolder(ctx, target)
}

// SaveSecret implements contract.Nouns.
func (a scopedNouns) SaveSecret(ctx context.Context, name, owner string, value []byte) error {
	if err := a.own(owner); err != nil {
		return err
	}
	return others("secret", name, a.all.SaveSecret(ctx, name, owner, value))
}

// DeleteSecret implements contract.Nouns.
func (a scopedNouns) DeleteSecret(ctx context.Context, name, owner string) error {
	if err := a.own(owner); err != nil {
		return err
	}
	return others("secret", name, a.all.DeleteSecret(ctx, name, owner))
}

// ClusterAccess implements contract.Nouns: the cluster's own.
func (a scopedNouns) ClusterAccess(ctx context.Context, _ string) (inventory.ClusterAccess, error) {
	return a.all.ClusterAccess(ctx, a.scope.UID)
}

// ListPools implements contract.Nouns. A cluster that is kept to pools is shown these and its own. Objects of other
// clusters are not named.
func (a scopedNouns) ListPools(ctx context.Context) ([]inventory.Pool, error) {
	r, err := a.rule(ctx)
	if err != nil {
		return nil, err
	}
	all, err := a.all.ListPools(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(p inventory.Pool) bool { return !r.shows(p.Name) })
	for i := range all {
		if from := contract.ClusterOf(all[i].Owner); from != inventory.FromPeople && from != a.scope.UID {
			all[i].Owner = hiddenOwner
		}
	}
	return all, nil
}

// CountPool implements contract.Nouns. A cluster that is kept to pools counts these.
func (a scopedNouns) CountPool(ctx context.Context, name string) (contract.PoolCount, error) {
	r, err := a.rule(ctx)
	if err != nil {
		return contract.PoolCount{}, err
	}
	if !r.isGiven(name) {
		return contract.PoolCount{}, inventory.Errorf(inventory.NotFound, "there is no pool %s that this cluster may use", inventory.Clean(name, 80))
	}
	return a.all.CountPool(ctx, name)
}

// FindProfile implements contract.Nouns. Controllers ask which image it installs; its configuration may be anybody's.
func (a scopedNouns) FindProfile(ctx context.Context, name string) (inventory.Profile, error) {
	p, err := a.all.FindProfile(ctx, name)
	return inventory.Profile{Name: p.Name, Image: p.Image, Revision: p.Revision, Version: p.Version}, err
}

// FindImage implements contract.Nouns. Images are no secret: machines of every cluster may name them.
func (a scopedNouns) FindImage(ctx context.Context, name string) (inventory.Image, error) {
	return a.all.FindImage(ctx, name)
}
