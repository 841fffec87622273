// Package trace keeps what machines sent and received during a boot. It decodes Ethernet frames, keeps the last ones
// of each machine in bounded memory, and writes them as a capture file. It opens no socket and answers no machine.
// Everything it reads comes from the network, so no frame may make it panic.
package trace

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// Frame is an Ethernet frame as it was on the wire, or its beginning.
type Frame struct {
	At    time.Time
	Bytes []byte
	Len   int // on the wire; Bytes may hold less
}

// Kind is the protocol that a packet belongs to.
type Kind string

// The kinds.
const (
	// The kinds of packets.
	DHCPv4  Kind = "dhcp"
	DHCPv6  Kind = "dhcpv6"
	TFTP    Kind = "tftp"
	TCP     Kind = "tcp"
	ICMP    Kind = "icmp"
	Router  Kind = "router" // router solicitation or advertisement (RFC 4861)
	Unknown Kind = ""
)

// Packet is a decoded frame. The field that Kind names is set, the others are nil. Decode cleans all texts: they hold
// no control characters.
type Packet struct {
	At       time.Time
	Kind     Kind
	From, To inventory.MAC
	Src, Dst netip.AddrPort
	Len      int // of the frame on the wire

	DHCP   *Message    // of DHCPv4
	Six    *MessageSix // of DHCPv6
	TFTP   *TFTPPacket
	TCP    *Segment
	ICMP   *Unreachable
	Router *RouterPacket

	tail int // bytes of the frame that are the payload of UDP or TCP
}

// RouterPacket is a router solicitation or a router advertisement (RFC 4861 sections 4.1 and 4.2).
type RouterPacket struct {
	IsAdvert  bool
	IsManaged bool // M or O: the machine is to ask DHCPv6
}

// Unreachable is an ICMP error: a router or a machine could not deliver a packet (RFC 792, type 3).
type Unreachable struct {
	Code uint8          // of destination unreachable: 1 host, 3 port, 4 too big, 13 forbidden
	Src  netip.AddrPort // of the packet that was not delivered
	Dst  netip.AddrPort
}

const (
	etherIPv4, etherIPv6, etherVLAN = 0x0800, 0x86dd, 0x8100
	protoICMP, protoTCP, protoUDP   = 1, 6, 17
	protoICMPv6                     = 58

	portDHCPServer, portDHCPClient = 67, 68
	portTFTP, portPXE              = 69, 4011
	portSixClient, portSixServer   = 546, 547
)

// Decode decodes a frame and never fails. A frame that belongs to no boot, or is too short to tell, has the kind
// Unknown. It skips VLAN tags (802.1Q). The packet refers to the bytes of f.
func Decode(f Frame) Packet {
	p := Packet{At: f.At, Len: f.Len}
	b := f.Bytes
	if len(b) < 14 {
		return p
	}
	p.To, p.From = macOf(b[:6]), macOf(b[6:12])
	kind := binary.BigEndian.Uint16(b[12:])
	b = b[14:]
	for ; kind == etherVLAN && len(b) >= 4; b = b[4:] {
		kind = binary.BigEndian.Uint16(b[2:])
	}
	switch kind {
	case etherIPv4:
		p.fromIPv4(b)
	case etherIPv6:
		p.fromIPv6(b)
	}
	return p
}

// macOf does not use fmt: Decode runs for every frame on the boot interfaces.
func macOf(b []byte) inventory.MAC {
	const digits = "0123456789abcdef"
	text := make([]byte, 0, 17)
	for i, c := range b {
		if i > 0 {
			text = append(text, ':')
		}
		text = append(text, digits[c>>4], digits[c&15])
	}
	return inventory.MAC(text)
}

// fromIPv4 decodes an IPv4 packet. It drops later fragments: they have no ports, so they say nothing of their own.
func (p *Packet) fromIPv4(b []byte) {
	if len(b) < 20 || b[0]>>4 != 4 {
		return
	}
	header := int(b[0]&15) * 4
	if header < 20 || len(b) < header || binary.BigEndian.Uint16(b[6:])&0x1fff != 0 { // a later fragment
		return
	}
	src, _ := netip.AddrFromSlice(b[12:16])
	dst, _ := netip.AddrFromSlice(b[16:20])
	proto, total := b[9], int(binary.BigEndian.Uint16(b[2:]))
	size := total - header
	p.transport(proto, src, dst, b[header:], size)
}

// fromIPv6 decodes an IPv6 packet without extension headers: boots send none.
func (p *Packet) fromIPv6(b []byte) {
	if len(b) < 40 || b[0]>>4 != 6 {
		return
	}
	src, _ := netip.AddrFromSlice(b[8:24])
	dst, _ := netip.AddrFromSlice(b[24:40])
	p.transport(b[6], src, dst, b[40:], int(binary.BigEndian.Uint16(b[4:])))
}

// transport decodes the payload of an IP packet. size is its length on the wire without the IP header; b may be
// shorter, or longer by the padding of Ethernet.
func (p *Packet) transport(proto byte, src, dst netip.Addr, b []byte, size int) {
	p.Src, p.Dst = netip.AddrPortFrom(src, 0), netip.AddrPortFrom(dst, 0)
	switch proto {
	case protoICMP:
		p.unreachable(b)
	case protoICMPv6:
		p.routerPacket(b)
	case protoUDP:
		if len(b) < 8 {
			return
		}
		p.ports(b)
		p.tail = len(b) - 8
		p.datagram(b[8:])
	case protoTCP:
		if len(b) < 20 {
			return
		}
		p.ports(b)
		p.segment(b, size)
	}
}

