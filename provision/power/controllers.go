package power

import (
	"context"
	"strings"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// Open returns the way to power a host. The caller closes it.
func (c *Controllers) Open(ctx context.Context, h *inventory.Host) (p Access, err error) {
	err = c.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		if p.Record, err = tx.FindBMC(h.ID); err != nil {
			return ledger.IgnoreNotFound(err)
		}
		return nil
	})
	if err != nil || p.Record.HostID == "" || c.cfg.OpenBMC == nil {
		return p, err
	}
	// The error stays in p: callers that only ask whether there is a controller need no driver.
	if p.Driver, p.Err = c.openAs(h, p.Record); p.Err != nil {
		p.Driver = nil
		return p, nil
	}
	if IsUnsettled(&p.Record) {
		p = c.settle(ctx, h, p, false)
	}
	return p, nil
}

// Read asks a controller for the power state and notes the answer. It returns unknown when it cannot be read. One that
// refuses the password in use is tried with the others that are kept.
func (c *Controllers) Read(ctx context.Context, h *inventory.Host, p *Access) inventory.PowerState {
	asked := c.cfg.Now()
	is, err := inventory.PowerUnknown, p.Err
	if p.Driver != nil {
		is, err = p.Driver.Power(ctx)
	}
	if bmc.KindOf(err) == inventory.Unauthorized && p.Driver != nil && len(p.Record.Others) > 0 {
		was := p.Driver
		if *p = c.settle(ctx, h, *p, true); p.Driver != was {
			is, err = p.Driver.Power(ctx)
		}
	}
	if err != nil {
		is = inventory.PowerUnknown
	}
	c.notePower(ctx, h, *p, is, err, nil)
	// With the time of the question: a machine may have been switched on since, and its boot is not over then.
	if is == inventory.PowerOff {
		c.cfg.FoundOff(h.ID, asked)
	}
	return is
}

// notePower stores what a controller answered, and opens or closes the issue that it does not. Only changes are written,
// a sign of life every few minutes, and a check that somebody asked for.
func (c *Controllers) notePower(ctx context.Context, h *inventory.Host, p Access, is inventory.PowerState, problem error, asked *inventory.LastCheck) {
	now := c.cfg.Now()
	isReachable := problem == nil
	err := c.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		b, err := tx.FindBMC(h.ID)
		if err != nil {
			return ledger.IgnoreNotFound(err)
		}
		// In the transaction, so that the issue below names the next try that is in force.
		c.Logins.Note(&b, problem, now)
		issue := Unreachable(h, problem)
		if again := c.Logins.Again(&b, now); again != "" {
			issue.Hint += "; " + again
		}
		if problem == nil {
			if err := c.cfg.Ledger.CloseIssue(tx, issue, "the controller answers"); err != nil {
				return err
			}
		} else if b.Driver != inventory.Manual {
			if err := c.cfg.Ledger.OpenIssue(tx, issue); err != nil {
				return err
			}
		}
		if problem != nil && (b.IsReachable || b.CheckedAt.IsZero() || b.Reason != ledger.PublicMessage(problem)) {
			// The log has the cause, which no page shows.
			c.cfg.Log.Warn("controller not reached", "host", h.Name, "address", b.Address, "err", problem)
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
		b.Power, b.IsReachable, b.CheckedAt, b.Reason, b.Refs = is, isReachable, now, "", nil
		if is != inventory.PowerUnknown {
			b.PowerAt = now
		}
		if problem != nil {
			b.Reason, b.Refs = ledger.PublicMessage(problem), inventory.RefsOf(problem)
		}
		if p.Driver != nil && len(b.Capabilities) == 0 {
			b.Capabilities = bmc.Capabilities(p.Driver) // what its protocol can; a check asks the controller itself
		}
		if asked != nil {
			b.LastCheck = asked
		}
		return tx.SaveBMC(&b, now)
	})
	if err != nil {
		c.cfg.Log.Warn("power state not stored", "host", h.Name, "err", err)
	}
}

// checkedEvery is how often an unchanged answer is written.
const checkedEvery = 5 * time.Minute

