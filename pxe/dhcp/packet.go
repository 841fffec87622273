package dhcp

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// Where the fixed fields of a DHCP message lie (RFC 2131 section 2).
const (
	offHops    = 3
	offFlags   = 10
	offCiaddr  = 12
	offGiaddr  = 24
	offChaddr  = 28
	offSname   = 44
	offFile    = 108
	offCookie  = 236
	offOptions = 240

	maxHops       = 16 // RFC 1542 section 4.1.1
	maxPacketSize = 2048
	// spareSize is room behind a packet for the options that lay in its file and sname fields.
	spareSize  = offCookie - offSname + 1
	bufferSize = maxPacketSize + spareSize
)

// Kinds of hardware (IANA's table for ARP).
const (
	hardwareInfiniBand = 32
	lastHardware       = 38
)

const (
	magicCookie = 0x63825363
	optPad      = 0
	optOverload = 52
	optType     = 53
	optEnd      = 255
)

// kind is the message type of option 53.
type kind uint8

// dropReason says why a packet got no answer; it is a metric's label.
type dropReason string

// The reasons for which a packet is dropped unanswered.
const (
	dropNone     dropReason = ""
	dropShort    dropReason = "short"
	dropTooLong  dropReason = "too-long"
	dropOp       dropReason = "op"
	dropHardware dropReason = "hardware"
	dropHops     dropReason = "hops"
	dropCookie   dropReason = "cookie"
	dropOptions  dropReason = "options"
	dropType     dropReason = "type"
	dropChaddr   dropReason = "chaddr"
	dropGiaddr   dropReason = "giaddr"
	dropSource   dropReason = "source-limit" // one MAC sends too much
	dropReplaced dropReason = "replaced"     // by a newer packet of the same machine
	dropFull     dropReason = "queue-full"
	dropStale    dropReason = "stale"      // waited for more than a second
	dropProbes   dropReason = "probe-full" // too many addresses are being checked
	dropBoots    dropReason = "boot-full"  // too many boots are being decided
	dropCommits  dropReason = "store-full" // too many leases wait for the disk
	dropProbing  dropReason = "own-probe"  // our own question to other servers
	dropHearsay  dropReason = "hearsay"    // too many answers of other servers

	// Sound packets of a kind that is not supported.
	dropInfiniBand dropReason = "infiniband"
	dropBOOTP      dropReason = "bootp"
	dropNoEthernet dropReason = "no-ethernet"
)

// normalise checks a message and makes of b what decode can read: options that lie in file and
// sname (RFC 2131 section 4.1, option 52) are moved behind the others, and a missing END is added. It may write into
// b and behind it; b must have spareSize bytes of room. It returns the message type and the packet to decode.
func normalise(b []byte) (kind, []byte, dropReason) {
	if len(b) < offOptions {
		return 0, nil, dropShort
	}
	if len(b) > maxPacketSize {
		return 0, nil, dropTooLong
	}
	if reason := checkHeader(b); reason != dropNone {
		return 0, nil, reason
	}
	found, end, ok := scanOptions(b[offOptions:], true)
	if !ok {
		return 0, nil, dropOptions
	}
	b = b[:offOptions+end]
	for _, part := range []struct {
		bit      byte
		from, to int
	}{{1, offFile, offCookie}, {2, offSname, offFile}} { // the order of RFC 2131 section 4.1
		if found.overload&part.bit == 0 {
			continue
		}
		field := b[part.from:part.to]
		more, n, ok := scanOptions(field, false)
		if !ok {
			return 0, nil, dropOptions
		}
		found.kind = cmp.Or(found.kind, more.kind)
		b = append(b, field[:n]...)
		clear(b[part.from:part.to])
	}
	if found.kind == 0 {
		return 0, nil, dropBOOTP
	}
	if found.kind > 8 {
		return 0, nil, dropType
	}
	return found.kind, append(b, optEnd), dropNone
}

func checkHeader(b []byte) dropReason {
	chaddr := b[offChaddr : offChaddr+6]
	switch {
	case b[0] != byte(dhcpv4.OpcodeBootRequest):
		return dropOp
	case b[1] == hardwareInfiniBand && (b[2] == 0 || b[2] == 20):
		return dropInfiniBand
	case b[1] > 1 && b[1] <= lastHardware:
		return dropNoEthernet
	case b[1] != 1 || b[2] != 6:
		return dropHardware
	case b[offHops] > maxHops:
		return dropHops
	case isZero(b[offCookie : offCookie+4]): // RFC 951: no vendor's information
		return dropBOOTP
	case binary.BigEndian.Uint32(b[offCookie:]) != magicCookie:
		return dropCookie
	case chaddr[0]&1 != 0 || slices.Max(chaddr) == 0: // a group address or nobody's
		return dropChaddr
	case b[offGiaddr] == 127 || b[offGiaddr] >= 224 || b[offGiaddr] == 0 && !isZero(b[offGiaddr:offGiaddr+4]):
		return dropGiaddr
	}
	return dropNone
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// scanned is what a walk over options finds before they are decoded.
type scanned struct {
	kind     kind
	overload byte
}

// scanOptions walks options up to END and returns where they end; ok is false when one reaches over the edge. Some
// clients leave END out, so an edge right behind an option is an end as well. Only the options field itself may
// overload others.
func scanOptions(b []byte, outer bool) (s scanned, end int, ok bool) {
	for i := 0; i < len(b); {
		switch b[i] {
		case optPad:
			i++
			continue
		case optEnd:
			return s, i, true
		}
		if i+2 > len(b) || i+2+int(b[i+1]) > len(b) {
			return s, 0, false
		}
		n := int(b[i+1])
		switch {
		case b[i] == optType && n == 1:
			s.kind = kind(b[i+2])
		case b[i] == optType:
			return s, 0, false
		case b[i] == optOverload && n == 1 && outer:
			s.overload = b[i+2] & 3
		}
		i += 2 + n
	}
	return s, len(b), true
}
