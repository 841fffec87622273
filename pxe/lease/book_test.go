package lease

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

var (
	t0   = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	addr = netip.MustParseAddr
)

// rack is a subnet with four dynamic addresses, .10 to .13; the gateway lies inside the range.
func rack() inventory.Subnet {
	return inventory.Subnet{
		Name: "rack", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Mode: inventory.ModeFull,
		Gateway: addr("10.0.0.12"), LeaseFor: inventory.Duration(24 * time.Hour), BootLeaseFor: inventory.Duration(10 * time.Minute),
		Ranges: []inventory.Range{{First: addr("10.0.0.10"), Last: addr("10.0.0.14")}},
	}
}

func macN(n int) inventory.MAC {
	return inventory.MAC(fmt.Sprintf("52:54:00:%02x:%02x:%02x", n>>16&255, n>>8&255, n&255))
}

func client(n int) Client { return Client{Subnet: "rack", MAC: macN(n)} }

// table is a book with a store that keeps what is committed.
type table struct {
	t     testing.TB
	book  *Book
	net   Network
	rows  map[netip.Addr]inventory.Lease
	now   time.Time
	epoch int64
}

func newTable(t testing.TB, s inventory.Subnet, rs ...inventory.Reservation) *table {
	x := &table{t: t, net: Network{Subnets: []inventory.Subnet{s}, Reservations: rs}, rows: map[netip.Addr]inventory.Lease{}, now: t0}
	x.restart()
	return x
}

// restart loses everything that is not stored.
func (x *table) restart() {
	var leases []inventory.Lease
	for _, l := range x.rows {
		leases = append(leases, l)
	}
	x.book = New(x.net, leases)
}

// takeOver is another instance that gains the network: its book is old, and it reads what is stored.
func (x *table) takeOver() {
	var leases []inventory.Lease
	for _, l := range x.rows {
		leases = append(leases, l)
	}
	x.epoch++
	x.book.Replace("rack", leases, x.epoch)
}

func (x *table) store(l inventory.Lease) { x.rows[l.Address] = l }

func (x *table) offer(c Client, wanted string) string {
	var w netip.Addr
	if wanted != "" {
		w = addr(wanted)
	}
	o, why := x.book.Offer(c, w, x.now)
	if why != "" {
		return string(why)
	}
	return o.Address.String()
}

// ask sends a REQUEST and stores and commits what it gets.
func (x *table) ask(c Client, s State, a string) string {
	var want netip.Addr
	if a != "" {
		want = addr(a)
	}
	r := x.book.Confirm(c, s, want, x.now)
	if r.Verdict != Ack {
		return string(r.Verdict) + ": " + string(r.Reason)
	}
	x.store(r.Lease)
	if !x.book.Commit(r.Lease) {
		return "not committed"
	}
	return r.Lease.Address.String()
}

// join is a whole exchange.
func (x *table) join(c Client) string {
	a := x.offer(c, "")
	if _, err := netip.ParseAddr(a); err != nil {
		return a
	}
	return x.ask(c, Selecting, a)
}

