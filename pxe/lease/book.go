// Package lease owns the choice of addresses: which machine may have which, for how long, and the answer to a request (RFC
// 2131 section 4.3). It never touches a socket, a store or a clock. It returns what the caller has to store, and an address
// counts as given away only after the caller confirms that.
//
// Start reading at Book.Offer and Book.Confirm.
package lease

import (
	"net/netip"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// How long addresses are kept from others without being leased.
const (
	OfferFor   = time.Minute      // an offer, until the client asks for it
	DeclineFor = 10 * time.Minute // an address that somebody else uses
	pendingFor = 5 * time.Minute  // an acknowledgement that is being stored; Commit or Abort ends it
	maxOffers  = 65_536           // in memory at once; beyond, the oldest is forgotten
	// unclaimedFor is how long an offer is safe from other clients in a full subnet. UEFI firmware asks for what it was
	// offered after 4 s, all others sooner.
	unclaimedFor = 5 * time.Second
)

// Reason says why a client gets no address, in words for the admin and as the label of a metric; "" is none.
type Reason string

// The reasons.
const (
	NoSubnet        Reason = "the subnet is not known"
	IsOff           Reason = "the subnet's mode is off"
	IsProxy         Reason = "another server gives addresses in this subnet"
	Elsewhere       Reason = "another instance answers on this network, or none at this moment"
	KeptForKnown    Reason = "the free addresses that are left are kept for known machines"
	PortFull        Reason = "too many unknown machines have addresses on its switch port"
	NoReservation   Reason = "the subnet serves reservations only, and this machine has none"
	Exhausted       Reason = "no address is left in the subnet's ranges"
	ReservedTaken   Reason = "the address reserved for it is still in use by another machine"
	WrongNetwork    Reason = "it asks for an address of another network"
	TakenByAnother  Reason = "the address belongs to another machine"
	ReservedOther   Reason = "the address is reserved for another machine"
	OutsideRanges   Reason = "the address is in none of the subnet's ranges"
	InQuarantine    Reason = "the address is in use by a machine that does not have it from us"
	NotItsReserved  Reason = "another address is reserved for it"
	NotWhatWasGiven Reason = "another address was offered to it"
	NoAddress       Reason = "it asks for no address and was offered none"
)

// Client is the machine that asks for an address. The MAC distinguishes clients: the client id changes between firmware,
// boot loader and operating system of one machine.
type Client struct {
	Subnet   string // the subnet it is in, see SubnetFor
	MAC      inventory.MAC
	ClientID string // option 61 in hex
	UUID     string // option 97; finds a reservation at boot only, an operating system does not send it
	Hostname string // option 12
	Port     string // switch port, as its relay names it
	IsKnown  bool   // an accepted host: the limits for strangers do not hold for it
	IsBoot   bool   // firmware or a boot loader: the lease is BootLeaseFor, not LeaseFor
}

// Network is the source of the addresses to choose from.
type Network struct {
	Subnets      []inventory.Subnet
	Reservations []inventory.Reservation
	Ours         []netip.Addr // this server's own addresses, which nobody else gets
	Limits       Limits
	Knows        func(inventory.MAC) bool // who is no stranger among those with a stored lease; nil: nobody
}

// Book holds all subnets, reservations and leases. Many goroutines may call its methods. None takes longer with more
// addresses, except Reconfigure, Replace and Counts.
//
// Nothing in it waits for a disk: a lease is pending between Confirm and Commit, and belongs to its client meanwhile.
type Book struct {
	mu      sync.Mutex
	limits  Limits
	knows   func(inventory.MAC) bool // see Network.Knows
	subnets []inventory.Subnet
	pools   map[string]*pool
	offers  offerTable
}

// New returns a book with the stored leases. It ignores leases outside of every subnet.
func New(n Network, leases []inventory.Lease) *Book {
	b := &Book{pools: map[string]*pool{}, offers: newOfferTable()}
	b.Reconfigure(n)
	for _, l := range leases {
		b.load(l)
	}
	for _, p := range b.pools {
		p.rebuild()
	}
	return b
}

func (b *Book) load(l inventory.Lease) {
	if p := b.pools[l.Subnet]; p != nil && l.Address.Is4() {
		p.load(l)
		p.loadStranger(l, b.knows)
	}
}

// Replace puts the stored leases of one subnet in place of those in memory, and forgets what was offered there. The caller has gained the
// duty to answer on that network, and has read the leases after that: other instances may have given addresses meanwhile. Each lease that
// the book decides on from now on has that epoch. A machine that had an offer asks again within seconds.
func (b *Book) Replace(subnet string, leases []inventory.Lease, epoch int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[subnet]
	if p == nil {
		return
	}
	b.offers.forget(func(o *offer) bool { return o.pool == p })
	p.empty()
	p.epoch = epoch
	for _, l := range leases {
		if l.Subnet == subnet {
			b.load(l)
		}
	}
	p.rebuild()
}

// Reconfigure replaces the subnets and reservations. It keeps the leases of subnets that remain. A machine whose
// address may no longer be its own, or whose offer no longer fits, gets a NAK when it asks next.
func (b *Book) Reconfigure(n Network) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.pools
	b.limits, b.knows = n.Limits, n.Knows
	b.offers.strangersFor = n.Limits.OfferFor
	b.subnets = append([]inventory.Subnet(nil), n.Subnets...)
	b.pools = make(map[string]*pool, len(n.Subnets))
	for _, s := range n.Subnets {
		p := newPool(s, n)
		if o := old[s.Name]; o != nil {
			p.inherit(o)
		}
		b.pools[s.Name] = p
	}
	b.offers.forget(func(o *offer) bool {
		p := b.pools[o.pool.subnet.Name]
		if p == nil || !p.cidr.Contains(toAddr(o.addr)) {
			return true
		}
		o.claim() // from the old pool
		o.pool = p
		p.offered[o.addr], p.offerOf[o.mac] = o, o
		if !o.isPending && !o.isKnown && p.isDynamic(o.addr) {
			p.addUnclaimed(o)
		}
		return false
	})
	for _, p := range b.pools {
		p.rebuild()
	}
}

