package backend

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/provision/claim"
)

// localNouns is what is stored under a name for an owner, as the store has it.
type localNouns struct{ *local }

var _ contract.Nouns = localNouns{}

var pools = owned[inventory.Pool]{Noun: noun.Pools, owner: func(p *inventory.Pool) string { return p.Owner }}

var targets = owned[inventory.JoinTarget]{
	Noun:  noun.JoinTargets,
	owner: func(t *inventory.JoinTarget) string { return t.Owner },
	may:   address.MaySaveTarget,
	keep: func(wanted, stored *inventory.JoinTarget) {
		wanted.Consumers = stored.Consumers // an admin's word
		if wanted.InitializedAt.IsZero() {  // a cluster that was made stays made
			wanted.InitializedAt = stored.InitializedAt
		}
	},
}

// SavePool implements contract.Nouns.
func (l localNouns) SavePool(ctx context.Context, p inventory.Pool) error {
	if err := p.Validate(); err != nil {
		return err
	}
	return save(ctx, l.local, pools, p)
}

// DeletePool implements contract.Nouns.
func (l localNouns) DeletePool(ctx context.Context, name, owner string) error {
	return remove(ctx, l.local, pools, name, owner)
}

// CountPool implements contract.Nouns.
func (l localNouns) CountPool(ctx context.Context, name string) (n contract.PoolCount, err error) {
	err = l.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		p, err := tx.Pools().Find(name)
		if err != nil {
			return err
		}
		n, err = claim.PoolCount(tx, p)
		return err
	})
	return n, err
}

// ListPools implements contract.Nouns.
func (l localNouns) ListPools(ctx context.Context) (all []inventory.Pool, err error) {
	return inventory.Read(ctx, l.cfg.Store, func(tx inventory.Tx) ([]inventory.Pool, error) { return tx.Pools().List(inventory.Page{}) })
}

// SaveTarget implements contract.Nouns.
func (l localNouns) SaveTarget(ctx context.Context, t inventory.JoinTarget) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if err := l.ownSecrets(ctx, &t); err != nil {
		return err
	}
	if t.IsInit {
		if err := l.foundCluster(ctx, &t); err != nil {
			return err
		}
	}
	return save(ctx, l.local, targets, t)
}

// ownSecrets refuses a target that names the secret of somebody else: an object would get at what its namespace may not see.
func (l localNouns) ownSecrets(ctx context.Context, t *inventory.JoinTarget) error {
	return l.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		for _, name := range []string{t.Kubeconfig, t.Token, t.PKI, t.CertificateKey} {
			if name == "" {
				continue
			}
			s, err := tx.Secrets().Find(name)
			switch {
			case inventory.IsKind(err, inventory.NotFound):
			case err != nil:
				return err
			case s.Owner != t.Owner:
				return foreign("secret", name, s.Owner)
			}
		}
		return nil
	})
}

// FindTarget implements contract.Nouns.
func (l localNouns) FindTarget(ctx context.Context, name string) (inventory.JoinTarget, error) {
	return inventory.Read(ctx, l.cfg.Store, func(tx inventory.Tx) (inventory.JoinTarget, error) { return tx.JoinTargets().Find(name) })
}

// DeleteTarget implements contract.Nouns.
func (l localNouns) DeleteTarget(ctx context.Context, name, owner string) error {
	return remove(ctx, l.local, targets, name, owner)
}

// SaveSecret implements contract.Nouns.
func (l localNouns) SaveSecret(ctx context.Context, name, owner string, value []byte) error {
	return l.saveSecret(ctx, name, owner, value)
}

// DeleteSecret implements contract.Nouns.
func (l localNouns) DeleteSecret(ctx context.Context, name, owner string) error {
	return remove(ctx, l.local, l.secrets(nil), name, owner)
}

// InitHolder implements contract.Nouns.
func (l localNouns) InitHolder(ctx context.Context, target string) (name string, err error) {
	err = l.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		lock, err := found(tx.FindLock("init/" + target))
		if err != nil || lock == nil {
			return err
		}
		h, err := found(tx.FindHost(lock.HostID))
		if err != nil || h == nil {
			return err
		}
		name = h.Machine
		return nil
	})
	return name, err
}

// FindProfile implements contract.Nouns.
func (l localNouns) FindProfile(ctx context.Context, name string) (inventory.Profile, error) {
	return inventory.Read(ctx, l.cfg.Store, func(tx inventory.Tx) (inventory.Profile, error) { return tx.Profiles().Find(name) })
}

// FindImage implements contract.Nouns.
func (l localNouns) FindImage(ctx context.Context, name string) (inventory.Image, error) {
	return inventory.Read(ctx, l.cfg.Store, func(tx inventory.Tx) (inventory.Image, error) { return tx.Images().Find(name) })
}

// ClusterAccess implements contract.Nouns.
func (l localNouns) ClusterAccess(ctx context.Context, uid string) (inventory.ClusterAccess, error) {
	return inventory.Read(ctx, l.cfg.Store, func(tx inventory.Tx) (inventory.ClusterAccess, error) { return tx.FindClusterAccess(uid) })
}
