package provision

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease6"
	"slipway.dev/slipway/pxe/trace"
)

// solicits replays what EDK2 said over IPv6 in a capture, in which nobody answers, as if the machine said it now: the record
// hears it, and the DHCPv6 door says for each SOLICIT why it leads to nothing.
func (m *machine) solicits(ring *trace.Ring, why lease6.Reason, isMeant bool) {
	m.r.t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "pxe", "testdata", "captures", "ovmf-pxe-no-answer.pcap"))
	m.r.must(err)
	frames, err := trace.ParsePCAP(b)
	m.r.must(err)
	own, err := hex.DecodeString(strings.ReplaceAll(string(m.mac()), ":", ""))
	m.r.must(err)
	var last time.Time
	n := 0
	for _, f := range frames {
		p := trace.Decode(f)
		if p.Six == nil || p.Six.FromServer() {
			continue
		}
		if !last.IsZero() {
			m.r.clock = m.r.clock.Add(f.At.Sub(last))
		}
		last = f.At
		f.At, f.Bytes = m.r.clock, bytes.ReplaceAll(f.Bytes, []byte{0x52, 0x54, 0, 0xaa, 0, 1}, own)
		ring.Add(f)
		c := pxe.Client{Stage: pxe.StageFirmware, MAC: m.mac(), Arch: inventory.X8664, Firmware: inventory.UEFI, ArchCode: pxe.Arch93(7), Subnet: "six"}
		ring.Tell(c.MAC, trace.Note{At: m.r.clock, Subnet: c.Subnet, Reason: string(why)})
		m.r.engine.Unanswered(c, "eth1", string(why), isMeant)
		m.r.look()
		n++
	}
	if n < 4 {
		m.r.t.Fatalf("the capture has %d SOLICITs", n)
	}
}

func TestAHostThatSolicitsInVainStandsStill(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	ring := newRecord(r)
	m := r.known(5)
	m.solicits(ring, lease6.Exhausted, false)
	r.clock = r.clock.Add(time.Minute)
	r.look()
	if told := m.events(inventory.EventDHCPUnanswered); len(told) != 1 || !strings.Contains(told[0], "eth1: "+string(lease6.Exhausted)) {
		t.Errorf("the timeline has %q", told)
	}
	open := r.stalledIssues(inventory.IssueStalled)
	if len(open) != 1 || !strings.Contains(open[0].Cause, "is offered an address. Likely: its subnet has no free address left") || !strings.Contains(open[0].Hint, "slipway range add") {
		t.Fatalf("%+v", open)
	}
	m.boot()
	if r.look(); len(r.stalledIssues(inventory.IssueStalled)) != 0 {
		t.Errorf("after it booted: %+v", r.stalledIssues(inventory.IssueStalled))
	}
}

func TestAHostThatIsOfferedAnIPv6AddressAndDoesNotGoOnStandsStill(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	m := r.known(5)
	for _, wait := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second} { // what the DHCPv6 door tells of SOLICITs that it answers
		r.clock = r.clock.Add(wait)
		m.seek()
		m.hear(inventory.EventDHCPOffer)
		r.look()
	}
	r.clock = r.clock.Add(61 * time.Second)
	r.look()
	if open := r.stalledIssues(inventory.IssueStalled); len(open) != 1 || !strings.Contains(open[0].Cause, "takes the address") {
		t.Errorf("%+v", open)
	}
}

// Firmware that got nowhere over IPv4 asks over IPv6, which is not served there: the issue stays about where it got to.
func TestAQuestionOverIPv6AfterABootIsNotWhereItStandsStill(t *testing.T) {
	r := newRack(t)
	r.image("live", false, "mac", 0)
	ring := newRecord(r)
	m := r.known(5)
	m.refuse()
	r.clock = r.clock.Add(5 * time.Second)
	m.solicits(ring, lease6.NoSubnet, true)
	r.clock = r.clock.Add(time.Minute)
	r.look()
	if open := r.stalledIssues(inventory.IssueStalled); len(open) != 1 || !strings.Contains(open[0].Cause, "after loader.sent") {
		t.Errorf("%+v", open)
	}
	alone := r.known(6) // a machine that asks over IPv6 only is owed an answer, as it is to boot from here
	alone.solicits(ring, lease6.NoSubnet, true)
	r.clock = r.clock.Add(time.Minute)
	r.look()
	if open := r.stalledIssues(inventory.IssueStalled); len(open) != 2 {
		t.Errorf("%+v", open)
	}
}
