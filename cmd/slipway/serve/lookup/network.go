package lookup

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/lease"
	"slipway.dev/slipway/pxe/lease6"
)

// Networks keeps the lease book as the inventory says it should be.
type Networks struct {
	store    inventory.Store
	Book     *lease.Book
	Book6    *lease6.Book
	Six      atomic.Pointer[[]inventory.Subnet] // the IPv6 ones
	classes  atomic.Pointer[[]inventory.Class]
	Known    *known
	policies atomic.Pointer[map[string]inventory.UnknownPolicy] // by subnet
	AsOf     int64                                              // the newest event that the book knows of
}

// OpenNetworks reads subnets, reservations and leases into a new book.
func OpenNetworks(ctx context.Context, store inventory.Store, interfaces []string) (*Networks, error) {
	n := &Networks{store: store, Known: newKnown(store)}
	var leases []inventory.Lease
	var now lease.Network
	var now6 lease6.Network
	err := store.Read(ctx, func(tx inventory.Tx) (err error) {
		if err = n.Known.Load(tx); err != nil {
			return err
		}
		if now, now6, err = n.read(tx, interfaces); err != nil {
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
func (n *Networks) read(tx inventory.Tx, interfaces []string) (four lease.Network, six lease6.Network, err error) {
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
	four, six = split(subnets, reservations, interfaces)
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
func (n *Networks) Follow(ctx context.Context, interfaces []string, events <-chan inventory.Event) error {
	for e := range events {
		noun, name, _ := strings.Cut(e.Subject, "/")
		switch noun {
		case "subnet", "reservation", "class", "import":
			if err := n.Reread(ctx, interfaces); err != nil {
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
func (n *Networks) Reread(ctx context.Context, interfaces []string) error {
	var now lease.Network
	var now6 lease6.Network
	if err := n.store.Read(ctx, func(tx inventory.Tx) (err error) {
		now, now6, err = n.read(tx, interfaces)
		return err
	}); err != nil {
		return fmt.Errorf("read networks: %w", err)
	}
	n.Book.Reconfigure(now)
	n.Book6.Reconfigure(now6)
	return nil
}

// Save stores leases in one transaction. The DHCP server acknowledges them only after it.
func (n *Networks) Save(ctx context.Context, leases []inventory.Lease) error {
	return n.store.Write(ctx, func(tx inventory.Tx) error {
		for _, l := range leases {
			if err := tx.SaveLease(l); err != nil {
				return err
			}
		}
		return nil
	})
}

// split gives each lease book its family: a book sees nothing of the other.
func split(subnets []inventory.Subnet, reservations []inventory.Reservation, interfaces []string) (lease.Network, lease6.Network) {
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
	four.Ours, six.Ours = AddressesOf(interfaces), Addresses6Of(interfaces)
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
