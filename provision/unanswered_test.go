package provision

import (
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
)

// asksInVain lets a machine ask as EDK2 does, twice, for a reason.
func (m *machine) asksInVain(reason lease.Reason) {
	for range 2 {
		for _, wait := range []time.Duration{0, 4, 8, 16} {
			m.r.clock = m.r.clock.Add(wait * time.Second)
			m.vain(reason)
			m.r.look()
		}
		m.r.clock = m.r.clock.Add(35 * time.Second)
		m.r.look()
		m.r.clock = m.r.clock.Add(35 * time.Second)
	}
}

// known is a host that was accepted and was silent for an hour.
func (r *rack) known(n int) *machine {
	r.t.Helper()
	m := r.machine(n)
	m.boot()
	m.accept()
	r.clock = r.clock.Add(time.Hour)
	r.must(sweep(r.engine))
	r.look()
	return m
}

func TestAHostThatAsksInVainHasItInItsTimeline(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	m := r.known(1)
	m.asksInVain(lease.Exhausted)
	told := m.events(inventory.EventDHCPUnanswered)
	if len(told) != 2 || !strings.Contains(told[0], "eth1: "+string(lease.Exhausted)) {
		t.Errorf("the timeline has %q, want one line of each attempt", told)
	}
	s, ok := r.engine.sessions.Of(m.mac())
	if !ok || s.Step != inventory.EventDHCPDiscover || s.HostID != m.host().ID {
		t.Errorf("boot %+v", s)
	}
	if len(r.stalledIssues(inventory.IssueStalled)) != 1 {
		t.Error("no issue")
	}
}

// A machine whose offer is not to be had any more, because somebody reserved the address, asks on in the same boot.
func TestAHostThatAsksInVainAfterAnOfferHasItInItsTimeline(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	m := r.known(1)
	m.seek()
	m.hear(inventory.EventDHCPOffer)
	for range 4 { // by another way at the same time
		m.vain(lease.NoSubnet)
		r.look()
	}
	if told := m.events(inventory.EventDHCPUnanswered); len(told) != 0 {
		t.Errorf("it was offered an address, and the timeline has %q", told)
	}
	m.asksInVain(lease.Exhausted)
	if told := m.events(inventory.EventDHCPUnanswered); len(told) != 2 || !strings.Contains(told[0], string(lease.Exhausted)) {
		t.Errorf("the timeline has %q, want one line of each attempt", told)
	}
	if open := r.stalledIssues(inventory.IssueStalled); len(open) != 1 {
		t.Errorf("issues %+v", open)
	}
}

// Where a subnet is left to another server, only a host that is to boot from us is owed an answer.
func TestSilenceThatIsMeantIsNoFault(t *testing.T) {
	for _, reason := range []lease.Reason{lease.IsOff, lease.NoReservation} {
		r := newRack(t)
		m := r.known(1)
		m.asksInVain(reason)
		stranger := r.machine(2)
		stranger.asksInVain(reason)
		if told := m.events(inventory.EventDHCPUnanswered); len(told) != 0 || len(r.stalledIssues(inventory.IssueStalled)) != 0 {
			t.Errorf("%s: %q, %+v", reason, told, r.stalledIssues(inventory.IssueStalled))
		}
		r.image("live", false, "mac", 0)
		m.asksInVain(reason)
		if open := r.stalledIssues(inventory.IssueStalled); len(open) != 1 {
			t.Errorf("%s, and it is to boot from us: %+v", reason, open)
		}
	}
}

func TestOperatingSystemsThatAskInVainBeginNoBoot(t *testing.T) {
	r := newRack(t)
	m := r.known(1)
	c := m.at(pxe.StageOS)
	for range 30 {
		r.clock = r.clock.Add(5 * time.Second)
		r.engine.Unanswered(c, "eth1", string(lease.NoSubnet), false)
		c.Stage = "" // a packet that was dropped unseen
		r.engine.Unanswered(c, "eth1", "stale", false)
		c.Stage = pxe.StageOS
		r.look()
	}
	if told := m.events(inventory.EventDHCPUnanswered); len(told) != 0 || len(r.stalledIssues(inventory.IssueStalled)) != 0 {
		t.Errorf("%q, %+v", told, r.stalledIssues(inventory.IssueStalled))
	}
}

func TestStrangersThatAskAgainAndAgainAreOneIssue(t *testing.T) {
	r := newRack(t)
	stalled := func() []inventory.Issue { return r.stalledIssues(inventory.IssueStalled) }
	for n := range 200 { // invented MACs ask once
		r.machine(n + 20).vain(lease.NoSubnet)
	}
	r.look()
	r.machine(1).asksInVain(lease.NoSubnet)
	open := stalled()
	if len(open) != 1 || len(open[0].HostIDs) != 0 || !strings.Contains(open[0].Cause, "52:54:00:aa:00:01") || !strings.Contains(open[0].Cause, "eth1") ||
		!strings.Contains(open[0].Cause, string(lease.NoSubnet)) || !strings.Contains(open[0].Hint, "host explain 52:54:00:aa:00:01") {
		t.Fatalf("%+v", open)
	}
	r.machine(2).asksInVain(lease.NoSubnet)
	if open = stalled(); len(open) != 1 || !strings.Contains(open[0].Cause, "2 machines") {
		t.Errorf("%+v", open)
	}
	r.machine(3).asksInVain(lease.PortFull)
	if open = stalled(); len(open) != 2 {
		t.Errorf("another reason is another issue: %+v", open)
	}
	r.machine(3).boot()
	if r.look(); len(stalled()) != 1 {
		t.Errorf("after it was answered: %+v", stalled())
	}
	r.clock = r.clock.Add(time.Hour)
	r.must(sweep(r.engine))
	if r.look(); len(stalled()) != 0 {
		t.Errorf("after they went: %+v", stalled())
	}
}