// TryBMC runs fn with what is needed to connect to a controller that is not saved yet. An empty password stands for the one that is
// stored for the same driver, address and user. It changes nothing.
func (c *Controllers) TryBMC(ctx context.Context, b inventory.BMC, password string, fn func(bmc.Target, bmc.Opener) error) error {
	if err := b.Validate(); err != nil {
		return err
	}
	if strings.ContainsFunc(password, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return inventory.Errorf(inventory.Invalid, "bmc: the password has a control character").WithHint("give one line, without its end")
	}
	if c.cfg.OpenBMC == nil {
		return nil
	}
	h, err := c.cfg.Ledger.FindHost(ctx, b.HostID)
	if err != nil {
		return err
	}
	if password == "" {
		if password, err = c.storedPassword(ctx, &b); err != nil {
			return err
		}
	}
	opened, err := c.OpenedOptions(b)
	if err != nil {
		return err
	}
	return fn(bmc.Target{BMC: opened, Password: password, HostName: h.Name, HostMACs: h.MACs()}, c.cfg.OpenBMC)
}

// storedPassword is the one that is stored for a controller and goes on to be used when b is saved without one; "" for none.
func (c *Controllers) storedPassword(ctx context.Context, b *inventory.BMC) (string, error) {
	var old inventory.BMC
	err := c.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		old, err = tx.FindBMC(b.HostID)
		return ledger.IgnoreNotFound(err)
	})
	// Another address gets no stored password: anyone who may change the address could else send it to a machine of his own.
	isSame := old.Address == b.Address && old.Driver == b.Driver && old.Username == b.Username
	if err != nil || !isSame || len(old.Sealed) == 0 {
		return "", err
	}
	password, err := c.cfg.Secrets.Open(SecretName(b.HostID), old.Sealed)
	return string(password), err
}

// Contradicts refuses a person's word that the host's own controller denies: a fence relies on it.
func (c *Controllers) Contradicts(ctx context.Context, id inventory.HostID, is inventory.PowerState) error {
	h, err := c.cfg.Ledger.FindHost(ctx, id)
	if err != nil {
		return err
	}
	p, err := c.Open(ctx, &h)
	if err != nil {
		return err
	}
	defer p.Close()
	if p.IsHandy() {
		return nil
	}
	octx, cancel := context.WithTimeout(ctx, pollFor)
	defer cancel()
	said, err := p.Driver.Power(octx)
	if err != nil || said == inventory.PowerUnknown || said == is {
		return nil // nobody else knows
	}
	return inventory.Errorf(inventory.Conflict, "the controller of %s says that it is %s", h.Name, said).
		WithHint("if the controller is wrong, take it away first: slipway host bmc %s --delete", h.Name)
}

// WithBMC runs fn with the driver of a host's controller. Nothing that fn does is part of an operation.
func (c *Controllers) WithBMC(ctx context.Context, id inventory.HostID, fn func(d bmc.Driver, b inventory.BMC) error) error {
	h, err := c.cfg.Ledger.FindHost(ctx, id)
	if err != nil {
		return err
	}
	p, err := c.Open(ctx, &h)
	if err != nil {
		return err
	}
	defer p.Close()
	if p.Err != nil {
		return p.Err
	}
	if p.Driver == nil {
		return inventory.Errorf(inventory.NotFound, "host %s has no controller", h.Name).WithHint("name it with: slipway host bmc %s --driver redfish --address https://...", h.Name)
	}
	return fn(p.Driver, p.Record)
}

// NoteCheck stores the result of a check of a host's controller that the engine did not start. It has the power, or the
// reason why that is unknown.
func (c *Controllers) NoteCheck(ctx context.Context, h inventory.Host, is inventory.PowerState, problem error, can []string, all inventory.LastCheck) {
	all.At = c.cfg.Now()
	if can != nil {
		err := c.editBMC(ctx, h.ID, func(b *inventory.BMC) { b.Capabilities = can })
		if err != nil {
			c.cfg.Log.Warn("what a controller can do is not stored", "host", h.Name, "err", err)
		}
	}
	c.notePower(ctx, &h, Access{}, is, problem, &all)
}
