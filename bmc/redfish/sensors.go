package redfish

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// reading is one value of a Thermal, Power or Sensor document; each kind of document has its own name for it.
type reading struct {
	Name   string
	Status status

	ReadingCelsius *number // of Thermal.Temperatures
	Reading        *number
	ReadingUnits   string
	ReadingType    string
	ReadingVolts   *number // of Power.Voltages
	FanName        string

	PowerConsumedWatts   *number // of Power.PowerControl
	LastPowerOutputWatts *number // of Power.PowerSupplies, in older schemas
	PowerInputWatts      *number // of Power.PowerSupplies
}

// Health returns the controller's own summary of the machine: ok, warning, critical, or "" when it has none.
func (d *driver) Health(ctx context.Context) (_ string, err error) {
	defer d.safe(&err)
	s, err := d.system(ctx)
	if err != nil {
		return "", err
	}
	// The rollup includes the parts of the machine, and Health may not.
	health := cmp.Or(s.Status.HealthRollup, s.Status.Health)
	switch health {
	case "OK":
		return "ok", nil
	case "Warning":
		return "warning", nil
	case "Critical":
		return "critical", nil
	}
	return "", nil
}

// Sensors reads the sensors of the system's chassis. They are in Thermal and Power, which take one request each, or
// in Sensors, which replaces both in newer schemas.
func (d *driver) Sensors(ctx context.Context) (_ []bmc.Sensor, err error) {
	defer d.safe(&err)
	s, err := d.system(ctx)
	if err != nil {
		return nil, err
	}
	chassis, err := d.chassis(ctx, s)
	if err != nil {
		return nil, err
	}
	// Some services name a chassis twice, with and without a slash at the end.
	chassis = slices.CompactFunc(chassis, func(a, b link) bool { return strings.TrimRight(a.ID, "/") == strings.TrimRight(b.ID, "/") })
	if len(chassis) > maxMembers {
		bmc.Omit(ctx, "chassis: %d of %d were not read", len(chassis)-maxMembers, len(chassis))
	}
	var all []bmc.Sensor
	var first error
	for _, c := range chassis[:min(len(chassis), maxMembers)] {
		some, err := d.chassisSensors(ctx, c.ID)
		all = append(all, some...)
		if fatal := d.omit(ctx, c.ID, err); fatal != nil {
			return nil, fatal
		}
		first = cmp.Or(first, err)
	}
	// A chassis that fails is only left out, unless there was no other: an empty list would look like a machine without sensors.
	if len(all) == 0 {
		return nil, first
	}
	return all, nil
}

// chassis are those that the system is in; all of the service where it does not say.
func (d *driver) chassis(ctx context.Context, s *system) ([]link, error) {
	chassis := s.Links.Chassis
	if len(chassis) == 0 {
		root, err := d.root(ctx)
		if err != nil {
			return nil, err
		}
		if root.Chassis.ID == "" {
			return nil, nil
		}
		// Without links, a service with several chassis mixes their sensors. Such services have one machine.
		paths, err := d.links(ctx, root.Chassis.ID)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			chassis = append(chassis, link{path})
		}
	}
	return chassis, nil
}

// chassisSensors reads one chassis. A part that fails ends no other.
func (d *driver) chassisSensors(ctx context.Context, ref string) ([]bmc.Sensor, error) {
	var chassis struct{ Thermal, Power, Sensors link }
	if err := d.read(ctx, ref, &chassis); err != nil {
		return nil, err
	}
	var all []bmc.Sensor
	var thermal struct{ Temperatures, Fans []reading }
	if err := d.readPart(ctx, chassis.Thermal.ID, &thermal); err != nil {
		return nil, err
	}
	all = add(all, "temperature", thermal.Temperatures)
	all = add(all, "fan", thermal.Fans)
	var power struct{ Voltages, PowerControl, PowerSupplies []reading }
	if err := d.readPart(ctx, chassis.Power.ID, &power); err != nil {
		return nil, err
	}
	all = add(all, "voltage", power.Voltages)
	all = add(all, "power", power.PowerControl)
	all = add(all, "power", power.PowerSupplies)
	// Sensors holds the same values again.
	if len(all) > 0 || chassis.Sensors.ID == "" {
		return all, nil
	}
	docs, err := d.members(ctx, chassis.Sensors.ID)
	if err != nil {
		return nil, err
	}
	for _, doc := range docs {
		var r reading
		if decode(doc, &r) == nil {
			all = add(all, strings.ToLower(inventory.Clean(r.ReadingType, 40)), []reading{r})
		}
	}
	return all, nil
}

// readPart reads a document that may be missing although there is a link to it.
func (d *driver) readPart(ctx context.Context, ref string, into any) error {
	if ref == "" {
		return nil
	}
	return d.omit(ctx, ref, d.read(ctx, ref, into))
}

// add appends readings as sensors; those without a name are left out.
func add(all []bmc.Sensor, kind string, readings []reading) []bmc.Sensor {
	for _, r := range readings {
		s := r.sensor(kind)
		if s.Name != "" {
			all = append(all, s)
		}
	}
	return all
}

func (r *reading) sensor(kind string) bmc.Sensor {
	s := bmc.Sensor{Name: clean(r.Name), Kind: kind, Unit: inventory.Clean(r.ReadingUnits, 20), Status: "absent"}
	s.Name = cmp.Or(s.Name, clean(r.FanName)) // Redfish 1.0 calls it so
	// The fields are tried in this order, because a power supply may have several. Pointers tell 0 degrees from no reading.
	var value *number
	for _, v := range []struct {
		value *number
		unit  string
	}{
		{r.ReadingCelsius, "Cel"},
		{r.ReadingVolts, "V"},
		{r.PowerConsumedWatts, "W"},
		{r.PowerInputWatts, "W"},
		{r.LastPowerOutputWatts, "W"},
		{r.Reading, s.Unit},
	} {
		if v.value != nil {
			value, s.Unit = v.value, v.unit
			break
		}
	}
	// An empty slot of a power supply still has a reading of 0, which must not look like a fault.
	if value == nil || strings.EqualFold(r.Status.State, "Absent") {
		return s
	}
	s.Value = float64(*value)
	switch r.Status.Health {
	case "Warning":
		s.Status = "warning"
	case "Critical":
		s.Status = "critical"
	default:
		// Many controllers give a health only to what has a threshold. A reading without one counts as ok.
		s.Status = "ok"
	}
	return s
}
