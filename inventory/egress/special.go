package egress

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// metadata are the addresses at which clouds tell a machine about itself, its credentials among that. Those in
// link-local networks are refused with them.
var metadata = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"),    // Alibaba
	netip.MustParseAddr("168.63.129.16"),      // Azure, the host's own service
	netip.MustParseAddr("192.0.0.192"),        // Oracle, on older machines
	netip.MustParseAddr("fd00:ec2::254"),      // AWS
	netip.MustParseAddr("fd00:ec2::23"),       // AWS, credentials of pods
	netip.MustParseAddr("fd20:ce::254"),       // Google
	netip.MustParseAddr("fd00:42::42"),        // Scaleway
	netip.MustParseAddr("fd00:c1::a9fe:a9fe"), // Oracle
}

// blocks are networks in which nothing can be fetched, and why.
var blocks = []struct {
	net netip.Prefix
	why string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "it is no address of a machine (0.0.0.0/8)"},
	{netip.MustParsePrefix("192.0.0.0/24"), "it is reserved for protocols (192.0.0.0/24)"},
	{netip.MustParsePrefix("240.0.0.0/4"), "it is reserved or a broadcast (240.0.0.0/4)"},
	{netip.MustParsePrefix("100::/64"), "it is the discard network (100::/64)"},
	{netip.MustParsePrefix("fec0::/10"), "it is site-local, which no network uses any more (fec0::/10)"},
}

// special returns why nobody may connect to an address on behalf of others, "" when nothing is special about it.
func special(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "it is no address"
	case a.IsUnspecified():
		return "it is the unspecified address, which means this machine"
	case a.IsLoopback():
		return "it is a loopback address"
	case slices.Contains(metadata, a):
		return "it is the metadata service of a cloud"
	case a.IsLinkLocalUnicast():
		return "it is a link-local address, where clouds have their metadata service"
	case a.IsMulticast():
		return "it is a multicast address"
	}
	for _, b := range blocks {
		if b.net.Contains(a) {
			return b.why
		}
	}
	return ""
}

var (
	nat64Local = netip.MustParsePrefix("64:ff9b:1::/48") // RFC 8215
	// tails are networks whose last 32 bits are an IPv4 address.
	tails = []netip.Prefix{
		netip.MustParsePrefix("64:ff9b::/96"),    // RFC 6052
		netip.MustParsePrefix("::/96"),           // IPv4-compatible, RFC 4291
		netip.MustParsePrefix("::ffff:0:0:0/96"), // IPv4-translated, RFC 2765
	}
	sixToFour = netip.MustParsePrefix("2002::/16") // RFC 3056
	teredo    = netip.MustParsePrefix("2001::/32") // RFC 4380
)

// embedded returns the IPv4 addresses that an IPv6 address may lead to through a translator or tunnel.
func embedded(a netip.Addr) (inner []netip.Addr) {
	if !a.Is6() {
		return nil
	}
	b := a.As16()
	v4 := func(bytes ...byte) { inner = append(inner, netip.AddrFrom4([4]byte(bytes))) }
	for _, n := range tails {
		if n.Contains(a) {
			v4(b[12:16]...)
		}
	}
	switch {
	case nat64Local.Contains(a):
		// A site divides it as it likes: the address is at the end of a /96, or on both sides of a /48's u octet (RFC 6052
		// section 2.2). The other place is zero then, which leads nowhere.
		for _, place := range [][]byte{b[12:16], {b[6], b[7], b[9], b[10]}} {
			if binary.BigEndian.Uint32(place) != 0 || len(inner) == 0 && a == nat64Local.Addr() {
				v4(place...)
			}
		}
	case sixToFour.Contains(a):
		v4(b[2:6]...)
	case teredo.Contains(a):
		v4(b[4:8]...)
		v4(b[12]^0xff, b[13]^0xff, b[14]^0xff, b[15]^0xff)
	}
	if id := binary.BigEndian.Uint32(b[8:12]); id&^0x02000000 == 0x5efe { // ISATAP, RFC 5214
		v4(b[12:16]...)
	}
	return inner
}
