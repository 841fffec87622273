package operation

import (
	"context"
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/foresight"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/power"
	"slipway.dev/slipway/pxe"
)

// OrdersConfig is what Orders need besides their Operator.
type OrdersConfig struct {
	*ledger.Ledger // with the store, the time and the log
	Configurer     *configuration.Configurer
	Power          *power.Controllers
	Join           delivery.Minter // ends the tokens of those that join a cluster; nil: there are none
	// Plan is what a host in a subnet would boot.
	Plan func(tx inventory.Tx, h *inventory.Host, subnet string) (pxe.Plan, error)
	// MayPlace says that machines that wait may find a host now.
	MayPlace func()
}

// Orders are what people ask for on hosts.
type Orders struct {
	*Operator
	cfg OrdersConfig
}

// NewOrders returns the Orders that an Operator carries out.
func NewOrders(o *Operator, cfg OrdersConfig) *Orders { return &Orders{o, cfg} }

// Changed is change for a write that begins or moves an operation: it wakes the goroutine that drives it.
func (o *Operator) Changed(ctx context.Context, who ledger.Asker, id inventory.HostID, fn func(inventory.Tx, *inventory.Host) error) (inventory.Host, error) {
	h, err := o.change(ctx, who, id, fn)
	o.Poke()
	return h, err
}

// change runs fn on a host in one transaction and returns the host as stored, or as it would be stored after a dry run.
func (o *Operator) change(ctx context.Context, who ledger.Asker, id inventory.HostID, fn func(inventory.Tx, *inventory.Host) error) (h inventory.Host, err error) {
	err = o.cfg.Ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if h, err = tx.FindHost(id); err != nil {
			return err
		}
		if err = fn(tx, &h); err == nil && who.Foresee != nil {
			err = o.foresee(tx, &h, who.Foresee)
		}
		return err
	})
	return h, err
}

// foresee gives see what would begin on a host. A dry run calls it before it undoes its transaction.
func (o *Operator) foresee(tx inventory.Tx, h *inventory.Host, see func(foresight.Facts)) error {
	f := foresight.Facts{Host: *h, IsHere: o.agents.isHere(h.ID, o.cfg.Now())}
	op, err := tx.FindOpenOperation(h.ID)
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return fmt.Errorf("read what would begin on %s: %w", h.Name, err)
	}
	if err == nil {
		p := ParamsOf(&op)
		f.Steps, f.Image, f.BurnInFor, f.MayRestart = Way(&op), p.Image, p.BurnInFor, p.MayRestart
	}
	for _, s := range o.cfg.Sessions.Boots(h.ID) {
		f.IsHere = f.IsHere || s.Boot == string(pxe.BootWait) && s.EndedAt.IsZero()
	}
	b, err := tx.FindBMC(h.ID)
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return fmt.Errorf("read controller of %s: %w", h.Name, err)
	}
	f.Driver, f.Runs = b.Driver, b.Power == inventory.PowerOn && !f.IsHere
	see(f)
	return nil
}
