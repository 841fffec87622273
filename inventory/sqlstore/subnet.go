package sqlstore

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

var subnetTable = newTable(noun.Subnets, table[inventory.Subnet]{
	order: "name",
	fixed: columns(`name`),
	edited: columns(`cidr first_address last_address interface mode gateway dns ntp domain mtu routes lease_for boot_lease_for
unknown advertise is_router static_ranges options`),
	cells: func(n *inventory.Subnet) []column.Column {
		return []column.Column{
			column.Text(&n.Name),
			column.Network(&n.CIDR),
			column.Computed(func() (any, error) { first, _, err := bounds(n.CIDR); return first, err }),
			column.Computed(func() (any, error) { _, last, err := bounds(n.CIDR); return last, err }),
			column.Text(&n.Interface), column.Text(&n.Mode),
			column.Address(&n.Gateway),
			column.JSON(&n.DNS), column.JSON(&n.NTP), column.Text(&n.Domain),
			column.Number(&n.MTU),
			column.JSON(&n.Routes),
			column.Duration(&n.LeaseFor),
			column.Duration(&n.BootLeaseFor),
			column.Text(&n.Unknown), column.Text(&n.Advertise),
			column.Bool(&n.IsRouter),
			column.JSON(&n.StaticRanges), column.JSON(&n.Options),
		}
	},
})

// subnets have their ranges in tables of their own.
type subnets struct{ networkTx }

// Subnets implements inventory.RecordTx.
func (t recordTx) Subnets() inventory.Records[inventory.Subnet] { return t.networks().subnets() }

func (t networkTx) subnets() subnets { return subnets{t} }

// withoutRanges are the subnets without their ranges.
func (t subnets) withoutRanges() records[inventory.Subnet] {
	return records[inventory.Subnet]{table: subnetTable, tx: t.tx, may: t.mayBeSubnet}
}

const overlapSQL = `SELECT name, cidr FROM subnets WHERE first_address <= $1 AND last_address >= $2 AND name <> $3 ORDER BY name LIMIT 1`

// Find implements inventory.Records.
func (t subnets) Find(name string) (inventory.Subnet, error) {
	n, err := t.withoutRanges().Find(name)
	if err != nil {
		return inventory.Subnet{}, err
	}
	n.Ranges, err = t.ranges(&n)
	return n, err
}

func (t networkTx) ranges(n *inventory.Subnet) ([]inventory.Range, error) {
	f := familyOf(n.CIDR.Addr())
	return list(t.tx, func(s database.Scan) (r inventory.Range, err error) {
		err = s(f.column(&r.First), f.column(&r.Last))
		return r, err
	}, f.ranges, n.Name)
}

// List implements inventory.Records.
func (t subnets) List(p inventory.Page) ([]inventory.Subnet, error) {
	all, err := setting(t.tx, "subnets", ownSubnets, t.read)
	return piece(all, p, noun.Subnets.Key), err
}

func (t subnets) read() ([]inventory.Subnet, error) {
	subnets, err := t.withoutRanges().List(inventory.Page{})
	if err != nil {
		return nil, err
	}
	at := map[string]*inventory.Subnet{}
	for i := range subnets {
		at[subnets[i].Name] = &subnets[i]
	}
	for _, f := range families {
		err := t.Each(func(s database.Scan) error {
			var name string
			var r inventory.Range
			if err := s(&name, f.column(&r.First), f.column(&r.Last)); err != nil {
				return err
			}
			at[name].Ranges = append(at[name].Ranges, r)
			return nil
		}, f.allRanges)
		if err != nil {
			return nil, err
		}
	}
	return subnets, nil
}

// Create implements inventory.Records.
func (t subnets) Create(n *inventory.Subnet, now time.Time) error {
	if err := t.withoutRanges().Create(n, now); err != nil {
		return err
	}
	return t.insertRanges(n)
}

