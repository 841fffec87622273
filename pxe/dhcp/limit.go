package dhcp

import (
	"encoding/binary"
	"math/bits"
	"time"
)

// sourceLimit counts packets per MAC in a second in fixed memory: two rows of counters, of which the smaller one is
// believed, so that a neighbour in one row does not count against a client. A flood of invented MACs costs no memory.
type sourceLimit struct {
	perSecond uint16
	seed      uint64
	second    int64
	rows      [2][1 << 14]uint16
}

func newSourceLimit(perSecond int, seed uint64) *sourceLimit {
	return &sourceLimit{perSecond: uint16(min(perSecond, 1<<16-1)), seed: seed}
}

// allow counts a packet and reports whether its source stays within the limit.
func (l *sourceLimit) allow(mac hardwareAddr, now time.Time) bool {
	if s := now.Unix(); s != l.second {
		l.second = s
		l.rows = [2][1 << 14]uint16{}
	}
	// The seed is secret and differs on each start. Without it an attacker could choose MACs that share the counters
	// of one machine and so silence it.
	h := uint64(binary.BigEndian.Uint32(mac[2:]))<<16 | uint64(binary.BigEndian.Uint16(mac[:]))
	hi, lo := bits.Mul64(h^l.seed, 0x9e3779b97f4a7c15)
	h = hi ^ lo
	a, b := &l.rows[0][h%(1<<14)], &l.rows[1][(h>>32)%(1<<14)]
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
