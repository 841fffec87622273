package provision

import (
	"cmp"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/watch"
)

// StepNames lists the names that Config.Deadlines may have.
func StepNames() []string {
	var names []string
	for s := range limits {
		names = append(names, string(s))
	}
	return slices.Sorted(slices.Values(slices.AppendSeq(names, slices.Values(watch.Steps()))))
}

// limitOf returns the deadline of a step, as it is configured here.
func (e *Engine) limitOf(s inventory.Step) limit {
	l := limits[s]
	if d := e.cfg.Deadlines[string(s)]; d > 0 && l.within > 0 {
		l.within = d
		l.first = min(l.first, d)
	}
	return l
}

// Way returns the steps of an operation in order, those that it has passed included.
func Way(o *inventory.Operation) []inventory.Step { return steps(o.Kind, paramsOf(o)) }

// ImageOf returns the image that an operation installs, "" if it installs none.
func ImageOf(o *inventory.Operation) string { return paramsOf(o).Image }

func (e *Engine) expectsOf(op *inventory.Operation, h *inventory.Host) *watch.Expected {
	x := &watch.Expected{
		What: e.limitOf(op.Step).expect, By: op.DeadlineAt, Since: op.StepAt, Step: string(op.Step), Reason: op.Reason, Hint: cmp.Or(op.Hint, e.lateHint(op, h)),
		Operation: op.ID,
	}
	switch {
	case op.State == inventory.OpWaiting && op.Reason != "":
		x.What, x.Reason = op.Reason, ""
	case x.What == "":
		x.What = "step " + string(op.Step) + " is done"
	}
	return x
}
