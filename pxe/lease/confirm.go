package lease

import (
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
)

// State is what a client is doing when it sends a REQUEST (RFC 2131 section 4.3.2).
type State string

// The states. A client that renews or rebinds uses its address already and names it in ciaddr.
const (
	Selecting  State = "selecting"   // takes an offer: the server identifier is set
	InitReboot State = "init-reboot" // wants to go on with an address it remembers
	Renewing   State = "renewing"    // prolongs its lease with us
	Rebinding  State = "rebinding"   // prolongs its lease with anyone
)

// StateOf finds the state of a REQUEST from its fields. These are the server that it names (option 54), the wanted address
// (option 50), the address in use (ciaddr), and the way to us. Some boot ROMs take an offer and name nothing; they
// count as selecting.
func StateOf(namesServer bool, wanted, ciaddr netip.Addr, isUnicast bool) State {
	switch {
	case namesServer:
		return Selecting
	case ciaddr.IsValid() && !ciaddr.IsUnspecified() && isUnicast:
		return Renewing
	case ciaddr.IsValid() && !ciaddr.IsUnspecified():
		return Rebinding
	case wanted.IsValid():
		return InitReboot
	}
	return Selecting
}

// Verdict is how a REQUEST is answered.
type Verdict string

// The verdicts. Silence is for machines that another server may know.
const (
	Ack    Verdict = "ack"
	Nak    Verdict = "nak"
	Silent Verdict = "silent"
)

// Result is the answer to a REQUEST. With an Ack, Lease has to be stored; then Commit makes it count and the ACK may
// be sent. If it cannot be stored, Abort.
type Result struct {
	Verdict    Verdict
	Reason     Reason // of a Nak or Silent
	Lease      inventory.Lease
	For        time.Duration
	Hostname   string // of the reservation
	IsFirstUse bool   // see Offer; a Confirm without an Offer before it
}

// Confirm answers a REQUEST for an address: that of option 50 or, in Renewing and Rebinding, of ciaddr. In Selecting
// the client must have named this server; if it named another, call Forget.
//
// In mode full this is the only server. A client that asks for an address it may not have gets a NAK. An unknown
// address that it could have is given to it, because our own record may be lost. In mode reservations, machines
// without a reservation are the business of another server.
func (b *Book) Confirm(c Client, s State, addr netip.Addr, now time.Time) Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offers.expire(now)
	p, why := b.poolFor(c)
	if why != "" {
		return Result{Verdict: Silent, Reason: why}
	}
	m := toMAC(c.MAC)
	if p.subnet.Mode == inventory.ModeReservations && p.reservation(c, m) == nil {
		return Result{Verdict: Silent, Reason: NoReservation}
	}
	if !addr.Is4() || addr.IsUnspecified() {
		o := p.offerOf[m]
		if s != Selecting || o == nil {
			return Result{Verdict: Silent, Reason: NoAddress}
		}
		addr = toAddr(o.addr)
	}
	a := toInt(addr)
	if why := p.refusal(c, m, a, now); why != "" {
		return Result{Verdict: Nak, Reason: why}
	}
	if o := p.offerOf[m]; s == Selecting && o != nil && o.addr != a {
		return Result{Verdict: Nak, Reason: NotWhatWasGiven}
	}
	if why := p.refuseStranger(b.limits, c, m, now); why != "" {
		return Result{Verdict: Silent, Reason: why}
	}
	promise := p.offer(c, m, a)
	if r := p.byAddr[a]; c.Port == "" && r != nil && r.mac == m { // a renewal does not pass its relay
		c.Port = r.port
	}
	hadOffer := p.offered[a] != nil
	o := b.offers.hold(p, c, m, a, now)
	p.noteHolder(c, a, o.until)
	o.unlink()
	o.isPending = true
	b.offers.append(o, now)
	return Result{
		Verdict: Ack, For: promise.For, Hostname: promise.Hostname, IsFirstUse: promise.IsFirstUse && !hadOffer,
		Lease: inventory.Lease{
			Address: addr, Subnet: c.Subnet, MAC: c.MAC, ClientID: c.ClientID, Hostname: inventory.Clean(c.Hostname, 255), Port: c.Port,
			State: inventory.LeaseBound, IsBoot: c.IsBoot, StartsAt: now.UTC(), ExpiresAt: now.Add(promise.For).UTC(),
			Epoch: p.epoch,
		},
	}
}

