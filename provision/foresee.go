package provision

import (
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/foresight"
	"slipway.dev/slipway/pxe"
)

// foresee gives see what would begin on a host. A dry run calls it before it undoes its transaction.
func (e *Engine) foresee(tx inventory.Tx, h *inventory.Host, see func(foresight.Facts)) error {
	f := foresight.Facts{Host: *h, IsHere: e.agents.isHere(h.ID, e.cfg.Now())}
	op, err := tx.FindOpenOperation(h.ID)
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return fmt.Errorf("read what would begin on %s: %w", h.Name, err)
	}
	if err == nil {
		p := paramsOf(&op)
		f.Steps, f.Image, f.BurnInFor, f.MayRestart = Way(&op), p.Image, p.BurnInFor, p.MayRestart
	}
	for _, s := range e.sessions.Boots(h.ID) {
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
