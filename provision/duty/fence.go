package duty

import (
	"context"

	"slipway.dev/slipway/inventory"
)

// Fenced returns the store for work that is a duty. Each Write looks in its own transaction whether the instance still has the duty, in the
// same epoch. If not, it is a Conflict and nothing is written. Read passes.
//
// Holds alone does not suffice. The process may be paused between the answer of Holds and the write. Meanwhile another instance takes the
// duty and writes, too.
func Fenced(s inventory.Store, k *Keeper, name string) inventory.Store {
	if k.cfg.IsAlone { // the lock of the data directory keeps others away
		return s
	}
	return fenced{s, k, name}
}

type fenced struct {
	inventory.Store
	keeper *Keeper
	duty   string
}

// Write implements inventory.Store.
func (f fenced) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	g, ok := f.keeper.grant(f.duty)
	if !ok {
		return f.lost()
	}
	return f.Store.Write(ctx, func(tx inventory.Tx) error {
		d, err := tx.FindDuty(f.duty)
		if err != nil {
			return err
		}
		// The own clock is not asked again. Writes of all instances come one after the other, so that the row is true until this one ends.
		if d.Holder != f.keeper.cfg.ID || d.Epoch != g.epoch {
			return f.lost()
		}
		return fn(tx)
	})
}

func (f fenced) lost() error {
	return inventory.Errorf(inventory.Conflict, "duty %s is no longer held by instance %s", f.duty, f.keeper.cfg.Name).
		WithHint("another instance goes on with it; slipway instance list shows which")
}
