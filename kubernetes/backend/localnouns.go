package backend

import (
	"bytes"
	"cmp"
	"context"
	"reflect"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/provision/claim"
)

// localNouns is what is stored under a name for an owner, as the store has it.
type localNouns struct{ *local }

var _ contract.Nouns = localNouns{}

// owned is how things are saved that are stored under a name for an owner.
type owned[T any] struct {
	noun.Noun[T]
	owner  func(*T) string
	may    func(tx inventory.Tx, wanted *T) error // refuses what must not be stored; nil refuses nothing
	isSame func(stored, wanted *T) bool           // nil compares all fields
	keep   func(wanted *T, stored *T)             // takes over what the caller does not say; nil takes nothing
}

func foreign(noun, name, owner string) error {
	owner = cmp.Or(owner, "a person")
	return inventory.Errorf(inventory.Conflict, "%s %s is there already, made by %s", noun, name, inventory.Clean(owner, 200)).
		WithHint("give the object another name, or delete the other first: slipway %s delete %s", noun, name)
}

// save stores x. Saving what is stored already writes nothing.
func save[T any](ctx context.Context, l *local, n owned[T], x T) error {
	return l.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		want, name, all := x, n.Key(&x), n.Records(tx)
		stored, err := all.Find(name)
		isNew := inventory.IsKind(err, inventory.NotFound)
		switch {
		case isNew:
		case err != nil:
			return err
		// A name belongs to the owner who took it first. Otherwise an object of one namespace could overwrite that of another.
		case n.owner(&stored) != n.owner(&want):
			return foreign(n.One, name, n.owner(&stored))
		default:
			n.Keep(&want, &stored)
			if n.keep != nil {
				n.keep(&want, &stored)
			}
			if n.isSame != nil && n.isSame(&stored, &want) || n.isSame == nil && isSame(stored, want) {
				return nil
			}
		}
		if n.may != nil {
			if err := n.may(tx, &want); err != nil {
				return err
			}
		}
		write, done := all.Update, "changed"
		if isNew {
			write, done = all.Create, "created"
		}
		if err := write(&want, l.cfg.Now()); err != nil {
			return err
		}
		return l.changed(tx, n.One, name, done)
	})
}

// isSame compares two things as they are stored: an empty list is none.
func isSame[T any](a, b T) bool { return reflect.DeepEqual(normal(a), normal(b)) }

func normal[T any](x T) T {
	v := reflect.ValueOf(&x).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); (f.Kind() == reflect.Slice || f.Kind() == reflect.Map) && f.Len() == 0 {
			// x is a copy, but its lists are shared: only the field is set, never an element.
			f.SetZero()
		}
	}
	return x
}

// remove deletes what is stored under a name for an owner.
func remove[T any](ctx context.Context, l *local, n owned[T], name, owner string) error {
	return l.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		stored, err := n.Records(tx).Find(name)
		if inventory.IsKind(err, inventory.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if n.owner(&stored) != owner {
			return foreign(n.One, name, n.owner(&stored))
		}
		if err := n.Records(tx).Delete(name); err != nil {
			return err
		}
		return l.changed(tx, n.One, name, "deleted")
	})
}

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

// secrets compares values as they are in clear: each sealing looks different.
func (l localNouns) secrets(value []byte) owned[inventory.Secret] {
	return owned[inventory.Secret]{
		Noun:  noun.Secrets,
		owner: func(s *inventory.Secret) string { return s.Owner },
		keep: func(wanted, stored *inventory.Secret) {
			wanted.About, wanted.Consumers = stored.About, stored.Consumers
		},
		isSame: func(stored, _ *inventory.Secret) bool {
			plain, err := l.cfg.Secrets.Open(stored.Name, stored.Sealed)
			return err == nil && bytes.Equal(plain, value)
		},
	}
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
		if err := l.found(ctx, &t); err != nil {
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
	s := inventory.Secret{Name: name, Owner: owner}
	if err := s.Validate(); err != nil {
		return err
	}
	if l.cfg.Secrets == nil {
		return inventory.Errorf(inventory.Unavailable, "this server has no key for secrets")
	}
	var err error
	if s.Sealed, err = l.cfg.Secrets.Seal(name, value); err != nil {
		return err
	}
	return save(ctx, l.local, l.secrets(value), s)
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
