package redfish

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// Power reads the power state. It is unknown while the state changes: some machines fall back
// (github.com/chaos/powerman/pull/154), and only a completed change counts.
func (d *driver) Power(ctx context.Context) (_ inventory.PowerState, err error) {
	defer d.safe(&err)
	s, err := d.system(ctx)
	if err != nil {
		return inventory.PowerUnknown, err
	}
	return powerOf(s.PowerState), nil
}

// powerWord writes a power state as the standard does, however the controller spells it.
func powerWord(state string) string {
	for _, s := range []schemas.PowerState{
		schemas.OnPowerState, schemas.OffPowerState, schemas.PausedPowerState, schemas.PoweringOnPowerState, schemas.PoweringOffPowerState,
	} {
		if fold(state) == fold(string(s)) {
			return string(s)
		}
	}
	return state
}

func powerOf(state string) inventory.PowerState {
	switch schemas.PowerState(state) {
	// A paused machine has power: to switch it on would do nothing, and its disks are not safe.
	case schemas.OnPowerState, schemas.PausedPowerState:
		return inventory.PowerOn
	case schemas.OffPowerState:
		return inventory.PowerOff
	}
	return inventory.PowerUnknown
}

// SetPower gives the order, unless the machine has the state already or is on its way to it. It does not wait for the
// change, except between the two orders of a cycle; bmc.Converge waits.
func (d *driver) SetPower(ctx context.Context, a bmc.Action) (err error) {
	defer d.safe(&err)
	if !slices.Contains([]bmc.Action{bmc.On, bmc.Off, bmc.Shutdown, bmc.Cycle, bmc.Reset}, a) {
		return inventory.Errorf(inventory.Invalid, "%q is not a change of power", inventory.Clean(string(a), 40))
	}
	s, err := d.system(ctx)
	if err != nil {
		return err
	}
	if isDone(a, s.PowerState) {
		return nil
	}
	allowed, err := d.resetTypes(ctx, s)
	if err != nil {
		return err
	}
	if a == bmc.Cycle && cyclesInSteps(s.PowerState, allowed) {
		return d.offAndOn(ctx, s, allowed)
	}
	return d.reset(ctx, s, a, allowed)
}

// reset gives the order that does an action.
func (d *driver) reset(ctx context.Context, s *system, a bmc.Action, allowed []string) error {
	order := chooseReset(a, s.PowerState, allowed)
	if order == "" {
		return inventory.Errorf(inventory.Invalid, "the controller at %s does not offer %s", d.host(), a).
			WithHint("it offers: %s", inventory.Clean(strings.Join(allowed, ", "), 200))
	}
	// DSP0266 fixes this path for services that do not name the target.
	target := cmp.Or(s.Actions.Reset.Target, strings.TrimRight(s.ID, "/")+"/Actions/ComputerSystem.Reset")
	ans, err := d.post(ctx, target, map[string]string{"ResetType": string(order)}, "carry out "+string(order))
	if err == nil || ans == nil || ans.status != http.StatusConflict && ans.status != http.StatusBadRequest {
		return err
	}
	// A refusal because it is so already is a success: iDRAC answers 409 "Server is already powered ON"
	// (github.com/dell/dellemc-openmanage-ansible-modules/issues/132).
	if now, readErr := d.system(ctx); readErr == nil && isDone(a, now.PowerState) {
		return nil
	}
	return err
}

// cyclesInSteps reports whether a cycle takes two orders. PowerCycle came with version 1.5 of the schema only, and
// ForceRestart does not take the power away, which is what a machine that hangs may need.
func cyclesInSteps(state string, allowed []string) bool {
	return powerOf(state) != inventory.PowerOff && !slices.Contains(allowed, string(schemas.PowerCycleResetType)) &&
		chooseReset(bmc.Off, state, allowed) != "" && chooseReset(bmc.On, state, allowed) != ""
}

