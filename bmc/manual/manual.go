// Package manual owns machines that only a person can switch on and off. It asks, and trusts the confirmation. It never
// reaches a machine.
//
// # Options of a manual BMC
//
// Address, System, user and password stay empty. One host option: "where", words that tell a person how to find the
// machine, such as "rack r1 unit 7" or "on Ann's desk".
package manual

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// Tasks shows people what they have to do, and takes their confirmation.
type Tasks interface {
	// Ask notes that a person should do a. It returns the state that a person has confirmed since that same action was
	// first asked, or unknown while nobody has; asking again for the same change does nothing.
	Ask(ctx context.Context, t bmc.Target, a bmc.Action) (confirmed inventory.PowerState, err error)
	// State returns the state that was confirmed last, unknown if none ever was.
	State(ctx context.Context, host inventory.HostID) (inventory.PowerState, error)
}

// Opener makes the bmc.Opener.
func Opener(tasks Tasks) bmc.Opener {
	return func(t bmc.Target) (bmc.Driver, error) {
		for key, v := range t.Options {
			if key != "where" {
				return nil, inventory.Errorf(inventory.Invalid, "bmc: manual has no option %q", inventory.Clean(key, 40)).WithHint("its only option is where")
			}
			if err := inventory.CheckText("bmc: where", v, 200); err != nil {
				return nil, err
			}
		}
		return &driver{tasks: tasks, t: t}, nil
	}
}

type driver struct {
	tasks Tasks
	t     bmc.Target
}

// Power returns what was confirmed last.
func (d *driver) Power(ctx context.Context) (inventory.PowerState, error) {
	is, err := d.tasks.State(ctx, d.t.HostID)
	if err != nil {
		return inventory.PowerUnknown, wrap(err)
	}
	is = cmp.Or(is, inventory.PowerUnknown)
	return is, nil
}

// SetPower asks a person, and fails with the task until it is confirmed.
func (d *driver) SetPower(ctx context.Context, a bmc.Action) error {
	end := inventory.PowerOn
	if a == bmc.Off || a == bmc.Shutdown {
		end = inventory.PowerOff
	}
	task := Task(d.t, a)
	if task == "" {
		return inventory.Errorf(inventory.Invalid, "bmc: %q is not a change of power", inventory.Clean(string(a), 40))
	}
	if err := ctx.Err(); err != nil {
		return inventory.Errorf(inventory.Unavailable, "Slipway asked nobody: %v", err)
	}
	is, err := d.tasks.Ask(ctx, d.t, a)
	if err != nil {
		return wrap(err)
	}
	if is == end || a == bmc.Reset && slices.Contains([]inventory.PowerState{inventory.PowerOn, inventory.PowerOff}, is) { // a reset of a machine that is off leaves it off
		return nil
	}
	return inventory.Errorf(inventory.Unavailable, "a person has to %s", task).
		WithHint("when it is done: slipway host power %s --confirm %s", inventory.Clean(d.t.HostName, 80), end)
}

// Close ends nothing.
func (d *driver) Close() error { return nil }

// Task returns what a person has to do; "" for an unknown action.
func Task(t bmc.Target, a bmc.Action) string {
	name := inventory.Clean(t.HostName, 80)
	if where := inventory.Clean(t.Options["where"], 200); where != "" {
		name += " (" + where + ")"
	}
	switch a {
	case bmc.On:
		return "press the power button of " + name
	case bmc.Off:
		return "switch off " + name + ", by holding its power button or pulling its plug"
	case bmc.Shutdown:
		return "shut down the operating system of " + name
	case bmc.Cycle:
		return "switch " + name + " off, and on again"
	case bmc.Reset:
		return "press the reset button of " + name
	}
	return ""
}

func wrap(err error) error {
	if _, ok := errors.AsType[*inventory.Error](err); ok {
		return err
	}
	return &inventory.Error{Kind: inventory.Unavailable, Msg: "the list of tasks cannot be reached", Err: err}
}
