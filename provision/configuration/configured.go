package configuration

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/address"
)

// HoldConfigured gives the machines and hosts of a profile or layer, saved in this transaction, their addresses and names.
// It refuses the save when two would have the same. Of most changes no word is about names or addresses: those cost
// nothing. after, which may be nil, is to be called when the transaction has ended.
func (c *Edits) HoldConfigured(
	tx inventory.Tx, profile string, l *inventory.Layer,
) (after func(ctx context.Context, isStored bool), err error) {
	tx = address.Whole(tx)
	t, kind, name := edit{Tx: tx, layer: l}, inventory.RevisionOfLayer, ""
	if l != nil {
		name = l.Key()
	} else {
		p, err := tx.Profiles().Find(profile)
		if err != nil {
			return nil, err
		}
		t.profile, kind, name = &p, inventory.RevisionOfProfile, profile
	}
	revisions, err := tx.ListRevisions(kind, name, 0, 2)
	if err != nil {
		return nil, fmt.Errorf("read revisions of %s: %w", name, err)
	}
	if !slices.ContainsFunc(revisions, func(r inventory.Revision) bool { return address.Matters(string(r.Body)) }) {
		return nil, nil
	}
	key, err := editKey(t.profile, l)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", name, err)
	}
	if w, fresh := c.held.find(key); w != nil {
		return c.holdWalked(tx, t, w, fresh)
	}
	defer c.held.changed("")
	b, err := c.book(tx, false)
	if err != nil {
		return nil, err
	}
	return nil, c.eachHolder(tx, func(m *inventory.Machine, h *inventory.Host) error {
		x, err := c.holds(tx, b, m, h)
		if err != nil || x.in == nil || !t.isUsedBy(x.in) {
			return err
		}
		return c.take(tx, b, &x)
	})
}

// holdWalked takes a walk for true, but for the holders that have changed since: those are checked again.
func (c *Edits) holdWalked(tx inventory.Tx, t edit, w *heldWalk, fresh []string) (func(context.Context, bool), error) {
	now := *w
	now.holders = maps.Clone(w.holders)
	for _, key := range fresh {
		delete(now.holders, key)
	}
	c.held.begin(&now)
	b, err := c.book(tx, false)
	for _, key := range fresh {
		if err == nil {
			err = c.holdKey(tx, b, t, key)
		}
		if err == nil {
			err = now.spares(tx, key)
		}
	}
	if err != nil {
		c.held.end(&now)
		return nil, err
	}
	c.held.changed("")
	return func(ctx context.Context, isStored bool) {
		if isStored {
			c.noteWalked(context.WithoutCancel(ctx), &now)
		}
		c.held.end(&now)
	}, nil
}

// holdKey is hold for the holder with a key, when an edit is about it.
func (c *Edits) holdKey(tx inventory.Tx, b *address.Book, t edit, key string) error {
	m, h, err := holderOf(tx, key)
	if err != nil || m == nil && h == nil {
		return err
	}
	x, err := c.holds(tx, b, m, h)
	if err != nil || x.in == nil || !t.isUsedBy(x.in) {
		return err
	}
	return c.take(tx, b, &x)
}

// noteWalked stores what a walk has found. What could not be stored is checked later.
func (c *Edits) noteWalked(ctx context.Context, w *heldWalk) {
	if err := c.noteAll(ctx, slices.Sorted(maps.Keys(w.holders))); err != nil {
		c.cfg.Log.Warn("addresses and names of a configuration not noted yet", "err", err)
		c.HeldElsewhere()
	}
}
