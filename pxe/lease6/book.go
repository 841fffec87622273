// Package lease6 owns the choice of IPv6 addresses: which machine may have which, and for how long (RFC 8415 sections
// 13 and 18.3). It never touches a socket, a store or a clock. It returns what has to be stored, and an address
// counts as given only after the caller has called Commit.
//
// Start reading at Book.Assign.
package lease6

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// How long addresses are kept without being leased, and how many.
const (
	OfferFor   = time.Minute      // an advertised address, until the client requests it
	DeclineFor = 10 * time.Minute // an address that somebody else uses
	pendingFor = 5 * time.Minute  // an address that is being stored
	maxOffers  = 16_384           // in memory at once; beyond, the oldest is forgotten
	maxRecords = 65_536           // of one subnet; beyond, the one that ended longest ago gives its address
	maxPerDUID = 8                // addresses of one client
)

// Reason says why a client gets no address, in words for the admin and as the label of a metric; "" is none.
type Reason string

// The reasons.
const (
	NoSubnet       Reason = "the subnet is not known"
	IsOff          Reason = "the subnet's mode is off"
	Elsewhere      Reason = "another instance answers on this network, or none at this moment"
	NoReservation  Reason = "the subnet serves reservations only, and this machine has none"
	Exhausted      Reason = "no address is left in the subnet's ranges"
	ReservedTaken  Reason = "the address reserved for it is still in use by another machine"
	WrongNetwork   Reason = "it asks for an address of another network"
	TakenByAnother Reason = "the address belongs to another machine"
	ReservedOther  Reason = "the address is reserved for another machine"
	OutsideRanges  Reason = "the address is in none of the subnet's ranges"
	InQuarantine   Reason = "the address is in use by a machine that does not have it from us"
	NotItsReserved Reason = "another address is reserved for it"
	TooMany        Reason = "it has as many addresses as one machine may have"
)

// Client is the machine that asks for an address: an identity association of a DUID (RFC 8415 section 4.2). A
// machine's firmware, boot loader and operating system have different DUIDs; the MAC tells that they are one machine,
// which keeps its address.
type Client struct {
	Subnet   string
	DUID     string // in hex
	IAID     uint32
	MAC      inventory.MAC // "" when nothing tells it
	UUID     string
	Port     string // switch port that its relay names
	Hostname string
	IsBoot   bool // firmware or a boot loader: the lease is BootLeaseFor, not LeaseFor
}

type key struct {
	duid string
	iaid uint32
}

func (c Client) key() key { return key{c.DUID, c.IAID} }

// Network is the source of the addresses to choose from.
type Network struct {
	Subnets      []inventory.Subnet
	Reservations []inventory.Reservation
	Ours         []netip.Addr // this server's own addresses, which nobody else gets
}

// Grant is an address for a client.
type Grant struct {
	Address    netip.Addr
	For        time.Duration
	Hostname   string // of the reservation
	IsFirstUse bool   // nobody of ours has had it: somebody else may
}

// Book holds all IPv6 subnets, their reservations and leases. Many goroutines may call its methods; mu guards
// everything, the pools included.
type Book struct {
	mu      sync.Mutex
	subnets []inventory.Subnet
	pools   map[string]*pool
	offers  []*offer // in the order in which they end; those that are over lie about until swept
}

// New returns a book with the stored leases. It ignores IPv4.
func New(n Network, leases []inventory.Lease) *Book {
	b := &Book{pools: map[string]*pool{}}
	b.Reconfigure(n)
	for _, l := range leases {
		if p := b.pools[l.Subnet]; p != nil && p.cidr.Contains(l.Address) {
			p.load(l)
		}
	}
	return b
}

// Reconfigure replaces the subnets and reservations. It keeps the leases of subnets that remain and drops all offers.
// A client that had an offer asks again within seconds.
func (b *Book) Reconfigure(n Network) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.pools
	b.subnets, b.pools, b.offers = nil, map[string]*pool{}, nil
	for _, s := range n.Subnets {
		if !s.Is6() {
			continue
		}
		p := newPool(s, n)
		if o := old[s.Name]; o != nil {
			p.epoch = o.epoch
			for _, r := range o.byAddr {
				if p.cidr.Contains(r.addr) {
					p.put(r)
				}
			}
		}
		b.subnets = append(b.subnets, s)
		b.pools[s.Name] = p
	}
}

