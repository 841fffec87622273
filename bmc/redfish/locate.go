package redfish

import (
	"context"

	"github.com/stmcginnis/gofish/schemas"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// led is the identify light of a system or a chassis: LocationIndicatorActive, or before it (2020.3) IndicatorLED.
type led struct {
	LocationIndicatorActive *bool
	IndicatorLED            *string
	Allowed                 []string `json:"IndicatorLED@Redfish.AllowableValues"`
}

// body returns nil where there is no light. A property that is null or absent cannot be set.
func (l *led) body(on bool) map[string]any {
	switch {
	case l.LocationIndicatorActive != nil:
		return map[string]any{"LocationIndicatorActive": on}
	case l.IndicatorLED == nil:
		return nil
	case !on:
		return map[string]any{"IndicatorLED": schemas.OffIndicatorLED}
	}
	for _, v := range l.Allowed { // HPE and OpenBMC know Lit, others only Blinking
		if v == string(schemas.LitIndicatorLED) {
			return map[string]any{"IndicatorLED": v}
		}
	}
	if *l.IndicatorLED == string(schemas.LitIndicatorLED) && len(l.Allowed) == 0 {
		return map[string]any{"IndicatorLED": schemas.LitIndicatorLED}
	}
	return map[string]any{"IndicatorLED": schemas.BlinkingIndicatorLED}
}

// isLit says whether the light is on.
func (l *led) isLit() bool {
	if l.LocationIndicatorActive != nil {
		return *l.LocationIndicatorActive
	}
	return l.IndicatorLED != nil && *l.IndicatorLED != "" && *l.IndicatorLED != string(schemas.OffIndicatorLED)
}

// confirmLED waits until the controller shows the light as wanted. Any state but Off counts as lit: Blinking may be shown where
// Lit was ordered.
func (d *driver) confirmLED(ctx context.Context, ref string, on bool) error {
	for n := 0; ; n++ {
		var l led
		if err := d.read(ctx, ref, &l); err != nil {
			return err
		}
		if l.isLit() == on {
			return nil
		}
		if n+1 >= d.looks {
			return inventory.Errorf(inventory.Unavailable, "the controller at %s took the order for the identify LED, but shows it as it was", d.host())
		}
		if err := d.sleep(ctx, d.every); err != nil {
			return d.unreached(ctx, err)
		}
	}
}

// Locate lights the identify LED of the system, or of its first chassis that has one.
func (d *driver) Locate(ctx context.Context, on bool) (err error) {
	defer d.safe(&err)
	s, err := d.system(ctx)
	if err != nil {
		return err
	}
	refs := []string{s.ID}
	for _, l := range s.Links.Chassis {
		refs = append(refs, l.ID)
	}
	var unread error
	// The system itself is the first; on blades the light is on the chassis.
	for _, ref := range refs[:min(len(refs), maxMembers)] {
		var l led
		if err := d.read(ctx, ref, &l); err != nil {
			if fatal := d.omit(ctx, ref, err); fatal != nil {
				return fatal
			}
			unread = err
			continue
		}
		// The first light ends the search: lighting the chassis of a blade as well would point at all its neighbours.
		if body := l.body(on); body != nil {
			if err := d.patch(ctx, ref, body, "set the identify LED"); err != nil {
				return err
			}
			return d.confirmLED(ctx, ref, on)
		}
	}
	// A document that could not be read may have the light: a later try may find it.
	if unread != nil && bmc.KindOf(unread) != inventory.NotFound {
		return unread // it may have one
	}
	return inventory.Errorf(inventory.Invalid, "the controller at %s has no identify LED", d.host())
}