// offAndOn is a cycle in two orders. It fails when the power does not go in time. If the process dies between both
// orders, the machine is off, and the caller's repetition of the cycle switches it on.
func (d *driver) offAndOn(ctx context.Context, s *system, allowed []string) error {
	if err := d.reset(ctx, s, bmc.Off, allowed); err != nil {
		return err
	}
	// The second order waits for the first one's effect: On, given to a machine that is still on, is done at once, and the
	// machine would stay off.
	for n := 0; ; n++ {
		now, err := d.system(ctx)
		if err != nil {
			return err
		}
		if powerOf(now.PowerState) == inventory.PowerOff {
			return d.reset(ctx, now, bmc.On, allowed)
		}
		if n+1 >= d.looks {
			return inventory.Errorf(inventory.Unavailable, "the controller at %s took the order to switch off, but the machine is not off yet", d.host()).
				WithHint("try again: a machine that is off by then is switched on")
		}
		if err := d.sleep(ctx, d.every); err != nil {
			return d.unreached(ctx, err)
		}
	}
}

// isDone reports whether an action needs no order in a power state.
func isDone(a bmc.Action, state string) bool {
	switch is := schemas.PowerState(state); a {
	case bmc.On:
		return powerOf(state) == inventory.PowerOn || is == schemas.PoweringOnPowerState
	// A reset of a machine that is off is done: it starts afresh the next time anyway. A cycle is not, since it ends with on.
	case bmc.Off, bmc.Reset:
		return is == schemas.OffPowerState
	case bmc.Shutdown:
		return is == schemas.OffPowerState || is == schemas.PoweringOffPowerState
	}
	return false
}

// chooseReset picks the order that does an action, out of those that are allowed; "" when there is none. A controller
// that does not say what it allows gets the best one.
//
// The power button comes last, and only where the state is known: pressed on a machine in the other state it would do
// the opposite. GracefulRestart comes last for Reset: it resets hard on iDRAC 8 and waits for the operating system
// elsewhere (github.com/dell/iDRAC-Redfish-Scripting/issues/29).
func chooseReset(a bmc.Action, state string, allowed []string) schemas.ResetType {
	is := powerOf(state)
	var list []schemas.ResetType
	button := false
	switch {
	case a == bmc.On, a == bmc.Cycle && is == inventory.PowerOff:
		list = []schemas.ResetType{schemas.OnResetType, schemas.ForceOnResetType}
		button = is == inventory.PowerOff
	case a == bmc.Off:
		list = []schemas.ResetType{schemas.ForceOffResetType}
	case a == bmc.Shutdown:
		list = []schemas.ResetType{schemas.GracefulShutdownResetType}
		button = is == inventory.PowerOn
	case a == bmc.Cycle:
		list = []schemas.ResetType{schemas.PowerCycleResetType, schemas.ForceRestartResetType}
	case a == bmc.Reset:
		list = []schemas.ResetType{schemas.ForceRestartResetType, schemas.GracefulRestartResetType}
	}
	if button {
		list = append(list, schemas.PushPowerButtonResetType)
	}
	if len(allowed) == 0 {
		return list[0]
	}
	for _, t := range list {
		if slices.Contains(allowed, string(t)) {
			return t
		}
	}
	return ""
}

// resetTypes reads which orders a controller takes, from the action or from its ActionInfo.
func (d *driver) resetTypes(ctx context.Context, s *system) ([]string, error) {
	reset := s.Actions.Reset
	if len(reset.ResetTypes) > 0 || reset.ActionInfo == "" {
		return reset.ResetTypes, nil
	}
	var info struct{ Parameters []parameter }
	if err := d.read(ctx, reset.ActionInfo, &info); err != nil {
		if bmc.KindOf(err) == inventory.NotFound {
			return nil, nil
		}
		return nil, err
	}
	for _, p := range info.Parameters {
		if p.Name == "ResetType" {
			return p.AllowableValues, nil
		}
	}
	return nil, nil
}