// Replace puts the stored leases of one subnet in place of those in memory, and forgets what was offered there, as in package lease.
func (b *Book) Replace(subnet string, leases []inventory.Lease, epoch int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[subnet]
	if p == nil {
		return
	}
	b.offers = slices.DeleteFunc(b.offers, func(o *offer) bool { return o.pool == p })
	p.empty()
	p.epoch = epoch
	for _, l := range leases {
		if l.Subnet == subnet && p.cidr.Contains(l.Address) {
			p.load(l)
		}
	}
}

// HasSubnets reports whether there is any IPv6 subnet.
func (b *Book) HasSubnets() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.subnets) > 0
}

// Path is how a message came to us.
type Path struct {
	Link      netip.Addr   // link address of the relay next to the client; unspecified when none told it
	Interface string       // where it was received
	Local     []netip.Addr // our addresses there
}

// SubnetFor finds the subnet of a client: by the relay's link address, else by our addresses on the interface, else by the
// interface's name.
func (b *Book) SubnetFor(p Path) (inventory.Subnet, bool) {
	b.mu.Lock()
	subnets := b.subnets
	b.mu.Unlock()
	if p.Link.IsValid() && !p.Link.IsUnspecified() && !p.Link.IsLinkLocalUnicast() {
		return containing(subnets, p.Link, "")
	}
	for _, a := range p.Local {
		if s, ok := containing(subnets, a, p.Interface); ok {
			return s, true
		}
	}
	i := slices.IndexFunc(subnets, func(s inventory.Subnet) bool { return s.Interface != "" && s.Interface == p.Interface })
	if i < 0 {
		return inventory.Subnet{}, false
	}
	return subnets[i], true
}

func containing(subnets []inventory.Subnet, a netip.Addr, iface string) (inventory.Subnet, bool) {
	for _, s := range subnets {
		if s.CIDR.Contains(a) && (iface == "" || s.Interface == "" || s.Interface == iface) {
			return s, true
		}
	}
	return inventory.Subnet{}, false
}

// Offer chooses an address for an ADVERTISE and keeps it for the client for OfferFor. wanted may be invalid. The
// Reason is "" when there is an address.
func (b *Book) Offer(c Client, wanted netip.Addr, now time.Time) (Grant, Reason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, a, why := b.choose(c, wanted, now)
	if why != "" {
		return Grant{}, why
	}
	g := p.grant(c, a)
	b.hold(p, c, a, now.Add(OfferFor), now)
	return g, ""
}

// Assign chooses an address for a REPLY and returns the lease that the caller has to store. After that, Commit makes
// it count and the REPLY may go out. When the store refuses it, call Abort. A client gets the address again that it
// has or that an ADVERTISE offered to it.
func (b *Book) Assign(c Client, wanted netip.Addr, now time.Time) (Grant, inventory.Lease, Reason) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, a, why := b.choose(c, wanted, now)
	if why != "" {
		return Grant{}, inventory.Lease{}, why
	}
	g := p.grant(c, a)
	// An address on offer was probed before the ADVERTISE. Probing again would only delay the REPLY.
	g.IsFirstUse = g.IsFirstUse && p.offered[a] == nil
	b.hold(p, c, a, now.Add(pendingFor), now)
	return g, inventory.Lease{
		Address: a, Subnet: c.Subnet, MAC: c.MAC, ClientID: c.DUID, IAID: c.IAID, Hostname: inventory.Clean(c.Hostname, 255), Port: c.Port,
		State: inventory.LeaseBound, IsBoot: c.IsBoot, StartsAt: now.UTC(), ExpiresAt: now.Add(g.For).UTC(),
		Epoch: p.epoch,
	}, ""
}

func (b *Book) choose(c Client, wanted netip.Addr, now time.Time) (*pool, netip.Addr, Reason) {
	p := b.pools[c.Subnet]
	switch {
	case p == nil:
		return nil, netip.Addr{}, NoSubnet
	case p.subnet.Mode == inventory.ModeOff:
		return nil, netip.Addr{}, IsOff
	}
	b.sweep(now)
	a, why := p.choose(c, wanted, now)
	return p, a, why
}

