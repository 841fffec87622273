package provision

import (
	"bytes"
	"context"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
	"slipway.dev/slipway/pxe/trace"
)

// heard feeds a record with a capture of real firmware as if the machine had just sent it, up to seconds after its start.
func (m *machine) heard(r *trace.Ring, name string, seconds float64) {
	m.r.t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "pxe", "testdata", "captures", name+".pcap"))
	m.r.must(err)
	frames, err := trace.ParsePCAP(b)
	m.r.must(err)
	own, err := hex.DecodeString(strings.ReplaceAll(string(m.mac()), ":", ""))
	m.r.must(err)
	was := []byte{0x52, 0x54, 0, 0xaa, 0, 1}
	for _, f := range frames {
		after := f.At.Sub(frames[0].At)
		if after.Seconds() > seconds {
			return
		}
		f.At, f.Bytes = m.r.clock.Add(after), bytes.ReplaceAll(f.Bytes, was, own)
		r.Add(f)
	}
}

func newRecord(r *rack) *trace.Ring {
	server := netip.MustParseAddr("10.98.0.1")
	ring := trace.NewRing(trace.Config{IsOurs: func(a netip.Addr) bool { return a == server }})
	r.engine.cfg.Wire, r.engine.cfg.Ours, r.engine.cfg.BootPort = ring, func() []netip.Addr { return []netip.Addr{server} }, 8000
	return ring
}

func TestADiagnosisNamesTheCauseThatWasOnTheWire(t *testing.T) {
	r := newRack(t)
	ring := newRecord(r)
	m := r.machine(3)
	m.boot()
	m.accept()
	r.clock = r.clock.Add(time.Hour)
	m.heard(ring, "ovmf-pxe-class60-only", 60)
	r.clock = r.clock.Add(time.Minute)
	d, err := r.engine.Diagnose(context.Background(), m.host().ID, "")
	r.must(err)
	if len(d.Causes) == 0 || d.Causes[0].Code != "offer-without-control" || len(d.Causes[0].Evidence) == 0 || d.MAC != m.mac() || d.Host != m.host().Name {
		t.Errorf("%+v", d)
	}
	ours := 0
	for _, p := range d.Packets {
		if p.IsOurs {
			ours++
		}
	}
	if ours < 2 || ours == len(d.Packets) {
		t.Errorf("%d of %d packets are ours", ours, len(d.Packets))
	}
	frames, err := r.engine.Record(context.Background(), m.host().ID, "")
	r.must(err)
	if len(frames) != len(d.Packets) {
		t.Errorf("%d frames, %d packets", len(frames), len(d.Packets))
	}
}

func TestAStrangerIsDiagnosedByItsMAC(t *testing.T) {
	r := newRack(t)
	ring := newRecord(r)
	m := r.machine(4)
	m.heard(ring, "ovmf-pxe-no-answer", 20)
	ring.Tell(m.mac(), trace.Note{At: r.clock.Add(5 * time.Second), Reason: string(lease.NoSubnet)})
	r.clock = r.clock.Add(25 * time.Second)
	d, err := r.engine.Diagnose(context.Background(), "", m.mac())
	r.must(err)
	if len(d.Causes) == 0 || d.Causes[0].Code != "no-subnet" || d.Host != "" {
		t.Errorf("%+v", d)
	}
}

// The issue of a boot that stands still says what most likely stopped it.
func TestTheIssueOfAStalledBootNamesItsCause(t *testing.T) {
	r := newRack(t)
	ring := newRecord(r)
	m := r.machine(5)
	m.boot()
	m.accept()
	r.clock = r.clock.Add(time.Hour)
	m.heard(ring, "ovmf-pxe-class60-only", 60)
	m.dhcp(pxe.StageFirmware)
	r.clock = r.clock.Add(61 * time.Second)
	r.must(watch(r.engine))
	open := r.stalledIssues(inventory.IssueStalled)
	if len(open) != 1 || !strings.Contains(open[0].Cause, "Likely: the offer says PXEClient") || !strings.Contains(open[0].Hint, "option 43") {
		t.Errorf("%+v", open)
	}
}
