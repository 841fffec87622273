package simulate

import (
	"cmp"
	"encoding/binary"
	"errors"
	"net/netip"
)

// datagram is a UDP datagram with the addresses around it.
type datagram struct {
	fromMAC, toMAC [6]byte
	from, to       netip.AddrPort
	payload        []byte
}

var broadcastMAC = [6]byte{255, 255, 255, 255, 255, 255}

const (
	etherIPv4    = 0x0800
	etherHeader  = 14
	ipHeader     = 20
	udpHeader    = 8
	protocolUDP  = 17
	timeToLive   = 64
	frameHeaders = etherHeader + ipHeader + udpHeader
)

// frame writes an Ethernet frame with an IPv4 packet that holds the datagram, as firmware without a kernel does.
func (d *datagram) frame(id uint16) []byte {
	b := make([]byte, frameHeaders+len(d.payload))
	copy(b[0:], d.toMAC[:])
	copy(b[6:], d.fromMAC[:])
	binary.BigEndian.PutUint16(b[12:], etherIPv4)
	ip := b[etherHeader:]
	ip[0] = 0x45
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	binary.BigEndian.PutUint16(ip[4:], id)
	ip[8], ip[9] = timeToLive, protocolUDP
	src, dst := d.from.Addr().As4(), d.to.Addr().As4()
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	binary.BigEndian.PutUint16(ip[10:], ^sum(ip[:ipHeader], 0))
	udp := ip[ipHeader:]
	binary.BigEndian.PutUint16(udp[0:], d.from.Port())
	binary.BigEndian.PutUint16(udp[2:], d.to.Port())
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	copy(udp[udpHeader:], d.payload)
	pseudo := sum(ip[12:20], uint32(protocolUDP)+uint32(len(udp)))
	check := cmp.Or(^sum(udp, uint32(pseudo)), 0xffff) // RFC 768: zero means that there is no checksum
	binary.BigEndian.PutUint16(udp[6:], check)
	return b
}

// sum is the Internet checksum before it is complemented (RFC 1071).
func sum(b []byte, start uint32) uint16 {
	for len(b) >= 2 {
		start += uint32(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		start += uint32(b[0]) << 8
	}
	for start > 0xffff {
		start = start>>16 + start&0xffff
	}
	return uint16(start)
}

// parseFrame reads a UDP datagram out of an Ethernet frame. It ignores checksums: the kernel leaves them
// unfinished on frames between namespaces.
func parseFrame(b []byte) (datagram, error) {
	var d datagram
	if len(b) < frameHeaders || binary.BigEndian.Uint16(b[12:]) != etherIPv4 {
		return d, errors.New("no IPv4 frame")
	}
	copy(d.toMAC[:], b)
	copy(d.fromMAC[:], b[6:])
	ip := b[etherHeader:]
	header, total := int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if ip[0]>>4 != 4 || header < ipHeader || total > len(ip) || total < header+udpHeader {
		return d, errors.New("broken IPv4 header")
	}
	if ip[9] != protocolUDP || binary.BigEndian.Uint16(ip[6:])&0x3fff != 0 {
		return d, errors.New("no whole UDP datagram")
	}
	udp := ip[header:total]
	length := int(binary.BigEndian.Uint16(udp[4:]))
	if length < udpHeader || length > len(udp) {
		return d, errors.New("broken UDP header")
	}
	d.from = netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[12:16])), binary.BigEndian.Uint16(udp[0:]))
	d.to = netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[16:20])), binary.BigEndian.Uint16(udp[2:]))
	d.payload = udp[udpHeader:length]
	return d, nil
}

const etherARP = 0x0806

// announcement is a gratuitous ARP request (RFC 5227 section 3): this card has this address now.
func announcement(card [6]byte, a netip.Addr) []byte {
	b := make([]byte, 60) // the shortest Ethernet frame
	copy(b, broadcastMAC[:])
	copy(b[6:], card[:])
	binary.BigEndian.PutUint16(b[12:], etherARP)
	arp := b[etherHeader:]
	binary.BigEndian.PutUint16(arp[0:], 1) // Ethernet
	binary.BigEndian.PutUint16(arp[2:], etherIPv4)
	arp[4], arp[5] = 6, 4
	binary.BigEndian.PutUint16(arp[6:], 1) // request
	v := a.As4()
	copy(arp[8:], card[:])
	copy(arp[14:], v[:])
	copy(arp[24:], v[:])
	return b
}
