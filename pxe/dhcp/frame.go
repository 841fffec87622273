package dhcp

import (
	"encoding/binary"
	"net/netip"
)

const (
	etherIPv4 = 0x0800
	etherARP  = 0x0806

	serverPort = 67
	clientPort = 68
	pxePort    = 4011

	etherHeader = 14
	ipHeader    = 20
	udpHeader   = 8
	headers     = etherHeader + ipHeader + udpHeader
)

type hardwareAddr [6]byte

// appendFrame appends an Ethernet frame that carries payload in UDP over IPv4 to a machine that has no address yet
// and so cannot answer ARP (RFC 2131 section 4.1).
func appendFrame(b []byte, src, dst hardwareAddr, from, to netip.Addr, payload []byte) []byte {
	b = append(b, dst[:]...)
	b = append(b, src[:]...)
	b = binary.BigEndian.AppendUint16(b, etherIPv4)
	ip := len(b)
	s, d := from.As4(), to.As4()
	b = append(b, 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(ipHeader+udpHeader+len(payload)))
	b = append(b, 0, 0, 0x40, 0, 64, 17, 0, 0) // no id, don't fragment, TTL 64, UDP
	b = append(append(b, s[:]...), d[:]...)
	binary.BigEndian.PutUint16(b[ip+10:], ^fold(sum(0, b[ip:ip+ipHeader])))

	udp := len(b)
	b = binary.BigEndian.AppendUint16(b, serverPort)
	b = binary.BigEndian.AppendUint16(b, clientPort)
	b = binary.BigEndian.AppendUint16(b, uint16(udpHeader+len(payload)))
	b = append(b, 0, 0)
	b = append(b, payload...)
	pseudo := sum(uint32(17)+uint32(len(b)-udp), b[ip+12:ip+ipHeader])
	check := ^fold(sum(pseudo, b[udp:]))
	if check == 0 { // 0 means "no checksum" (RFC 768)
		check = 0xffff
	}
	binary.BigEndian.PutUint16(b[udp+6:], check)
	return b
}

// sum adds b to a ones' complement sum (RFC 1071).
func sum(s uint32, b []byte) uint32 {
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	return s
}

func fold(s uint32) uint16 {
	for s > 0xffff {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

// appendARPProbe appends a broadcast question for an address that comes from nobody (RFC 5227 section 2.1.1), so that
// it disturbs no one's ARP table.
func appendARPProbe(b []byte, src hardwareAddr, target netip.Addr) []byte {
	b = append(b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	b = append(b, src[:]...)
	b = binary.BigEndian.AppendUint16(b, etherARP)
	b = append(b, 0, 1, 8, 0, 6, 4, 0, 1)
	b = append(b, src[:]...)
	b = append(b, make([]byte, 4+6)...)
	t := target.As4()
	return append(b, t[:]...)
}

// parseARP returns who claims which address in an ARP frame; ok is false for a question that claims none.
func parseARP(frame []byte) (who hardwareAddr, addr netip.Addr, ok bool) {
	if len(frame) < etherHeader+28 || binary.BigEndian.Uint16(frame[12:]) != etherARP {
		return who, addr, false
	}
	p := frame[etherHeader:]
	if binary.BigEndian.Uint32(p) != 0x00010800 || p[4] != 6 || p[5] != 4 || p[6] != 0 || p[7] < 1 || p[7] > 2 {
		return who, addr, false
	}
	copy(who[:], p[8:])
	addr = netip.AddrFrom4([4]byte(p[14:18]))
	return who, addr, !addr.IsUnspecified()
}