// Find returns the lease on an address, whatever its state.
func (b *Book) Find(subnet string, a netip.Addr) (inventory.Lease, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[subnet]
	if p == nil || !a.Is4() {
		return inventory.Lease{}, false
	}
	r := p.byAddr[toInt(a)]
	if r == nil {
		return inventory.Lease{}, false
	}
	return p.lease(r), true
}

// At returns the last lease on an address of any subnet. It takes the same time with any number of addresses.
func (b *Book) At(a netip.Addr) (l inventory.Lease, ok bool) {
	if !a.Is4() {
		return l, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.subnets {
		if !s.CIDR.Contains(a) {
			continue
		}
		p := b.pools[s.Name]
		if r := p.byAddr[toInt(a)]; r != nil {
			return p.lease(r), true
		}
	}
	return l, false
}

// Counts says how full a subnet is.
type Counts struct {
	RangeN    int `json:"rangeN"` // addresses in ranges, less those nobody may have
	BoundN    int `json:"boundN"` // leased now, reservations included
	OfferedN  int `json:"offeredN"`
	DeclinedN int `json:"declinedN"` // in quarantine
	FreeN     int `json:"freeN"`     // could be given to a new machine now
}

// Counts counts the addresses of a subnet. It reads every lease of it under the lock: call it for people, not for
// packets.
func (b *Book) Counts(subnet string, now time.Time) (c Counts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[subnet]
	if p == nil {
		return c
	}
	b.offers.expire(now)
	for _, r := range p.ranges {
		c.RangeN += int(r.last-r.first) + 1
	}
	for a := range p.excluded {
		if p.inRanges(a) {
			c.RangeN--
		}
	}
	c.OfferedN = len(p.offered)
	c.FreeN = c.RangeN
	for a := range p.offered {
		if p.isDynamic(a) {
			c.FreeN--
		}
	}
	for a := range p.reserved {
		if p.inRanges(a) && !p.excluded[a] {
			c.FreeN--
		}
	}
	for a, r := range p.byAddr {
		if !r.isHeld(now) {
			continue
		}
		if r.state == inventory.LeaseDeclined {
			c.DeclinedN++
		} else {
			c.BoundN++
		}
		if p.isDynamic(a) && p.offered[a] == nil {
			c.FreeN--
		}
	}
	return c
}