// Has reports whether a client has that address from us, now.
func (b *Book) Has(c Client, a netip.Addr, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[c.Subnet]
	if p == nil {
		return false
	}
	r := p.byAddr[a]
	return r != nil && r.isOf(c) && r.state == inventory.LeaseBound && r.ends.After(now)
}

// HasReservation reports whether an address is reserved for a client.
func (b *Book) HasReservation(c Client) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[c.Subnet]
	return p != nil && p.reservation(c) != nil
}

// Reservation returns what is reserved for a client.
func (b *Book) Reservation(c Client) (inventory.Reservation, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.pools[c.Subnet]; p != nil {
		if r := p.reservation(c); r != nil {
			return *r, true
		}
	}
	return inventory.Reservation{}, false
}

// IsKnown reports whether a client has or had an address, or one is reserved for it: it is known.
func (b *Book) IsKnown(c Client) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[c.Subnet]
	return p != nil && (p.reservation(c) != nil || p.own(c) != nil || p.offerOf[c.key()] != nil)
}

// Commit makes a lease that Assign returned count. The lease must be on disk. It returns false when the address no
// longer belongs to the client, because it was declined, dropped or its subnet went away meanwhile. The REPLY must
// not go out then.
func (b *Book) Commit(l inventory.Lease) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[l.Subnet]
	if p == nil {
		return false
	}
	k := key{l.ClientID, l.IAID}
	r := p.byAddr[l.Address]
	switch o := p.offered[l.Address]; {
	case o != nil && o.key == k:
		o.end()
	case o == nil && r != nil && r.key == k && r.state == inventory.LeaseBound:
	default:
		return false
	}
	p.load(l)
	return true
}

// Abort ends an assignment that could not be stored. The client got no promise, and the address is free again.
func (b *Book) Abort(l inventory.Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.pools[l.Subnet]; p != nil {
		if o := p.offered[l.Address]; o != nil && o.key == (key{l.ClientID, l.IAID}) {
			o.end()
		}
	}
}

// Release answers a RELEASE (RFC 8415 section 18.3.7). The caller has to store the returned lease. ok is false when
// the client has no such lease. The record stays, so that the client gets the address again while nobody else needs
// it.
func (b *Book) Release(c Client, a netip.Addr, now time.Time) (l inventory.Lease, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[c.Subnet]
	if p == nil {
		return l, false
	}
	r := p.byAddr[a]
	if r == nil || r.key != c.key() || r.state != inventory.LeaseBound {
		return l, false
	}
	r.state, r.ends = inventory.LeaseReleased, now
	p.put(r)
	return p.lease(r), true
}

// Decline answers a DECLINE (RFC 8415 section 18.3.8): the client found somebody else on the address, so nobody gets
// it for DeclineFor. Only the client with the lease or the offer can decline it; otherwise any machine could close a
// subnet.
func (b *Book) Decline(c Client, a netip.Addr, now time.Time) (l inventory.Lease, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[c.Subnet]
	if p == nil {
		return l, false
	}
	r, o := p.byAddr[a], p.offered[a]
	if isHolder := r != nil && r.key == c.key() && r.state == inventory.LeaseBound || o != nil && o.key == c.key(); !isHolder {
		return l, false
	}
	return p.quarantine(c, a, now), true
}

// Conflict reports that a probe found somebody on an address before it was given. The caller has to store the
// returned lease. ok is false when the address has an owner by now.
func (b *Book) Conflict(c Client, a netip.Addr, now time.Time) (l inventory.Lease, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[c.Subnet]
	if p == nil || !p.cidr.Contains(a) {
		return l, false
	}
	if r := p.byAddr[a]; r != nil && r.isHeld(now) || p.offered[a] != nil && p.offered[a].key != c.key() {
		return l, false
	}
	return p.quarantine(c, a, now), true
}

// At returns the last lease on an address of any subnet.
func (b *Book) At(a netip.Addr) (l inventory.Lease, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.pools {
		if r := p.byAddr[a]; r != nil {
			return p.lease(r), true
		}
	}
	return l, false
}

// Drop forgets a lease that At returned, after an admin deleted it. The machine gets NoBinding when it renews, and
// starts again. A lease that was renewed since At stays.
func (b *Book) Drop(l inventory.Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.pools[l.Subnet]; p != nil {
		if r := p.byAddr[l.Address]; r != nil && p.lease(r) == l {
			p.remove(r)
		}
	}
}
