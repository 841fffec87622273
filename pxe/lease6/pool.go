package lease6

import (
	"container/heap"
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/bits"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

// record is an address that is or was leased. It stays after its end, so that its client gets it again, until fresh
// gives it to another machine.
type record struct {
	addr           netip.Addr
	key            key
	mac            inventory.MAC
	hostname, port string
	state          inventory.LeaseState
	isBoot         bool
	starts, ends   time.Time // ends is also when a quarantine is over, or when it was released
	heapAt         int       // place in pool.reusable, -1 when not there
}

// isHeld reports whether nobody but its client may have the address.
func (r *record) isHeld(now time.Time) bool {
	return r.state != inventory.LeaseReleased && r.ends.After(now)
}

// isOf reports whether an address is a client's: of the same association, or of the same port under another DUID,
// which is what the machine boots next. Another association of the same DUID is another interface.
func (r *record) isOf(c Client) bool {
	return r.key == c.key() || r.mac != "" && r.mac == c.MAC && r.key.duid != c.DUID
}

// offer is an address that is kept for a client.
type offer struct {
	pool  *pool
	addr  netip.Addr
	key   key
	until time.Time
}

// end takes an offer back; it stays in Book.offers until it is swept.
func (o *offer) end() {
	if o.pool.offered[o.addr] == o {
		delete(o.pool.offered, o.addr)
	}
	if o.pool.offerOf[o.key] == o {
		delete(o.pool.offerOf, o.key)
	}
}

// hold keeps an address for a client, in place of what was kept for it before.
// Offers and pending leases share the list, so that their ends differ by minutes. The insertion keeps it sorted; new
// ones nearly always go to the end. At maxOffers the oldest gives way: a flood of invented DUIDs costs offers and no
// memory.
func (b *Book) hold(p *pool, c Client, a netip.Addr, until, now time.Time) {
	for _, old := range []*offer{p.offerOf[c.key()], p.offered[a]} {
		if old != nil {
			old.end()
		}
	}
	if len(b.offers) >= maxOffers {
		b.sweep(now)
	}
	for len(b.offers) >= maxOffers {
		b.offers[0].end()
		b.offers = b.offers[1:]
	}
	o := &offer{pool: p, addr: a, key: c.key(), until: until}
	p.offered[a], p.offerOf[c.key()] = o, o
	at := len(b.offers)
	for at > 0 && b.offers[at-1].until.After(until) {
		at--
	}
	b.offers = slices.Insert(b.offers, at, o)
}

// sweep ends the offers whose time has passed, and removes those at the front that ended before.
func (b *Book) sweep(now time.Time) {
	n := 0
	for n < len(b.offers) && (!b.offers[n].until.After(now) || b.offers[n].pool.offered[b.offers[n].addr] != b.offers[n]) {
		b.offers[n].end()
		n++
	}
	b.offers = b.offers[n:]
}

// pool holds the addresses of one subnet. A /64 has more addresses than memory has room for, so that only used ones
// have a record. Book.mu guards it.
type pool struct {
	subnet   inventory.Subnet
	cidr     netip.Prefix
	epoch    int64  // in which byAddr was read; see Book.Replace
	size     uint64 // of the ranges, at most the largest number
	excluded map[netip.Addr]bool
	reserved map[netip.Addr]*inventory.Reservation
	keys     map[string]*inventory.Reservation // by "m"+MAC, "c"+DUID, "u"+UUID, "p"+port

	byAddr   map[netip.Addr]*record
	byKey    map[key]*record
	byMAC    map[inventory.MAC]*record // the latest of a port
	perDUID  map[string]int
	offered  map[netip.Addr]*offer
	offerOf  map[key]*offer
	reusable byEnd
}

func newPool(s inventory.Subnet, n Network) *pool {
	p := &pool{
		subnet: s, cidr: s.CIDR, excluded: map[netip.Addr]bool{s.CIDR.Masked().Addr(): true}, reserved: map[netip.Addr]*inventory.Reservation{},
		keys: map[string]*inventory.Reservation{},
	}
	p.empty()
	for _, r := range s.Ranges {
		n := sizeOf(r)
		p.size += min(n, math.MaxUint64-p.size)
	}
	for _, list := range [][]netip.Addr{s.DNS, s.NTP, n.Ours} {
		for _, a := range list {
			p.excluded[a] = true
		}
	}
	for _, r := range n.Reservations {
		if r.Subnet != s.Name || slices.Contains(n.Ours, r.Address) {
			continue // what is ours is nobody else's, whatever was reserved
		}
		p.reserved[r.Address] = &r
		for prefix, k := range map[string]string{"m": string(r.MAC), "c": r.ClientID, "u": r.UUID, "p": r.Port} {
			if k != "" {
				p.keys[prefix+k] = &r
			}
		}
	}
	return p
}

// empty forgets all leases and offers. The caller takes the offers out of the list of the book.
func (p *pool) empty() {
	p.byAddr, p.byKey, p.byMAC = map[netip.Addr]*record{}, map[key]*record{}, map[inventory.MAC]*record{}
	p.perDUID, p.offered, p.offerOf, p.reusable = map[string]int{}, map[netip.Addr]*offer{}, map[key]*offer{}, nil
}

// load takes over a lease as the store knows it.
func (p *pool) load(l inventory.Lease) {
	r := p.byAddr[l.Address]
	if r == nil {
		r = &record{addr: l.Address, heapAt: -1}
	} else {
		p.remove(r)
	}
	r.key, r.mac, r.state, r.isBoot = key{l.ClientID, l.IAID}, l.MAC, l.State, l.IsBoot
	r.hostname, r.port, r.starts, r.ends = l.Hostname, l.Port, l.StartsAt, l.ExpiresAt
	p.put(r)
}

// put files a record under all its keys. A quarantined address is nobody's.
func (p *pool) put(r *record) {
	p.remove(r)
	p.byAddr[r.addr] = r
	if r.state != inventory.LeaseDeclined {
		// Of several leases of one association the newest one is the one that it gets again.
		if old := p.byKey[r.key]; old == nil || !old.starts.After(r.starts) {
			p.byKey[r.key] = r
		}
		if old := p.byMAC[r.mac]; r.mac != "" && (old == nil || !old.starts.After(r.starts)) {
			p.byMAC[r.mac] = r
		}
		p.perDUID[r.key.duid]++
	}
	if p.isDynamic(r.addr) {
		heap.Push(&p.reusable, r)
	}
}

// remove takes a record out of everything that put filed it under.
func (p *pool) remove(r *record) {
	if p.byAddr[r.addr] != r {
		r.heapAt = -1
		return
	}
	delete(p.byAddr, r.addr)
	if p.byKey[r.key] == r {
		delete(p.byKey, r.key)
	}
	if p.byMAC[r.mac] == r {
		delete(p.byMAC, r.mac)
	}
	if n := p.perDUID[r.key.duid]; r.state == inventory.LeaseDeclined {
	} else if n > 1 {
		p.perDUID[r.key.duid] = n - 1
	} else {
		delete(p.perDUID, r.key.duid)
	}
	if r.heapAt >= 0 && r.heapAt < len(p.reusable) && p.reusable[r.heapAt] == r {
		heap.Remove(&p.reusable, r.heapAt)
	}
	r.heapAt = -1
}

func (p *pool) inRanges(a netip.Addr) bool {
	return slices.ContainsFunc(p.subnet.Ranges, func(r inventory.Range) bool { return r.Contains(a) })
}

// isDynamic reports whether any machine may be given the address.
func (p *pool) isDynamic(a netip.Addr) bool {
	return p.reserved[a] == nil && !p.excluded[a] && p.inRanges(a)
}

// reservation returns what is reserved for a client: by switch port before MAC before DUID before UUID.
func (p *pool) reservation(c Client) *inventory.Reservation {
	for _, k := range []string{"p" + c.Port, "m" + string(c.MAC), "c" + c.DUID, "u" + c.UUID} {
		if r := p.keys[k]; r != nil { // there is none without a value
			return r
		}
	}
	return nil
}

// own returns the record that a client gets again.
func (p *pool) own(c Client) *record {
	if r := p.byKey[c.key()]; r != nil {
		return r
	}
	if r := p.byMAC[c.MAC]; r != nil && c.MAC != "" && r.isOf(c) {
		return r
	}
	return nil
}

// refusal says why a client may not have an address, "" if it may.
func (p *pool) refusal(c Client, a netip.Addr, now time.Time) Reason {
	if !p.cidr.Contains(a) {
		return WrongNetwork
	}
	mine := p.reservation(c)
	if r := p.reserved[a]; r != nil && (mine == nil || r.Address != mine.Address) {
		return ReservedOther
	}
	if r := p.byAddr[a]; r != nil && r.isHeld(now) {
		if r.state == inventory.LeaseDeclined {
			return InQuarantine
		}
		if !r.isOf(c) {
			return TakenByAnother
		}
	}
	if o := p.offered[a]; o != nil && o.key != c.key() {
		return TakenByAnother
	}
	if p.reserved[a] != nil {
		return ""
	}
	if p.subnet.Mode == inventory.ModeReservations {
		return NoReservation
	}
	if p.excluded[a] || !p.inRanges(a) {
		return OutsideRanges
	}
	// The recursion ends after one step: a reserved address returns above.
	if mine != nil && p.refusal(c, mine.Address, now) == "" {
		return NotItsReserved
	}
	return ""
}

// choose finds an address for a client: reserved, had before, offered, asked for, new.
func (p *pool) choose(c Client, wanted netip.Addr, now time.Time) (netip.Addr, Reason) {
	why := Exhausted
	if r := p.reservation(c); r != nil {
		if p.refusal(c, r.Address, now) == "" {
			return r.Address, ""
		}
		why = ReservedTaken
	} else if p.subnet.Mode == inventory.ModeReservations {
		return netip.Addr{}, NoReservation
	}
	if r := p.own(c); r != nil && p.refusal(c, r.addr, now) == "" {
		return r.addr, ""
	}
	if o := p.offerOf[c.key()]; o != nil && p.refusal(c, o.addr, now) == "" {
		return o.addr, ""
	}
	if p.subnet.Mode == inventory.ModeReservations {
		return netip.Addr{}, why
	}
	if p.perDUID[c.DUID] >= maxPerDUID {
		return netip.Addr{}, TooMany
	}
	if wanted.IsValid() && p.refusal(c, wanted, now) == "" {
		return wanted, ""
	}
	if a, ok := p.fresh(c, now); ok {
		return a, ""
	}
	return netip.Addr{}, why
}

const (
	guesses   = 64      // addresses tried at random places
	searchAll = 1 << 12 // the largest pool that is searched to its end
)

// fresh finds an address that no machine has a claim on: at a place that follows from the client, so that it gets the
// same one when its lease is forgotten, and that does not follow from the address of its neighbour (RFC 7707). When
// there are too many records, or no unused address, the one whose lease ended longest ago gives way.
func (p *pool) fresh(c Client, now time.Time) (netip.Addr, bool) {
	if p.size == 0 {
		return netip.Addr{}, false
	}
	if len(p.byAddr) < maxRecords && uint64(len(p.byAddr)+len(p.offered)) < p.size+uint64(len(p.reserved)+len(p.excluded)) {
		h := fnv.New64a()
		_, _ = h.Write([]byte(p.subnet.Name + "/" + c.DUID))
		_, _ = h.Write(binary.BigEndian.AppendUint32(nil, c.IAID))
		// With half of the ranges in use, 64 places miss a free address about once in 2^64 cases.
		for i := range guesses {
			_, _ = h.Write([]byte{byte(i)})
			if a := p.at(mix(h.Sum64()) % p.size); p.isVirgin(a) {
				return a, true
			}
		}
		// A small and nearly full range defeats guessing. Above this size a full range is not a practical case.
		if p.size <= searchAll {
			for i := range p.size {
				if a := p.at(i); p.isVirgin(a) {
					return a, true
				}
			}
		}
	}
	if len(p.reusable) > 0 && !p.reusable[0].isHeld(now) && p.offered[p.reusable[0].addr] == nil {
		return p.reusable[0].addr, true
	}
	return netip.Addr{}, false
}

// mix spreads a hash over all its bits; FNV's high ones change little from one client to the next.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// isVirgin reports whether an address was never leased and may be.
func (p *pool) isVirgin(a netip.Addr) bool {
	return p.byAddr[a] == nil && p.offered[a] == nil && p.isDynamic(a)
}

// at returns the n-th address of the ranges.
func (p *pool) at(n uint64) netip.Addr {
	for _, r := range p.subnet.Ranges {
		size := sizeOf(r)
		if n < size {
			return plus(r.First, n)
		}
		n -= size
	}
	return p.subnet.Ranges[len(p.subnet.Ranges)-1].Last
}

// sizeOf is how many addresses are in a range, at most the largest number.
func sizeOf(r inventory.Range) uint64 {
	first, last := r.First.As16(), r.Last.As16()
	lo, borrow := bits.Sub64(binary.BigEndian.Uint64(last[8:]), binary.BigEndian.Uint64(first[8:]), 0)
	hi, _ := bits.Sub64(binary.BigEndian.Uint64(last[:8]), binary.BigEndian.Uint64(first[:8]), borrow)
	if hi != 0 || lo == math.MaxUint64 {
		return math.MaxUint64
	}
	return lo + 1
}

func plus(a netip.Addr, n uint64) netip.Addr {
	b := a.As16()
	lo := binary.BigEndian.Uint64(b[8:])
	if lo+n < lo {
		binary.BigEndian.PutUint64(b[:8], binary.BigEndian.Uint64(b[:8])+1)
	}
	binary.BigEndian.PutUint64(b[8:], lo+n)
	return netip.AddrFrom16(b)
}

func (p *pool) grant(c Client, a netip.Addr) Grant {
	g := Grant{Address: a, For: time.Duration(p.subnet.LeaseFor)}
	if c.IsBoot {
		g.For = time.Duration(p.subnet.BootLeaseFor)
	}
	if r := p.reserved[a]; r != nil {
		g.Hostname = r.Hostname
	} else {
		r := p.byAddr[a]
		g.IsFirstUse = r == nil || !r.isOf(c)
	}
	return g
}

// quarantine keeps an address from everybody for DeclineFor. The lease names the client that noticed, for people to
// read.
func (p *pool) quarantine(c Client, a netip.Addr, now time.Time) inventory.Lease {
	if o := p.offered[a]; o != nil {
		o.end()
	}
	r := p.byAddr[a]
	if r == nil {
		r = &record{addr: a, heapAt: -1}
	} else {
		p.remove(r)
	}
	r.key, r.mac, r.state, r.isBoot, r.hostname = c.key(), c.MAC, inventory.LeaseDeclined, false, ""
	r.starts, r.ends = now, now.Add(DeclineFor)
	p.put(r)
	return p.lease(r)
}

// lease returns a record as the store knows it.
func (p *pool) lease(r *record) inventory.Lease {
	return inventory.Lease{
		Address: r.addr, Subnet: p.subnet.Name, MAC: r.mac, ClientID: r.key.duid, IAID: r.key.iaid, Hostname: r.hostname, Port: r.port,
		State: r.state, IsBoot: r.isBoot, StartsAt: r.starts.UTC(), ExpiresAt: r.ends.UTC(),
		Epoch: p.epoch,
	}
}

// byEnd is a heap of records, the one that ended first on top.
type byEnd []*record

func (h byEnd) Len() int           { return len(h) }
func (h byEnd) Less(i, j int) bool { return h[i].ends.Before(h[j].ends) }
func (h byEnd) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapAt, h[j].heapAt = i, j
}

func (h *byEnd) Push(x any) {
	r := x.(*record)
	r.heapAt = len(*h)
	*h = append(*h, r)
}

func (h *byEnd) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	r.heapAt = -1
	return r
}
