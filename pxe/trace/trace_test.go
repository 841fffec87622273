package trace

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// captured reads a capture of real firmware from pxe/testdata/captures.
func captured(t testing.TB, name string) []Frame {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "testdata", "captures", name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	frames, err := ParsePCAP(b)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

// What a capture says, line by line, is what its README says of it.
func TestCapturesReadAsWhatTheyShow(t *testing.T) {
	for name, want := range map[string][]string{
		"ovmf-pxe-no-answer":       {"DISCOVER of firmware, 28 s after its first", "DHCPv6 SOLICIT"},
		"ovmf-pxe-class60-only":    {"class PXEClient", "port 4011", "ICMP from 10.98.0.1: 10.98.0.1:4011 cannot be reached (code 3)"},
		"ovmf-proxy-4011":          {"OFFER from 10.98.0.2", "TFTP read request for snponly.efi", "ACK from 10.98.0.1, boot file snponly.efi, class PXEClient, port 4011"},
		"ovmf-http":                {"HEAD /", "GET /", "HTTP status 200", "class HTTPClient"},
		"ipxe-rom-503":             {"HTTP status 503", "HTTP status 200"},
		"ovmf-pxe-no-pxedhcp":      {"router solicitation", "TFTP error 8", "tsize 0, blksize 1468, windowsize 4"},
		"ovmf-pxe-ra":              {"router advertisement from fe80"},
		"ipxe-rom-proxy-no-siaddr": {"DISCOVER of iPXE", "port 4011"},
	} {
		t.Run(name, func(t *testing.T) {
			var all strings.Builder
			for _, f := range captured(t, name) {
				fmt.Fprintln(&all, Decode(f))
			}
			for _, line := range want {
				if !strings.Contains(all.String(), line) {
					t.Errorf("no %q in\n%s", line, &all)
				}
			}
		})
	}
}

func TestCaptureFilesReadBackAsWritten(t *testing.T) {
	frames := captured(t, "ovmf-proxy-4011")
	was, _ := os.ReadFile(filepath.Join("..", "testdata", "captures", "ovmf-proxy-4011.pcap"))
	if got := AppendPCAP(nil, frames); !bytes.Equal(got, was) {
		t.Errorf("%d bytes written, %d read", len(got), len(was))
	}
}

// Everything of a boot is kept with its machine: DHCP by chaddr, the rest by the address that DHCP gave.
func TestRingKeepsABootTogether(t *testing.T) {
	r := NewRing(Config{IsOurs: func(a netip.Addr) bool { return a == netip.MustParseAddr("10.98.0.1") }})
	frames := captured(t, "ovmf-proxy-4011")
	for _, f := range frames {
		r.Add(f)
	}
	kinds := map[Kind]int{}
	for _, p := range r.Packets("52:54:00:aa:00:01", time.Time{}) {
		kinds[p.Kind]++
	}
	for _, k := range []Kind{DHCPv4, TFTP, TCP} {
		if kinds[k] < 4 {
			t.Errorf("%d packets of %s", kinds[k], k)
		}
	}
}

// A record holds no contents of files and configurations, and no keys.
func TestRecordHoldsNoSecrets(t *testing.T) {
	frame := func(payload string) Frame {
		b := make([]byte, 14+20+20, 200)
		copy(b, "\x52\x54\x00\x00\x00\x02\x52\x54\x00\x00\x00\x01\x08\x00\x45")
		b[17], b[23] = byte(40+len(payload)), 6
		copy(b[26:], "\x0a\x00\x00\x01\x0a\x00\x00\x02")
		b[34+12], b[34+13] = 0x50, 16
		b = append(b, payload...)
		return Frame{Bytes: b, Len: len(b)}
	}
	for name, x := range map[string]struct{ payload, keeps string }{
		"a configuration": {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npassword!", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"},
		"a report's key":  {"POST /boot/0123/report/s3cret?step=up HTTP/1.1\r\nAuthorization: s3cret\r\n\r\ns3cret", "POST /boot/0123/report/xxxxxx?step=up HTTP/1.1\r\n"},
		"what follows":    {"s3cret and password!", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRing(Config{IsOurs: func(a netip.Addr) bool { return a == netip.MustParseAddr("10.0.0.1") }})
			r.Add(frame(x.payload))
			kept := r.Frames("52:54:00:00:00:02")
			if len(kept) != 1 || string(kept[0].Bytes[54:]) != x.keeps {
				t.Fatalf("kept %+v", kept)
			}
			if s := Decode(kept[0]).String(); strings.Contains(s, "s3cret") {
				t.Error(s)
			}
		})
	}
}

// stranger is a DISCOVER of the n-th machine.
func stranger(t testing.TB, n int) Frame {
	all := captured(t, "ovmf-pxe-no-answer")
	f := all[slices.IndexFunc(all, func(f Frame) bool { return Decode(f).Kind == DHCPv4 })]
	f.Bytes = slices.Clone(f.Bytes)
	f.Bytes[14+20+8+28+3], f.Bytes[14+20+8+28+4], f.Bytes[14+20+8+28+5] = byte(n>>16), byte(n>>8), byte(n)
	return f
}

