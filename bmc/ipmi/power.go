package ipmi

import (
	"context"
	"errors"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// orders of Chassis Control (IPMI 2.0, table 28-4).
var orders = map[bmc.Action]byte{bmc.Off: 0, bmc.On: 1, bmc.Cycle: 2, bmc.Reset: 3, bmc.Shutdown: 5}

// short is the answer of a controller that broke off in the middle.
func (d *driver) short(doing string) error {
	return inventory.Errorf(inventory.Unavailable, "%s: the IPMI controller at %s answered too little", doing, d.address).
		WithHint("its firmware may need an update or a reset")
}

// chassis reads the three bytes of Get Chassis Status (IPMI 2.0, table 28-3).
func (d *driver) chassis(ctx context.Context) ([]byte, error) {
	const doing = "read the power state"
	got, err := d.do(ctx, doing, netChassis, cmdChassisStatus)
	if err != nil {
		return nil, err
	}
	if len(got) < 3 {
		return nil, d.short(doing)
	}
	return got, nil
}

// Power implements bmc.Driver.
func (d *driver) Power(ctx context.Context) (inventory.PowerState, error) {
	got, err := d.chassis(ctx)
	if err != nil {
		return inventory.PowerUnknown, err
	}
	if got[0]&1 != 0 {
		return inventory.PowerOn, nil
	}
	return inventory.PowerOff, nil
}

// SetPower implements bmc.Driver. It reads the state first, because controllers differ in their answer to an order
// that does not fit: see the quirks order-in-wrong-state, cycle-while-off and reset-while-off. It does not wait until
// the state has changed; bmc.Converge does.
func (d *driver) SetPower(ctx context.Context, a bmc.Action) error {
	order, ok := orders[a]
	if !ok {
		return inventory.Errorf(inventory.Invalid, "%q is no change of power", inventory.Clean(string(a), 20))
	}
	is, err := d.Power(ctx)
	if err != nil && isLasting(err) {
		return err
	}
	if err == nil {
		if order, ok = fit(a, is, order); !ok {
			return nil
		}
	}
	_, err = d.do(ctx, "switch power: "+string(a), netChassis, cmdChassisControl, order)
	if c := codeOf(err); c == codeState || c == codeUnspecified {
		// The state may have changed since it was read: then somebody else has fulfilled the order.
		if now, again := d.Power(ctx); again == nil && now == wanted(a) && a != bmc.Cycle && a != bmc.Reset {
			return nil
		}
	}
	var e *inventory.Error
	if a == bmc.Shutdown && codeOf(err) == codeField && errors.As(err, &e) {
		return e.WithHint("it cannot ask the operating system to shut down; use off")
	}
	return err
}

// fit says which order brings about the action in a state; false when nothing has to be done.
func fit(a bmc.Action, is inventory.PowerState, order byte) (byte, bool) {
	switch {
	case a == bmc.On && is == inventory.PowerOn, a != bmc.On && a != bmc.Cycle && is == inventory.PowerOff:
		return 0, false
	case a == bmc.Cycle && is == inventory.PowerOff:
		return orders[bmc.On], true
	}
	return order, true
}

func wanted(a bmc.Action) inventory.PowerState {
	if a == bmc.Off || a == bmc.Shutdown {
		return inventory.PowerOff
	}
	return inventory.PowerOn
}

func isLasting(err error) bool {
	k := bmc.KindOf(err)
	return k == inventory.Unauthorized || k == inventory.Invalid || k == inventory.NotFound
}

// Locate implements bmc.Locator.
func (d *driver) Locate(ctx context.Context, on bool) error {
	const doing = "switch the identify light"
	if !on {
		_, err := d.do(ctx, doing, netChassis, cmdIdentify, 0)
		return err
	}
	_, err := d.do(ctx, doing, netChassis, cmdIdentify, 0, 1)
	if c := codeOf(err); c == codeLength || c == codeField || c == codeFieldRange {
		// "On until told otherwise" is optional; 255 seconds is the longest that all know.
		_, err = d.do(ctx, doing, netChassis, cmdIdentify, 255)
	}
	return err
}
