package lease6

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func at(s string) netip.Addr { return netip.MustParseAddr(s) }

func subnet(ranges ...inventory.Range) inventory.Subnet {
	return inventory.Subnet{
		Name: "six", CIDR: netip.MustParsePrefix("fd00:1::/64"), Interface: "eth0", Mode: inventory.ModeFull, Ranges: ranges,
		LeaseFor: inventory.Duration(24 * time.Hour), BootLeaseFor: inventory.Duration(10 * time.Minute), DNS: []netip.Addr{at("fd00:1::53")},
	}
}

func span(a, b string) inventory.Range { return inventory.Range{First: at(a), Last: at(b)} }

func book(s inventory.Subnet, rs ...inventory.Reservation) *Book {
	return New(Network{Subnets: []inventory.Subnet{s}, Reservations: rs, Ours: []netip.Addr{at("fd00:1::1")}}, nil)
}

func client(n int) Client {
	return Client{Subnet: "six", DUID: fmt.Sprintf("0003%08x", n), IAID: 1, MAC: inventory.MAC(fmt.Sprintf("52:54:00:00:00:%02x", n))}
}

// take gives a client an address as the door does, and fails the test when it gets none.
func take(t *testing.T, b *Book, c Client, when time.Time) netip.Addr {
	t.Helper()
	g, l, why := b.Assign(c, netip.Addr{}, when)
	if why != "" {
		t.Fatalf("%s gets nothing: %s", c.DUID, why)
	}
	if !b.Commit(l) || l.Address != g.Address || l.ClientID != c.DUID || l.IAID != c.IAID || l.MAC != c.MAC {
		t.Fatalf("lease %+v of grant %+v does not count", l, g)
	}
	return g.Address
}

func TestAMachineKeepsItsAddressThroughItsStages(t *testing.T) {
	b := book(subnet(span("fd00:1::1000", "fd00:1::ffff:ffff")))
	firmware := client(1)
	firmware.IsBoot = true
	a := take(t, b, firmware, now)
	system := firmware
	system.DUID, system.IAID, system.IsBoot = "0001deadbeef", 7, false // another program, the same port
	g, l, why := b.Assign(system, netip.Addr{}, now)
	if why != "" || g.Address != a || g.For != 24*time.Hour || g.IsFirstUse || !b.Commit(l) {
		t.Fatalf("the system gets %+v (%s), its firmware had %s", g, why, a)
	}
	second := system
	second.IAID = 8 // another interface of the same client
	if other := take(t, b, second, now); other == a {
		t.Errorf("two interfaces share %s", a)
	}
	if !b.Has(system, a, now) || b.Has(client(2), a, now) {
		t.Error("who has it is not who has it")
	}
	// After a restart the store's leases lead to the same.
	again := New(Network{Subnets: []inventory.Subnet{subnet(span("fd00:1::1000", "fd00:1::ffff:ffff"))}}, []inventory.Lease{l})
	if got := take(t, again, system, now.Add(time.Hour)); got != a {
		t.Errorf("after a restart it gets %s, had %s", got, a)
	}
}

func TestWhoMayHaveWhat(t *testing.T) {
	r := inventory.Reservation{Address: at("fd00:1::77"), Subnet: "six", MAC: client(3).MAC}
	b := book(subnet(span("fd00:1::1000", "fd00:1::1003")), r)
	one := take(t, b, client(1), now)
	cases := []struct {
		name   string
		c      Client
		wanted string
		want   string // an address, "free" or a reason
	}{
		{"a free one it asks for", client(2), "fd00:1::1002", "fd00:1::1002"},
		{"another's", client(2), one.String(), "free"},
		{"ours", client(2), "fd00:1::1", "free"},
		{"another network's", client(2), "fd00:2::5", "free"},
		{"another's reservation", client(2), "fd00:1::77", "free"},
		{"its reservation, whatever it asks for", client(3), "fd00:1::1002", "fd00:1::77"},
		{"a subnet that is not there", Client{Subnet: "x", DUID: "00030001"}, "", string(NoSubnet)},
	}
	for _, c := range cases {
		wanted, _ := netip.ParseAddr(c.wanted)
		g, why := b.Offer(c.c, wanted, now)
		switch {
		case c.want == "free":
			if why != "" || g.Address == wanted || g.Address == one {
				t.Errorf("%s: %+v, %s", c.name, g, why)
			}
		case why != "" && string(why) != c.want, why == "" && g.Address.String() != c.want:
			t.Errorf("%s: got %+v (%s), want %s", c.name, g, why, c.want)
		}
		b.Reconfigure(Network{Subnets: []inventory.Subnet{subnet(span("fd00:1::1000", "fd00:1::1003"))}, Reservations: []inventory.Reservation{r}, Ours: []netip.Addr{at("fd00:1::1")}}) // no offers
	}
}

