package bmc

import (
	"context"
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
)

// Clock is the time of Converge.
type Clock interface {
	Now() time.Time
	// Sleep waits, or returns the context's error.
	Sleep(ctx context.Context, d time.Duration) error
}

// Pace is how long and how often Converge checks a change of power.
type Pace struct {
	Every   time.Duration  // between looks at the state; grows by half up to five times
	For     time.Duration  // until one attempt counts as ignored
	Tries   int            // attempts in all
	Backoff time.Duration  // between attempts that failed; doubles, with up to a quarter of jitter
	Jitter  func() float64 // 0 to 1
}

// DefaultPace suits real controllers: an attempt counts as ignored after a minute, and there are three.
func DefaultPace(jitter func() float64) Pace {
	return Pace{Every: 2 * time.Second, For: time.Minute, Tries: 3, Backoff: 3 * time.Second, Jitter: jitter}
}

// Converge switches a machine on or off. It returns nil only when the controller confirms the state, and else the reason
// why it does not. It reads the state first, and sends no order to a machine that is in that state, so that repeating it
// is harmless. If the operating system ignores a graceful shutdown, the caller has to order Off.
//
// Errors of kind Unauthorized, Invalid and NotFound end it at once; others are tried again.
func Converge(ctx context.Context, d Driver, a Action, want inventory.PowerState, c Clock, p Pace) error {
	var last error
	for try := range max(p.Tries, 1) {
		if try > 0 {
			wait := p.Backoff << (try - 1)
			if p.Jitter != nil {
				wait += time.Duration(float64(wait) / 4 * p.Jitter())
			}
			if err := c.Sleep(ctx, wait); err != nil {
				return stopped(err, last)
			}
		}
		is, err := d.Power(ctx)
		if err == nil && is == want {
			return nil
		}
		if err == nil || !isLasting(err) {
			// A controller that cannot be read may still take an order: some controllers answer reads with errors while they are busy.
			if err = d.SetPower(ctx, a); err == nil {
				if err = confirm(ctx, d, want, c, p); err == nil {
					return nil
				}
			}
		}
		if isLasting(err) {
			return err
		}
		if last = err; ctx.Err() != nil {
			return stopped(ctx.Err(), last)
		}
	}
	return last
}

// confirm waits until the controller reports the wanted state.
func confirm(ctx context.Context, d Driver, want inventory.PowerState, c Clock, p Pace) error {
	var (
		is     inventory.PowerState
		err    error
		step   = p.Every
		waited time.Duration // a clock that is set back must not make it wait without end
	)
	for end := c.Now().Add(p.For); ; {
		if is, err = d.Power(ctx); err == nil && is == want {
			return nil
		}
		if err != nil && isLasting(err) {
			return err
		}
		if !c.Now().Before(end) || waited >= p.For {
			break
		}
		if err := c.Sleep(ctx, step); err != nil {
			return stopped(err, nil)
		}
		waited += step
		step = min(step+step/2, 5*p.Every)
	}
	if err != nil {
		return err
	}
	return inventory.Errorf(inventory.Unavailable, "the controller took the order, but the machine is still %s and not %s after %s", is, want, inventory.Duration(p.For)).
		WithHint("look at the controller's own pages: some firmware needs a reset of the controller")
}

// isLasting reports whether trying again is of no use.
func isLasting(err error) bool {
	switch KindOf(err) {
	case inventory.Unauthorized, inventory.Invalid, inventory.NotFound, inventory.Forbidden:
		return true
	}
	return false
}

func stopped(err, last error) error {
	if last != nil {
		return last
	}
	return &inventory.Error{Kind: inventory.Unavailable, Msg: fmt.Sprintf("power was not confirmed in time: %v", err), Err: err}
}
