package lease

import (
	"container/heap"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

// mac is a link address as a number; zero is none.
type mac uint64

func toMAC(m inventory.MAC) (v mac) {
	if len(m) != 17 {
		return 0
	}
	for i := 0; i < len(m); i++ {
		if i%3 == 2 {
			continue
		}
		c := m[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return 0
		}
		v = v<<4 | mac(c)
	}
	return v
}

func (m mac) inventory() inventory.MAC {
	const digits = "0123456789abcdef"
	var b [17]byte
	for i := range 6 {
		c := byte(m >> (40 - 8*i))
		b[3*i], b[3*i+1] = digits[c>>4], digits[c&15]
		if i < 5 {
			b[3*i+2] = ':'
		}
	}
	return inventory.MAC(b[:])
}

func toInt(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func toAddr(v uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], v)
	return netip.AddrFrom4(b)
}

// record is an address that is or was leased. It stays after its end, so that the client gets it again, until another
// machine needs it.
type record struct {
	addr               uint32
	heapAt             int32 // place in pool.reusable, -1 when not there
	isBoot             bool
	mac                mac
	state              inventory.LeaseState
	clientID, hostname string
	port               string
	starts, ends       int64 // ms since 1970; ends is also when a quarantine is over, or when it was released
}

// isHeld reports whether nobody but its client may have the address.
func (r *record) isHeld(now time.Time) bool {
	return r.state != inventory.LeaseReleased && r.ends > now.UnixMilli()
}

// pool is one subnet's addresses.
type pool struct {
	subnet   inventory.Subnet
	cidr     netip.Prefix
	ranges   []span
	excluded map[uint32]bool // gateway, servers, ourselves
	reserved map[uint32]*inventory.Reservation
	keys     map[string]*inventory.Reservation // by "m"+MAC, "c"+client id, "u"+UUID, "p"+switch port
	hasPorts bool                              // one of them is for a port
	rangeN   int                               // addresses in ranges
	held     *holders
	epoch    int64 // in which byAddr was read; see Book.Replace

	byAddr  map[uint32]*record
	byMAC   map[mac]*record // the record that a client gets again; quarantined ones are not here
	offered map[uint32]*offer
	offerOf map[mac]*offer
	// unclaimed is the ring of the offers of dynamic addresses that their clients have not asked for, oldest first.
	unclaimed *offer

	// Where a new machine's address comes from, in this order: addresses given back unused, addresses never used, and
	// the one whose lease ended longest ago. Nothing is searched: the cursor passes each address once.
	unused     []uint32
	isUnused   map[uint32]bool
	cursor     uint64 // next never used address, 0 when the ranges are used up
	cursorSpan int
	reusable   byEnd
}

type span struct{ first, last uint32 }

func newPool(s inventory.Subnet, n Network) *pool {
	p := &pool{
		subnet: s, cidr: s.CIDR, excluded: map[uint32]bool{}, reserved: map[uint32]*inventory.Reservation{},
		keys: map[string]*inventory.Reservation{}, byAddr: map[uint32]*record{}, byMAC: map[mac]*record{},
		offered: map[uint32]*offer{}, offerOf: map[mac]*offer{}, unclaimed: newRing(), isUnused: map[uint32]bool{}, held: newHolders(),
	}
	for _, r := range s.Ranges {
		p.ranges = append(p.ranges, span{toInt(r.First), toInt(r.Last)})
		p.rangeN += int(toInt(r.Last)-toInt(r.First)) + 1
	}
	for _, list := range [][]netip.Addr{{s.Gateway}, s.DNS, s.NTP, n.Ours} {
		for _, a := range list {
			if a.Is4() && s.CIDR.Contains(a) {
				p.excluded[toInt(a)] = true
			}
		}
	}
	for i := range n.Reservations {
		r := &n.Reservations[i]
		if r.Subnet != s.Name || !r.Address.Is4() || slices.Contains(n.Ours, r.Address) {
			continue // what is ours is nobody else's, whatever was reserved
		}
		own := *r
		p.reserved[toInt(r.Address)] = &own
		p.hasPorts = p.hasPorts || r.Port != ""
		for prefix, key := range map[string]string{"m": string(r.MAC), "c": r.ClientID, "u": r.UUID, "p": r.Port} {
			if key != "" {
				p.keys[prefix+key] = &own
			}
		}
	}
	return p
}

