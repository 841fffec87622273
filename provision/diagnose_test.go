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
	r.engine.outfit()
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
	m.dhcp(pxe.StageFirmware)
	r.clock = r.clock.Add(61 * time.Second)
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
	r.must(lookOver(r.engine))
	open := r.stalledIssues(inventory.IssueStalled)
	if len(open) != 1 || !strings.Contains(open[0].Cause, "Likely: the offer says PXEClient") || !strings.Contains(open[0].Hint, "option 43") {
		t.Errorf("%+v", open)
	}
}

func TestIPXEWithoutHTTPIsGivenALoaderOnceAndThenToldWhy(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	r.clock = r.clock.Add(time.Hour)
	ask := func() string {
		c := m.at(pxe.StageFirmware)
		c.IPXE.IsOld = true
		ctx := context.Background()
		r.engine.Offer(ctx, c, base)
		r.engine.Note(ctx, c, inventory.EventDHCPDiscover, "")
		return r.engine.Offer(ctx, c, base).File // the REQUEST after the DISCOVER
	}
	if got := ask(); got != "snponly.efi" {
		t.Fatalf("at first it is given %q", got)
	}
	r.engine.Transferring(pxe.Transfer{Source: m.address(), Proto: "tftp", Name: "snponly.efi"})
	r.engine.Transferred(pxe.Transfer{Source: m.address(), Proto: "tftp", Name: "snponly.efi", Bytes: 5, Size: 5})
	r.settle()
	r.clock = r.clock.Add(3 * time.Second)
	if got := ask(); got != "" {
		t.Errorf("what was loaded has no HTTP either, and it is given %q again", got)
	}
	r.settle()
	s, _ := r.engine.sessions.Of(m.mac())
	if !strings.Contains(s.Reason, "no HTTP either") {
		t.Errorf("the boot says %q", s.Reason)
	}
	r.clock = r.clock.Add(time.Minute)
	if got := ask(); got != "snponly.efi" {
		t.Errorf("after a restart it is given %q", got)
	}
}

func TestADiagnosisNamesTheMachineAsItsBootDid(t *testing.T) {
	r := newRack(t)
	m := r.accepted()
	r.engine.cfg.Loaders = func(name string) bool { return !strings.Contains(name, "arm64") && !strings.Contains(name, "aa64") }
	r.engine.outfit()
	h := m.host()
	r.write(func(tx inventory.Tx) error {
		h.Arch, h.Firmware = inventory.ARM64, inventory.UEFI
		return tx.UpdateHost(&h, r.clock)
	})
	r.clock = r.clock.Add(time.Hour)
	c := m.at(pxe.StageFirmware)
	c.Arch, c.ArchCode, c.Class = inventory.ARM64, pxe.Arch93(11), "PXEClient:Arch:00011:UNDI:003016"
	r.engine.Offer(context.Background(), c, base)
	r.settle()
	s, _ := r.engine.sessions.Of(m.mac())
	d, err := r.engine.Diagnose(context.Background(), h.ID, "")
	r.must(err)
	if !strings.Contains(s.Reason, "ARM UEFI, 64 bit") || len(d.Causes) == 0 || d.Causes[0].Sentence != s.Reason {
		t.Errorf("the boot says %q, its diagnosis %+v", s.Reason, d.Causes)
	}
}
