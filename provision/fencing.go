package provision

import (
	"context"
	"fmt"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// cutsPower reports whether the engine can cut a host's power and read that it is off. No other way to power a host fences
// by itself: there, a person says that it is off, or our agent boots.
func (e *Engine) cutsPower(b *inventory.BMC) bool {
	return e.cfg.OpenBMC != nil && b.HostID != "" && b.Driver != inventory.Manual && b.Driver != inventory.WoL
}

// mustCut reports whether an operation ends an old system, on a host whose power the engine can cut. Root in that system can
// play a whole boot of our agent: only what booted after the power was seen off is believed.
func (e *Engine) mustCut(op *inventory.Operation, b *inventory.BMC) bool {
	switch op.Kind {
	case inventory.OpRelease, inventory.OpClean, inventory.OpReinstall:
		return e.cutsPower(b)
	}
	return false
}

// isAfterOff reports whether a boot began after the power was seen off in this operation.
func (p Params) isAfterOff(began time.Time) bool { return !p.OffAt.IsZero() && !began.Before(p.OffAt) }

// believes reports whether a boot that began at some time shows that the old system of the host does not run any more.
func (j *job) believes(began time.Time) (bool, error) {
	b, err := j.tx.FindBMC(j.host.ID)
	if err = ledger.IgnoreNotFound(err); err != nil { // what cannot be read is no proof
		return false, fmt.Errorf("read controller of %s: %w", j.host.Name, err)
	}
	if !j.e.mustCut(&j.op, &b) {
		return true, nil
	}
	if !j.p.isAfterOff(began) {
		return false, nil
	}
	// A machine that has booted since and boots again may come from its disk: its power is cut anew before that is believed.
	return follows(j.tx, j.host.ID, began, j.p.OffAt, restartedFor)
}

// isFenced reports whether our agent runs on the host, in a boot that shows that its old system does not.
func (j *job) isFenced() (bool, error) {
	began, ok := j.e.agents.here(j.host.ID, j.e.cfg.Now())
	if !ok {
		return false, nil
	}
	return j.believes(began)
}

// offFor is how long "off" is believed of a machine that nobody has looked at since: somebody may switch it on while the
// operation waits for a budget or a hook, and its old system may run again.
const offFor = time.Minute

// enterPower reports whether nothing need be done with the power: our agent runs, or the machine waits for it in its boot
// loader, after its old system has ended.
func (j *job) enterPower() (passes bool, err error) {
	isFence := j.op.Step == inventory.StepFence
	if !isFence && j.e.cfg.Now().Sub(j.p.OffAt) > offFor {
		j.p.OffAt = time.Time{}
		j.op.Params = j.p.encode()
	}
	if passes, err = j.isFenced(); passes || err != nil || isFence {
		return passes, err
	}
	return j.isAsking()
}

// noteOff stores that the power of an operation's host was seen off; what was heard of the machine before counts no more.
func (e *Engine) noteOff(ctx context.Context, op inventory.Operation) error {
	now := e.cfg.Now()
	e.switchedOff(op.HostID, now)
	return e.withJob(ctx, op.ID, func(j *job) error {
		if j.op.Step != op.Step || j.op.AttemptN != op.AttemptN {
			return nil
		}
		j.p.OffAt = now
		j.op.Params = j.p.encode()
		return j.tx.UpdateOperation(&j.op, now)
	})
}

// restartNow carries out a cycle or a reset that a person ordered. Boots of before end when the machine is known to have
// restarted; otherwise the timeline says that nothing shows it.
func (e *Engine) restartNow(ctx context.Context, op inventory.Operation, h *inventory.Host, p powering, a bmc.Action) (bool, error) {
	began := e.cfg.Now()
	e.agents.forget(h.ID)
	isProven, err := bmc.Restart(ctx, p.driver, a, clock{e.cfg.Now}, e.pace())
	switch {
	case err != nil:
		return false, err
	case isProven:
		e.switchedOff(h.ID, began)
		return true, nil
	}
	return true, e.withJob(ctx, op.ID, func(j *job) error {
		return j.note("the controller took the order, and nothing that it tells shows that the machine restarted", map[string]any{
			"hint": "look at its console; a cycle is seen to be off in between: slipway host power " + h.Name + " cycle",
		})
	})
}

// noteUnchanged stores that a host's power was as ordered already. Such an order starts no boot.
func (e *Engine) noteUnchanged(ctx context.Context, op inventory.Operation, is inventory.PowerState) error {
	return e.withJob(ctx, op.ID, func(j *job) error {
		j.p.WasSo = true
		j.op.Params = j.p.encode()
		if err := j.note("the host was "+string(is)+" already", nil); err != nil {
			return err
		}
		return j.tx.UpdateOperation(&j.op, e.cfg.Now())
	})
}
