package ra

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDestination(t *testing.T) {
	machine := netip.MustParseAddr("fe80::5054:ff:feaa:1")
	solicit := []byte{133, 0, 0, 0, 0, 0, 0, 0}
	withSource := append(append([]byte(nil), solicit...), 1, 1, 0x52, 0x54, 0, 0xaa, 0, 1)
	for _, c := range []struct {
		name   string
		packet []byte
		hops   int
		source netip.Addr
		to     string // "" means no answer
	}{
		{"a machine with a link-local address is answered directly", solicit, 255, machine, "fe80::5054:ff:feaa:1"},
		{"a source link-layer option changes nothing", withSource, 255, machine, "fe80::5054:ff:feaa:1"},
		{"a machine without an address is answered through all nodes", solicit, 255, netip.IPv6Unspecified(), "ff02::1"},
		{"a machine with a global source is answered through all nodes", solicit, 255, netip.MustParseAddr("2001:db8::1"), "ff02::1"},
		{"a forwarded packet is dropped", solicit, 254, machine, ""},
		{"an advertisement is dropped", []byte{134, 0, 0, 0, 0, 0, 0, 0}, 255, machine, ""},
		{"an unknown code is dropped", []byte{133, 1, 0, 0, 0, 0, 0, 0}, 255, machine, ""},
		{"a short packet is dropped", solicit[:7], 255, machine, ""},
		{"an option of length 0 is dropped", append(append([]byte(nil), solicit...), 1, 0, 0, 0, 0, 0, 0, 0), 255, machine, ""},
		{"an option without a length is dropped", append(append([]byte(nil), solicit...), 1), 255, machine, ""},
		{"an option over the edge is dropped", append(append([]byte(nil), solicit...), 1, 2, 0, 0, 0, 0, 0, 0), 255, machine, ""},
		{"a link-layer address from nobody is dropped", withSource, 255, netip.IPv6Unspecified(), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			to, ok := destination(c.packet, c.hops, c.source)
			got := ""
			if ok {
				got = to.String()
			}
			if got != c.to {
				t.Errorf("answered to %q, want %q", got, c.to)
			}
		})
	}
}

func TestAdvertisementIsTheSmallest(t *testing.T) {
	want := []byte{134, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if diff := cmp.Diff(want, advertisement(nil, nil)); diff != "" {
		t.Error(diff)
	}
}

func FuzzDestination(f *testing.F) {
	f.Add([]byte{133, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 6}, true)
	f.Fuzz(func(t *testing.T, packet []byte, isKnown bool) {
		source := netip.IPv6Unspecified()
		if isKnown {
			source = netip.MustParseAddr("fe80::1")
		}
		if to, ok := destination(packet, hopLimit, source); ok && !to.IsLinkLocalUnicast() && !to.IsLinkLocalMulticast() {
			t.Fatalf("an answer would leave the link: %s", to)
		}
	})
}
