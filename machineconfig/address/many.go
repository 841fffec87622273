package address

import (
	"net/netip"
	"slices"

	"slipway.dev/slipway/inventory"
)

const (
	// MaxAddresses bounds the static addresses of one machine: the transaction that stores them looks each of them up.
	MaxAddresses = 256
	// MaxWritten bounds the addresses of static ranges that one machine's configuration may write without an allocation.
	// Static ranges are for the machines of all pools.
	MaxWritten = 16
)

// TooMany refuses the holdings of a subject when they have more addresses than one machine may have; it is nil for others.
// fresh are those that the subject has not had before. Addresses of static ranges that it wrote earlier stay.
func (b *Book) TooMany(s Subject, all, fresh []inventory.Holding) (*inventory.Error, error) {
	n := 0
	for i := range all {
		if all[i].Kind == inventory.HoldsAddress {
			n++
		}
	}
	if n > MaxAddresses {
		return inventory.Errorf(inventory.Invalid, "%s: its configuration has more than %d static addresses", s.Holder, MaxAddresses).
			WithHint("leave out some of its addresses, or spread them over several machines"), nil
	}
	if n <= MaxWritten {
		return nil, nil
	}
	written, err := b.written(s, all)
	if err != nil || len(written) <= MaxWritten {
		return nil, err
	}
	if fresh, err = b.written(s, fresh); err != nil || len(fresh) == 0 {
		return nil, err
	}
	subnet := b.subnetOf(netip.MustParseAddr(fresh[0].Value)).Name
	return inventory.Errorf(inventory.Invalid, "%s: its configuration writes %d addresses of static ranges, such as %s of subnet %s; at most %d are allowed",
		s.Holder, len(written), fresh[0].Value, subnet, MaxWritten).
		WithHint("use fromSubnets: [%s] for an address that is kept for it, or write addresses outside of the static ranges", subnet), nil
}

// written returns the addresses of static ranges that are not kept for their holder.
func (b *Book) written(s Subject, all []inventory.Holding) (out []inventory.Holding, err error) {
	for _, h := range all {
		a, bad := netip.ParseAddr(h.Value)
		if h.Kind != inventory.HoldsAddress || bad != nil {
			continue
		}
		n := b.subnetOf(a)
		if n == nil || !slices.ContainsFunc(n.StaticRanges, func(r inventory.Range) bool { return r.Contains(a) }) {
			continue
		}
		given, err := b.givenIn(n)
		if err != nil {
			return nil, err
		}
		if g, isGiven := given[a]; !isGiven || g.Key() != s.Key() {
			out = append(out, h)
		}
	}
	return out, nil
}
