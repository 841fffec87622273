package bmctest

import (
	"context"
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

func (c *Case) power(t *testing.T) {
	// Each row is a machine, the orders it gets, and where it must end. A refused order ends the row.
	for _, row := range []struct {
		name   string
		is     inventory.PowerState
		orders []bmc.Action
		want   inventory.PowerState
	}{
		{"a machine that is off is read as off", inventory.PowerOff, nil, inventory.PowerOff},
		{"a machine that is on is read as on", inventory.PowerOn, nil, inventory.PowerOn},
		{"on switches on", inventory.PowerOff, []bmc.Action{bmc.On}, inventory.PowerOn},
		{"on twice is harmless", inventory.PowerOff, []bmc.Action{bmc.On, bmc.On}, inventory.PowerOn},
		{"off switches off", inventory.PowerOn, []bmc.Action{bmc.Off}, inventory.PowerOff},
		{"off twice is harmless", inventory.PowerOn, []bmc.Action{bmc.Off, bmc.Off}, inventory.PowerOff},
		{"a cycle of a machine that is on ends on", inventory.PowerOn, []bmc.Action{bmc.Cycle}, inventory.PowerOn},
		{"a cycle of a machine that is off ends on", inventory.PowerOff, []bmc.Action{bmc.Cycle}, inventory.PowerOn},
		{"a reset leaves a machine on", inventory.PowerOn, []bmc.Action{bmc.Reset}, inventory.PowerOn},
		{"a shutdown of a machine that is off is harmless", inventory.PowerOff, []bmc.Action{bmc.Shutdown}, inventory.PowerOff},
	} {
		t.Run(row.name, func(t *testing.T) {
			tr := c.open(t, row.is)
			tr.await("at first", row.is)
			for i, a := range row.orders {
				if !tr.order(a) {
					return
				}
				if i < len(row.orders)-1 {
					tr.await(string(a), row.want)
				}
			}
			tr.await("in the end", row.want)
		})
	}
	t.Run("others", c.otherOrders)
}

// otherOrders are those that leave a choice, or are none.
func (c *Case) otherOrders(t *testing.T) {
	t.Run("a shutdown ends off, or is ignored by a machine that does not listen", func(t *testing.T) {
		tr := c.open(t, inventory.PowerOn)
		if tr.order(bmc.Shutdown) && !c.IgnoresShutdown {
			tr.await("shutdown", inventory.PowerOff)
		}
	})
	t.Run("a reset does not switch a machine on", func(t *testing.T) {
		tr := c.open(t, inventory.PowerOff)
		if err := tr.d.SetPower(tr.ctx(), bmc.Reset); err != nil {
			tr.is("reset", err, inventory.Invalid, inventory.Conflict)
		}
		tr.await("reset", inventory.PowerOff)
	})
	t.Run("an action that does not exist is invalid", func(t *testing.T) {
		tr := c.open(t, inventory.PowerOn)
		tr.is("explode", tr.d.SetPower(tr.ctx(), "explode"), inventory.Invalid)
		tr.await("explode", inventory.PowerOn)
	})
	t.Run("a context that has ended ends every call", func(t *testing.T) {
		tr := c.open(t, inventory.PowerOn)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		tr.bounded("calls with an ended context", time.Second, func() {
			// A driver that need not ask anyone may still answer.
			_, err := tr.d.Power(ctx)
			tr.sane("power", err)
			tr.sane("on", tr.d.SetPower(ctx, bmc.On))
		})
	})
	t.Run("a driver that was never used is closed", func(t *testing.T) { c.open(t, inventory.PowerOff) })
}

// bounded demands that fn returns in time. It is generous: what it finds is a call that hangs.
func (t *trial) bounded(what string, within time.Duration, fn func()) {
	t.Helper()
	begun := time.Now()
	done := make(chan struct{})
	go func() { defer close(done); fn() }()
	select {
	case <-done:
		if took := time.Since(begun); took > within+2*time.Second {
			t.Errorf("%s took %s", what, took)
		}
	case <-time.After(within + t.c.Within):
		t.Fatalf("%s still hangs after %s", what, time.Since(begun))
	}
}

func (c *Case) faults(t *testing.T) {
	for name, f := range map[string]struct {
		open func(*testing.T) bmc.Driver
		kind inventory.Kind
	}{
		"a controller that takes no connection is unavailable": {c.Unreachable, inventory.Unavailable},
		"a wrong password is unauthorized":                     {c.Unauthorized, inventory.Unauthorized},
		"a machine that is not there is not found":             {c.Missing, inventory.NotFound},
	} {
		if f.open == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			tr := c.use(t, f.open(t))
			for range 2 { // the second call must not find a broken driver
				_, err := tr.d.Power(tr.ctx())
				tr.is("power", err, f.kind)
				tr.is("on", tr.d.SetPower(tr.ctx(), bmc.On), f.kind)
			}
			if b, ok := tr.d.(bmc.Booter); ok && len(c.Boots) > 0 {
				tr.is("set boot", b.SetBoot(tr.ctx(), c.Boots[0]), f.kind)
			}
		})
	}
	if c.Silent == nil {
		return
	}
	t.Run("a controller that never answers is left when the context ends", func(t *testing.T) {
		tr := c.use(t, c.Silent(t))
		for name, call := range map[string]func(context.Context) error{
			"power": func(ctx context.Context) error { _, err := tr.d.Power(ctx); return err },
			"on":    func(ctx context.Context) error { return tr.d.SetPower(ctx, bmc.On) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			tr.bounded(name, 300*time.Millisecond, func() { tr.is(name, call(ctx), inventory.Unavailable) })
			cancel()
		}
	})
}
