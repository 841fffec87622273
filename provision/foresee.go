package provision

import (
	"context"
	"fmt"

	"slipway.dev/slipway/foresight"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

type foreseeKey struct{}

// Foresee returns a context of a Trial in which see is told what would begin on a host.
func Foresee(ctx context.Context, see func(foresight.Facts)) context.Context {
	return context.WithValue(Trial(ctx), foreseeKey{}, see)
}

// foresee tells whoever asked for a trial what would begin; it is called before the trial is undone.
func (e *Engine) foresee(ctx context.Context, tx inventory.Tx, h *inventory.Host) error {
	see, _ := ctx.Value(foreseeKey{}).(func(foresight.Facts))
	if see == nil {
		return nil
	}
	f := foresight.Facts{Host: *h, IsHere: e.agents.isHere(h.ID, e.cfg.Now())}
	op, err := tx.FindOpenOperation(h.ID)
	if err != nil && !isKind(err, inventory.NotFound) {
		return fmt.Errorf("read what would begin on %s: %w", h.Name, err)
	}
	if err == nil {
		p := paramsOf(&op)
		f.Steps, f.Image, f.BurnInFor, f.MayRestart = Way(&op), p.Image, p.BurnInFor, p.MayRestart
	}
	for _, s := range e.sessions.boots(h.ID) {
		f.IsHere = f.IsHere || s.Boot == string(pxe.BootWait) && s.EndedAt.IsZero()
	}
	b, err := tx.FindBMC(h.ID)
	if err != nil && !isKind(err, inventory.NotFound) {
		return fmt.Errorf("read controller of %s: %w", h.Name, err)
	}
	f.Driver, f.Runs = b.Driver, b.Power == inventory.PowerOn && !f.IsHere
	see(f)
	return nil
}