func (p *Packet) ports(b []byte) {
	p.Src = netip.AddrPortFrom(p.Src.Addr(), binary.BigEndian.Uint16(b))
	p.Dst = netip.AddrPortFrom(p.Dst.Addr(), binary.BigEndian.Uint16(b[2:]))
}

// datagram decodes the payload of a UDP packet. Ports alone tell DHCP; a TFTP transfer moves to other ports (RFC 1350
// section 4), so there the contents must fit too.
func (p *Packet) datagram(b []byte) {
	src, dst := p.Src.Port(), p.Dst.Port()
	isOf := func(ports ...uint16) bool {
		return slices.ContainsFunc(ports, func(x uint16) bool { return src == x || dst == x })
	}
	switch {
	case isOf(portDHCPServer, portDHCPClient, portPXE):
		if m := parseMessage(b); m != nil {
			p.Kind, p.DHCP = DHCPv4, m
		}
	case isOf(portSixClient, portSixServer):
		if m := parseSix(b); m != nil {
			p.Kind, p.Six = DHCPv6, m
		}
	case dst == portTFTP, (src == portTFTP || src >= 1024) && dst >= 1024: // a refusal comes from the port that was asked
		if t := parseTFTP(b, dst == portTFTP); t != nil {
			p.Kind, p.TFTP = TFTP, t
		}
	}
}

// unreachable decodes an ICMP destination unreachable (RFC 792). It quotes the header of the lost packet and the
// first 8 bytes behind it: enough for the ports.
func (p *Packet) unreachable(b []byte) {
	if len(b) < 8+20+8 || b[0] != 3 || b[8]>>4 != 4 {
		return
	}
	header := 8 + int(b[8]&15)*4
	if len(b) < header+4 {
		return
	}
	src, _ := netip.AddrFromSlice(b[20:24])
	dst, _ := netip.AddrFromSlice(b[24:28])
	p.Kind = ICMP
	p.ICMP = &Unreachable{
		Code: b[1], Src: netip.AddrPortFrom(src, binary.BigEndian.Uint16(b[header:])),
		Dst: netip.AddrPortFrom(dst, binary.BigEndian.Uint16(b[header+2:])),
	}
}

// routerPacket decodes a solicitation (133) or an advertisement (134) of RFC 4861. The top two bits of the flags are
// M and O.
func (p *Packet) routerPacket(b []byte) {
	switch {
	case len(b) >= 8 && b[0] == 133:
		p.Kind, p.Router = Router, &RouterPacket{}
	case len(b) >= 16 && b[0] == 134:
		p.Kind, p.Router = Router, &RouterPacket{IsAdvert: true, IsManaged: b[5]&0xc0 != 0}
	}
}

// String describes the packet in one line for people.
func (p Packet) String() string {
	switch p.Kind {
	case DHCPv4:
		return p.DHCP.line(p)
	case DHCPv6:
		return p.Six.line(p)
	case TFTP:
		return p.TFTP.line(p)
	case TCP:
		return p.TCP.line(p)
	case ICMP:
		return fmt.Sprintf("ICMP from %s: %s cannot be reached (code %d)", p.Src.Addr(), p.ICMP.Dst, p.ICMP.Code)
	case Router:
		if p.Router.IsAdvert {
			return "router advertisement from " + p.Src.Addr().String()
		}
		return "router solicitation"
	}
	return "packet"
}

// message types of DHCP (RFC 2132 section 9.6) and DHCPv6 (RFC 8415 section 7.3).
var (
	// The message types of DHCP (RFC 2132 section 9.6) and DHCPv6 (RFC 8415 section 7.3).
	names    = map[uint8]string{1: "DISCOVER", 2: "OFFER", 3: "REQUEST", 4: "DECLINE", 5: "ACK", 6: "NAK", 7: "RELEASE", 8: "INFORM"}
	sixNames = map[uint8]string{1: "SOLICIT", 2: "ADVERTISE", 3: "REQUEST", 4: "CONFIRM", 5: "RENEW", 6: "REBIND", 7: "REPLY", 8: "RELEASE", 9: "DECLINE", 11: "INFORMATION-REQUEST", 12: "RELAY-FORWARD", 13: "RELAY-REPLY"}
)

func (m *Message) line(p Packet) string {
	var b strings.Builder
	b.WriteString(names[m.Type])
	if m.IsReply {
		from := m.Server
		if !from.IsValid() {
			from = p.Src.Addr()
		}
		b.WriteString(" from " + from.String())
		if m.Yours.IsValid() {
			b.WriteString(" of " + m.Yours.String())
		}
		if m.File != "" {
			b.WriteString(", boot file " + m.File)
		}
		if m.Class != "" {
			b.WriteString(", class " + m.Class)
		}
	} else {
		b.WriteString(" of " + stageWord(m.Client.Stage))
		if m.Secs > 0 && m.Client.Stage == pxe.StageFirmware && p.Dst.Port() != portPXE { // EDK2 swaps the bytes there
			fmt.Fprintf(&b, ", %d s after its first", m.Secs)
		}
		if m.Server.IsValid() {
			b.WriteString(", to " + m.Server.String())
		}
	}
	if m.Relay.IsValid() {
		b.WriteString(", through relay " + m.Relay.String())
	}
	if p.Dst.Port() == portPXE || p.Src.Port() == portPXE {
		b.WriteString(", port 4011")
	}
	return b.String()
}

func stageWord(s pxe.Stage) string {
	switch s {
	case pxe.StageIPXE:
		return "iPXE"
	case pxe.StageFirmware:
		return "firmware"
	}
	return "an operating system"
}