// Commit makes a lease that Confirm returned count; it must be on disk. The server may send the ACK when it returns true.
// It returns false when the address is no longer the client's, because a client declined it or its subnet went away
// meanwhile. A machine that moved to another address keeps the old one until that lease ends, because Slipway cannot know
// whether it still uses it. Until Commit or Abort the offer stands as pending, for at most five minutes: a caller that
// forgets both costs one address for that long.
func (b *Book) Commit(l inventory.Lease) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[l.Subnet]
	if p == nil || !l.Address.Is4() {
		return false
	}
	a, m := toInt(l.Address), toMAC(l.MAC)
	r, o := p.byAddr[a], p.offered[a]
	switch {
	case o != nil && o.mac == m:
		b.offers.remove(o)
	case o == nil && r != nil && r.mac == m && r.state == inventory.LeaseBound: // an earlier answer to the same request counts already
	default:
		return false
	}
	if r == nil {
		r = &record{addr: a, heapAt: -1}
		p.byAddr[a] = r
	} else if r.mac != m && p.byMAC[r.mac] == r {
		delete(p.byMAC, r.mac)
	}
	r.mac, r.state, r.isBoot = m, l.State, l.IsBoot
	r.clientID, r.hostname, r.port = l.ClientID, l.Hostname, l.Port
	r.starts, r.ends = l.StartsAt.UnixMilli(), l.ExpiresAt.UnixMilli()
	p.byMAC[m] = r
	p.enqueue(r)
	return true
}

// Abort ends a lease that could not be stored. The client got no promise, and the address stays on offer.
func (b *Book) Abort(l inventory.Lease, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[l.Subnet]
	if p == nil || !l.Address.Is4() {
		return
	}
	if o := p.offered[toInt(l.Address)]; o != nil && o.mac == toMAC(l.MAC) {
		o.unlink()
		o.isPending, o.at = false, now
		b.offers.append(o, now)
	}
}

// Release answers a RELEASE: the address is free, but the client gets it again as long as nobody else needs it (RFC
// 2131 section 4.3.4). The caller has to store the returned lease; ok is false when the client has no such lease.
func (b *Book) Release(c Client, addr netip.Addr, now time.Time) (l inventory.Lease, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[c.Subnet]
	if p == nil || !addr.Is4() {
		return l, false
	}
	r := p.byAddr[toInt(addr)]
	if r == nil || r.mac != toMAC(c.MAC) || r.state != inventory.LeaseBound {
		return l, false
	}
	r.state, r.ends = inventory.LeaseReleased, now.UnixMilli()
	p.enqueue(r)
	return p.lease(r), true
}

// Decline answers a DECLINE: the client found another device on its new address (RFC 2131 section 4.3.3). Nobody gets
// that address for DeclineFor. Only the client with the lease or the offer can decline it. Otherwise any machine
// could close a whole subnet.
func (b *Book) Decline(c Client, addr netip.Addr, now time.Time) (l inventory.Lease, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[c.Subnet]
	if p == nil || !addr.Is4() {
		return l, false
	}
	a, m := toInt(addr), toMAC(c.MAC)
	r, o := p.byAddr[a], p.offered[a]
	if isHolder := r != nil && r.mac == m && r.state == inventory.LeaseBound || o != nil && o.mac == m; !isHolder {
		return l, false
	}
	return b.quarantine(p, a, m, now), true
}

// Conflict reports that a probe found a device on an address before its offer. Nobody gets the address for
// DeclineFor. The caller has to store the returned lease. ok is false when the address has an owner by now.
func (b *Book) Conflict(c Client, addr netip.Addr, now time.Time) (l inventory.Lease, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[c.Subnet]
	if p == nil || !addr.Is4() || !p.cidr.Contains(addr) {
		return l, false
	}
	a, m := toInt(addr), toMAC(c.MAC)
	if r := p.byAddr[a]; r != nil && r.isHeld(now) || p.offered[a] != nil && p.offered[a].mac != m {
		return l, false
	}
	return b.quarantine(p, a, m, now), true
}

// quarantine keeps an address from everyone. The lease keeps the MAC of who noticed, for people to read.
func (b *Book) quarantine(p *pool, a uint32, m mac, now time.Time) inventory.Lease {
	if o := p.offered[a]; o != nil {
		b.offers.remove(o)
	}
	r := p.byAddr[a]
	if r == nil {
		r = &record{addr: a, heapAt: -1}
		p.byAddr[a] = r
	}
	if p.byMAC[r.mac] == r {
		delete(p.byMAC, r.mac)
	}
	r.mac, r.state, r.isBoot, r.clientID, r.hostname = m, inventory.LeaseDeclined, false, "", ""
	r.starts, r.ends = now.UnixMilli(), now.Add(DeclineFor).UnixMilli()
	p.enqueue(r)
	return p.lease(r)
}

// poolFor finds the subnet of a client, if it serves anyone.
func (b *Book) poolFor(c Client) (*pool, Reason) {
	p := b.pools[c.Subnet]
	switch {
	case p == nil:
		return nil, NoSubnet
	case p.subnet.Mode == inventory.ModeOff:
		return nil, IsOff
	case p.subnet.Mode == inventory.ModeProxy:
		return nil, IsProxy
	}
	return p, ""
}
