package operation

import (
	"context"
	"fmt"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/power"
)

// SaveBMC says how a host is powered. An empty password keeps the one that is stored, if user and address stay.
func (o *Orders) SaveBMC(ctx context.Context, b inventory.BMC, password string, who ledger.Asker) (inventory.BMC, error) {
	err := o.cfg.Power.TryBMC(ctx, b, password, func(t bmc.Target, open bmc.Opener) error { // its options are the driver's to check
		d, err := open(t)
		if err != nil {
			return err
		}
		return d.Close()
	})
	if err != nil {
		return b, err
	}
	err = o.cfg.Ledger.Write(ctx, who, func(tx inventory.Tx) error {
		h, err := tx.FindHost(b.HostID)
		if err != nil {
			return err
		}
		old, err := tx.FindBMC(b.HostID)
		switch {
		case inventory.IsKind(err, inventory.NotFound):
		case err != nil:
			return err
		case b.Version == 0:
			b.Version = old.Version
		}
		isSame := old.Address == b.Address && old.Driver == b.Driver && old.Username == b.Username
		switch {
		case password != "":
			if b.Sealed, err = o.cfg.Power.Seal(b.HostID, password); err != nil {
				return err
			}
		case isSame:
			b.Sealed = old.Sealed
		}
		b.Others = nil
		if isSame {
			b.Others = old.Others
		}
		if isSame && password != "" && len(old.Sealed) > 0 { // kept until the new one has let us in
			b.Others = power.KeepOther(b.Others, inventory.OtherPassword{Sealed: old.Sealed, At: o.cfg.Now()})
		}
		if err := o.cfg.Power.SealOptions(&b); err != nil {
			return err
		}
		b.Power, b.IsReachable, b.Reason = inventory.PowerUnknown, false, "not asked yet"
		if err := address.MaySaveBMC(tx, &b); err != nil {
			return err
		}
		o.cfg.Configurer.NetworkSaved()
		if err := tx.SaveBMC(&b, o.cfg.Now()); err != nil {
			return err
		}
		if err := o.cfg.Ledger.Edit(tx, &h, fmt.Sprintf("powered by %s %s, says %s", b.Driver, b.Address, who.By)); err != nil {
			return err
		}
		return o.Wake(tx, b.HostID) // it waits for a person to switch the host, who is not needed any more
	})
	if err == nil {
		o.cfg.Power.Logins.Forget(b.HostID)
		o.cfg.Power.Polls.Soon(b.HostID)
		o.Poke()
	}
	return b, err
}

// Power asks for a change of power. It is an operation: the change is confirmed, and tried again.
func (o *Orders) Power(ctx context.Context, id inventory.HostID, a bmc.Action, who ledger.Asker) (op inventory.Operation, err error) {
	switch a {
	case bmc.On, bmc.Off, bmc.Shutdown, bmc.Cycle, bmc.Reset:
	default:
		return op, inventory.Errorf(inventory.Invalid, "%q is no change of power", inventory.Clean(string(a), 40)).WithHint("use on, off, shutdown, cycle or reset")
	}
	_, err = o.Changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		if open, err := tx.FindOpenOperation(h.ID); err == nil {
			return inventory.Errorf(inventory.Conflict, "host %s is busy: %s", h.Name, Describe(&open)).Naming(open.Refs...).
				WithHint("slipway operation cancel %s ends that", open.ID)
		}
		j, err := o.Start(tx, h, inventory.Operation{Kind: inventory.OpPower, By: who.By}, Params{Action: a})
		if err == nil {
			op = j.op
		}
		return err
	})
	if err == nil && !who.DryRun {
		o.cfg.Power.Logins.Forget(id)
	}
	return op, err
}

// ConfirmPower takes a person's word for the power state of a host whose power cannot be read.
func (o *Orders) ConfirmPower(ctx context.Context, id inventory.HostID, is inventory.PowerState, who ledger.Asker) (inventory.Host, error) {
	if is != inventory.PowerOn && is != inventory.PowerOff {
		return inventory.Host{}, inventory.Errorf(inventory.Invalid, "a host is on or off, not %q", inventory.Clean(string(is), 20))
	}
	if err := o.cfg.Power.Contradicts(ctx, id, is); err != nil {
		return inventory.Host{}, err
	}
	return o.Changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		now := o.cfg.Now()
		b, err := tx.FindBMC(h.ID)
		if err == nil {
			b.Power, b.PowerAt = is, now
			err = tx.SaveBMC(&b, now)
		}
		if err = ledger.IgnoreNotFound(err); err != nil {
			return err
		}
		if err := tx.AddEvent(&inventory.Event{At: now, Kind: inventory.EventPower, HostID: h.ID, Detail: "power is " + string(is) + ", says " + who.By, Data: map[string]any{"to": is, "by": who.By}}); err != nil {
			return err
		}
		o.agents.forget(h.ID)
		if is == inventory.PowerOff && !who.DryRun {
			o.switchedOff(h.ID, now)
		}
		op, err := tx.FindOpenOperation(h.ID)
		if err != nil {
			return ledger.IgnoreNotFound(err)
		}
		j, err := o.JobOf(tx, op)
		if err != nil {
			return err
		}
		if is == inventory.PowerOff {
			j.P.OffAt = now
			j.op.Params = j.P.Encode()
			if err := tx.UpdateOperation(&j.op, now); err != nil {
				return err
			}
		}
		isAnswer := op.Step == inventory.StepFence && is == inventory.PowerOff ||
			op.Kind == inventory.OpPower && is == stateAfter(ParamsOf(&op).Action)
		if !isAnswer || h.InMaintenance {
			return nil
		}
		if err := j.closeIssues("confirmed by "+who.By, inventory.IssueManual); err != nil {
			return err
		}
		if err := j.forward(); err != nil {
			return err
		}
		*h = j.Host
		return nil
	})
}

// RotateBMC gives the account of a host's controller a new random password.
func (o *Orders) RotateBMC(ctx context.Context, id inventory.HostID, who ledger.Asker) (op inventory.Operation, err error) {
	_, err = o.Changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		j, err := o.Start(tx, h, inventory.Operation{Kind: inventory.OpRotate, By: who.By}, Params{})
		if err == nil {
			op = j.op
		}
		return err
	})
	if err == nil {
		o.cfg.Power.Logins.Forget(id)
	}
	return op, err
}
