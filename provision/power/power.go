// Package power speaks to the controllers of hosts. It opens them with our own password, switches machines on and off,
// reads their power in turn, and keeps their passwords and options sealed. It knows nothing of operations: package
// operation says what is ordered, and why.
package power

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/ledger"
)

// Config is everything that Controllers need.
type Config struct {
	*ledger.Ledger // with the store, the time and the log
	// OpenBMC opens the way to power a host; nil: nothing is powered. Sealer seals the passwords of controllers, and Secrets opens
	// them.
	OpenBMC bmc.Opener
	Sealer  Sealer
	Secrets configuration.Secrets
	Pace    bmc.Pace // how patiently changes of power are confirmed; the zero value is bmc.DefaultPace

	// IsBusy reports whether an operation speaks to the controller of a host now.
	IsBusy func(inventory.HostID) bool
	// FoundOff is called when a controller, asked at some time, says that its host is off.
	FoundOff func(h inventory.HostID, asked time.Time)
}

// Controllers are the ways to power hosts. Their methods may be called from many goroutines, once they are configured.
type Controllers struct {
	cfg     Config
	Logins  bmc.Refusals // that controllers refused
	Polls   polls
	Glances glances
}

// New returns Controllers that are to be configured.
func New() *Controllers {
	return &Controllers{Glances: glances{Wanted: make(chan inventory.HostID, glancesWaiting)}}
}

// Configure gives Controllers what they need.
func (c *Controllers) Configure(cfg Config) { c.cfg = cfg }

// Serve asks controllers until ctx is done.
func (c *Controllers) Serve(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.poll(gctx) })
	g.Go(func() error { return c.glance(gctx) })
	return g.Wait()
}

// Access is what is known about the way to power a host; driver is nil when there is none that works by itself.
type Access struct {
	Record inventory.BMC
	Driver bmc.Driver
	Err    error // why the driver cannot be opened
}

// Close ends the session with the controller.
func (p Access) Close() {
	if p.Driver != nil {
		_ = p.Driver.Close() // nothing is lost with a session that cannot be ended
	}
}

// IsHandy reports whether somebody has to walk there: no driver, or one that asks a person.
func (p Access) IsHandy() bool { return p.Driver == nil || p.Record.Driver == inventory.Manual }

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

// SecretName is the name under which the password of a host's BMC is sealed.
func SecretName(h inventory.HostID) string { return "bmc/" + string(h) }

// Clock is the engine's own time, for bmc.Converge.
type Clock struct{ Time func() time.Time }

// Now is the time by this clock.
func (c Clock) Now() time.Time { return c.Time() }

// Sleep waits, or returns why ctx has ended.
func (Clock) Sleep(ctx context.Context, d time.Duration) error { return sleep.For(ctx, d) }

// Pace returns how patiently changes of power are confirmed.
func (c *Controllers) Pace() bmc.Pace {
	if c.cfg.Pace.Tries > 0 {
		return c.cfg.Pace
	}
	return bmc.DefaultPace(rand.Float64)
}

// Converge makes a machine be on or off, confirmed by its controller.
func (c *Controllers) Converge(ctx context.Context, p Access, a bmc.Action, want inventory.PowerState) error {
	if p.Err != nil {
		return p.Err
	}
	return bmc.Converge(ctx, p.Driver, a, want, Clock{Time: c.cfg.Now}, c.Pace())
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

// Unreachable is the issue that a controller does not answer.
func Unreachable(h *inventory.Host, problem error) inventory.Issue {
	i := inventory.Issue{
		Key: inventory.IssueBMC + "/" + string(h.ID), Type: inventory.IssueBMC, Severity: inventory.SeverityWarning,
		HostIDs: []inventory.HostID{h.ID},
	}
	if problem != nil {
		i.Cause, i.Hint = ledger.PublicMessage(problem), cmp.Or(inventory.HintOf(problem), "check address, user and password: slipway host bmc "+h.Name)
	}
	return i
}

// CutsPower reports whether the engine can cut a host's power and read that it is off. No other way to power a host fences
// by itself: there, a person says that it is off, or our agent boots.
func (c *Controllers) CutsPower(b *inventory.BMC) bool {
	return c.cfg.OpenBMC != nil && b.HostID != "" && b.Driver != inventory.Manual && b.Driver != inventory.WoL
}

// Seal seals a password for the controller of a host.
func (c *Controllers) Seal(h inventory.HostID, password string) ([]byte, error) {
	return c.cfg.Sealer.Seal(SecretName(h), []byte(password))
}

// Unseal opens what Seal has sealed.
func (c *Controllers) Unseal(h inventory.HostID, sealed []byte) (string, error) {
	plain, err := c.cfg.Secrets.Open(SecretName(h), sealed)
	return string(plain), err
}
