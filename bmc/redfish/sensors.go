package redfish

import (
	"context"
	"strings"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// reading is one value of a Thermal, Power or Sensor document; each kind of document has its own name for it.
type reading struct {
	Name   string
	Status status

	ReadingCelsius *float64
	Reading        *float64
	ReadingUnits   string
	ReadingType    string
	ReadingVolts   *float64
	FanName        string

	PowerConsumedWatts   *float64
	LastPowerOutputWatts *float64
	PowerInputWatts      *float64
}

// Health is what the controller sums up of the machine.
func (d *driver) Health(ctx context.Context) (_ string, err error) {
	defer d.safe(&err)
	s, err := d.system(ctx)
	if err != nil {
		return "", err
	}
	health := s.Status.HealthRollup
	if health == "" {
		health = s.Status.Health
	}
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

// Sensors reads the sensors of the system's chassis: Thermal and Power, which take one request each, or the Sensors that
// replace them.
func (d *driver) Sensors(ctx context.Context) (_ []bmc.Sensor, err error) {
	defer d.safe(&err)
	s, err := d.system(ctx)
	if err != nil {
		return nil, err
	}
	chassis := s.Links.Chassis
	if len(chassis) == 0 {
		root, err := d.root(ctx)
		if err != nil {
			return nil, err
		}
		if root.Chassis.ID == "" {
			return nil, nil
		}
		paths, err := d.links(ctx, root.Chassis.ID)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			chassis = append(chassis, link{path})
		}
	}
	var all []bmc.Sensor
	for _, c := range chassis[:min(len(chassis), 8)] {
		some, err := d.chassisSensors(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func (d *driver) chassisSensors(ctx context.Context, ref string) ([]bmc.Sensor, error) {
	var chassis struct{ Thermal, Power, Sensors link }
	if err := d.read(ctx, ref, &chassis); err != nil {
		return nil, err
	}
	var all []bmc.Sensor
	if chassis.Thermal.ID != "" {
		var doc struct{ Temperatures, Fans []reading }
		if err := d.readPart(ctx, chassis.Thermal.ID, &doc); err != nil {
			return nil, err
		}
		all = add(all, "temperature", doc.Temperatures)
		all = add(all, "fan", doc.Fans)
	}
	if chassis.Power.ID != "" {
		var doc struct{ Voltages, PowerControl, PowerSupplies []reading }
		if err := d.readPart(ctx, chassis.Power.ID, &doc); err != nil {
			return nil, err
		}
		all = add(all, "voltage", doc.Voltages)
		all = add(all, "power", doc.PowerControl)
		all = add(all, "power", doc.PowerSupplies)
	}
	if len(all) > 0 || chassis.Sensors.ID == "" {
		return all, nil
	}
	docs, err := d.members(ctx, chassis.Sensors.ID, 256)
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
	if err := d.read(ctx, ref, into); err != nil && bmc.KindOf(err) != inventory.NotFound {
		return err
	}
	return nil
}

// add appends readings as sensors; those without a name are left out.
func add(all []bmc.Sensor, kind string, readings []reading) []bmc.Sensor {
	for _, r := range readings[:min(len(readings), 256)] {
		s := r.sensor(kind)
		if s.Name != "" {
			all = append(all, s)
		}
	}
	return all
}

func (r *reading) sensor(kind string) bmc.Sensor {
	s := bmc.Sensor{Name: clean(r.Name), Kind: kind, Unit: inventory.Clean(r.ReadingUnits, 20), Status: "absent"}
	if s.Name == "" {
		s.Name = clean(r.FanName) // Redfish 1.0 calls it so
	}
	var value *float64
	for _, v := range []struct {
		value *float64
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
	if value == nil || strings.EqualFold(r.Status.State, "Absent") {
		return s
	}
	s.Value = *value
	switch r.Status.Health {
	case "Warning":
		s.Status = "warning"
	case "Critical":
		s.Status = "critical"
	default:
		s.Status = "ok"
	}
	return s
}
