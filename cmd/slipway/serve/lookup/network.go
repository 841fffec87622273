package lookup

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
	"slipway.dev/slipway/pxe/lease"
	"slipway.dev/slipway/pxe/lease6"
)

// Networks keeps the lease books as the inventory says they should be.
//
// With several instances, the books have the true leases of a subnet only while this instance has the duty of that network. Answering says
// whether it has. Otherwise Holder looks in the inventory.
type Networks struct {
	store      inventory.Store
	interfaces []string
	Book       *lease.Book
	Book6      *lease6.Book
	Six        atomic.Pointer[[]inventory.Subnet] // the IPv6 ones
	classes    atomic.Pointer[[]inventory.Class]
	Known      *known
	policies   atomic.Pointer[map[string]inventory.UnknownPolicy] // by subnet
	AsOf       int64                                              // the newest event that the book knows of
	all        atomic.Pointer[[]inventory.Subnet]

	mu     sync.Mutex // held while leases and subnets are read and put into the books, so that the books go back to nothing older
	readAt time.Time  // when subnets and reservations began to be read that are in the books

	// These are of Answering, if other instances use the database.

	duties  *duty.Keeper             // whose epochs Save compares
	answers func(subnet string) bool // whether the leases of a subnet in the books are true
	others  func() []netip.Addr      // the addresses of the other instances
	changed func()                   // is called after subnets were read
	asking  chan struct{}            // bounds how many ask the inventory for a holder
}

