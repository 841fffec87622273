package web

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/scoped"
)

// scopedStore shows each caller its part of the inventory. Handlers reach the store only through it, so that none of them
// can forget to ask.
type scopedStore struct {
	inventory.Store
	met  *scoped.Met
	life Machines
}

// Read implements inventory.Store.
func (s scopedStore) Read(ctx context.Context, fn func(inventory.Tx) error) error {
	return s.Store.Read(ctx, func(tx inventory.Tx) error { return limited(ctx, authored{Tx: tx, saved: savedBy(ctx)}, s.met, fn) })
}

// Write implements inventory.Store. What it writes may be undone: nothing of it is remembered.
func (s scopedStore) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	var after []func(context.Context, bool)
	isStored := false
	defer func() {
		for _, f := range after {
			f(ctx, isStored)
		}
	}()
	err := s.Store.Write(ctx, func(tx inventory.Tx) error {
		return limited(ctx, authored{tx, savedBy(ctx), s.life, &after}, nil, fn)
	})
	isStored = err == nil
	if err != nil {
		s.noteRefused(ctx, err)
	}
	return err
}

// limited calls fn with what the caller may see and change. What the server does by itself gets the transaction as it is.
func limited(ctx context.Context, tx authored, met *scoped.Met, fn func(inventory.Tx) error) error {
	c, isSomebody := ctx.Value(callerKey{}).(caller)
	if !isSomebody {
		return fn(tx.Tx)
	}
	if c.grants.Everywhere() == inventory.Admin {
		return fn(tx)
	}
	shown, err := scoped.Show(tx, c.within(ctx), met)
	if err != nil {
		return err
	}
	return fn(shown)
}

// within is the caller as the inventory is shown to it, in an operation.
func (c caller) within(ctx context.Context) scoped.Caller {
	needed, _ := ctx.Value(neededKey{}).(inventory.UserRole)
	if needed == "" || needed == anybody {
		needed = inventory.Viewer
	}
	return scoped.Caller{User: c.user, Grants: c.grants, MustSetUp: c.mustSetUp, Needed: needed}
}

// mayPlace refuses a machine in a pool, or on a host, where the caller's role is not enough.
func mayPlace(tx inventory.Tx, m *inventory.Machine) error {
	t, isScoped := tx.(*scoped.Tx)
	if !isScoped {
		return nil
	}
	return t.MayPlace(m)
}

// mayPlace is the same outside of a transaction.
func (s *Server) mayPlace(ctx context.Context, m *inventory.Machine) error {
	return s.cfg.Store.Read(ctx, func(tx inventory.Tx) error { return mayPlace(tx, m) })
}