func (x *table) want(what, got, want string) {
	x.t.Helper()
	if got != want {
		x.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestOffer(t *testing.T) {
	full := rack()
	only := rack()
	only.Mode = inventory.ModeReservations
	off := rack()
	off.Mode = inventory.ModeOff
	reserved := func(a string, edit func(*inventory.Reservation)) inventory.Reservation {
		r := inventory.Reservation{Address: addr(a), Subnet: "rack"}
		edit(&r)
		return r
	}
	byMAC := func(a string, n int) inventory.Reservation {
		return reserved(a, func(r *inventory.Reservation) { r.MAC = macN(n) })
	}
	for _, tt := range []struct {
		name string
		sub  inventory.Subnet
		rs   []inventory.Reservation
		do   func(x *table)
	}{
		{"a new machine gets the first address never used", full, nil, func(x *table) {
			x.want("first", x.join(client(1)), "10.0.0.10")
			x.want("second", x.join(client(2)), "10.0.0.11")
		}},
		{"the gateway inside a range is never given away", full, nil, func(x *table) {
			for n := 1; n <= 4; n++ {
				if got := x.join(client(n)); got == "10.0.0.12" {
					x.t.Error("got the gateway")
				}
			}
			x.want("fifth", x.join(client(5)), string(Exhausted))
		}},
		{"an offer is held for its client and repeated to it", full, nil, func(x *table) {
			x.want("first", x.offer(client(1), ""), "10.0.0.10")
			x.want("other", x.offer(client(2), ""), "10.0.0.11")
			x.want("other asks for the held one", x.offer(client(3), "10.0.0.10"), "10.0.0.13")
			x.want("again", x.offer(client(1), ""), "10.0.0.10")
		}},
		{"an offer that nobody takes is free after a minute", full, nil, func(x *table) {
			for n := 1; n <= 4; n++ {
				x.offer(client(n), "")
			}
			x.want("none left", x.offer(client(5), ""), string(Exhausted))
			x.now = x.now.Add(OfferFor)
			x.want("free again", x.offer(client(5), "10.0.0.13"), "10.0.0.13")
		}},
		{"in a full subnet the oldest offer that nobody asked for gives way after a while", full, nil, func(x *table) {
			x.join(client(1))
			for n := 2; n <= 4; n++ {
				x.offer(client(n), "")
				x.now = x.now.Add(time.Second)
			}
			x.offer(client(2), "") // it is still there
			x.now = x.now.Add(unclaimedFor - 3*time.Second)
			x.want("none is old enough", x.offer(client(5), ""), string(Exhausted))
			x.now = x.now.Add(time.Second)
			x.want("the oldest", x.offer(client(5), ""), "10.0.0.13")
			x.want("the client that lost it", x.ask(client(3), Selecting, "10.0.0.13"), "nak: "+string(TakenByAnother))
			x.want("only one is old enough", x.offer(client(6), ""), string(Exhausted))
			x.want("the others keep theirs", x.ask(client(4), Selecting, "10.0.0.14"), "10.0.0.14")
			x.want("and a lease never gives way", x.ask(client(1), Renewing, "10.0.0.10"), "10.0.0.10")
		}},
		{"neither a reserved address nor one being acknowledged gives way", full, []inventory.Reservation{byMAC("10.0.0.20", 9)}, func(x *table) {
			x.offer(client(9), "")
			var asked Result
			for n := 1; n <= 4; n++ {
				a := x.offer(client(n), "")
				asked = x.book.Confirm(client(n), Selecting, addr(a), x.now)
			}
			x.now = x.now.Add(unclaimedFor)
			x.want("while being stored", x.offer(client(5), ""), string(Exhausted))
			x.book.Abort(asked.Lease, x.now)
			x.want("not stored, on offer again", x.offer(client(5), ""), string(Exhausted))
			x.now = x.now.Add(unclaimedFor)
			x.want("and nobody asks again", x.offer(client(5), ""), asked.Lease.Address.String())
		}},
		{"offers give way after the network changed, too", full, nil, func(x *table) {
			for n := 1; n <= 4; n++ {
				x.offer(client(n), "")
			}
			x.net.Reservations = []inventory.Reservation{byMAC("10.0.0.10", 7)}
			x.book.Reconfigure(x.net)
			x.book.check(x.t)
			x.book.Forget(client(1)) // its address is reserved now
			x.book.check(x.t)
			x.now = x.now.Add(unclaimedFor)
			x.want("the oldest that is left", x.offer(client(5), ""), "10.0.0.11")
		}},
		{"a machine gets the address it had, before the one it asks for", full, nil, func(x *table) {
			x.want("first", x.join(client(1)), "10.0.0.10")
			x.now = x.now.Add(48 * time.Hour)
			x.want("later", x.offer(client(1), "10.0.0.13"), "10.0.0.10")
		}},
		{"a machine gets the address it asks for when it is free", full, nil, func(x *table) {
			x.want("wanted", x.offer(client(1), "10.0.0.14"), "10.0.0.14")
		}},
		{"an address outside of the ranges is not given on request", full, nil, func(x *table) {
			x.want("wanted", x.offer(client(1), "10.0.0.99"), "10.0.0.10")
		}},
		{"an address of another network is not given on request", full, nil, func(x *table) {
			x.want("wanted", x.offer(client(1), "192.168.1.5"), "10.0.0.10")
		}},
		{"when all are used the lease that ended longest ago is taken", full, nil, func(x *table) {
			for n := 1; n <= 4; n++ {
				x.join(client(n))
				x.now = x.now.Add(time.Minute)
			}
			x.ask(client(1), Renewing, "10.0.0.10")
			x.now = x.now.Add(24*time.Hour - time.Minute)
			x.want("new machine", x.join(client(5)), "10.0.0.11")
			x.want("its owner", x.join(client(2)), "10.0.0.13")
		}},
		{"a lease that ended is offered to one machine at a time", full, nil, func(x *table) {
			for n := 1; n <= 4; n++ {
				x.join(client(n))
			}
			x.now = x.now.Add(25 * time.Hour)
			x.want("first", x.offer(client(5), ""), "10.0.0.10")
			x.want("second", x.offer(client(6), ""), "10.0.0.11")
			x.want("its owner meanwhile", x.offer(client(1), ""), "10.0.0.13")
			x.now = x.now.Add(OfferFor)
			x.want("its owner afterwards", x.offer(client(1), ""), "10.0.0.10")
		}},
		{"a released address goes to others only when no unused one is left", full, nil, func(x *table) {
			x.join(client(1))
			l, ok := x.book.Release(client(1), addr("10.0.0.10"), x.now)
			if !ok || l.State != inventory.LeaseReleased {
				x.t.Errorf("release: %v %v", l, ok)
			}
			x.want("other", x.join(client(2)), "10.0.0.11")
			x.want("same", x.join(client(1)), "10.0.0.10")
			x.book.Release(client(1), addr("10.0.0.10"), x.now)
			x.join(client(3))
			x.join(client(4))
			x.want("last", x.join(client(5)), "10.0.0.10")
		}},
		{"a reserved address is given to its machine and to no other", full, []inventory.Reservation{byMAC("10.0.0.10", 7)}, func(x *table) {
			x.want("other", x.join(client(1)), "10.0.0.11")
			x.want("other asks for it", x.offer(client(2), "10.0.0.10"), "10.0.0.13")
			x.want("its machine", x.join(client(7)), "10.0.0.10")
		}},
		{"a reservation outside of the ranges holds", full, []inventory.Reservation{byMAC("10.0.0.200", 7)}, func(x *table) {
			x.want("its machine", x.join(client(7)), "10.0.0.200")
		}},
		{
			"a reservation by client id holds for any MAC", full,
			[]inventory.Reservation{reserved("10.0.0.50", func(r *inventory.Reservation) { r.ClientID = "ff01" })},
			func(x *table) {
				c := client(1)
				c.ClientID = "ff01"
				x.want("with it", x.join(c), "10.0.0.50")
				x.want("without it", x.join(client(2)), "10.0.0.10")
			},
		},
		{
			"a reservation by UUID holds at boot and for the MAC that booted with it", full,
			[]inventory.Reservation{reserved("10.0.0.50", func(r *inventory.Reservation) { r.UUID = "4c4c" })},
			func(x *table) {
				c := client(1)
				c.UUID = "4c4c"
				x.want("operating system that claims it", x.offer(c, ""), "10.0.0.10")
				c.IsBoot = true
				x.want("boot", x.join(c), "10.0.0.50")
				x.want("its operating system", x.join(client(1)), "10.0.0.50")
				x.want("which renews", x.ask(client(1), Renewing, "10.0.0.50"), "10.0.0.50")
			},
		},
		{"a reservation by MAC counts before one by client id", full, []inventory.Reservation{
			reserved("10.0.0.50", func(r *inventory.Reservation) { r.ClientID = "ff01" }), byMAC("10.0.0.51", 1),
		}, func(x *table) {
			c := client(1)
			c.ClientID = "ff01"
			x.want("both", x.join(c), "10.0.0.51")
		}},
		{"a reserved address that another machine still has is not given twice", full, nil, func(x *table) {
			x.want("holder", x.join(client(1)), "10.0.0.10")
			x.net.Reservations = []inventory.Reservation{byMAC("10.0.0.10", 7)}
			x.book.Reconfigure(x.net)
			x.want("reserved", x.join(client(7)), "10.0.0.11")
			x.want("holder renews", x.ask(client(1), Renewing, "10.0.0.10"), "nak: "+string(ReservedOther))
			x.now = x.now.Add(25 * time.Hour)
			x.want("reserved, later", x.join(client(7)), "10.0.0.10")
		}},
		{"mode reservations serves nobody else", only, []inventory.Reservation{byMAC("10.0.0.10", 7)}, func(x *table) {
			x.want("other", x.join(client(1)), string(NoReservation))
			x.want("other renews", x.ask(client(1), Renewing, "10.0.0.11"), "silent: "+string(NoReservation))
			x.want("its machine", x.join(client(7)), "10.0.0.10")
			x.want("its machine with another address", x.ask(client(7), InitReboot, "10.0.0.11"), "nak: "+string(NoReservation))
		}},
		{"mode off is silent", off, nil, func(x *table) {
			x.want("offer", x.join(client(1)), string(IsOff))
			x.want("request", x.ask(client(1), Renewing, "10.0.0.10"), "silent: "+string(IsOff))
		}},
		{"an unknown subnet is silent", full, nil, func(x *table) {
			c := client(1)
			c.Subnet = "elsewhere"
			x.want("offer", x.offer(c, ""), string(NoSubnet))
		}},
		{"a declined address is kept from everyone for ten minutes", full, nil, func(x *table) {
			x.join(client(1))
			l, ok := x.book.Decline(client(1), addr("10.0.0.10"), x.now)
			if !ok || l.State != inventory.LeaseDeclined || !l.ExpiresAt.Equal(x.now.Add(DeclineFor)) {
				x.t.Errorf("decline: %+v %v", l, ok)
			}
			x.store(l)
			x.restart()
			x.want("same", x.join(client(1)), "10.0.0.11")
			x.want("asks for it", x.offer(client(2), "10.0.0.10"), "10.0.0.13")
			x.want("goes on with it", x.ask(client(3), InitReboot, "10.0.0.10"), "nak: "+string(InQuarantine))
			x.now = x.now.Add(DeclineFor)
			x.want("afterwards", x.offer(client(3), "10.0.0.10"), "10.0.0.10")
		}},
		{"only the holder can decline", full, nil, func(x *table) {
			x.join(client(1))
			if _, ok := x.book.Decline(client(2), addr("10.0.0.10"), x.now); ok {
				x.t.Error("a stranger declined the address")
			}
			if _, ok := x.book.Decline(client(2), addr("10.0.0.14"), x.now); ok {
				x.t.Error("a stranger declined a free address")
			}
		}},
		{"a probe that finds somebody closes the address before it is offered", full, nil, func(x *table) {
			x.want("first", x.offer(client(1), ""), "10.0.0.10")
			if _, ok := x.book.Conflict(client(1), addr("10.0.0.10"), x.now); !ok {
				x.t.Error("conflict refused")
			}
			x.want("next", x.offer(client(1), ""), "10.0.0.11")
		}},
		{"a probe cannot take an address from its holder", full, nil, func(x *table) {
			x.join(client(1))
			if _, ok := x.book.Conflict(client(2), addr("10.0.0.10"), x.now); ok {
				x.t.Error("a bound address was closed")
			}
		}},
		{"leases survive a restart, offers do not", full, nil, func(x *table) {
			x.join(client(1))
			x.want("offer", x.offer(client(2), ""), "10.0.0.11")
			x.restart()
			x.want("sticky", x.offer(client(1), ""), "10.0.0.10")
			x.want("the offer of before the restart is honoured", x.ask(client(2), Selecting, "10.0.0.11"), "10.0.0.11")
		}},
		{"a range that shrinks lets no lease outside of it live on", full, nil, func(x *table) {
			x.join(client(1))
			s := rack()
			s.Ranges[0].First = addr("10.0.0.11")
			x.net.Subnets[0] = s
			x.book.Reconfigure(x.net)
			x.want("renew", x.ask(client(1), Renewing, "10.0.0.10"), "nak: "+string(OutsideRanges))
			x.want("anew", x.join(client(1)), "10.0.0.11")
		}},
		{"a subnet that grows keeps its leases", full, nil, func(x *table) {
			x.join(client(1))
			s := rack()
			s.CIDR = netip.MustParsePrefix("10.0.0.0/23")
			x.net.Subnets[0] = s
			x.book.Reconfigure(x.net)
			x.want("renew", x.ask(client(1), Renewing, "10.0.0.10"), "10.0.0.10")
			x.want("other", x.join(client(2)), "10.0.0.11")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := newTable(t, tt.sub, tt.rs...)
			tt.do(x)
			x.book.check(t)
		})
	}
}

func TestOurOwnAddressIsGivenToNobodyEvenIfItIsReserved(t *testing.T) {
	x := newTable(t, rack(), inventory.Reservation{Address: addr("10.0.0.1"), Subnet: "rack", MAC: macN(1)})
	x.net.Ours = []netip.Addr{addr("10.0.0.1")}
	x.restart()
	if got := x.offer(client(1), ""); got != "10.0.0.10" {
		t.Errorf("offered %s, want an address of the range", got)
	}
	for _, s := range []State{Selecting, InitReboot, Renewing, Rebinding} {
		if got := x.ask(client(1), s, "10.0.0.1"); got == "10.0.0.1" {
			t.Errorf("our own address is acknowledged to a client that is %v", s)
		}
	}
	x.store(inventory.Lease{Address: addr("10.0.0.1"), Subnet: "rack", MAC: macN(2), State: inventory.LeaseBound, ExpiresAt: t0.Add(time.Hour)})
	x.restart()
	if got := x.offer(client(2), "10.0.0.1"); got == "10.0.0.1" {
		t.Error("our own address is offered to the machine that had it once")
	}
}

func TestCounts(t *testing.T) {
	x := newTable(t, rack(), inventory.Reservation{Address: addr("10.0.0.14"), Subnet: "rack", MAC: macN(9)},
		inventory.Reservation{Address: addr("10.0.0.99"), Subnet: "rack", MAC: macN(8)})
	x.join(client(1))
	x.join(client(8))
	x.offer(client(2), "")
	want := Counts{RangeN: 4, BoundN: 2, OfferedN: 1, FreeN: 1}
	if diff := cmp.Diff(want, x.book.Counts("rack", x.now)); diff != "" {
		t.Error(diff)
	}
}

// check fails unless the book's own lists agree with each other.
func (b *Book) check(t interface{ Fatalf(string, ...any) }) {
	n := 0
	for _, ring := range b.offers.rings {
		for o := ring.next; o != ring; o = o.next {
			n++
			if o.next.prev != o || o.pool.offered[o.addr] != o || o.pool.offerOf[o.mac] != o {
				t.Fatalf("the offer of %s is not where it should be", toAddr(o.addr))
			}
		}
	}
	if n != b.offers.n {
		t.Fatalf("%d offers are counted, %d are there", b.offers.n, n)
	}
	for name, p := range b.pools {
		for m, r := range p.byMAC {
			if r.mac != m || p.byAddr[r.addr] != r {
				t.Fatalf("%s: %s is kept for %s and belongs to %s", name, toAddr(r.addr), m.inventory(), r.mac.inventory())
			}
		}
		for i, r := range p.reusable {
			if int(r.heapAt) != i || p.byAddr[r.addr] != r || p.offered[r.addr] != nil || !p.isDynamic(r.addr) {
				t.Fatalf("%s: %s is among the reusable", name, toAddr(r.addr))
			}
		}
		n -= len(p.offered)
		p.checkUnclaimed(t)
	}
	for _, ring := range b.offers.rings {
		for o := ring.next; o != ring && o.next != ring; o = o.next {
			if o.next.until.Before(o.until) {
				t.Fatalf("the offer of %s stands behind one that ends later", toAddr(o.next.addr))
			}
		}
	}
	if n != 0 {
		t.Fatalf("%d offers are in the ring and in no pool", n)
	}
}

// checkUnclaimed fails unless the ring of unclaimed offers holds exactly those, in order.
func (p *pool) checkUnclaimed(t interface{ Fatalf(string, ...any) }) {
	want := 0
	for _, o := range p.offered {
		if !o.isPending && !o.isKnown && p.isDynamic(o.addr) {
			want++
		}
	}
	for o := p.unclaimed.newer; o != p.unclaimed; o = o.newer {
		want--
		if o.newer.older != o || p.offered[o.addr] != o || o.isPending || o.newer != p.unclaimed && o.newer.until.Before(o.until) {
			t.Fatalf("the offer of %s is not unclaimed", toAddr(o.addr))
		}
	}
	if want != 0 {
		t.Fatalf("%d unclaimed offers are missing in %s", want, p.subnet.Name)
	}
}

func TestOffersAreBounded(t *testing.T) {
	s := rack()
	s.CIDR = netip.MustParsePrefix("10.0.0.0/8")
	s.Ranges = []inventory.Range{{First: addr("10.1.0.0"), Last: addr("10.90.255.255")}}
	x := newTable(t, s)
	x.offer(client(0), "")
	pending := x.book.Confirm(client(0), Selecting, addr("10.1.0.0"), x.now)
	for n := 1; n <= maxOffers+1000; n++ {
		x.offer(client(n), "")
	}
	if got := x.book.Counts("rack", x.now).OfferedN; got != maxOffers {
		t.Errorf("%d offers are held, want %d", got, maxOffers)
	}
	if !x.book.Commit(pending.Lease) {
		t.Error("a flood of offers pushed out an acknowledgement that was being stored")
	}
}
