package attack_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/web/client"
)

// TestAnOldSystemThatPlaysOurAgentIsNotWiped has the old system of a host play a whole boot of our agent, with the key of
// that boot and certificates for its disks, while the controller has not cut its power yet.
func TestAnOldSystemThatPlaysOurAgentIsNotWiped(t *testing.T) {
	a := victim(t)
	a.ImportLive()
	importAgent(a)
	if _, err := a.API.AcceptRules.Create(t.Context(), inventory.AcceptRule{Name: "all", Selector: "manufacturer"}); err != nil {
		t.Fatal(err)
	}
	is := func(want inventory.State) func() bool { return func() bool { return a.Hosts()[0].State == want } }
	acts(a, 6, func() bool { return len(a.Hosts()) == 1 && is(inventory.Available)() })
	if !is(inventory.Available)() {
		t.Fatalf("the host is %s: this test attacks nothing", a.Hosts()[0].State)
	}
	name := a.Hosts()[0].Name

	deaf := client.SetBMC{Driver: inventory.FakeBMC, System: "a", Options: map[string]string{"power": "on", "fault": "unreachable"}}
	if _, err := a.API.Hosts.SetBMC(t.Context(), name, deaf); err != nil {
		t.Fatal(err)
	}
	if _, err := a.API.Hosts.Clean(t.Context(), name, inventory.CleanQuick); err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(20 * time.Second)
	if did := acts(a, 6, func() bool { return time.Now().After(until) || !is(inventory.Cleaning)() }); slices.Contains(did, "wipe") {
		t.Errorf("what plays our agent was told to wipe: %v", did)
	}
	if !is(inventory.Cleaning)() {
		t.Fatalf("the host is %s, and its power was never cut", a.Hosts()[0].State)
	}

	deaf.Options = map[string]string{"power": "on"} // its controller obeys again
	if _, err := a.API.Hosts.SetBMC(t.Context(), name, deaf); err != nil {
		t.Fatal(err)
	}
	netlabUntil(a, "its power is cut and given back", func() bool {
		ops, err := a.API.Operations.List(t.Context(), client.Query{})
		return err == nil && slices.ContainsFunc(ops.Items, func(o inventory.Operation) bool {
			return o.Kind == inventory.OpClean && o.Step == inventory.StepNetboot
		})
	})
	if did := acts(a, 6, is(inventory.Available)); !slices.Contains(did, "wipe") || !is(inventory.Available)() {
		t.Errorf("after its power was cut our agent did %v, and the host is %s", did, a.Hosts()[0].State)
	}
	boots(a, 9)
}

// acts lets a machine boot again and again until something is true, for a minute at most, and returns what its agent did.
func acts(a *netlab.Appliance, seed uint64, done func() bool) (did []string) {
	a.Lab.T.Helper()
	ctx, cancel := context.WithTimeout(a.Lab.T.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	var runs sync.WaitGroup
	runs.Go(func() {
		for ctx.Err() == nil {
			a.Boot(ctx, simulate.Config{Hosts: 1, Seed: seed, Expect: simulate.StageBooted, Timeout: 15 * time.Second, Acted: func(x simulate.Act) {
				mu.Lock()
				defer mu.Unlock()
				did = append(did, x.What)
			}})
		}
	})
	for ctx.Err() == nil && !done() {
		time.Sleep(200 * time.Millisecond)
	}
	cancel()
	runs.Wait()
	return did
}

// netlabUntil waits until something is true.
func netlabUntil(a *netlab.Appliance, what string, done func() bool) {
	a.Lab.T.Helper()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		if done() {
			return
		}
	}
	a.Lab.T.Errorf("never: %s", what)
}
