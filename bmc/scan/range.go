package scan

import (
	"iter"
	"net/netip"
	"strings"

	"slipway.dev/slipway/inventory"
)

// MaxN is how many addresses a range may have: an IPv4 /16, or an IPv6 /112. At the server's rate of 1,000 addresses a
// second, such a scan takes about a minute.
const MaxN = 65_536

// Range is a range of addresses, from First to Last.
type Range struct {
	First, Last netip.Addr
}

// ParseRange reads 10.0.0.0/24, 10.0.0.10-10.0.0.50 or 10.0.0.10. It leaves out the first address of an IPv4 prefix, which
// names the network, and the last, to which every machine would answer.
func ParseRange(s string) (Range, error) {
	s = strings.TrimSpace(s)
	var r Range
	switch first, last, isPair := strings.Cut(s, "-"); {
	case isPair:
		r.First, _ = netip.ParseAddr(strings.TrimSpace(first))
		r.Last, _ = netip.ParseAddr(strings.TrimSpace(last))
	case strings.Contains(s, "/"):
		p, err := netip.ParsePrefix(s)
		if err != nil {
			break
		}
		r = FromPrefix(p)
	default:
		r.First, _ = netip.ParseAddr(s)
		r.Last = r.First
	}
	if !r.isValid() {
		return Range{}, inventory.Errorf(inventory.Invalid, "%q is not a range of 1 to %d addresses", inventory.Clean(s, 80), MaxN).
			WithHint("write it as 10.0.0.0/24 or 10.0.0.10-10.0.0.50")
	}
	return r, nil
}

// FromPrefix returns the range of a prefix. It is not valid when the prefix is too large.
func FromPrefix(p netip.Prefix) Range {
	p = p.Masked()
	free := p.Addr().BitLen() - p.Bits()
	if !p.IsValid() || free > 16 {
		return Range{}
	}
	raw := p.Addr().AsSlice()
	// All free bits set is the last address.
	for i := range free {
		raw[len(raw)-1-i/8] |= 1 << (i % 8)
	}
	last, _ := netip.AddrFromSlice(raw)
	r := Range{First: p.Addr(), Last: last}
	// A /31 has neither a network nor a broadcast address (RFC 3021).
	if p.Addr().Is4() && free > 1 {
		r.First, r.Last = r.First.Next(), r.Last.Prev()
	}
	return r
}

// isValid reports whether a range can be scanned: of one family, forward, not too long, and of single machines.
func (r Range) isValid() bool {
	if !r.First.IsValid() || !r.Last.IsValid() || r.First.BitLen() != r.Last.BitLen() || r.First.Zone() != r.Last.Zone() || r.Last.Less(r.First) {
		return false
	}
	for _, a := range []netip.Addr{r.First, r.Last} {
		// One packet to such an address would be answered by many machines.
		if a.IsMulticast() || a.IsUnspecified() || a.Is4In6() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
			return false
		}
	}
	return r.N() <= MaxN
}

// N returns how many addresses a range has; more than MaxN for any number above it.
func (r Range) N() int {
	a, b := r.First.As16(), r.Last.As16()
	n := 0
	for i := range a {
		// Subtracting digit by digit. The early end keeps an IPv6 range from overflowing.
		if n = n<<8 + int(b[i]) - int(a[i]); n > 1<<24 {
			return n
		}
	}
	return n + 1
}

// All returns the addresses in order.
func (r Range) All() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		// Next of the last address of all is invalid, which ends the loop.
		for a := r.First; a.IsValid() && !r.Last.Less(a); a = a.Next() {
			if !yield(a) {
				return
			}
		}
	}
}
