package claim

import (
	"slices"
	"testing"
	"time"

	"slipway.dev/slipway/hardware/placement"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

func TestAMachineThatHasAHostKeepsItsPoolAndPlacement(t *testing.T) {
	pending := inventory.Machine{Name: "web1", Pool: "a"}
	running, ending := pending, pending
	running.HostID, ending.DeletedAt = "h1", time.Unix(1, 0)
	for name, c := range map[string]struct {
		old   inventory.Machine
		edit  func(*inventory.Machine)
		isMay bool
	}{
		"a pool before there is a host":         {pending, func(m *inventory.Machine) { m.Pool = "b" }, true},
		"a pool":                                {running, func(m *inventory.Machine) { m.Pool = "b" }, false},
		"a placement":                           {running, func(m *inventory.Machine) { m.Placement.Host = "db1" }, false},
		"who may have the host afterwards":      {running, func(m *inventory.Machine) { m.Placement.ReuseKey = "k" }, true},
		"a profile":                             {running, func(m *inventory.Machine) { m.Profile = "p" }, true},
		"a profile while it is deleted":         {ending, func(m *inventory.Machine) { m.Profile = "p" }, false},
		"the node to drain while it is deleted": {ending, func(m *inventory.Machine) { m.Drain.Node = "n" }, true},
	} {
		m := c.old
		c.edit(&m)
		changes := ledger.ChangedFields(c.old, m)
		if len(changes) == 0 {
			t.Fatalf("%s: nothing has changed", name)
		}
		if err := mayChange(&c.old, &m, changes); (err == nil) != c.isMay {
			t.Errorf("%s: %v for a change of %v", name, err, changes)
		}
	}
}

func TestARefusedTakeoverIsNotedOnceAnHour(t *testing.T) {
	var r takeRefusals
	now := time.Unix(0, 0)
	got := []bool{
		r.isNew("c1 a", now), r.isNew("c1 a", now.Add(time.Minute)), r.isNew("c1 b", now.Add(time.Minute)),
		r.isNew("c1 a", now.Add(tookAgain)),
	}
	if want := []bool{true, false, true, true}; !slices.Equal(got, want) {
		t.Errorf("noted: %v, want %v", got, want)
	}
}

func TestAMachineThatGetsAHostHasNoReasonAnyMore(t *testing.T) {
	var r rejections
	r.put("m1", placement.Choice{Code: placement.InsufficientResources, Rejected: []placement.Rejection{{Cause: "memory", N: 2}}})
	if all, code := r.find("m1"); code != string(placement.InsufficientResources) || len(all) != 1 || all[0].N != 2 {
		t.Errorf("a machine without a host has %v, %q", all, code)
	}
	r.put("m1", placement.Choice{Host: &inventory.Host{}})
	if all, code := r.find("m1"); code != "" || len(all) != 0 {
		t.Errorf("a machine with a host has %v, %q", all, code)
	}
}
