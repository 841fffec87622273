package duty

import (
	"context"

	"slipway.dev/slipway/inventory"
)

// Under returns the store for work that belongs to a duty, in the epoch in which the instance has it now. It is a Conflict if the instance
// does not have the duty. Each Write looks in its own transaction whether the row of the duty still has this holder and epoch. If not, it is
// a Conflict and nothing is written. Read passes.
//
// Holds alone does not suffice. The process may be paused between the answer of Holds and the write. Meanwhile another instance takes the
// duty and writes, too.
func (k *Keeper) Under(s inventory.Store, name string) (inventory.Store, error) {
	g, ok := k.grant(name)
	switch {
	case !ok:
		return nil, k.lost(name)
	case k.cfg.IsAlone: // the lock of the data directory keeps others away
		return s, nil
	}
	return fenced{s, k, name, g.epoch}, nil
}

type fenced struct {
	inventory.Store
	keeper *Keeper
	duty   string
	epoch  int64
}

// Write implements inventory.Store. It needs no clock. Writes of all instances come one after the other, so that the row is true until this
// one ends.
func (f fenced) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	return f.Store.Write(ctx, func(tx inventory.Tx) error {
		d, err := tx.FindDuty(f.duty)
		if err != nil {
			return err
		}
		if d.Holder != f.keeper.cfg.ID || d.Epoch != f.epoch {
			return f.keeper.lost(f.duty)
		}
		return fn(tx)
	})
}

func (k *Keeper) lost(name string) error {
	return inventory.Errorf(inventory.Conflict, "duty %s is no longer held by instance %s", name, k.cfg.Name).
		WithHint("another instance goes on with it; slipway instance list shows which")
}
