package redfish

import (
	"context"
	"slices"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// Can asks the controller what it can do: the standard makes almost everything optional. A feature counts as present
// when the controller cannot tell at the moment.
func (d *driver) Can(ctx context.Context) (_ []string, err error) {
	defer d.safe(&err)
	s, err := d.system(ctx)
	if err != nil {
		return nil, err
	}
	// Power is not in the list: every driver has it, and SetPower finds the order by itself.
	can := []string{"inventory"}
	if s.Boot.Target != "" || s.Boot.Enabled != "" || len(s.Boot.Targets) > 0 {
		can = append(can, "boot")
	}
	for _, part := range []struct {
		name string
		look func() error
	}{
		{"media", func() error { _, _, err := d.drive(ctx); return err }},
		{"log", func() error { _, err := d.eventLog(ctx); return err }},
		{"users", func() error { _, _, err := d.accounts(ctx); return err }},
		{"sensors", func() error { return d.lookForSensors(ctx, s) }},
		{"locate", func() error { return d.lookForLED(ctx, s) }},
		{"reset", func() error { _, _, err := d.managerReset(ctx, s); return err }},
	} {
		// Invalid and NotFound are the answers for a feature that the controller does not have.
		switch err := part.look(); {
		case err == nil:
			can = append(can, part.name)
		// A refused login ends all; each further question would count as another wrong password.
		case ctx.Err() != nil || d.isRefused():
			return nil, err
		case bmc.KindOf(err) == inventory.Unavailable:
			can = append(can, part.name) // it does not tell now; that is no no
		}
	}
	return can, nil
}

var errNone = inventory.Errorf(inventory.NotFound, "the controller has none")

// lookForSensors reads no sensor: a link to one of the documents is enough, and the readings take a request each.
func (d *driver) lookForSensors(ctx context.Context, s *system) error {
	chassis, err := d.chassis(ctx, s)
	if err != nil {
		return err
	}
	for _, l := range chassis {
		var c struct{ Thermal, Power, Sensors link }
		if d.read(ctx, l.ID, &c) == nil && c.Thermal.ID+c.Power.ID+c.Sensors.ID != "" {
			return nil
		}
	}
	return errNone
}

// lookForLED looks at the system first, whose document is read already, and at the chassis only after that.
func (d *driver) lookForLED(ctx context.Context, s *system) error {
	if (&led{LocationIndicatorActive: s.LocationIndicatorActive, IndicatorLED: s.IndicatorLED}).body(true) != nil {
		return nil
	}
	for _, c := range s.Links.Chassis {
		var l led
		if d.read(ctx, c.ID, &l) == nil && l.body(true) != nil {
			return nil
		}
	}
	return errNone
}

// managerReset finds how the controller itself is restarted: where to send which reset type. Can asks it too, so that it sends
// nothing. With no list of types, GracefulRestart is tried, the type that every generation has.
func (d *driver) managerReset(ctx context.Context, s *system) (target, kind string, err error) {
	m, err := d.manager(ctx, s)
	if err != nil {
		return "", "", err
	}
	reset := m.Actions.Reset
	none := inventory.Errorf(inventory.Invalid, "the controller at %s does not offer to restart itself", d.host()).WithHint("restart it on its own pages, or take its power away")
	if reset.Target == "" {
		return "", "", none
	}
	// The allowed values are in the document, or in an ActionInfo that it names.
	types := reset.ResetTypes
	if len(types) == 0 {
		known, err := d.parameters(ctx, reset)
		if err != nil {
			return "", "", err
		}
		types = allowed("ResetType", nil, known)
	}
	if len(types) == 0 {
		return reset.Target, "GracefulRestart", nil
	}
	for _, kind := range []string{"GracefulRestart", "ForceRestart"} {
		if slices.Contains(types, kind) {
			return reset.Target, kind, nil
		}
	}
	return "", "", none
}

// ResetController restarts the controller itself. The machine keeps its power. A graceful restart comes first,
// because it keeps settings that firmware writes late.
func (d *driver) ResetController(ctx context.Context) (err error) {
	defer d.safe(&err)
	s, err := d.system(ctx)
	if err != nil {
		return err
	}
	target, kind, err := d.managerReset(ctx, s)
	if err != nil {
		return err
	}
	_, err = d.post(ctx, target, map[string]string{"ResetType": kind}, "restart itself")
	return err
}
