package ipmi

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"

	"github.com/bougou/go-ipmi/pkg/types"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// kinds names the sensor types that people look for (IPMI 2.0, table 42-3); others go by the name of the table.
var kinds = map[types.SensorType]string{
	0x01: "temperature", 0x02: "voltage", 0x03: "current", 0x04: "fan", 0x05: "intrusion", 0x07: "processor", 0x08: "power-supply",
	0x09: "power", 0x0b: "other", 0x0c: "memory", 0x0d: "disk", 0x23: "watchdog", 0x25: "presence",
}

// probe is a sensor before it is read.
type probe struct {
	name      string
	number    byte
	owner     types.GeneratorID
	kind      types.SensorType
	unit      types.SensorUnit
	threshold bool
	convert   func(byte) float64 // nil for a sensor without numbers
}

// errNoSensor says that a record describes something else, or a sensor of a controller behind this one.
var errNoSensor = errors.New("not a sensor of this controller")

func probeOf(r *types.SDR) (p probe, err error) {
	switch {
	case r.Full != nil:
		f := r.Full
		p = probe{
			name: types.FRUFieldString(f.IDStringTypeLength, f.IDStringBytes), number: byte(f.SensorNumber), owner: f.GeneratorID, kind: f.SensorType,
			unit: f.SensorUnit, threshold: f.SensorEventReadingType.IsThreshold(),
		}
		if f.SensorUnit.IsAnalog() {
			p.convert = f.ConvertReading
		}
	case r.Compact != nil:
		c := r.Compact
		p = probe{
			name: types.FRUFieldString(c.IDStringTypeLength, c.IDStringBytes), number: byte(c.SensorNumber), owner: c.GeneratorID, kind: c.SensorType,
			unit: c.SensorUnit, threshold: c.SensorEventReadingType.IsThreshold(),
		}
	default:
		return probe{}, errNoSensor
	}
	p.name = inventory.Clean(strings.TrimRight(p.name, "\x00"), 32)
	// A sensor behind a satellite controller needs bridged messages, which this driver does not send.
	if p.owner != types.GeneratorBMC {
		return probe{}, errNoSensor
	}
	return p, nil
}

// Sensors implements bmc.SensorReader.
func (d *driver) Sensors(ctx context.Context) ([]bmc.Sensor, error) {
	all, err := d.records(ctx)
	if err != nil {
		return nil, err
	}
	var out []bmc.Sensor
	for _, r := range all {
		p, err := decode(func() (probe, error) { return probeOf(r) })
		if err != nil {
			continue
		}
		got, err := d.do(ctx, "read sensor "+p.name, netSensor, cmdSensorReading, p.number)
		// A refusal makes one sensor absent. Silence or missing rights end the list.
		if err != nil && (codeOf(err) == 0 || codeOf(err) == codeNotPermitted) {
			return nil, err
		}
		out = append(out, p.sensor(got))
	}
	return out, nil
}

// sensor makes sense of Get Sensor Reading (IPMI 2.0, table 35-15); got is short when the sensor could not be read.
func (p probe) sensor(got []byte) bmc.Sensor {
	s := bmc.Sensor{Name: p.name, Kind: kinds[p.kind], Status: "absent"}
	s.Kind = cmp.Or(s.Kind, strings.ReplaceAll(strings.ToLower(inventory.Clean(p.kind.String(), 40)), " ", "-"))
	// A controller clears "scanning" while the machine is off. The reading is then of before, or of nothing.
	const unavailable, scanning = 0x20, 0x40
	if len(got) < 2 || got[1]&unavailable != 0 || got[1]&scanning == 0 {
		return s
	}
	s.Status = "ok"
	if p.threshold && p.convert != nil {
		v, err := decode(func() (float64, error) { return p.convert(got[0]), nil })
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			s.Status = "absent"
			return s
		}
		s.Value, s.Unit = v, unitOf(p.unit)
	}
	if p.threshold && len(got) > 2 {
		s.Status = thresholdStatus(got[2])
	}
	return s
}

// thresholdStatus reads which limits are passed: bits 0 to 2 are the lower ones, 3 to 5 the upper ones, each from
// non-critical to beyond repair.
func thresholdStatus(b byte) string {
	switch {
	case b&0b110110 != 0:
		return "critical"
	case b&0b001001 != 0:
		return "warning"
	}
	return "ok"
}

func unitOf(u types.SensorUnit) string {
	if u.Percentage {
		return "%"
	}
	switch u.BaseUnit {
	case 1:
		return "°C"
	case 4:
		return "V"
	case 5:
		return "A"
	case 6:
		return "W"
	case 18:
		return "rpm"
	}
	return inventory.Clean(u.BaseUnit.String(), 20)
}

// Health implements bmc.SensorReader: the faults that the chassis reports, then the worst sensor.
func (d *driver) Health(ctx context.Context) (string, error) {
	got, err := d.chassis(ctx)
	if err != nil {
		return "", err
	}
	// Overload, interlock, power fault, power control fault; drive fault, cooling fault (IPMI 2.0, table 28-3).
	if got[0]&0b00011110 != 0 || got[2]&0b00001100 != 0 {
		return "critical", nil
	}
	all, err := d.Sensors(ctx)
	if err != nil {
		if c := codeOf(err); c != 0 && c != codeNotPermitted {
			return "", nil // it has no sensors to sum up
		}
		return "", err
	}
	health := "ok"
	for _, s := range all {
		if s.Status == "critical" {
			return "critical", nil
		}
		if s.Status == "warning" {
			health = "warning"
		}
	}
	return health, nil
}