// inherit takes over the leases of the pool that p replaces.
func (p *pool) inherit(old *pool) {
	p.held, p.epoch = old.held, old.epoch
	if old.cidr == p.cidr {
		p.byAddr, p.byMAC = old.byAddr, old.byMAC
		return
	}
	for a, r := range old.byAddr {
		if p.cidr.Contains(toAddr(a)) {
			p.byAddr[a] = r
		}
	}
	for m, r := range old.byMAC {
		if p.byAddr[r.addr] == r {
			p.byMAC[m] = r
		}
	}
}

// empty forgets all leases and offers. The caller takes the offers out of the table of the book.
func (p *pool) empty() {
	p.byAddr, p.byMAC, p.held = map[uint32]*record{}, map[mac]*record{}, newHolders()
	p.offered, p.offerOf, p.unclaimed = map[uint32]*offer{}, map[mac]*offer{}, newRing()
}

// load takes over a stored lease. Of several of one machine the newest that still counts is the one it gets again.
func (p *pool) load(l inventory.Lease) {
	if !p.cidr.Contains(l.Address) {
		return
	}
	r := &record{
		addr: toInt(l.Address), heapAt: -1, isBoot: l.IsBoot, mac: toMAC(l.MAC), state: l.State,
		clientID: l.ClientID, hostname: l.Hostname, port: l.Port, starts: l.StartsAt.UnixMilli(), ends: l.ExpiresAt.UnixMilli(),
	}
	p.byAddr[r.addr] = r
	if r.state == inventory.LeaseDeclined || r.mac == 0 {
		return
	}
	if cur := p.byMAC[r.mac]; cur == nil || cur.starts < r.starts || cur.starts == r.starts && cur.addr < r.addr {
		p.byMAC[r.mac] = r
	}
}

// rebuild works out again what may be given to new machines.
func (p *pool) rebuild() {
	p.reusable = p.reusable[:0]
	for _, r := range p.byAddr {
		r.heapAt = -1
		if p.isDynamic(r.addr) && p.offered[r.addr] == nil {
			r.heapAt = int32(len(p.reusable))
			p.reusable = append(p.reusable, r)
		}
	}
	heap.Init(&p.reusable)
	p.unused, p.cursor, p.cursorSpan = nil, 0, 0
	clear(p.isUnused)
	if len(p.ranges) > 0 {
		p.cursor = uint64(p.ranges[0].first)
	}
}

