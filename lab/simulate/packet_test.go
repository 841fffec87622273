package simulate

import (
	"encoding/hex"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// capture reads a whole Ethernet frame of real firmware: a QEMU guest that booted from dnsmasq at 10.98.0.1.
func capture(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".hex")
	if err != nil {
		t.Fatal(err)
	}
	frame, err := hex.DecodeString(strings.Join(strings.Fields(string(b)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// capturedGuest is the machine of the captures.
var capturedGuest = Identity{
	MAC:  [6]byte{0x52, 0x54, 0, 0xaa, 0, 1},
	UUID: [16]byte{0x4c, 0x4c, 0x45, 0x44, 0x00, 0x42, 0x35, 0x10, 0x80, 0x54, 0xb7, 0xc0, 0x4f, 0x33, 0x32, 0x32},
}

func TestPacketsAreThoseOfRealFirmware(t *testing.T) {
	server, address := netip.MustParseAddr("10.98.0.1"), netip.MustParseAddr("10.98.0.85")
	for _, c := range []struct {
		capture string
		dialect dialect
		kind    byte
	}{
		{"ovmf-pxe-discover", edk2(false), typeDiscover},
		{"ovmf-pxe-request", edk2(false), typeRequest},
		{"ovmf-http-discover", edk2(true), typeDiscover},
		{"ovmf-http-request", edk2(true), typeRequest},
		{"ipxe-efi-discover", ipxe(true), typeDiscover},
		{"ipxe-efi-request", ipxe(true), typeRequest},
		{"ipxe-bios-discover", ipxe(false), typeDiscover},
		{"ipxe-bios-request", ipxe(false), typeRequest},
	} {
		t.Run(c.capture, func(t *testing.T) {
			real, err := parseFrame(capture(t, c.capture))
			if err != nil {
				t.Fatal(err)
			}
			m, err := parseMessage(real.payload)
			if err != nil {
				t.Fatal(err)
			}
			a := ask{kind: c.kind, xid: m.xid, secs: c.dialect.secs(0, c.kind, time.Now())}
			if c.kind == typeRequest {
				a.server, a.address = server, address
			}
			got := c.dialect.packet(capturedGuest, a).marshal()
			if diff := cmp.Diff(hex.Dump(real.payload), hex.Dump(got)); diff != "" {
				t.Errorf("the packet differs from the captured one (-captured +ours):\n%s", diff)
			}
		})
	}
}

func TestFramesAreThoseOfRealFirmware(t *testing.T) {
	real := capture(t, "ovmf-pxe-discover")
	d, err := parseFrame(real)
	if err != nil {
		t.Fatal(err)
	}
	got := d.frame(0xbd2a) // the identification that EDK2 drew
	if diff := cmp.Diff(hex.Dump(real), hex.Dump(got)); diff != "" {
		t.Errorf("the frame differs from the captured one (-captured +ours):\n%s", diff)
	}
}

func TestSolicitationIsOneThatRoutersAnswer(t *testing.T) {
	b := solicitation(capturedGuest.MAC)
	ip := b[etherHeader:]
	if got := sum(ip[ipv6Header:], uint32(sum(ip[8:ipv6Header], protocolICMPv6+solicitationLen))); got != 0xffff {
		t.Errorf("checksum leaves %#x, want 0xffff", got)
	}
	if isAdvert(b) {
		t.Error("a solicitation is taken for an advertisement")
	}
}

func TestOptionsThatOverflowIntoFileAreRead(t *testing.T) {
	m := message{op: 2, xid: 7, options: []option{{optType, []byte{typeOffer}}, {optOverload, []byte{1}}}}
	b := m.marshal()
	copy(b[108:], append([]byte{optBootFile, 4}, "boot\xff"...))
	got, err := parseMessage(b)
	if err != nil {
		t.Fatal(err)
	}
	if got.bootFile() != "boot" || got.file != "" {
		t.Errorf("boot file %q, header field %q; want the option in the header field", got.bootFile(), got.file)
	}
}

func TestLongOptionsAreJoined(t *testing.T) {
	m := message{op: 2, options: []option{{optType, []byte{typeOffer}}, {optBootFile, []byte("http://10.0.0.1/")}, {optBootFile, []byte("script")}}}
	got, err := parseMessage(m.marshal())
	if err != nil {
		t.Fatal(err)
	}
	if got.bootFile() != "http://10.0.0.1/script" {
		t.Errorf("boot file %q", got.bootFile())
	}
}

func TestIdentitiesAreTheSameEveryTimeAndDifferFromEachOther(t *testing.T) {
	seen := map[string]int{}
	for i := range 5000 {
		a, b := NewIdentity(3, i), NewIdentity(3, i)
		if a != b {
			t.Fatalf("machine %d differs from itself: %+v, %+v", i, a, b)
		}
		for _, k := range []string{macText(a.MAC, ":"), uuidText(a.UUID)} {
			if old, ok := seen[k]; ok {
				t.Fatalf("machines %d and %d share %s", old, i, k)
			}
			seen[k] = i
		}
	}
	if NewIdentity(4, 0).MAC == NewIdentity(3, 0).MAC {
		t.Error("two seeds give the same machine")
	}
}

func FuzzParseMessage(f *testing.F) {
	for _, name := range []string{"ovmf-pxe-discover", "ipxe-efi-request"} {
		b, err := os.ReadFile("testdata/" + name + ".hex")
		if err != nil {
			f.Fatal(err)
		}
		frame, _ := hex.DecodeString(strings.Join(strings.Fields(string(b)), ""))
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := parseFrame(b); err == nil {
			b = d.payload
		}
		m, err := parseMessage(b)
		if err != nil {
			return
		}
		_, _, _ = m.bootFile(), m.ipxeOption(176), m.address(optServer)
	})
}
