// Package power speaks to the controllers of hosts. It opens them with our own password, switches machines on and off,
// reads their power in turn, and keeps their passwords and options sealed. It knows nothing of operations: package
// operation says what is ordered, and why.
//
// Start reading at Controllers.Open in controllers.go. passwords.go finds the password that a controller takes. serve.go asks
// controllers in turn, at the times of schedule.go.
package power

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

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

// Sealer seals what may not be stored in clear.
type Sealer interface {
	Seal(name string, plain []byte) ([]byte, error)
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
