package trace

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

// six is a frame with a DHCPv6 message between two cards.
func six(to, from string, src, dst string, message []byte) Frame {
	b := append([]byte(to), from...)
	b = append(b, 0x86, 0xdd, 0x60, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(message)))
	b = append(b, 17, 64)
	b = append(append(b, netip.MustParseAddr(src).AsSlice()...), netip.MustParseAddr(dst).AsSlice()...)
	b = append(b, 2, 0x23, 2, 0x23, 0, 0, 0, 0) // 547 both
	b = append(b, message...)
	return Frame{Bytes: b, Len: len(b)}
}

func option(code uint16, data string) []byte {
	b := binary.BigEndian.AppendUint16(nil, code)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(data))), data...)
}

func relayed(kind byte, link, peer string, more, inner []byte) []byte {
	b := append([]byte{kind, 0}, netip.MustParseAddr(link).AsSlice()...)
	b = append(append(b, netip.MustParseAddr(peer).AsSlice()...), more...)
	return append(b, option(9, string(inner))...)
}

// What is said of a machine behind relays is kept with the machine, not with the relay; an answer with who asked.
func TestDHCPv6IsKeptWithTheMachine(t *testing.T) {
	const (
		ours, relay, machine = "\x52\x54\x00\x00\x00\x01", "\x52\x54\x00\x00\x00\x02", "\x52\x54\x00\x00\x00\x07"
		group                = "\x33\x33\x00\x01\x00\x02"
		host                 = inventory.MAC("52:54:00:00:00:07")
		peer                 = "fe80::5054:ff:fe00:7"
	)
	solicit := append([]byte{1, 0, 0, 9}, option(61, "\x00\x07")...)
	advertise := append([]byte{2, 0, 0, 9}, option(59, "tftp://[fd00::1]/snponly.efi")...)
	seen := option(79, "\x00\x01"+machine)
	for _, c := range []struct {
		name  string
		f     Frame
		of    inventory.MAC
		line  string
		boots bool
	}{
		{"a machine asks", six(group, machine, peer, "ff02::1:2", solicit), host, "DHCPv6 SOLICIT from " + peer, true},
		{"a server answers", six(machine, ours, "fe80::1", peer, advertise), host, "boot file tftp://[fd00::1]/snponly.efi", false},
		{"through a relay", six(ours, relay, "fd00::2", "fd00::1", relayed(12, "fd02::1", peer, nil, solicit)), host, "SOLICIT from fd00::2, through relay fd02::1", true},
		{"through two", six(ours, relay, "fd00::2", "fd00::1", relayed(12, "::", "fe80::2", nil, relayed(12, "fd02::1", peer, nil, solicit))), host, "through relay fd02::1", true},
		{"by what the relay saw", six(ours, relay, "fd00::2", "fd00::1", relayed(12, "fd02::1", "fe80::abcd", seen, solicit)), host, "SOLICIT", true},
		{"back through a relay", six(relay, ours, "fd00::1", "fd00::2", relayed(13, "fd02::1", peer, nil, advertise)), host, "ADVERTISE from fd00::1, boot file", false},
		{"a relay that tells nothing", six(ours, relay, "fd00::2", "fd00::1", relayed(12, "fd02::1", "fe80::abcd", nil, solicit)), "", "SOLICIT", true},
		{"an envelope without a message", six(ours, relay, "fd00::2", "fd00::1", relayed(12, "fd02::1", peer, nil, nil)), host, "RELAY-FORWARD", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewRing(Config{})
			r.Add(c.f)
			for _, m := range []inventory.MAC{host, "52:54:00:00:00:01", "52:54:00:00:00:02"} {
				if got := len(r.Frames(m)); (got == 1) != (m == c.of) {
					t.Errorf("%d frames kept with %s, wanted with %q", got, m, c.of)
				}
			}
			p := Decode(c.f)
			if p.Six == nil || p.Six.IsBoot != c.boots || !strings.Contains(p.String(), c.line) {
				t.Errorf("reads as %s: %+v", p, p.Six)
			}
		})
	}
}
