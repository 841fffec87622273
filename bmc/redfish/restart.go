package redfish

import (
	"context"
	"time"

	"slipway.dev/slipway/inventory"
)

// SinceRestart returns the time since the last reset or start of the machine. It compares LastResetTime with the
// controller's own clock, so that a wrong clock does no harm. The error is NotFound if the controller does not report
// it.
func (d *driver) SinceRestart(ctx context.Context) (_ time.Duration, err error) {
	defer d.safe(&err)
	s, err := d.system(ctx)
	if err != nil {
		return 0, err
	}
	none := inventory.Errorf(inventory.NotFound, "the controller at %s does not tell when the machine restarted", d.host())
	last, err := time.Parse(time.RFC3339, s.LastResetTime)
	if err != nil {
		return 0, none
	}
	m, err := d.manager(ctx, s)
	if err != nil {
		return 0, err
	}
	now, err := time.Parse(time.RFC3339, m.DateTime)
	// A controller that lost its clock, as at a flat battery, would report a restart in the future. No answer is better.
	if err != nil || now.Before(last) {
		return 0, none
	}
	return now.Sub(last), nil
}
