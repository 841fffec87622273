package lease

import (
	"cmp"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
)

// Offer is an address held for a client until OfferFor has passed.
type Offer struct {
	Address  netip.Addr
	For      time.Duration // the lease that will come with it
	Hostname string        // of the reservation; "" when none is reserved
	// IsFirstUse is true if this client has not had the address before. An unknown device may use it, so the caller
	// should probe it first (RFC 2131 section 2.2). Nobody probes reserved addresses.
	IsFirstUse bool
}

// Offer answers a DISCOVER: it chooses an address and holds it for the client until OfferFor has passed. wanted is
// option 50 and may be invalid. The Reason is "" when there is an address.
func (b *Book) Offer(c Client, wanted netip.Addr, now time.Time) (Offer, Reason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offers.expire(now)
	p, why := b.poolFor(c)
	if why != "" {
		return Offer{}, why
	}
	m := toMAC(c.MAC)
	a, why := uint32(0), p.refuseStranger(b.limits, c, m, now)
	if why == "" {
		a, why = p.choose(c, m, wanted, now)
	}
	if why == Exhausted || why == KeptForKnown {
		if given, ok := b.offers.giveWay(p, now); ok {
			a, why = given, ""
		}
	}
	if why != "" {
		return Offer{}, why
	}
	o := b.offers.hold(p, c, m, a, now)
	p.noteHolder(c, a, o.until)
	return p.offer(c, m, a), ""
}

func (p *pool) offer(c Client, m mac, a uint32) Offer {
	o := Offer{Address: toAddr(a), For: p.leaseFor(c)}
	if r := p.reserved[a]; r != nil {
		o.Hostname = r.Hostname
	} else {
		r := p.byAddr[a]
		o.IsFirstUse = r == nil || r.mac != m
	}
	return o
}

func (p *pool) leaseFor(c Client) time.Duration {
	if c.IsBoot {
		return time.Duration(p.subnet.BootLeaseFor)
	}
	return time.Duration(p.subnet.LeaseFor)
}

// HasReservation reports whether an address is reserved for a client.
func (b *Book) HasReservation(c Client) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[c.Subnet]
	return p != nil && p.reservation(c, toMAC(c.MAC)) != nil
}

// Reservation returns what is reserved for a client.
func (b *Book) Reservation(c Client) (inventory.Reservation, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.pools[c.Subnet]; p != nil {
		if r := p.reservation(c, toMAC(c.MAC)); r != nil {
			return *r, true
		}
	}
	return inventory.Reservation{}, false
}

// Forget drops what was offered to a client that took another server's offer.
func (b *Book) Forget(c Client) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.pools[c.Subnet]; p != nil {
		if o := p.offerOf[toMAC(c.MAC)]; o != nil && !o.isPending {
			b.offers.drop(o)
		}
	}
}

// offer is an address that is held for a client: offered, or acknowledged but not yet stored.
type offer struct {
	pool      *pool
	mac       mac
	addr      uint32
	until     time.Time
	isPending bool
	isKnown   bool // its client is no stranger: the offer gives way to nobody
	at        time.Time

	prev, next   *offer // in offerTable.ring
	older, newer *offer // in pool.unclaimed; nil when not there
}

// offerTable holds the offers of all subnets in the order in which they end. It is bounded: a flood of invented
// clients costs real ones an offer, not us our memory.
type offerTable struct {
	// rings are sentinels: of strangers, of known clients, and of what is being stored. All of a ring hold for the same
	// time, so that each is in order; a client in an earlier list makes room first.
	rings [3]*offer
	n     int
	// strangersFor is how long an offer to a stranger holds; 0 means OfferFor.
	strangersFor time.Duration
}

func newRing() *offer {
	s := &offer{}
	s.prev, s.next, s.older, s.newer = s, s, s, s
	return s
}

func newOfferTable() offerTable {
	return offerTable{rings: [3]*offer{newRing(), newRing(), newRing()}}
}

// hold keeps an address for a client, in place of what was held for it before.
func (t *offerTable) hold(p *pool, c Client, m mac, a uint32, now time.Time) *offer {
	o := p.offerOf[m]
	if o != nil && o.addr != a {
		t.drop(o)
		o = nil
	}
	if o == nil {
		for t.n >= maxOffers {
			t.evict()
		}
		o = &offer{pool: p, mac: m, addr: a}
		p.offered[a], p.offerOf[m] = o, o
		p.dequeue(p.byAddr[a])
		t.n++
	} else {
		o.unlink()
	}
	o.at, o.isKnown = now, c.IsKnown
	t.append(o, now)
	return o
}

// append puts an offer that holds from now on behind those of its kind.
func (t *offerTable) append(o *offer, now time.Time) {
	ring, held := t.rings[0], cmp.Or(t.strangersFor, OfferFor)
	switch {
	case o.isPending:
		ring, held = t.rings[2], pendingFor
	case o.isKnown:
		ring, held = t.rings[1], OfferFor
	}
	o.until = now.Add(held)
	last := ring.prev
	o.prev, o.next = last, ring
	last.next, ring.prev = o, o
	if !o.isPending && !o.isKnown && o.pool.isDynamic(o.addr) {
		o.pool.addUnclaimed(o)
	}
}

func (o *offer) unlink() {
	o.prev.next, o.next.prev = o.next, o.prev
	o.claim()
}

// claim takes an offer from those that its client has not asked for.
func (o *offer) claim() {
	if o.newer != nil {
		o.older.newer, o.newer.older = o.newer, o.older
		o.older, o.newer = nil, nil
	}
}

// addUnclaimed adds the newest offer that its client has not asked for.
func (p *pool) addUnclaimed(o *offer) {
	last := p.unclaimed.older
	o.older, o.newer = last, p.unclaimed
	last.newer, p.unclaimed.older = o, o
}

// giveWay takes an address of a subnet without free ones from the client that has longest had an offer and not asked
// for it. So machines that do not exist cannot close a subnet by asking for all its addresses again and again.
func (t *offerTable) giveWay(p *pool, now time.Time) (uint32, bool) {
	o := p.unclaimed.newer
	if o == p.unclaimed || now.Sub(o.at) < unclaimedFor {
		return 0, false
	}
	t.remove(o)
	return o.addr, true
}

// drop ends an offer and makes its address available.
func (t *offerTable) drop(o *offer) {
	t.remove(o)
	o.pool.giveBack(o.addr)
}

func (t *offerTable) remove(o *offer) {
	o.unlink()
	delete(o.pool.offered, o.addr)
	delete(o.pool.offerOf, o.mac)
	t.n--
}

// expire ends the offers whose time is over.
func (t *offerTable) expire(now time.Time) {
	for _, ring := range t.rings {
		for o := ring.next; o != ring && !o.until.After(now); o = ring.next {
			if o.isPending {
				o.isPending = false // the caller forgot to say what became of it; nothing was promised
			}
			t.drop(o)
		}
	}
}

// evict makes room for one offer.
func (t *offerTable) evict() {
	for _, ring := range t.rings {
		if ring.next != ring {
			t.drop(ring.next)
			return
		}
	}
}

// forget ends the offers that match, without making their addresses available: the pools are being rebuilt.
func (t *offerTable) forget(match func(*offer) bool) {
	for _, ring := range t.rings {
		for o := ring.next; o != ring; {
			next := o.next
			if match(o) {
				o.unlink()
				t.n--
			}
			o = next
		}
	}
}
