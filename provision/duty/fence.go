package duty

import (
	"context"

	"slipway.dev/slipway/inventory"
)

// Fenced returns the store for an instance. A Write whose context comes from While or Bind looks in its own transaction whether the
// instance still has that duty, in the same epoch. If not, it is a Conflict and nothing is written. All else passes: it belongs to no duty.
//
// Holds alone does not suffice. The process may be paused between the answer of Holds and the write. Meanwhile another instance takes the
// duty and writes, too.
func Fenced(s inventory.Store, k *Keeper) inventory.Store {
	if k.cfg.IsAlone { // the lock of the data directory keeps others away
		return s
	}
	return fenced{s, k}
}

type fenced struct {
	inventory.Store
	keeper *Keeper
}

// Bind returns the context for work that belongs to a duty. It fails when the instance does not have the duty.
func (k *Keeper) Bind(ctx context.Context, name string) (context.Context, error) {
	g, ok := k.grant(name)
	if !ok {
		return nil, k.lost(name)
	}
	return bind(ctx, bound{name, g.epoch}), nil
}

// Write implements inventory.Store.
func (f fenced) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	b, ok := boundOf(ctx)
	if !ok {
		return f.Store.Write(ctx, fn)
	}
	if g, ok := f.keeper.grant(b.duty); !ok || g.epoch != b.epoch {
		return f.keeper.lost(b.duty)
	}
	return f.Store.Write(ctx, func(tx inventory.Tx) error {
		d, err := tx.FindDuty(b.duty)
		if err != nil {
			return err
		}
		// The own clock is not asked again. Writes of all instances come one after the other, so that the row is true until this one ends.
		if d.Holder != f.keeper.cfg.ID || d.Epoch != b.epoch {
			return f.keeper.lost(b.duty)
		}
		return fn(tx)
	})
}

// Under returns the store for work that belongs to a duty with all of its writes.
func (k *Keeper) Under(s inventory.Store, name string) inventory.Store {
	if k.cfg.IsAlone {
		return s
	}
	return under{fenced{s, k}, name}
}

type under struct {
	fenced
	duty string
}

// Write implements inventory.Store.
func (u under) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	ctx, err := u.keeper.Bind(ctx, u.duty)
	if err != nil {
		return err
	}
	return u.fenced.Write(ctx, fn)
}

func (k *Keeper) lost(name string) error {
	return inventory.Errorf(inventory.Conflict, "duty %s is no longer held by instance %s", name, k.cfg.Name).
		WithHint("another instance goes on with it; slipway instance list shows which")
}
