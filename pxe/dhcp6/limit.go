package dhcp6

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"time"
)

// sourceLimit counts messages per sender and second in fixed memory. Each sender has a counter in two rows, and the
// smaller one counts, so that a collision in one row does not harm it. A flood of invented senders costs no memory.
// The goroutine that reads the port owns it.
type sourceLimit struct {
	perSecond uint16
	seed      maphash.Seed
	second    int64
	rows      [2][1 << 12]uint16
}

func newSourceLimit(perSecond int) *sourceLimit {
	return &sourceLimit{perSecond: uint16(min(perSecond, 1<<16-1)), seed: maphash.MakeSeed()}
}

// allow counts a message and reports whether its sender stays within the limit.
func (l *sourceLimit) allow(key netip.Addr, now time.Time) bool {
	// All counters start again with each second, so that a sender may reach twice the limit around its end.
	if s := now.Unix(); s != l.second {
		l.second = s
		l.rows = [2][1 << 12]uint16{}
	}
	raw := key.As16()
	h := maphash.Bytes(l.seed, raw[:])
	a, b := &l.rows[0][h%(1<<12)], &l.rows[1][(h>>32)%(1<<12)]
	if min(*a, *b) >= l.perSecond {
		return false
	}
	for _, n := range []*uint16{a, b} {
		if *n < 1<<16-1 {
			*n++
		}
	}
	return true
}

// sourceKey returns the address that a message counts against: the machine's own link-local address, also behind
// relays. All machines of a rack would otherwise share the limit of their relay.
func sourceKey(packet []byte, source netip.Addr) netip.Addr {
	for range hopsAtMost {
		if len(packet) < relayHeader || kind(packet[0]) != relayForw {
			break
		}
		// The peer-address of the relay's header (RFC 8415 section 9).
		source = netip.AddrFrom16([16]byte(packet[18:34]))
		inner := relayed(packet[relayHeader:])
		if inner == nil {
			break
		}
		packet = inner
	}
	return source
}

// relayed finds the message in a relay's envelope without looking at the rest of it.
func relayed(b []byte) []byte {
	for range optionsMost {
		if len(b) < 4 {
			return nil
		}
		n := int(binary.BigEndian.Uint16(b[2:]))
		switch {
		case len(b) < 4+n:
			return nil
		case binary.BigEndian.Uint16(b) == optRelayMsg:
			return b[4 : 4+n]
		}
		// A relay may put its own options in front of the message.
		b = b[4+n:]
	}
	return nil
}
