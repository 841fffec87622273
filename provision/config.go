package provision

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// prepare renders what a machine is about to be given, so that the transaction that decides finds it made. What the machine
// says of itself counts already.
func (e *Engine) prepare(ctx context.Context, c pxe.Client) error {
	var lacking inventory.HostID
	err := e.prepared(ctx, c, &lacking)
	if err != nil || lacking == "" {
		return err
	}
	if err := e.KeepAddress(ctx, lacking); err != nil {
		return nil //nolint:nilerr // what is wrong stands in its rendering
	}
	return e.prepared(ctx, c, &lacking)
}

// prepared is one try of prepare. lacking becomes the host that has no address yet which its configuration asks for.
func (e *Engine) prepared(ctx context.Context, c pxe.Client, lacking *inventory.HostID) error {
	return e.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		h, err := tx.FindHostByMAC(c.MAC)
		if err != nil || h.State == inventory.Discovered || h.State == inventory.Failed || h.InMaintenance || h.IsAdopted {
			return ledger.IgnoreNotFound(err)
		}
		if _, err := e.identify(tx, &h, c); err != nil && !inventory.IsKind(err, inventory.Internal) { // what it would write is no matter here
			return err
		}
		h.Facts = withSecureBoot(h.Facts, c.SecureBoot)
		p, err := e.planFor(tx, &h, c.Subnet)
		if err != nil {
			return err
		}
		r, err := e.ConfigOf(tx, &h, p, c.MAC)
		if r != nil && r.LacksAddress {
			*lacking = h.ID
		}
		return err
	})
}
