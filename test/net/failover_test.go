package net_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
)

// TestPostgreSQLFailsOverInSeconds kills the leader ten times, and measures how long machines wait for an address, and people for an
// answer. The leader answers DHCP, too. So each time both have to move.
func TestPostgreSQLFailsOverInSeconds(t *testing.T) {
	needsLong(t, "three minutes")
	both := newInstances(t, "a", "b")
	leads, other := both[0], both[1]
	leads.Start()
	other.follow(leads)
	if _, err := leads.API.AcceptRules.Create(t.Context(), inventory.AcceptRule{Name: "all", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
	// An accepted host without a profile is told to wait. That is as far as its boot goes.
	boots := simulate.Config{Hosts: 3, Seed: 1, Expect: simulate.StageWaiting}
	var dhcp, engine time.Duration
	for round := range 10 {
		leads.Process.Kill(syscall.SIGKILL)
		killed := time.Now()
		answered := make(chan time.Duration, 1)
		go func() {
			// Every instance answers reads by itself. A change needs the engine.
			for time.Since(killed) < time.Minute {
				rule := inventory.AcceptRule{Name: fmt.Sprint("round-", round), Selector: "mac"}
				if _, err := other.API.AcceptRules.Create(t.Context(), rule); err == nil || inventory.IsKind(err, inventory.Conflict) {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			answered <- time.Since(killed)
		}()
		boots.Seed++
		r := other.Boot(t.Context(), boots)
		other.Good(r)
		offer := time.Duration(0)
		for _, s := range r.Steps {
			if strings.HasSuffix(s.Step, "offer") {
				offer = max(offer, s.Max)
			}
		}
		took := <-answered
		t.Logf("round %d: an address was offered after %s at most, the engine answered after %s", round+1,
			offer.Round(10*time.Millisecond), took.Round(10*time.Millisecond))
		dhcp, engine = max(dhcp, offer), max(engine, took)
		leads, other = other, leads
		other.Launch()
		other.Process.WaitFor("this one serves on its behalf", 1)
	}
	t.Logf("worst of ten: DHCP %s, engine %s", dhcp.Round(10*time.Millisecond), engine.Round(10*time.Millisecond))
	if dhcp > 10*time.Second || engine > 30*time.Second { // a busy machine may double what docs/benchmarks.md promises for DHCP
		t.Error("that is too long")
	}
}

// TestPostgreSQLAnInstanceWithoutALinkLeavesItsNetworks takes the cable to the machines out of the leader. It gives signs of life as before,
// because it reaches the database another way. The other server answers the machines, and asks the leader what they boot.
func TestPostgreSQLAnInstanceWithoutALinkLeavesItsNetworks(t *testing.T) {
	both := newInstances(t, "a", "b")
	leads, other := both[0], both[1]
	l := leads.Lab
	// The link between the servers has a cable of its own.
	l.Wire(leads.Net.Server, "x0", other.Net.Server, "x0")
	l.In(leads.Net.Server, "ip", "addr", "add", "10.99.0.1/24", "dev", "x0")
	l.In(other.Net.Server, "ip", "addr", "add", "10.99.0.2/24", "dev", "x0")
	leads.Start()
	other.follow(leads)
	if _, err := leads.API.AcceptRules.Create(t.Context(), inventory.AcceptRule{Name: "all", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
	boots := simulate.Config{Hosts: 3, Seed: 1, Expect: simulate.StageWaiting}
	leads.Good(leads.Boot(t.Context(), boots))
	l.In(l.Prefix+"hub", "ip", "link", "set", "server0", "down")
	boots.Seed = 2
	began := time.Now()
	r := other.Boot(t.Context(), boots)
	other.Good(r)
	t.Logf("machines that boot while the leader has no link: %s", time.Since(began).Round(10*time.Millisecond))
	for _, s := range r.Steps {
		if strings.HasSuffix(s.Step, "offer") && s.Max > 10*time.Second { // a busy machine may double what it takes
			t.Errorf("%s took %s", s.Step, s.Max)
		}
	}
	other.awaits(t, 5*time.Second, "a alive leads, b alive")
	for name, a := range map[string]*appliance{"has no link": leads, "took duty": other} {
		if said := a.Process.Text(); !strings.Contains(said, name) {
			t.Errorf("no server says that it %s:\n%s", name, said)
		}
	}
	// With its link back, the leader leaves the network where it is, and takes it when the other one is gone.
	l.In(l.Prefix+"hub", "ip", "link", "set", "server0", "up")
	leads.Process.WaitFor("interface has a link again", 1)
	other.Process.Kill(syscall.SIGKILL)
	boots.Seed = 3
	leads.Good(leads.Boot(t.Context(), boots))
}