func TestFullQuarantinedReleasedAndReused(t *testing.T) {
	b := book(subnet(span("fd00:1::1000", "fd00:1::1003")))
	var held []netip.Addr
	for n := range 4 {
		held = append(held, take(t, b, client(n), now.Add(time.Duration(n)*time.Second)))
	}
	if _, why := b.Offer(client(9), netip.Addr{}, now); why != Exhausted {
		t.Errorf("a fifth machine in four addresses: %q", why)
	}
	if _, ok := b.Release(client(9), held[0], now); ok {
		t.Error("a stranger releases another's address")
	}
	if l, ok := b.Release(client(2), held[2], now); !ok || l.State != inventory.LeaseReleased {
		t.Errorf("release: %+v, %v", l, ok)
	}
	if got := take(t, b, client(9), now); got != held[2] {
		t.Errorf("the released %s is not reused, but %s", held[2], got)
	}
	if _, ok := b.Decline(client(5), held[1], now); ok {
		t.Error("a stranger declines another's address")
	}
	if l, ok := b.Decline(client(1), held[1], now); !ok || l.State != inventory.LeaseDeclined || !l.ExpiresAt.Equal(now.Add(DeclineFor)) {
		t.Errorf("decline: %+v, %v", l, ok)
	}
	if _, why := b.Offer(client(1), held[1], now); why != Exhausted {
		t.Errorf("an address in quarantine is offered: %q", why)
	}
	if got := take(t, b, client(1), now.Add(DeclineFor+time.Second)); got != held[1] {
		t.Errorf("after its quarantine %s is not given, but %s", held[1], got)
	}
	// The lease that ended longest ago gives way.
	if got := take(t, b, client(7), now.Add(25*time.Hour)); !b.Has(client(7), got, now.Add(25*time.Hour)) {
		t.Errorf("%s is not its own", got)
	}
}

func TestLimits(t *testing.T) {
	b := book(subnet(span("fd00:1::1:0", "fd00:1::ffff:ffff:ffff:ffff")))
	c := client(1)
	for i := range maxPerDUID {
		c.IAID = uint32(i)
		take(t, b, c, now)
	}
	c.IAID = 99
	if _, why := b.Offer(c, netip.Addr{}, now); why != TooMany {
		t.Errorf("one client holds more than %d addresses: %q", maxPerDUID, why)
	}
	s := subnet()
	s.Mode = inventory.ModeReservations
	if _, why := book(s).Offer(client(1), netip.Addr{}, now); why != NoReservation {
		t.Errorf("mode reservations: %q", why)
	}
	for i := range maxOffers + 100 {
		b.Offer(Client{Subnet: "six", DUID: fmt.Sprint("ff", i), IAID: 1}, netip.Addr{}, now)
	}
	if n := len(b.offers); n > maxOffers {
		t.Errorf("%d offers in memory", n)
	}
	b.sweep(now.Add(time.Hour))
	if n := len(b.offers) + len(b.pools["six"].offered) + len(b.pools["six"].offerOf); n != 0 {
		t.Errorf("%d offers outlive their time", n)
	}
}

func TestSubnetFor(t *testing.T) {
	far := subnet()
	far.Name, far.CIDR, far.Interface = "far", netip.MustParsePrefix("fd00:2::/64"), ""
	four := inventory.Subnet{Name: "four", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Interface: "eth0"}
	b := New(Network{Subnets: []inventory.Subnet{four, subnet(), far}}, nil)
	for _, c := range []struct {
		p    Path
		want string
	}{
		{Path{Interface: "eth0"}, "six"},
		{Path{Interface: "eth1"}, ""},
		{Path{Interface: "eth1", Local: []netip.Addr{at("fd00:1::1")}}, ""}, // it is served elsewhere
		{Path{}, ""},
		{Path{Interface: "eth1", Local: []netip.Addr{at("fd00:2::1")}}, "far"},
		{Path{Interface: "eth0", Link: at("fd00:2::9")}, "far"},
		{Path{Interface: "eth0", Link: at("fd00:3::9")}, ""},
		{Path{Interface: "eth0", Link: at("fe80::9")}, "six"},
		{Path{Interface: "eth0", Link: at("::")}, "six"},
	} {
		s, ok := b.SubnetFor(c.p)
		if s.Name != c.want || ok != (c.want != "") {
			t.Errorf("%+v: %q, want %q", c.p, s.Name, c.want)
		}
	}
}

// TestNoAddressHasTwoHolders walks random clients through a small pool and holds that what is bound is bound once.
func TestNoAddressHasTwoHolders(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		b := book(subnet(span("fd00:1::1000", "fd00:1::1007")))
		holder := map[netip.Addr]Client{}
		when := now
		for range 2000 {
			when = when.Add(time.Duration(rnd.IntN(3000)) * time.Second)
			c := client(rnd.IntN(12))
			c.IAID = uint32(rnd.IntN(2))
			switch rnd.IntN(5) {
			case 0:
				b.Offer(c, netip.Addr{}, when)
			case 1, 2, 3:
				g, l, why := b.Assign(c, netip.Addr{}, when)
				if why != "" {
					continue
				}
				if old, taken := holder[g.Address]; taken && b.Has(old, g.Address, when) && old.key() != c.key() {
					t.Fatalf("seed %d: %s is %v's and given to %v", seed, g.Address, old, c)
				}
				if rnd.IntN(8) == 0 {
					b.Abort(l)
				} else if b.Commit(l) {
					holder[g.Address] = c
				}
			case 4:
				for a, h := range holder {
					if h.key() == c.key() {
						b.Release(c, a, when)
						delete(holder, a)
					}
				}
			}
		}
		p := b.pools["six"]
		if len(p.reusable) > 8 || len(p.byAddr) > 8 {
			t.Errorf("seed %d: %d records of 8 addresses", seed, len(p.byAddr))
		}
		for i, r := range p.reusable {
			if r.heapAt != i || p.byAddr[r.addr] != r {
				t.Fatalf("seed %d: the heap has lost its order", seed)
			}
		}
	}
}
