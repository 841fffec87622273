package bmc

import (
	"context"
	"time"

	"slipway.dev/slipway/inventory"
)

// RestartTeller knows when its machine was last switched on or restarted.
type RestartTeller interface {
	// SinceRestart returns how long ago that was, by the controller's own clock; NotFound if the controller does not
	// report it.
	SinceRestart(ctx context.Context) (time.Duration, error)
}

// restartSlack is how inexact the times of controllers are: they count in seconds.
const restartSlack = 2 * time.Second

// Restart carries out Cycle or Reset. It reports whether the machine is known to have restarted: it was seen off, or its
// controller says when it restarted last. That it is on at the end shows nothing by itself, because it was on before. A
// machine that is off is switched on.
func Restart(ctx context.Context, d Driver, a Action, c Clock, p Pace) (isProven bool, err error) {
	if a == Cycle { // in two orders, each seen to be carried out
		err := Converge(ctx, d, Off, inventory.PowerOff, c, p)
		if err == nil {
			return true, Converge(ctx, d, On, inventory.PowerOn, c, p)
		}
		if KindOf(err) != inventory.Invalid { // a controller that knows no order to switch off may know one for a cycle
			return false, err
		}
	}
	is, err := d.Power(ctx)
	if err == nil && is == inventory.PowerOff {
		return true, Converge(ctx, d, On, inventory.PowerOn, c, p)
	}
	began := c.Now()
	if err := d.SetPower(ctx, a); err != nil {
		return false, err
	}
	isProven, err = sawRestart(ctx, d, began, a == Cycle, c, p)
	if err != nil {
		return isProven, err
	}
	return isProven, Converge(ctx, d, On, inventory.PowerOn, c, p)
}

// sawRestart watches for a sign of a restart: the machine is off for a moment, or its controller names a time after the
// order. It gives up after Pace.For, and at once when no sign can come.
func sawRestart(ctx context.Context, d Driver, began time.Time, goesOff bool, c Clock, p Pace) (bool, error) {
	var waited time.Duration
	for {
		ago, isTold := sinceRestart(ctx, d)
		if isTold && ago <= c.Now().Sub(began)+restartSlack {
			return true, nil
		}
		if is, err := d.Power(ctx); err == nil && is == inventory.PowerOff {
			return true, nil
		}
		if !isTold && !goesOff || waited >= p.For {
			return false, nil
		}
		if err := c.Sleep(ctx, p.Every); err != nil {
			return false, stopped(err, nil)
		}
		waited += max(p.Every, time.Millisecond)
	}
}

// sinceRestart asks a driver that may know; isTold is false when it does not tell.
func sinceRestart(ctx context.Context, d Driver) (ago time.Duration, isTold bool) {
	t, ok := d.(RestartTeller)
	if !ok {
		return 0, false
	}
	ago, err := t.SinceRestart(ctx)
	return ago, err == nil
}
