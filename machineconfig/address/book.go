package address

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// Book knows, within one transaction, which addresses are taken, and gives out those that are free.
type Book struct {
	tx   inventory.Tx
	ours []netip.Addr
	now  time.Time
	// Awaited returns who will hold a value and is not stored as its holder yet, nil for nobody.
	Awaited func(k inventory.HoldingKind, value string) []inventory.Holding
	// isTrial says that nothing is stored: what is given counts in this book alone.
	isTrial bool

	subnets  []inventory.Subnet
	fixtures map[netip.Addr]taker
	given    map[string]map[netip.Addr]inventory.Holder // by subnet
}

// whole is a transaction that hides things from the caller. Whether an address is free does not depend on who asks.
type whole interface{ Whole() inventory.Tx }

// Open returns a Book of a transaction. ours are the addresses of this server. A trial stores nothing.
func Open(tx inventory.Tx, ours []netip.Addr, now time.Time, isTrial bool) (*Book, error) {
	tx = Whole(tx)
	b := &Book{tx: tx, now: now, isTrial: isTrial, given: map[string]map[netip.Addr]inventory.Holder{}}
	for _, a := range ours {
		b.ours = append(b.ours, a.Unmap().WithZone(""))
	}
	var err error
	if b.subnets, err = tx.Subnets().List(inventory.Page{}); err != nil {
		return nil, fmt.Errorf("read subnets: %w", err)
	}
	return b, nil
}

func (b *Book) subnetOf(a netip.Addr) *inventory.Subnet {
	for i := range b.subnets {
		if b.subnets[i].CIDR.Contains(a) {
			return &b.subnets[i]
		}
	}
	return nil
}

func (b *Book) subnet(name string) (*inventory.Subnet, error) {
	i := slices.IndexFunc(b.subnets, func(n inventory.Subnet) bool { return n.Name == name })
	if i < 0 {
		return nil, inventory.Errorf(inventory.Invalid, "there is no subnet %s", inventory.Clean(name, 63)).WithHint("list them with: slipway subnet list")
	}
	return &b.subnets[i], nil
}

// Unkept begins the text for an address that Slipway has not chosen yet.
const Unkept = "no address is kept yet of subnet"

// Kept returns the address that is kept for a holder, and an Unavailable error while there is none.
func (b *Book) Kept(h inventory.Holder) machineconfig.AddressOf {
	return func(subnet string) (netip.Prefix, error) {
		n, err := b.subnet(subnet)
		if err != nil {
			return netip.Prefix{}, err
		}
		a, err := b.keptFor(h, n)
		if err == nil && !a.IsValid() {
			err = inventory.Errorf(inventory.Unavailable, "%s %s for %s", Unkept, subnet, h).
				WithHint("it is chosen when the machine asks again; or choose one: slipway address set")
		}
		return netip.PrefixFrom(a, n.CIDR.Bits()), err
	}
}

func (b *Book) keptFor(h inventory.Holder, n *inventory.Subnet) (a netip.Addr, err error) {
	all, err := b.tx.ListAllocations(inventory.AddressFilter{Owner: h.Key(), Subnet: n.Name})
	if err != nil {
		return a, fmt.Errorf("read addresses of %s: %w", h, err)
	}
	for _, x := range all {
		if x.Note == "" {
			return x.Address, nil
		}
	}
	return a, nil
}

// Give returns the address that a subject has in a subnet, and chooses the lowest free one of its static ranges when it has
// none.
func (b *Book) Give(s Subject) machineconfig.AddressOf {
	return func(subnet string) (netip.Prefix, error) {
		n, err := b.subnet(subnet)
		if err != nil {
			return netip.Prefix{}, err
		}
		a, err := b.keptFor(s.Holder, n)
		if err == nil && !a.IsValid() {
			a, err = b.choose(s, n)
		}
		return netip.PrefixFrom(a, n.CIDR.Bits()), err
	}
}

func (b *Book) choose(s Subject, n *inventory.Subnet) (netip.Addr, error) {
	given, err := b.givenIn(n)
	if err != nil {
		return netip.Addr{}, err
	}
	for a, h := range given {
		if b.isTrial && h.Key() == s.Key() {
			return a, nil
		}
	}
	if len(n.StaticRanges) == 0 {
		return netip.Addr{}, inventory.Errorf(inventory.Invalid, "subnet %s has no static range: no machine can be given an address of it", n.Name).
			WithHint("give it one, outside of what DHCP leases: slipway subnet update %s --static-range FIRST-LAST", n.Name)
	}
	for _, r := range n.StaticRanges {
		for a := r.First; a.IsValid() && a.Compare(r.Last) <= 0; a = a.Next() {
			if _, isGiven := given[a]; isGiven {
				continue
			}
			isFree, err := b.isFree(s, a)
			if err != nil {
				return netip.Addr{}, err
			}
			if isFree {
				return a, b.note(s, n, a, false)
			}
		}
	}
	return netip.Addr{}, inventory.Errorf(inventory.Invalid, "subnet %s has no free address left in its static ranges", n.Name).
		WithHint("add a range: slipway subnet update %s --static-range FIRST-LAST; or free what is kept: slipway address list --subnet %s", n.Name, n.Name)
}

