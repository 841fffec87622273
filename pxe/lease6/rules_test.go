package lease6

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// TestWhatAClientMayDoWithAnAddress holds each rule with the smallest story that breaks it.
func TestWhatAClientMayDoWithAnAddress(t *testing.T) {
	four, one := span("fd00:1::1000", "fd00:1::1003"), span("fd00:1::1000", "fd00:1::1000")
	later := now.Add(25 * time.Hour) // what was leased is over
	for _, c := range []struct {
		name string
		pool inventory.Range
		want bool
		get  func(t *testing.T, b *Book) bool
	}{
		{"what was offered was looked for on the wire already", four, false, func(_ *testing.T, b *Book) bool {
			b.Offer(client(1), netip.Addr{}, now)
			g, _, _ := b.Assign(client(1), netip.Addr{}, now)
			return g.IsFirstUse
		}},
		{"what is given without an offer was not", four, true, func(_ *testing.T, b *Book) bool {
			g, _, _ := b.Assign(client(1), netip.Addr{}, now)
			return g.IsFirstUse
		}},
		{"nor what another had", one, true, func(t *testing.T, b *Book) bool {
			take(t, b, client(1), now)
			g, _, _ := b.Assign(client(2), netip.Addr{}, later)
			return g.IsFirstUse
		}},
		{"a boot gets it for the time of a boot", four, true, func(_ *testing.T, b *Book) bool {
			c := client(1)
			c.IsBoot = true
			g, _, _ := b.Assign(c, netip.Addr{}, now)
			return g.For == 10*time.Minute
		}},
		{"who declined an address has it no more", four, false, func(t *testing.T, b *Book) bool {
			a := take(t, b, client(1), now)
			b.Decline(client(1), a, now)
			return b.Has(client(1), a, now)
		}},
		{"who declined many gets another still", span("fd00:1::1000", "fd00:1::1fff"), true, func(t *testing.T, b *Book) bool {
			for range 2 * maxPerDUID {
				b.Decline(client(1), take(t, b, client(1), now), now)
			}
			_, why := b.Offer(client(1), netip.Addr{}, now)
			return why == ""
		}},
		{"who was offered one is known", four, true, func(_ *testing.T, b *Book) bool {
			b.Offer(client(1), netip.Addr{}, now)
			return b.IsKnown(client(1)) && !b.IsKnown(client(2))
		}},
		{"what was released does not count again", four, false, func(t *testing.T, b *Book) bool {
			_, l, _ := b.Assign(client(1), netip.Addr{}, now)
			b.Commit(l)
			b.Release(client(1), l.Address, now)
			return b.Commit(l)
		}},
		{"nobody ends what is kept for another", four, true, func(_ *testing.T, b *Book) bool {
			_, l, _ := b.Assign(client(1), netip.Addr{}, now)
			other := l
			other.ClientID = client(2).DUID
			b.Abort(other)
			return b.Commit(l)
		}},
		{"an address is released once", four, false, func(t *testing.T, b *Book) bool {
			a := take(t, b, client(1), now)
			b.Release(client(1), a, now)
			_, ok := b.Release(client(1), a, now)
			return ok
		}},
		{"who released it declines it no more", four, false, func(t *testing.T, b *Book) bool {
			a := take(t, b, client(1), now)
			b.Release(client(1), a, now)
			_, ok := b.Decline(client(1), a, now)
			return ok
		}},
		{"who was offered it may decline it", four, true, func(_ *testing.T, b *Book) bool {
			g, _ := b.Offer(client(1), netip.Addr{}, now)
			_, ok := b.Decline(client(1), g.Address, now)
			return ok
		}},
		{"a conflict over what is kept for the client", four, true, func(_ *testing.T, b *Book) bool {
			g, _ := b.Offer(client(1), netip.Addr{}, now)
			_, ok := b.Conflict(client(1), g.Address, now)
			return ok
		}},
		{"a conflict over what is kept for another", four, false, func(_ *testing.T, b *Book) bool {
			g, _ := b.Offer(client(1), netip.Addr{}, now)
			_, ok := b.Conflict(client(2), g.Address, now)
			return ok
		}},
		{"a conflict over what another has", four, false, func(t *testing.T, b *Book) bool {
			_, ok := b.Conflict(client(2), take(t, b, client(1), now), now)
			return ok
		}},
		{"a conflict in another network", four, false, func(_ *testing.T, b *Book) bool {
			_, ok := b.Conflict(client(1), at("fd00:2::1000"), now)
			return ok
		}},
		{"what is outside of a smaller subnet is forgotten", four, false, func(t *testing.T, b *Book) bool {
			a := take(t, b, client(1), now)
			s := subnet()
			s.CIDR = netip.MustParsePrefix("fd00:1::/120")
			b.Reconfigure(Network{Subnets: []inventory.Subnet{s}})
			return b.Has(client(1), a, now)
		}},
		{"an address that gives way is offered once", one, false, func(t *testing.T, b *Book) bool {
			take(t, b, client(1), now)
			b.Offer(client(2), netip.Addr{}, later)
			_, why := b.Offer(client(3), netip.Addr{}, later)
			return why == ""
		}},
		{"an offer ends before what was to be stored earlier", span("fd00:1::1000", "fd00:1::1001"), true, func(_ *testing.T, b *Book) bool {
			b.Assign(client(1), netip.Addr{}, now)
			b.Offer(client(2), netip.Addr{}, now)
			_, why := b.Offer(client(3), netip.Addr{}, now.Add(2*OfferFor))
			return why == ""
		}},
		{"a name server's address is nobody's", span("fd00:1::53", "fd00:1::54"), false, func(_ *testing.T, b *Book) bool {
			g, _ := b.Offer(client(1), at("fd00:1::53"), now)
			return g.Address == at("fd00:1::53")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.get(t, book(subnet(c.pool))); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestAReservationThatAnotherStillUses(t *testing.T) {
	reserved := func(n int, address string) inventory.Reservation {
		return inventory.Reservation{Address: at(address), Subnet: "six", MAC: client(n).MAC}
	}
	network := Network{
		Subnets: []inventory.Subnet{subnet(span("fd00:1::1000", "fd00:1::ffff"))}, Ours: []netip.Addr{at("fd00:1::1")},
		Reservations: []inventory.Reservation{reserved(3, "fd00:1::77"), reserved(4, "fd00:1::78"), reserved(5, "fd00:1::1")},
	}
	held := inventory.Lease{Address: at("fd00:1::77"), Subnet: "six", MAC: client(1).MAC, ClientID: client(1).DUID, IAID: 1, State: inventory.LeaseBound, StartsAt: now, ExpiresAt: now.Add(time.Hour)}
	for _, c := range []struct {
		name         string
		n            int
		wanted, want string
	}{
		{"its machine may have another one meanwhile", 3, "fd00:1::1234", "fd00:1::1234"},
		{"but none that is reserved for others", 3, "fd00:1::78", ""},
		{"what is ours was reserved in vain", 5, "fd00:1::1234", "fd00:1::1234"},
	} {
		g, why := New(network, []inventory.Lease{held}).Offer(client(c.n), at(c.wanted), now)
		if why != "" || c.want != "" && g.Address != at(c.want) || c.want == "" && g.Address == at(c.wanted) {
			t.Errorf("%s: %+v %s", c.name, g, why)
		}
	}
}

// TestEveryAddressIsFound takes the last address of a pool whose guesses nearly always miss it, and of one that goes over
// a border of 64 bits.
func TestEveryAddressIsFound(t *testing.T) {
	wide := subnet(span("fd00:1:0:0:ffff:ffff:ffff:fffe", "fd00:1:0:1::1"))
	wide.CIDR = netip.MustParsePrefix("fd00:1::/48")
	for _, c := range []struct {
		s inventory.Subnet
		n int
	}{{subnet(span("fd00:1::1000", "fd00:1::17ff")), 0x800}, {wide, 4}} {
		b, seen := book(c.s), map[netip.Addr]bool{}
		for i := range c.n {
			seen[take(t, b, Client{Subnet: "six", DUID: fmt.Sprintf("0003%08x", i), IAID: 1}, now)] = true
		}
		if len(seen) != c.n {
			t.Errorf("%d of %d addresses are given", len(seen), c.n)
		}
	}
}

func TestOldRecordsGiveWay(t *testing.T) {
	b := book(subnet(span("fd00:1::1:0", "fd00:1::ffff:ffff:ffff:ffff")))
	for i := range maxRecords + 10 {
		take(t, b, Client{Subnet: "six", DUID: fmt.Sprintf("0003%08x", i), IAID: 1}, now.Add(time.Duration(i)*25*time.Hour))
	}
	if n := len(b.pools["six"].byAddr); n > maxRecords {
		t.Errorf("%d records", n)
	}
}
