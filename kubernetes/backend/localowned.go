package backend

import (
	"bytes"
	"cmp"
	"context"
	"reflect"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
)

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

// secrets compares values as they are in clear: each sealing looks different.
func (l *local) secrets(value []byte) owned[inventory.Secret] {
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

// saveSecret seals a value and stores it under a name for an owner.
func (l *local) saveSecret(ctx context.Context, name, owner string, value []byte) error {
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
	return save(ctx, l, l.secrets(value), s)
}
