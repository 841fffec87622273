package pxe

import (
	"encoding/hex"
	"net/netip"
	"net/url"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Packet6 has what a DHCPv6 message reports about its sender, as plain values. Classify6 keeps none of the slices.
type Packet6 struct {
	DUID    []byte     // option 1
	Peer    netip.Addr // the client's link-local address: the source, or what the first relay saw
	Link79  []byte     // its link-layer address as a relay saw it (RFC 6939): hardware type, then the address
	Class16 []string   // vendor class (RFC 8415 section 21.16)
	User15  []string   // user class
	Arch61  []uint16   // client architectures (RFC 5970 section 3.3)
}

// The kinds of DUID (RFC 8415 section 11).
const (
	duidLLT  = 1
	duidLL   = 3
	duidUUID = 4

	ethernet = 1 // hardware type
)

// Classify6 returns the kind of client that sent a DHCPv6 message. Every message has an answer.
//
// The MAC is that of the asking port, as far as anything shows it. The address that the first relay saw comes first, then
// the interface identifier of the link-local address. The DUID is last, because it may have the MAC of another port.
func Classify6(p Packet6) Client {
	like := Packet{Arch93: p.Arch61, MAC: MAC6(p)}
	for _, class := range p.Class16 {
		if strings.HasPrefix(class, "PXEClient") || strings.HasPrefix(class, "HTTPClient") || like.Class60 == "" {
			like.Class60 = class
		}
	}
	for _, user := range p.User15 {
		if len(user) > 0 && len(user) < 256 {
			like.UserClass77 = append(append(like.UserClass77, byte(len(user))), user...)
		}
	}
	c := Classify(like)
	c.ClientID = hex.EncodeToString(p.DUID[:min(len(p.DUID), maxDUID)])
	c.UUID = uuidFromDUID(p.DUID, c.Stage)
	if c.Stage == StageIPXE {
		c.IPXE.HasHTTP = true
	}
	return c
}

const maxDUID = 130 // RFC 8415 section 11.1: 128 bytes and the type

// MAC6 returns the MAC of the sender of a DHCPv6 message, "" when nothing tells it.
func MAC6(p Packet6) inventory.MAC {
	if len(p.Link79) == 8 && p.Link79[0] == 0 && p.Link79[1] == ethernet {
		if m := macOf(p.Link79[2:]); m != "" {
			return m
		}
	}
	if m := macFromEUI64(p.Peer); m != "" {
		return m
	}
	switch d := p.DUID; {
	case len(d) == 14 && d[0] == 0 && d[1] == duidLLT && d[2] == 0 && d[3] == ethernet:
		return macOf(d[8:])
	case len(d) == 10 && d[0] == 0 && d[1] == duidLL && d[2] == 0 && d[3] == ethernet:
		return macOf(d[4:])
	}
	return ""
}

// macFromEUI64 reads the MAC from a link-local address whose interface identifier is made of it (RFC 4291 appendix A).
func macFromEUI64(a netip.Addr) inventory.MAC {
	b := a.As16()
	if !a.IsLinkLocalUnicast() || !a.Is6() || b[11] != 0xff || b[12] != 0xfe {
		return ""
	}
	return macOf([]byte{b[8] ^ 2, b[9], b[10], b[13], b[14], b[15]})
}

// macOf returns a MAC of one port: neither a group's nor the one that says nothing.
func macOf(b []byte) inventory.MAC {
	if len(b) != 6 || b[0]&1 != 0 || isOneByte(b) && b[0] == 0 {
		return ""
	}
	const digits = "0123456789abcdef"
	var out [17]byte
	for i, c := range b {
		out[3*i], out[3*i+1] = digits[c>>4], digits[c&15]
		if i < 5 {
			out[3*i+2] = ':'
		}
	}
	return inventory.MAC(out[:])
}

// uuidFromDUID reads a DUID-UUID (RFC 6355). EDK2 writes the UUID as SMBIOS stores it, the first three fields
// little-endian; iPXE writes it in network order, as the RFC says.
func uuidFromDUID(d []byte, s Stage) string {
	if len(d) != 18 || d[0] != 0 || d[1] != duidUUID {
		return ""
	}
	if s == StageFirmware {
		return uuidFromOption(append([]byte{0}, d[2:]...))
	}
	return cleanUUID(hex.EncodeToString(d[2:]))
}

// BootURL returns the URL of a reply, as DHCPv6 says it (RFC 5970 section 3.1); "" for none. A loader's name is one for
// TFTP from the server that is next.
func BootURL(r Reply) string {
	switch {
	case r.File == "" || strings.Contains(r.File, "://"):
		return r.File
	case r.Next.Is6():
		return "tftp://[" + r.Next.WithZone("").String() + "]/" + url.PathEscape(r.File)
	}
	return ""
}