// givenIn returns the holder of each address of a subnet that is kept.
func (b *Book) givenIn(n *inventory.Subnet) (map[netip.Addr]inventory.Holder, error) {
	if given := b.given[n.Name]; given != nil {
		return given, nil
	}
	all, err := b.tx.ListAllocations(inventory.AddressFilter{Subnet: n.Name})
	if err != nil {
		return nil, fmt.Errorf("read addresses of subnet %s: %w", n.Name, err)
	}
	given := map[netip.Addr]inventory.Holder{}
	for _, a := range all {
		given[a.Address] = a.Holder
	}
	b.given[n.Name] = given
	return given, nil
}

// isFree reports whether nothing has an address that is kept for nobody. A reservation is never free, not even one of the
// same host: that is written where it is wanted.
func (b *Book) isFree(s Subject, a netip.Addr) (bool, error) {
	if _, err := b.tx.FindReservation(a); err == nil {
		return false, nil
	} else if !isNotFound(err) {
		return false, err
	}
	clashes, err := b.Clashes(s, []inventory.Holding{{Holder: s.Holder, Kind: inventory.HoldsAddress, Value: a.String()}}, nil)
	return len(clashes) == 0, err
}

func (b *Book) note(s Subject, n *inventory.Subnet, a netip.Addr, isFixed bool) error {
	if given, err := b.givenIn(n); err != nil {
		return err
	} else if given[a] = s.Holder; b.isTrial {
		return nil
	}
	return b.tx.CreateAllocation(&inventory.Allocation{Address: a, Subnet: n.Name, Holder: s.Holder, IsFixed: isFixed}, b.now)
}

// Fix keeps an address that a person has chosen for a subject, in place of the one that it has in that subnet.
func (b *Book) Fix(s Subject, a netip.Addr) (inventory.Allocation, error) {
	n := b.subnetOf(a)
	if n == nil {
		return inventory.Allocation{}, inventory.Errorf(inventory.Invalid, "%s is in no subnet", a).At("address").WithHint("list them with: slipway subnet list")
	}
	if !slices.ContainsFunc(n.StaticRanges, func(r inventory.Range) bool { return r.Contains(a) }) {
		return inventory.Allocation{}, inventory.Errorf(inventory.Invalid, "%s is in no static range of subnet %s", a, n.Name).At("address").
			WithHint("add a range that has it: slipway subnet update %s --static-range FIRST-LAST", n.Name)
	}
	clashes, err := b.Clashes(s, []inventory.Holding{{Holder: s.Holder, Kind: inventory.HoldsAddress, Value: a.String()}}, nil)
	if err != nil {
		return inventory.Allocation{}, err
	}
	if len(clashes) > 0 {
		return inventory.Allocation{}, clashes[0].Err()
	}
	has, err := b.keptFor(s.Holder, n)
	if err != nil {
		return inventory.Allocation{}, err
	}
	if has.IsValid() {
		if err := b.tx.DeleteAllocation(has); err != nil {
			return inventory.Allocation{}, err
		}
		delete(b.given, n.Name)
	}
	if err := b.note(s, n, a, true); err != nil {
		return inventory.Allocation{}, err
	}
	return b.tx.FindAllocation(a)
}

// Mark says of the addresses that are kept for their holder of which subnet they are.
func (b *Book) Mark(s Subject, all []inventory.Holding) error {
	kept, err := b.tx.ListAllocations(inventory.AddressFilter{Owner: s.Key()})
	if err != nil {
		return fmt.Errorf("read addresses of %s: %w", s.Holder, err)
	}
	for i := range all {
		for _, a := range kept {
			if all[i].Kind == inventory.HoldsAddress && all[i].Value == a.Address.String() {
				all[i].Subnet = a.Subnet
			}
		}
	}
	return nil
}

func isNotFound(err error) bool {
	var e *inventory.Error
	return errors.As(err, &e) && e.Kind == inventory.NotFound
}

// Whole returns a transaction without the limits of its caller.
func Whole(tx inventory.Tx) inventory.Tx {
	if w, ok := tx.(whole); ok {
		return w.Whole()
	}
	return tx
}
