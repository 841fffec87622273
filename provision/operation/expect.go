package operation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/foresight"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/pxe"
)

// StepNames lists the names that Config.Deadlines may have.
func StepNames() []string {
	var names []string
	for s := range limits {
		names = append(names, string(s))
	}
	return slices.Sorted(slices.Values(slices.AppendSeq(names, slices.Values(watch.Steps()))))
}

// Limits are how long steps may take, and how often a host may be installed, as an admin has set them.
type Limits struct {
	Deadlines       map[string]time.Duration // replace those of steps, by their names
	InstallsPerHour int
}

// Of returns the deadline of a step.
func (ls Limits) Of(s inventory.Step) limit {
	l := limits[s]
	if d := ls.Deadlines[string(s)]; d > 0 && l.Within > 0 {
		l.Within = d
		l.first = min(l.first, d)
	}
	return l
}

// Way returns the steps of an operation in order, those that it has passed included.
func Way(o *inventory.Operation) []inventory.Step { return Steps(o.Kind, ParamsOf(o)) }

// ImageOf returns the image that an operation installs, "" if it installs none.
func ImageOf(o *inventory.Operation) string { return ParamsOf(o).Image }

// ExpectedOf returns what an open operation expects next, until when, and what to look at if it does not come.
func (o *Operator) ExpectedOf(op *inventory.Operation, h *inventory.Host) *watch.Expected {
	x := &watch.Expected{
		What: o.cfg.Limits.Of(op.Step).Expect, By: op.DeadlineAt, Since: op.StepAt, Step: string(op.Step), Reason: op.Reason, Hint: cmp.Or(op.Hint, lateHint(op, h)),
		Operation: op.ID, Refs: op.Refs,
	}
	switch {
	case op.State == inventory.OpWaiting && op.Reason != "":
		x.What, x.Reason = op.Reason, ""
	case x.What == "":
		x.What = "step " + string(op.Step) + " is done"
	}
	return x
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
