// Package bmctest owns what every driver of package bmc has to pass, whatever it speaks. It never knows a protocol, and
// it is imported by tests only.
//
// A driver's test makes a Case around a real controller or an honest imitation of one, and calls Run:
//
//	bmctest.Run(t, bmctest.Case{
//		Open:     func(t *testing.T, is inventory.PowerState) bmc.Driver { ... },
//		Password: "hunter2",
//		Boots:    []bmc.Boot{{Device: bmc.PXE}},
//		Unauthorized: func(t *testing.T) bmc.Driver { ... },
//	})
//
// Optional capabilities are found by type assertion and checked when the driver has them.
package bmctest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// Case is one driver and the controllers it is tried on. Only Open is required.
type Case struct {
	// Open makes a driver for a machine of its own that is on or off; with CannotRead the state is only a wish. The
	// suite closes the driver, twice.
	Open func(t *testing.T, is inventory.PowerState) bmc.Driver
	// Within bounds each call, and how long a change of power may take to show; 10 seconds when 0.
	Within time.Duration
	// Every is how often a state is read while it is awaited; 20 milliseconds when 0.
	Every time.Duration
	// Password is what the targets hold; no error may tell it.
	Password string

	// CannotRead is for drivers that never know the state: Power must answer unknown.
	CannotRead bool
	// Refuses lists the actions that the driver can never do: they must be Invalid, with a hint.
	Refuses []bmc.Action
	// IgnoresShutdown is for machines without an operating system that would listen.
	IgnoresShutdown bool

	// Boots are overrides that must be taken and read back; RefusedBoots must be Invalid.
	Boots        []bmc.Boot
	RefusedBoots []bmc.Boot
	// UsesUpBoot says that switching the machine on uses up an override for one boot, and the controller then says so.
	UsesUpBoot bool

	// MediaURL is an image that the controller can reach, for drivers with virtual media.
	MediaURL string
	// SkipsUsers leaves accounts alone, for controllers that share them with others.
	SkipsUsers bool
	// SkipsConsole leaves the console alone, for machines that have none.
	SkipsConsole bool

	// The faults; those that are nil are not tried. Each opens a driver whose controller
	Unreachable  func(t *testing.T) bmc.Driver // does not take connections: Unavailable
	Silent       func(t *testing.T) bmc.Driver // takes the question and never answers: Unavailable when ctx ends
	Unauthorized func(t *testing.T) bmc.Driver // refuses the password: Unauthorized
	Missing      func(t *testing.T) bmc.Driver // does not have that machine: NotFound
}

// Run tries a driver.
func Run(t *testing.T, c Case) {
	t.Helper()
	c.Within = cmp.Or(c.Within, 10*time.Second)
	c.Every = cmp.Or(c.Every, 20*time.Millisecond)
	t.Run("power", c.power)
	t.Run("boot", c.boot)
	t.Run("media", c.media)
	t.Run("extras", c.extras)
	t.Run("users", c.users)
	t.Run("console", c.console)
	t.Run("faults", c.faults)
}

// trial is one driver under test.
type trial struct {
	*testing.T
	c *Case
	d bmc.Driver
}

func (c *Case) open(t *testing.T, is inventory.PowerState) *trial {
	t.Helper()
	return c.use(t, c.Open(t, is))
}

func (c *Case) use(t *testing.T, d bmc.Driver) *trial {
	t.Helper()
	tr := &trial{T: t, c: c, d: d}
	t.Cleanup(func() {
		for _, nth := range []string{"first", "second"} {
			if err := tr.d.Close(); err != nil {
				t.Errorf("the %s Close: %v", nth, err)
			}
		}
	})
	return tr
}

// ctx bounds one call.
func (t *trial) ctx() context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), t.c.Within)
	t.Cleanup(cancel)
	return ctx
}

// ok demands success.
func (t *trial) ok(what string, err error) {
	t.Helper()
	if err != nil {
		t.sane(what, err)
		t.Fatalf("%s: %v", what, err)
	}
}

// is demands an error of one of the kinds.
func (t *trial) is(what string, err error, kinds ...inventory.Kind) {
	t.Helper()
	t.sane(what, err)
	if err == nil {
		t.Fatalf("%s succeeded; want an error of kind %v", what, kinds)
	}
	if !slices.Contains(kinds, bmc.KindOf(err)) {
		t.Errorf("%s: kind %s, want %v: %v", what, bmc.KindOf(err), kinds, err)
	}
}

// sane checks what holds for every error of a driver.
func (t *trial) sane(what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var e *inventory.Error
	if !errors.As(err, &e) {
		t.Errorf("%s: %T is no *inventory.Error: %v", what, err, err)
		return
	}
	if e.Msg == "" || e.Kind == "" || e.Kind == inventory.Internal {
		t.Errorf("%s: kind %q with message %q tells a person nothing", what, e.Kind, e.Msg)
	}
	for _, text := range []string{e.Msg, e.Hint, err.Error()} {
		if t.c.Password != "" && strings.Contains(text, t.c.Password) {
			t.Errorf("%s: the error tells the password", what)
		}
		if strings.Contains(text, "failed to") || strings.Contains(text, "%!") {
			t.Errorf("%s: write the error for a person: %q", what, text)
		}
		if text != inventory.CleanLines(text, 1<<20) || len(text) > 2000 {
			t.Errorf("%s: the error is not clean, or too long: %q", what, text)
		}
	}
}

// await reads the state until it is as wanted.
func (t *trial) await(what string, want inventory.PowerState) {
	t.Helper()
	if t.c.CannotRead {
		want = inventory.PowerUnknown
	}
	var is inventory.PowerState
	var err error
	for end := time.Now().Add(t.c.Within); ; time.Sleep(t.c.Every) {
		if is, err = t.d.Power(t.ctx()); err == nil && is == want {
			return
		}
		t.sane(what, err)
		if time.Now().After(end) {
			t.Fatalf("%s: the machine is %q (%v) after %s; want %q", what, is, err, t.c.Within, want)
		}
	}
}

// order gives an order that may have to be refused; it reports whether it was taken.
func (t *trial) order(a bmc.Action) bool {
	t.Helper()
	err := t.d.SetPower(t.ctx(), a)
	if slices.Contains(t.c.Refuses, a) {
		t.is(string(a), err, inventory.Invalid)
		if e, ok := errors.AsType[*inventory.Error](err); ok && e.Hint == "" {
			t.Errorf("%s is refused without a hint", a)
		}
		return false
	}
	t.ok(string(a), err)
	return true
}
