package manual_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/bmctest"
	"slipway.dev/slipway/bmc/manual"
	"slipway.dev/slipway/inventory"
)

// board is a list of tasks in memory.
type board struct {
	is     inventory.PowerState // confirmed last
	asked  []bmc.Action
	isDone bool // a person does at once what is asked
	err    error
}

func (b *board) Ask(_ context.Context, _ bmc.Target, a bmc.Action) (inventory.PowerState, error) {
	b.asked = append(b.asked, a)
	if b.err != nil || !b.isDone {
		return inventory.PowerUnknown, b.err
	}
	switch {
	case a == bmc.Off || a == bmc.Shutdown:
		b.is = inventory.PowerOff
	case a != bmc.Reset:
		b.is = inventory.PowerOn
	}
	return b.is, nil
}

func (b *board) State(context.Context, inventory.HostID) (inventory.PowerState, error) {
	return b.is, b.err
}

func open(t *testing.T, b *board, options map[string]string) bmc.Driver {
	t.Helper()
	d, err := manual.Opener(b)(bmc.Target{BMC: inventory.BMC{HostID: "h1", Driver: inventory.Manual, Options: options}, HostName: "web-1"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestManualPassesTheConformanceSuiteWhenPeopleDoAsTheyAreAsked(t *testing.T) {
	bmctest.Run(t, bmctest.Case{Open: func(t *testing.T, is inventory.PowerState) bmc.Driver {
		return open(t, &board{is: is, isDone: true}, nil)
	}})
}

func TestAnOrderFailsWithTheTaskUntilItIsConfirmed(t *testing.T) {
	b := &board{}
	d := open(t, b, map[string]string{"where": "rack r1 unit 7"})
	if is, err := d.Power(t.Context()); err != nil || is != inventory.PowerUnknown {
		t.Errorf("before anything was confirmed the machine is %s (%v)", is, err)
	}
	err := d.SetPower(t.Context(), bmc.On)
	var e *inventory.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T: %v", err, err)
	}
	want := inventory.Error{
		Kind: inventory.Unavailable, Msg: "a person has to press the power button of web-1 (rack r1 unit 7)",
		Hint: "when it is done: slipway host power web-1 --confirm on",
	}
	if diff := cmp.Diff(want, *e); diff != "" {
		t.Error(diff)
	}
	b.isDone = true
	if err := d.SetPower(t.Context(), bmc.On); err != nil {
		t.Error(err)
	}
	if is, err := d.Power(t.Context()); err != nil || is != inventory.PowerOn {
		t.Errorf("after it was confirmed the machine is %s (%v)", is, err)
	}
	if diff := cmp.Diff([]bmc.Action{bmc.On, bmc.On}, b.asked); diff != "" {
		t.Error(diff)
	}
}

func TestTheWrongStateDoesNotConfirm(t *testing.T) {
	b := &board{}
	d := open(t, b, nil)
	b.isDone, b.is = true, inventory.PowerOff
	if err := d.SetPower(t.Context(), bmc.Reset); err != nil {
		t.Errorf("a reset of a machine that is off: %v", err)
	}
	b.isDone = false
	for a, hint := range map[bmc.Action]string{bmc.Off: "off", bmc.Shutdown: "off", bmc.Cycle: "on", bmc.Reset: "on"} {
		var e *inventory.Error
		if err := d.SetPower(t.Context(), a); !errors.As(err, &e) || e.Hint != "when it is done: slipway host power web-1 --confirm "+hint {
			t.Errorf("%s: %v", a, err)
		}
	}
}

func TestAListThatCannotBeReachedIsUnavailable(t *testing.T) {
	d := open(t, &board{err: errors.New("disk I/O")}, nil)
	if _, err := d.Power(t.Context()); bmc.KindOf(err) != inventory.Unavailable {
		t.Error(err)
	}
	if err := d.SetPower(t.Context(), bmc.On); bmc.KindOf(err) != inventory.Unavailable {
		t.Error(err)
	}
}

func TestOptionsAreStrict(t *testing.T) {
	for name, o := range map[string]map[string]string{"unknown": {"who": "Ann"}, "not a text": {"where": "a\x00b"}} {
		if _, err := manual.Opener(&board{})(bmc.Target{BMC: inventory.BMC{Options: o}}); bmc.KindOf(err) != inventory.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
