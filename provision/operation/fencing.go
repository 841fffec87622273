package operation

import (
	"context"
	"fmt"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/power"
)

// mustCut reports whether an operation ends an old system, on a host whose power the engine can cut. Root in that system can
// play a whole boot of our agent: only what booted after the power was seen off is believed.
func (o *Operator) mustCut(op *inventory.Operation, b *inventory.BMC) bool {
	switch op.Kind {
	case inventory.OpRelease, inventory.OpClean, inventory.OpReinstall:
		return o.cfg.Power.CutsPower(b)
	}
	return false
}

// isAfterOff reports whether a boot began after the power was seen off in this operation.
func (p Params) isAfterOff(began time.Time) bool { return !p.OffAt.IsZero() && !began.Before(p.OffAt) }

// Believes reports whether a boot that began at some time shows that the old system of the host does not run any more.
func (j *Job) Believes(began time.Time) (bool, error) {
	b, err := j.Tx.FindBMC(j.Host.ID)
	if err = ledger.IgnoreNotFound(err); err != nil { // what cannot be read is no proof
		return false, fmt.Errorf("read controller of %s: %w", j.Host.Name, err)
	}
	if !j.o.mustCut(&j.op, &b) {
		return true, nil
	}
	if !j.P.isAfterOff(began) {
		return false, nil
	}
	// A machine that has booted since and boots again may come from its disk: its power is cut anew before that is believed.
	return Follows(j.Tx, j.Host.ID, began, j.P.OffAt, RestartedFor)
}

// isFenced reports whether our agent runs on the host, in a boot that shows that its old system does not.
func (j *Job) isFenced() (bool, error) {
	began, ok := j.o.agents.here(j.Host.ID, j.o.cfg.Now())
	if !ok {
		return false, nil
	}
	return j.Believes(began)
}

// offFor is how long "off" is believed of a machine that nobody has looked at since: somebody may switch it on while the
// operation waits for a budget or a hook, and its old system may run again.
const offFor = time.Minute

// enterPower reports whether nothing need be done with the power: our agent runs, or the machine waits for it in its boot
// loader, after its old system has ended.
func (j *Job) enterPower() (passes bool, err error) {
	isFence := j.op.Step == inventory.StepFence
	if !isFence && j.o.cfg.Now().Sub(j.P.OffAt) > offFor {
		j.P.OffAt = time.Time{}
		j.op.Params = j.P.Encode()
	}
	if passes, err = j.isFenced(); passes || err != nil || isFence {
		return passes, err
	}
	return j.isAsking()
}

// noteOff stores that the power of an operation's host was seen off; what was heard of the machine before counts no more.
func (o *Workers) noteOff(ctx context.Context, op inventory.Operation) error {
	now := o.cfg.Now()
	o.switchedOff(op.HostID, now)
	return o.WithJob(ctx, op.ID, func(j *Job) error {
		if j.op.Step != op.Step || j.op.AttemptN != op.AttemptN {
			return nil
		}
		j.P.OffAt = now
		j.op.Params = j.P.Encode()
		return j.Tx.UpdateOperation(&j.op, now)
	})
}

// restartNow carries out a cycle or a reset that a person ordered. Boots of before end when the machine is known to have
// restarted; otherwise the timeline says that nothing shows it.
func (o *Workers) restartNow(ctx context.Context, op inventory.Operation, h *inventory.Host, p power.Access, a bmc.Action) (bool, error) {
	began := o.cfg.Now()
	o.agents.forget(h.ID)
	isProven, err := bmc.Restart(ctx, p.Driver, a, power.Clock{Time: o.cfg.Now}, o.cfg.Power.Pace())
	switch {
	case err != nil:
		return false, err
	case isProven:
		o.switchedOff(h.ID, began)
		return true, nil
	}
	return true, o.WithJob(ctx, op.ID, func(j *Job) error {
		return j.note("the controller took the order, and nothing that it tells shows that the machine restarted", map[string]any{
			"hint": "look at its console; a cycle is seen to be off in between: slipway host power " + h.Name + " cycle",
		})
	})
}

// noteUnchanged stores that a host's power was as ordered already. Such an order starts no boot.
func (o *Workers) noteUnchanged(ctx context.Context, op inventory.Operation, is inventory.PowerState) error {
	return o.WithJob(ctx, op.ID, func(j *Job) error {
		j.P.WasSo = true
		j.op.Params = j.P.Encode()
		if err := j.note("the host was "+string(is)+" already", nil); err != nil {
			return err
		}
		return j.Tx.UpdateOperation(&j.op, o.cfg.Now())
	})
}

// modeOf is the firmware mode that a boot override names; UEFI HTTP is UEFI.
func modeOf(f inventory.Firmware) inventory.Firmware {
	if f == inventory.UEFIHTTP {
		return inventory.UEFI
	}
	return f
}

// restart makes a machine start anew, with an override of its boot device; it was seen off in between. A controller that does
// not know how to choose the device is no obstacle: the machine's own boot order may be right.
func (o *Workers) restart(ctx context.Context, op inventory.Operation, p power.Access, b bmc.Boot) error {
	if p.Err != nil {
		return p.Err
	}
	if err := o.cfg.Power.Converge(ctx, p, bmc.Off, inventory.PowerOff); err != nil {
		return err
	}
	if err := o.noteOff(ctx, op); err != nil {
		return err
	}
	if booter, ok := p.Driver.(bmc.Booter); ok {
		if err := booter.SetBoot(ctx, b); err != nil && bmc.KindOf(err) != inventory.Invalid {
			return err
		}
	}
	return o.cfg.Power.Converge(ctx, p, bmc.On, inventory.PowerOn)
}

const (
	// RestartedFor is how long after a restart that was ordered the boot that it begins counts as ordered.
	RestartedFor = 30 * time.Minute
)

// Follows reports whether a boot is the one that began after something happened to the host. That is the first boot, or one
// that firmware or an installer began within a while of a failed first one. A machine that boots as the host later needs
// another proof.
func Follows(tx inventory.Tx, h inventory.HostID, began, since time.Time, within time.Duration) (bool, error) {
	const looked = 64
	all, err := tx.ListSessions(h, inventory.Page{Limit: looked})
	if err != nil {
		return false, fmt.Errorf("read boots of host %s: %w", h, err)
	}
	first, hasMore := began, len(all) == looked
	for _, o := range all {
		if o.StartedAt.Before(since) {
			hasMore = false
		} else if o.StartedAt.Before(first) {
			first = o.StartedAt
		}
	}
	return !hasMore && began.Sub(first) <= within, nil // of more boots than are looked at the first is not known
}