// Update implements inventory.Records.
func (t subnets) Update(n *inventory.Subnet, now time.Time) error {
	if err := t.withoutRanges().Update(n, now); err != nil {
		return err
	}
	has, err := t.ranges(n)
	if err != nil || slices.Equal(has, n.Ranges) {
		return err
	}
	for _, f := range families {
		if err := t.Later(nil, f.deleteRanges, n.Name); err != nil {
			return err
		}
	}
	return t.insertRanges(n)
}

// mayBeSubnet refuses a network that overlaps another, and one that leaves out addresses that are kept for machines.
func (t networkTx) mayBeSubnet(n *inventory.Subnet, isNew bool) error {
	if !isNew {
		if err := t.addresses().keepsAddresses(n); err != nil {
			return err
		}
	}
	first, last, err := bounds(n.CIDR)
	if err != nil {
		return err
	}
	var name, cidr string
	var found bool
	if n.Is6() {
		name, cidr, found, err = t.overlap6(n)
	} else {
		found, err = t.Row([]any{&name, &cidr}, overlapSQL, last, first, n.Name)
	}
	if err == nil && found {
		err = inventory.Errorf(inventory.Conflict, "subnet %s (%s) overlaps subnet %s (%s)", n.Name, n.CIDR, name, cidr).
			WithHint("one address belongs to one subnet: change one of the two networks")
	}
	return err
}

// bounds returns the first and last address of a network, the network's and the broadcast's own included.
func bounds(p netip.Prefix) (first, last int64, err error) {
	if p.IsValid() && is6(p.Addr()) {
		return outsideIPv4First, outsideIPv4Last, nil
	}
	if !p.IsValid() || !p.Addr().Is4() {
		return 0, 0, inventory.Errorf(inventory.Invalid, "%s is not an IPv4 network", p)
	}
	b := p.Masked().Addr().As4()
	first = int64(binary.BigEndian.Uint32(b[:]))
	return first, first + 1<<(32-p.Bits()) - 1, nil
}

func (t networkTx) insertRanges(n *inventory.Subnet) error {
	f := familyOf(n.CIDR.Addr())
	for _, r := range n.Ranges {
		first, err := f.key(r.First)
		if err != nil {
			return err
		}
		last, err := f.key(r.Last)
		if err != nil {
			return err
		}
		if err := t.Later(nil, f.insertRange, n.Name, first, last); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements inventory.Records.
func (t subnets) Delete(name string) error {
	if kept, err := t.addresses().ListAllocations(inventory.AddressFilter{Subnet: name}); err != nil {
		return err
	} else if len(kept) > 0 {
		return inventory.Errorf(inventory.Conflict, "subnet %s: %d addresses are kept for machines, %s for %s", name, len(kept), kept[0].Address, kept[0].Holder).
			WithHint("list them with: slipway address list --subnet %s", name)
	}
	return t.withoutRanges().Delete(name)
}

func taken(noun, name string) error {
	return inventory.Errorf(inventory.Conflict, "there is a %s %s already", noun, name).
		WithHint("choose another name, or change that one")
}

// ifTaken is the meaning of an error of an insert: see Tx.Later.
func ifTaken(noun, name string) func(error) error {
	return func(err error) error {
		if inventory.IsKind(err, inventory.Conflict) {
			return taken(noun, name)
		}
		return err
	}
}

// outsideIPv4 is what an IPv6 network has for its first and last address as a number: no number lies between them.
const outsideIPv4First, outsideIPv4Last = -1, -2

// overlap6 finds an IPv6 network that overlaps another's. There are few, and they change seldom: all are looked at.
func (t networkTx) overlap6(n *inventory.Subnet) (name, cidr string, found bool, err error) {
	subnets, err := t.subnets().List(inventory.Page{})
	if err != nil {
		return "", "", false, err
	}
	for _, s := range subnets {
		if s.Name != n.Name && s.CIDR.Overlaps(n.CIDR) {
			return s.Name, s.CIDR.String(), true, nil
		}
	}
	return "", "", false, nil
}