// OpenNetworks reads subnets, reservations and leases into new books. No fence is around the store: Save has its own.
func OpenNetworks(ctx context.Context, store inventory.Store, interfaces []string) (*Networks, error) {
	n := &Networks{store: store, interfaces: interfaces, Known: newKnown(store)}
	var leases []inventory.Lease
	var now lease.Network
	var now6 lease6.Network
	err := store.Read(ctx, func(tx inventory.Tx) (err error) {
		if err = n.Known.Load(tx); err != nil {
			return err
		}
		if now, now6, err = n.read(tx); err != nil {
			return err
		}
		if n.AsOf, err = tx.LastEventID(); err != nil {
			return err
		}
		leases, err = tx.ListLeases("", inventory.Page{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read networks: %w", err)
	}
	n.Book, n.Book6 = lease.New(now, leases), lease6.New(now6, leases)
	return n, nil
}

// read returns what the books are made of and remembers the subnets' policies.
func (n *Networks) read(tx inventory.Tx) (four lease.Network, six lease6.Network, err error) {
	subnets, err := tx.Subnets().List(inventory.Page{})
	if err != nil {
		return four, six, err
	}
	reservations, err := tx.ListReservations("", inventory.Page{})
	if err != nil {
		return four, six, err
	}
	classes, err := tx.Classes().List(inventory.Page{})
	if err != nil {
		return four, six, err
	}
	n.classes.Store(&classes)
	policies := map[string]inventory.UnknownPolicy{}
	for _, s := range subnets {
		policies[s.Name] = s.Unknown
	}
	n.policies.Store(&policies)
	n.all.Store(&subnets)
	four, six = split(subnets, reservations)
	four.Ours, six.Ours = AddressesOf(n.interfaces), Addresses6Of(n.interfaces)
	if n.others != nil {
		four.Ours, six.Ours = append(four.Ours, n.others()...), append(six.Ours, n.others()...)
	}
	four.Limits, four.Knows = strangers, n.Known.HasMAC
	n.Six.Store(&six.Subnets)
	return four, six, nil
}

// Classes returns the classes of clients in force.
func (n *Networks) Classes() []inventory.Class { return *n.classes.Load() }

// Policy says what machines that are not accepted get on a subnet.
func (n *Networks) Policy(subnet string) inventory.UnknownPolicy {
	if p, ok := (*n.policies.Load())[subnet]; ok {
		return p
	}
	return inventory.UnknownIgnore
}

// Follow brings the book up to date after each change of a subnet, a reservation or a lease, until events ends. After an error
// AsOf is the event before, so that a caller who follows from there reads the change again.
func (n *Networks) Follow(ctx context.Context, events <-chan inventory.Event) error {
	for e := range events {
		noun, name, _ := strings.Cut(e.Subject, "/")
		switch noun {
		case "subnet", "reservation", "class", "import":
			if err := n.Reread(ctx); err != nil {
				return err
			}
		case "lease":
			if a, err := netip.ParseAddr(name); err == nil {
				if err := n.deleted(ctx, a); err != nil {
					return err
				}
			}
		}
		n.AsOf = e.ID
	}
	return nil
}

// deleted forgets the lease of an address that an admin has deleted. The machine may have renewed it between the deletion and this moment, or
// another one may have got the address. Then the inventory has a lease there again, and the books keep theirs: they are the same.
func (n *Networks) deleted(ctx context.Context, a netip.Addr) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	four, isFour := n.Book.At(a)
	six, isSix := n.Book6.At(a)
	if !isFour && !isSix {
		return nil
	}
	err := n.store.Read(ctx, func(tx inventory.Tx) error {
		_, err := tx.FindLease(a)
		return err
	})
	switch {
	case err == nil:
		return nil
	case !isNotFound(err):
		return fmt.Errorf("read the lease of %s: %w", a, err)
	}
	// What was renewed since the books were asked is in the inventory as well, and stays.
	n.Book.Drop(four)
	n.Book6.Drop(six)
	return nil
}

// Reread puts the subnets and reservations in force that are stored now.
func (n *Networks) Reread(ctx context.Context) error { return n.rereadSince(ctx, time.Now()) }

// rereadSince is Reread, unless that was done since a time.
func (n *Networks) rereadSince(ctx context.Context, since time.Time) error {
	n.mu.Lock()
	err := error(nil)
	if n.readAt.Before(since) {
		err = n.reread(ctx)
	}
	n.mu.Unlock()
	if n.changed != nil {
		n.changed()
	}
	return err
}

func (n *Networks) reread(ctx context.Context) error {
	var now lease.Network
	var now6 lease6.Network
	began := time.Now()
	if err := n.store.Read(ctx, func(tx inventory.Tx) (err error) {
		now, now6, err = n.read(tx)
		return err
	}); err != nil {
		return fmt.Errorf("read networks: %w", err)
	}
	n.readAt = began
	n.Book.Reconfigure(now)
	n.Book6.Reconfigure(now6)
	return nil
}

// Save stores leases in one transaction. The DHCP server acknowledges them only after it.
//
// It is a Conflict when another instance has had the network of one of them since the books decided on it. Nothing is stored then. The DHCP
// server saves each lease of the group again by itself, so that only those of that network get no acknowledgement.
func (n *Networks) Save(ctx context.Context, leases []inventory.Lease) error {
	return n.store.Write(ctx, func(tx inventory.Tx) error {
		if n.duties != nil {
			if err := n.check(tx, leases); err != nil {
				return err
			}
		}
		for _, l := range leases {
			if err := tx.SaveLease(l); err != nil {
				return err
			}
		}
		return nil
	})
}

// check compares the epochs in which leases were decided with those of the duties of their networks, once for each network.
func (n *Networks) check(tx inventory.Tx, leases []inventory.Lease) error {
	type network struct {
		subnet string
		epoch  int64
	}
	checked := map[network]bool{}
	for _, l := range leases {
		if is := (network{l.Subnet, l.Epoch}); !checked[is] {
			if err := n.duties.Check(tx, inventory.NetworkDuty(l.Subnet), l.Epoch); err != nil {
				return err
			}
			checked[is] = true
		}
	}
	return nil
}

// take puts the leases of a subnet into the books that are stored now, after this instance has gained the duty of that network in an epoch.
// The transaction checks that. So nobody else has given an address there since, or can. Subnets and reservations must be as of the moment
// of the gain as well: their events may still be on their way.
func (n *Networks) take(ctx context.Context, subnet string, epoch int64, gained time.Time) error {
	if err := n.rereadSince(ctx, gained); err != nil {
		return err
	}
	n.mu.Lock() // an admin's deletion of a lease, seen in between, would be undone
	defer n.mu.Unlock()
	var leases []inventory.Lease
	if err := n.store.Read(ctx, func(tx inventory.Tx) (err error) {
		if err = n.duties.Check(tx, inventory.NetworkDuty(subnet), epoch); err != nil {
			return err
		}
		leases, err = tx.ListLeases(subnet, inventory.Page{})
		return err
	}); err != nil {
		return fmt.Errorf("read leases: %w", err)
	}
	n.Book.Replace(subnet, leases, epoch)
	n.Book6.Replace(subnet, leases, epoch)
	return nil
}

const (
	// holderWithin is how long Holder waits for the inventory, and holdersAtOnce how many may wait. Beyond, nobody is known to have the
	// address. Connections of known machines only go first.
	holderWithin  = 250 * time.Millisecond
	holdersAtOnce = 8
)

// Holder returns the machine that has an IPv4 address from us.
func (n *Networks) Holder(at netip.Addr) (inventory.MAC, bool) {
	l, ok := n.Book.At(at)
	if n.answers != nil {
		switch s, isServed := n.Book.SubnetFor(lease.Path{Relay: at}); {
		case !isServed:
			return "", false
		case !n.answers(s.Name):
			l, ok = n.find(at)
		}
	}
	return l.MAC, ok && l.State == inventory.LeaseBound
}

// find reads the lease on an address from the inventory. Unlike the books, it waits for the database, so that only some at a time may ask.
func (n *Networks) find(at netip.Addr) (l inventory.Lease, ok bool) {
	select {
	case n.asking <- struct{}{}:
		defer func() { <-n.asking }()
	default:
		return l, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), holderWithin)
	defer cancel()
	err := n.store.Read(ctx, func(tx inventory.Tx) (err error) {
		l, err = tx.FindLease(at)
		return err
	})
	return l, err == nil
}

// split gives each lease book its family: a book sees nothing of the other.
func split(subnets []inventory.Subnet, reservations []inventory.Reservation) (lease.Network, lease6.Network) {
	var four lease.Network
	var six lease6.Network
	for _, s := range subnets {
		if s.Is6() {
			six.Subnets = append(six.Subnets, s)
		} else {
			four.Subnets = append(four.Subnets, s)
		}
	}
	for _, r := range reservations {
		if r.Address.Is6() {
			six.Reservations = append(six.Reservations, r)
		} else {
			four.Reservations = append(four.Reservations, r)
		}
	}
	return four, six
}

// Subnets6 returns the IPv6 subnets of an interface: those that name it, and those that one of its addresses is in.
func (n *Networks) Subnets6(iface string) (list []inventory.Subnet) {
	ours := Addresses6Of([]string{iface})
	for _, s := range *n.Six.Load() {
		isHere := slices.ContainsFunc(ours, s.CIDR.Contains)
		if s.Interface == iface || s.Interface == "" && isHere {
			list = append(list, s)
		}
	}
	return list
}