func TestRingIsBoundedAndFloodsCostNoKnownMachineItsRecord(t *testing.T) {
	const host = "52:54:00:00:00:07"
	r := NewRing(Config{MaxBytes: 1 << 20, PerMachine: 10, Knows: func(m inventory.MAC) bool { return m == host }})
	one := stranger(t, 7)
	for range 25 {
		r.Add(one)
	}
	if n := len(r.Frames(host)); n != 10 {
		t.Errorf("%d frames of one machine, at most 10 wanted", n)
	}
	flood := stranger(t, 0)
	for n := range 5000 {
		flood.Bytes[14+20+8+28+4], flood.Bytes[14+20+8+28+5], flood.Bytes[14+20+8+28+3] = byte(n>>8), byte(n), 9
		r.Add(flood)
	}
	if n := r.Bytes(); n > 1<<20+1<<19 {
		t.Errorf("%d bytes", n)
	}
	if n := len(r.Frames(host)); n != 10 {
		t.Errorf("the flood left %d frames of the host", n)
	}
	if n := len(r.Frames("52:54:00:09:13:87")); n != 1 { // 4999
		t.Errorf("%d frames of the last stranger", n)
	}
	if n := len(r.Frames("52:54:00:09:00:01")); n != 0 {
		t.Errorf("%d frames of a stranger of long ago", n)
	}
}

func TestAStrangerThatBecomesAHostKeepsItsRecord(t *testing.T) {
	isHost := false
	r := NewRing(Config{Knows: func(inventory.MAC) bool { return isHost }})
	r.Add(stranger(t, 1))
	isHost = true
	r.Add(stranger(t, 1))
	if n := len(r.Frames("52:54:00:00:00:01")); n != 2 || len(r.strangers.tracks) != 0 {
		t.Errorf("%d frames", n)
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"ovmf-proxy-4011", "ovmf-http", "ovmf-pxe-no-answer", "ovmf-pxe-class60-only", "ovmf-pxe-ra"} {
		for _, x := range captured(f, name) {
			f.Add(x.Bytes)
		}
	}
	r := NewRing(Config{MaxBytes: 1 << 16, IsOurs: func(a netip.Addr) bool { return a.Is4() }})
	f.Fuzz(func(t *testing.T, b []byte) {
		p := Decode(Frame{Bytes: b, Len: len(b)})
		if s := p.String(); len(s) > 2000 || strings.ContainsAny(s, "\n\x00\x1b") {
			t.Errorf("%q", s)
		}
		r.Add(Frame{Bytes: b, Len: len(b)})
	})
}

func FuzzParsePCAP(f *testing.F) {
	f.Add(AppendPCAP(nil, captured(f, "ovmf-http")))
	f.Fuzz(func(_ *testing.T, b []byte) {
		frames, _ := ParsePCAP(b)
		_ = AppendPCAP(nil, frames)
	})
}

// What is kept on disk is what is kept in memory: cut and blackened, and not once more when it comes back.
func TestWhatIsKeptElsewhereComesBack(t *testing.T) {
	var kept []Frame
	isKnown := func(inventory.MAC) bool { return true }
	r := NewRing(Config{Knows: isKnown, Keep: func(f Frame, known bool) {
		if !known {
			t.Error("a known machine's frame is kept as a stranger's")
		}
		kept = append(kept, f)
	}})
	b, err := os.ReadFile(filepath.Join("..", "testdata", "captures", "ipxe-rom-ra.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	frames, err := ParsePCAP(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		r.Add(f)
	}
	const mac = "52:54:00:aa:00:01"
	n := len(kept)
	again := NewRing(Config{Knows: isKnown, Keep: func(f Frame, _ bool) { kept = append(kept, f) }})
	for _, f := range kept[:n:n] {
		again.Restore(f)
	}
	if want := len(r.Frames(mac)); want == 0 || len(again.Frames(mac)) != want || len(kept) != n {
		t.Errorf("%d of %d frames came back; %d are kept, and were %d", len(again.Frames(mac)), want, len(kept), n)
	}
}

func TestTwoMachinesWithOneTransactionID(t *testing.T) {
	r := NewRing(Config{})
	b, err := os.ReadFile(filepath.Join("..", "testdata", "captures", "ovmf-pxe-no-answer.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	frames, err := ParsePCAP(b)
	if err != nil {
		t.Fatal(err)
	}
	own, twin := []byte{0x52, 0x54, 0, 0xaa, 0, 1}, []byte{0x52, 0x54, 0, 0xaa, 0, 2}
	for _, f := range frames {
		r.Add(f)
	}
	if notes := r.Notes("52:54:00:aa:00:01"); len(notes) != 0 {
		t.Fatalf("alone: %+v", notes)
	}
	for _, f := range frames {
		r.Add(Frame{At: f.At.Add(time.Second), Bytes: bytes.ReplaceAll(f.Bytes, own, twin), Len: f.Len})
	}
	for mac, other := range map[inventory.MAC]string{"52:54:00:aa:00:01": "52:54:00:aa:00:02", "52:54:00:aa:00:02": "52:54:00:aa:00:01"} {
		if notes := r.Notes(mac); len(notes) == 0 || notes[0].Reason != SameXid+other {
			t.Errorf("%s: %+v", mac, notes)
		}
	}
}
