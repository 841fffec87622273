package duty

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ahead"
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
	return f.Store.Write(ctx, f.checked(fn))
}

// WriteAhead implements ahead.Store.
func (f fenced) WriteAhead(ctx context.Context, expect func(inventory.Tx), fn func(inventory.Tx) error) error {
	return ahead.Write(ctx, f.Store, expect, f.checked(fn))
}

func (f fenced) checked(fn func(inventory.Tx) error) func(inventory.Tx) error {
	return func(tx inventory.Tx) error {
		if err := f.keeper.Check(tx, f.duty, f.epoch); err != nil {
			return err
		}
		return fn(tx)
	}
}

// Check is a Conflict unless this instance has a duty in an epoch, as a transaction shows it. It is for a transaction with works of several
// duties, and for a look at what the holder before has left.
func (k *Keeper) Check(tx inventory.Tx, name string, epoch int64) error {
	if k.cfg.IsAlone {
		return nil
	}
	d, err := tx.FindDuty(name)
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	if err != nil || d.Holder != k.cfg.ID || d.Epoch != epoch {
		return k.lost(name)
	}
	return nil
}

func (k *Keeper) lost(name string) error {
	return inventory.Errorf(inventory.Conflict, "instance %s has lost duty %s", k.cfg.Name, name).
		WithHint("another instance goes on with it; slipway instance list shows which")
}
