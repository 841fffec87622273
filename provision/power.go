package provision

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// powering is what is known about the way to power a host; driver is nil when there is none that works by itself.
type powering struct {
	record inventory.BMC
	driver bmc.Driver
	err    error // why the driver cannot be opened
}

func (p powering) close() {
	if p.driver != nil {
		_ = p.driver.Close() // nothing is lost with a session that cannot be ended
	}
}

// isHandy reports whether somebody has to walk there: no driver, or one that asks a person.
func (p powering) isHandy() bool { return p.driver == nil || p.record.Driver == inventory.Manual }

// openPower returns the way to power a host. The caller closes it.
func (e *Engine) openPower(ctx context.Context, h *inventory.Host) (p powering, err error) {
	err = e.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		if p.record, err = tx.FindBMC(h.ID); err != nil {
			return ledger.IgnoreNotFound(err)
		}
		return nil
	})
	if err != nil || p.record.HostID == "" || e.cfg.OpenBMC == nil {
		return p, err
	}
	if p.driver, p.err = e.openWith(h, p.record); p.err != nil {
		p.driver = nil
		return p, nil
	}
	if isUnsettled(&p.record) {
		p = e.settle(ctx, h, p, false)
	}
	return p, nil
}

// bmcSecret is the name under which the password of a host's BMC is sealed.
func bmcSecret(h inventory.HostID) string { return "bmc/" + string(h) }

// clock is the engine's own time, for bmc.Converge.
type clock struct{ now func() time.Time }

func (c clock) Now() time.Time { return c.now() }

func (c clock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (e *Engine) pace() bmc.Pace {
	if e.cfg.Pace.Tries > 0 {
		return e.cfg.Pace
	}
	return bmc.DefaultPace(rand.Float64)
}

// converge makes a machine be on or off, confirmed by its controller.
func (e *Engine) converge(ctx context.Context, p powering, a bmc.Action, want inventory.PowerState) error {
	if p.err != nil {
		return p.err
	}
	return bmc.Converge(ctx, p.driver, a, want, clock{e.cfg.Now}, e.pace())
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
func (e *Engine) restart(ctx context.Context, op inventory.Operation, p powering, b bmc.Boot) error {
	if p.err != nil {
		return p.err
	}
	if err := e.converge(ctx, p, bmc.Off, inventory.PowerOff); err != nil {
		return err
	}
	if err := e.noteOff(ctx, op); err != nil {
		return err
	}
	if booter, ok := p.driver.(bmc.Booter); ok {
		if err := booter.SetBoot(ctx, b); err != nil && bmc.KindOf(err) != inventory.Invalid {
			return err
		}
	}
	return e.converge(ctx, p, bmc.On, inventory.PowerOn)
}

// readPower asks a controller for the power state and notes the answer. It returns unknown when it cannot be read. One that
// refuses the password in use is tried with the others that are kept.
func (e *Engine) readPower(ctx context.Context, h *inventory.Host, p *powering) inventory.PowerState {
	asked := e.cfg.Now()
	is, err := inventory.PowerUnknown, p.err
	if p.driver != nil {
		is, err = p.driver.Power(ctx)
	}
	if bmc.KindOf(err) == inventory.Unauthorized && p.driver != nil && len(p.record.Others) > 0 {
		was := p.driver
		if *p = e.settle(ctx, h, *p, true); p.driver != was {
			is, err = p.driver.Power(ctx)
		}
	}
	if err != nil {
		is = inventory.PowerUnknown
	}
	e.notePower(ctx, h, *p, is, err, nil)
	if is == inventory.PowerOff {
		e.foundOff(h.ID, asked)
	}
	return is
}

// notePower stores what a controller answered, and opens or closes the issue that it does not. Only changes are written,
// a sign of life every few minutes, and a check that somebody asked for.
func (e *Engine) notePower(ctx context.Context, h *inventory.Host, p powering, is inventory.PowerState, problem error, asked *inventory.LastCheck) {
	now := e.cfg.Now()
	isReachable := problem == nil
	err := e.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		b, err := tx.FindBMC(h.ID)
		if err != nil {
			return ledger.IgnoreNotFound(err)
		}
		e.logins.Note(&b, problem, now)
		issue := unreachable(h, problem)
		if again := e.logins.Again(&b, now); again != "" {
			issue.Hint += "; " + again
		}
		if problem == nil {
			if err := e.ledger.CloseIssue(tx, issue, "the controller answers"); err != nil {
				return err
			}
		} else if b.Driver != inventory.Manual {
			if err := e.ledger.OpenIssue(tx, issue); err != nil {
				return err
			}
		}
		if problem != nil && (b.IsReachable || b.CheckedAt.IsZero() || b.Reason != ledger.PublicMessage(problem)) {
			e.cfg.Log.Warn("controller not reached", "host", h.Name, "address", b.Address, "err", problem) // with the cause, which is not told otherwise
		}
		if asked == nil && b.Power == is && b.IsReachable == isReachable && now.Sub(b.CheckedAt) < checkedEvery {
			return nil
		}
		if b.Power != is && is != inventory.PowerUnknown {
			if err := tx.AddEvent(&inventory.Event{
				At: now, Kind: inventory.EventPower, HostID: h.ID, Detail: "power is " + string(is), Data: map[string]any{"from": b.Power, "to": is},
			}); err != nil {
				return err
			}
		}
		b.Power, b.IsReachable, b.CheckedAt, b.Reason = is, isReachable, now, ""
		if is != inventory.PowerUnknown {
			b.PowerAt = now
		}
		if problem != nil {
			b.Reason = ledger.PublicMessage(problem)
		}
		if p.driver != nil && len(b.Capabilities) == 0 {
			b.Capabilities = bmc.Capabilities(p.driver) // what its protocol can; a check asks the controller itself
		}
		if asked != nil {
			b.LastCheck = asked
		}
		return tx.SaveBMC(&b, now)
	})
	if err != nil {
		e.cfg.Log.Warn("power state not stored", "host", h.Name, "err", err)
	}
}

// checkedEvery is how often an unchanged answer is written.
const checkedEvery = 5 * time.Minute

func unreachable(h *inventory.Host, problem error) inventory.Issue {
	i := inventory.Issue{
		Key: inventory.IssueBMC + "/" + string(h.ID), Type: inventory.IssueBMC, Severity: inventory.SeverityWarning,
		HostIDs: []inventory.HostID{h.ID},
	}
	if problem != nil {
		i.Cause, i.Hint = ledger.PublicMessage(problem), cmp.Or(inventory.HintOf(problem), "check address, user and password: slipway host bmc "+h.Name)
	}
	return i
}
