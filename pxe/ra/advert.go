package ra

import (
	"encoding/binary"
	"net"
	"time"

	"slipway.dev/slipway/inventory"
)

// How long what is advertised counts (RFC 4861 section 6.2.1), and how often it is said again unasked.
const (
	// How long machines believe an advertisement, and how often the server repeats it. The lifetimes of a prefix are
	// the defaults of RFC 4861 section 6.2.1. The server repeats each 200 s and DNS counts three times that (RFC 8106
	// section 5.1), so machines may miss two.
	routerFor    = 30 * time.Minute
	prefixFor    = 30 * 24 * time.Hour
	preferredFor = 7 * 24 * time.Hour
	againAfter   = 200 * time.Second
	dnsFor       = 3 * againAfter
)

// The flags of an advertisement (RFC 4861 section 4.2) and of a prefix in it (section 4.6.2).
const (
	flagManaged    = 0x80
	flagOther      = 0x40
	flagOnLink     = 0x80
	flagAutonomous = 0x40
)

// advertisement returns the advertisement for an interface with these subnets; it is nil where another router has
// that task. The kernel fills in the checksum.
//
// Without an IPv6 subnet it is the smallest that RFC 4861 section 4.2 allows: no flags, no lifetime, no options. It
// ends a machine's search for a router, and makes none of this server. The flags M and O stand only where DHCPv6
// answers, since machines wait for DHCPv6 then.
func advertisement(subnets []inventory.Subnet, own net.HardwareAddr) []byte {
	b := []byte{134, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	isOff, isRouter, mtu := false, false, 0
	var options []byte
	for _, s := range subnets {
		if s.Advertise == inventory.AdvertiseOff {
			isOff = true
			continue
		}
		var flags byte = flagOnLink
		switch {
		case s.Advertise == inventory.AdvertiseSLAAC:
			flags |= flagAutonomous
			if s.Mode != inventory.ModeOff {
				b[5] |= flagOther
			}
		case s.Mode != inventory.ModeOff:
			b[5] |= flagManaged | flagOther
		}
		options = appendPrefix(options, s, flags)
		if s.Advertise == inventory.AdvertiseSLAAC && len(s.DNS) > 0 {
			options = appendDNS(options, s)
		}
		isRouter = isRouter || s.IsRouter
		if s.MTU > 0 && (mtu == 0 || s.MTU < mtu) {
			mtu = s.MTU
		}
	}
	switch {
	case len(options) == 0 && isOff:
		return nil
	case isRouter:
		binary.BigEndian.PutUint16(b[6:], uint16(routerFor/time.Second))
	}
	if mtu > 0 {
		b = append(b, 5, 1, 0, 0)
		b = binary.BigEndian.AppendUint32(b, uint32(mtu))
	}
	if len(options) > 0 && len(own) == 6 {
		b = append(append(b, 1, 1), own...)
	}
	return append(b, options...)
}

// appendPrefix adds a prefix information option (RFC 4861 section 4.6.2).
func appendPrefix(b []byte, s inventory.Subnet, flags byte) []byte {
	b = append(b, 3, 4, byte(s.CIDR.Bits()), flags)
	b = binary.BigEndian.AppendUint32(b, uint32(prefixFor/time.Second))
	b = binary.BigEndian.AppendUint32(b, uint32(preferredFor/time.Second))
	prefix := s.CIDR.Addr().As16()
	return append(append(b, 0, 0, 0, 0), prefix[:]...)
}

// appendDNS adds the name servers for machines that make their own addresses (RFC 8106 section 5.1).
func appendDNS(b []byte, s inventory.Subnet) []byte {
	b = append(b, 25, byte(1+2*len(s.DNS)), 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(dnsFor/time.Second))
	for _, a := range s.DNS {
		raw := a.As16()
		b = append(b, raw[:]...)
	}
	return b
}
