package redfish

import (
	"context"

	"github.com/stmcginnis/gofish/schemas"

	"slipway.dev/slipway/inventory"
)

// led is the identify light of a system or a chassis: LocationIndicatorActive, or before it (2020.3) IndicatorLED.
type led struct {
	LocationIndicatorActive *bool
	IndicatorLED            *string
	Allowed                 []string `json:"IndicatorLED@Redfish.AllowableValues"`
}

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
	for _, ref := range refs[:min(len(refs), 4)] {
		var l led
		if err := d.read(ctx, ref, &l); err != nil {
			return err
		}
		if body := l.body(on); body != nil {
			return d.patch(ctx, ref, body, "set the identify LED")
		}
	}
	return inventory.Errorf(inventory.Invalid, "the controller at %s has no identify LED", d.host())
}