func (p *pool) inRanges(a uint32) bool {
	lo, hi := 0, len(p.ranges)
	for lo < hi {
		if mid := (lo + hi) / 2; p.ranges[mid].last < a {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(p.ranges) && p.ranges[lo].first <= a
}

// isDynamic reports whether any machine may be given the address.
func (p *pool) isDynamic(a uint32) bool {
	return p.reserved[a] == nil && !p.excluded[a] && p.inRanges(a)
}

// reservation returns what is reserved for a client: by MAC, then client id, then UUID, then switch port. An
// operating system does not send its UUID. So the last resort is the MAC that had the reserved address at boot.
func (p *pool) reservation(c Client, m mac) *inventory.Reservation {
	if len(p.keys) == 0 {
		return nil
	}
	if r := p.keys["m"+string(c.MAC)]; r != nil {
		return r
	}
	if r := p.keys["c"+c.ClientID]; r != nil && c.ClientID != "" {
		return r
	}
	if r := p.keys["u"+c.UUID]; r != nil && c.UUID != "" && c.IsBoot {
		return r
	}
	if r := p.portReservation(c, m); r != nil {
		return r
	}
	if had := p.byMAC[m]; had != nil {
		if r := p.reserved[had.addr]; r != nil && r.UUID != "" {
			return r
		}
	}
	return nil
}

// portReservation returns what is reserved for the switch port that a client is on. A machine that renews is heard
// without its relay, and goes on with what it has.
func (p *pool) portReservation(c Client, m mac) *inventory.Reservation {
	if !p.hasPorts {
		return nil
	}
	if c.Port == "" {
		if had := p.byMAC[m]; had != nil {
			if r := p.reserved[had.addr]; r != nil && r.Port != "" && (had.port == r.Port || inventory.PortCircuit(had.port) == r.Port) {
				return r
			}
		}
		return nil
	}
	if r := p.keys["p"+c.Port]; r != nil {
		return r
	}
	return p.keys["p"+inventory.PortCircuit(c.Port)]
}

// refusal says why a client may not have an address, "" if it may.
func (p *pool) refusal(c Client, m mac, a uint32, now time.Time) Reason {
	mine := p.reservation(c, m)
	if !p.cidr.Contains(toAddr(a)) {
		return WrongNetwork
	}
	if r := p.reserved[a]; r != nil && r != mine {
		return ReservedOther
	}
	if r := p.byAddr[a]; r != nil && r.isHeld(now) {
		if r.state == inventory.LeaseDeclined {
			return InQuarantine
		}
		if r.mac != m {
			return TakenByAnother
		}
	}
	if o := p.offered[a]; o != nil && o.mac != m {
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
	if mine != nil && p.refusal(c, m, toInt(mine.Address), now) == "" {
		return NotItsReserved
	}
	return ""
}

// choose finds an address for a client (RFC 2131 section 4.3.1): reserved, had before, asked for, new.
func (p *pool) choose(c Client, m mac, wanted netip.Addr, now time.Time) (uint32, Reason) {
	why := Exhausted
	if r := p.reservation(c, m); r != nil {
		if a := toInt(r.Address); p.refusal(c, m, a, now) == "" {
			return a, ""
		}
		why = ReservedTaken
	} else if p.subnet.Mode == inventory.ModeReservations {
		return 0, NoReservation
	}
	if r := p.byMAC[m]; r != nil && p.refusal(c, m, r.addr, now) == "" {
		return r.addr, ""
	}
	if o := p.offerOf[m]; o != nil && p.refusal(c, m, o.addr, now) == "" {
		return o.addr, ""
	}
	if wanted.Is4() && p.cidr.Contains(wanted) && p.refusal(c, m, toInt(wanted), now) == "" {
		return toInt(wanted), ""
	}
	if p.subnet.Mode == inventory.ModeReservations {
		return 0, why
	}
	if a, ok := p.fresh(now); ok {
		return a, ""
	}
	return 0, why
}

// fresh takes an address that no machine has a claim on.
func (p *pool) fresh(now time.Time) (uint32, bool) {
	for len(p.unused) > 0 {
		a := p.unused[len(p.unused)-1]
		p.unused = p.unused[:len(p.unused)-1]
		delete(p.isUnused, a)
		if p.isVirgin(a) {
			return a, true
		}
	}
	for p.cursorSpan < len(p.ranges) {
		a := uint32(p.cursor)
		if p.cursor++; a == p.ranges[p.cursorSpan].last {
			if p.cursorSpan++; p.cursorSpan < len(p.ranges) {
				p.cursor = uint64(p.ranges[p.cursorSpan].first)
			}
		}
		if p.isVirgin(a) {
			return a, true
		}
	}
	if len(p.reusable) > 0 && !p.reusable[0].isHeld(now) {
		return p.reusable[0].addr, true
	}
	return 0, false
}

// isVirgin reports whether an address was never leased and may be.
func (p *pool) isVirgin(a uint32) bool {
	return p.byAddr[a] == nil && p.offered[a] == nil && p.isDynamic(a)
}

// giveBack makes an address that was offered and not taken available again.
func (p *pool) giveBack(a uint32) {
	if r := p.byAddr[a]; r != nil {
		p.enqueue(r)
	} else if p.isDynamic(a) && !p.isUnused[a] {
		p.isUnused[a] = true
		p.unused = append(p.unused, a)
	}
}

// enqueue puts a record where its end puts it among those that can be used again.
func (p *pool) enqueue(r *record) {
	switch {
	case r.heapAt >= 0:
		heap.Fix(&p.reusable, int(r.heapAt))
	case p.isDynamic(r.addr) && p.offered[r.addr] == nil:
		heap.Push(&p.reusable, r)
	}
}

func (p *pool) dequeue(r *record) {
	if r != nil && r.heapAt >= 0 {
		heap.Remove(&p.reusable, int(r.heapAt))
	}
}

// lease returns a record as the store knows it.
func (p *pool) lease(r *record) inventory.Lease {
	return inventory.Lease{
		Address: toAddr(r.addr), Subnet: p.subnet.Name, MAC: r.mac.inventory(), ClientID: r.clientID,
		Hostname: r.hostname, Port: r.port, State: r.state, IsBoot: r.isBoot, StartsAt: time.UnixMilli(r.starts).UTC(), ExpiresAt: time.UnixMilli(r.ends).UTC(),
		Epoch: p.epoch,
	}
}

// byEnd is a heap of records, the one that ended first on top; a released lease counts from its release.
type byEnd []*record

func (h byEnd) Len() int { return len(h) }
func (h byEnd) Less(i, j int) bool {
	a, b := h[i].ends, h[j].ends
	return a < b || a == b && h[i].addr < h[j].addr
}

func (h byEnd) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapAt, h[j].heapAt = int32(i), int32(j)
}

func (h *byEnd) Push(x any) {
	r := x.(*record)
	r.heapAt = int32(len(*h))
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
