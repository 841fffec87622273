package bmc_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// teller is a machine whose controller tells when it restarted.
type teller struct {
	*machine
	restartedAt time.Time
}

func (t *teller) SinceRestart(context.Context) (time.Duration, error) {
	return time.Since(t.restartedAt), nil
}

func (t *teller) SetPower(ctx context.Context, a bmc.Action) error {
	if err := t.machine.SetPower(ctx, a); err != nil || t.machine.next == "" {
		return err
	}
	t.restartedAt = time.Now()
	return nil
}

func TestARestartIsProvenByMoreThanThatTheMachineIsOn(t *testing.T) {
	const on, off = inventory.PowerOn, inventory.PowerOff
	for name, c := range map[string]struct {
		m      machine
		tells  bool
		a      bmc.Action
		proven bool
		kind   inventory.Kind
		orders []bmc.Action
	}{
		"a cycle is off, then on":                         {machine{is: on, after: time.Second}, false, bmc.Cycle, true, "", []bmc.Action{bmc.Off, bmc.On}},
		"a cycle that is ignored has not happened":        {machine{is: on, ignores: 99}, false, bmc.Cycle, false, inventory.Unavailable, nil},
		"a cycle where no order switches off":             {machine{is: on, takes: []inventory.Kind{inventory.Invalid}}, false, bmc.Cycle, false, "", []bmc.Action{bmc.Off, bmc.Cycle}},
		"the same, and the controller names the time":     {machine{is: on, takes: []inventory.Kind{inventory.Invalid}}, true, bmc.Cycle, true, "", []bmc.Action{bmc.Off, bmc.Cycle}},
		"a reset that nothing shows":                      {machine{is: on}, false, bmc.Reset, false, "", []bmc.Action{bmc.Reset}},
		"a reset whose time the controller names":         {machine{is: on}, true, bmc.Reset, true, "", []bmc.Action{bmc.Reset}},
		"a reset that is ignored, and no new time":        {machine{is: on, ignores: 99}, true, bmc.Reset, false, "", []bmc.Action{bmc.Reset}},
		"a reset of a machine that is off switches it on": {machine{is: off}, false, bmc.Reset, true, "", []bmc.Action{bmc.On}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := c.m
				m.begun = time.Now()
				var d bmc.Driver = &m
				if c.tells {
					d = &teller{&m, time.Now().Add(-time.Hour)}
				}
				proven, err := bmc.Restart(t.Context(), d, c.a, clock{}, bmc.DefaultPace(nil))
				if proven != c.proven || (err != nil) != (c.kind != "") || err != nil && bmc.KindOf(err) != c.kind {
					t.Errorf("proven %v, %v", proven, err)
				}
				if c.orders != nil && !slices.Equal(m.asked, c.orders) {
					t.Errorf("orders %v", m.asked)
				}
			})
		})
	}
}
