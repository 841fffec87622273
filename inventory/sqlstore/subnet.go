package sqlstore

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
)

const (
	subnetColumns = `name, cidr, interface, mode, gateway, dns, ntp, domain, mtu, routes, lease_for, boot_lease_for,
unknown, advertise, is_router, static_ranges, options, created_at, updated_at, version`

	findSubnetSQL    = `SELECT ` + subnetColumns + ` FROM subnets WHERE name = $1`
	listSubnetsSQL   = `SELECT ` + subnetColumns + ` FROM subnets ORDER BY name`
	subnetVersionSQL = `SELECT version FROM subnets WHERE name = $1`
	overlapSQL       = `SELECT name, cidr FROM subnets
WHERE first_address <= $1 AND last_address >= $2 AND name <> $3 ORDER BY name LIMIT 1`
	insertSubnetSQL = `INSERT INTO subnets (name, cidr, first_address, last_address, interface, mode, gateway, dns, ntp,
domain, mtu, routes, lease_for, boot_lease_for, unknown, advertise, is_router, static_ranges, options, created_at, updated_at,
version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, 1)`
	updateSubnetSQL = `UPDATE subnets SET cidr = $1, first_address = $2, last_address = $3, interface = $4, mode = $5,
gateway = $6, dns = $7, ntp = $8, domain = $9, mtu = $10, routes = $11, lease_for = $12, boot_lease_for = $13,
unknown = $14, advertise = $15, is_router = $16, static_ranges = $17, options = $18, updated_at = $19, version = version + 1
WHERE name = $20 AND version = $21`
	deleteSubnetSQL = `DELETE FROM subnets WHERE name = $1`

	rangesSQL       = `SELECT first, last FROM ranges WHERE subnet = $1 ORDER BY first`
	allRangesSQL    = `SELECT subnet, first, last FROM ranges ORDER BY subnet, first`
	insertRangeSQL  = `INSERT INTO ranges (subnet, first, last) VALUES ($1, $2, $3)`
	deleteRangesSQL = `DELETE FROM ranges WHERE subnet = $1`
)

func readSubnet(s scan) (n inventory.Subnet, err error) {
	err = s(&n.Name, textColumn(&n.CIDR), &n.Interface, &n.Mode, textColumn(&n.Gateway), jsonColumn(&n.DNS),
		jsonColumn(&n.NTP), &n.Domain, &n.MTU, jsonColumn(&n.Routes), durationColumn(&n.LeaseFor),
		durationColumn(&n.BootLeaseFor), &n.Unknown, &n.Advertise, &n.IsRouter, jsonColumn(&n.StaticRanges), jsonColumn(&n.Options),
		timeColumn(&n.CreatedAt), timeColumn(&n.UpdatedAt), &n.Version)
	return n, err
}

// subnets have their ranges in tables of their own.
type subnets struct{ networkTx }

// Subnets implements inventory.RecordTx.
func (t recordTx) Subnets() inventory.Records[inventory.Subnet] { return t.networks().subnets() }

func (t networkTx) subnets() subnets { return subnets{t} }

// Find implements inventory.Records.
func (t subnets) Find(name string) (inventory.Subnet, error) {
	n, err := find(t.tx, readSubnet, "subnet", name, findSubnetSQL, name)
	if err != nil {
		return inventory.Subnet{}, err
	}
	n.Ranges, err = t.ranges(&n)
	return n, err
}

func (t networkTx) ranges(n *inventory.Subnet) ([]inventory.Range, error) {
	if n.Is6() {
		return t.ranges6(n.Name)
	}
	return list(t.tx, func(s scan) (r inventory.Range, err error) {
		err = s(addressColumn(&r.First), addressColumn(&r.Last))
		return r, err
	}, rangesSQL, n.Name)
}

// List implements inventory.Records.
func (t subnets) List(p inventory.Page) ([]inventory.Subnet, error) {
	all, err := setting(t.tx, "subnets", ownSubnets, t.read)
	return piece(all, p, noun.Subnets.Key), err
}

func (t subnets) read() ([]inventory.Subnet, error) {
	subnets, err := list(t.tx, readSubnet, listSubnetsSQL)
	if err != nil {
		return nil, err
	}
	at := map[string]*inventory.Subnet{}
	for i := range subnets {
		at[subnets[i].Name] = &subnets[i]
	}
	if err := t.allRanges6(at); err != nil {
		return nil, err
	}
	return subnets, t.each(func(s scan) error {
		var name string
		var r inventory.Range
		if err := s(&name, addressColumn(&r.First), addressColumn(&r.Last)); err != nil {
			return err
		}
		at[name].Ranges = append(at[name].Ranges, r)
		return nil
	}, allRangesSQL)
}

// Create implements inventory.Records.
func (t subnets) Create(n *inventory.Subnet, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, subnetVersionSQL, n.Name); err != nil {
		return err
	} else if found {
		return taken("subnet", n.Name)
	}
	args, err := t.subnetArgs(n)
	if err != nil {
		return err
	}
	now = stamp(now)
	args = append([]any{n.Name}, args...)
	if _, err := t.write(insertSubnetSQL, append(args, ms(now), ms(now))...); err != nil {
		return err
	}
	if err := t.insertRanges(n); err != nil {
		return err
	}
	n.CreatedAt, n.UpdatedAt, n.Version = now, now, 1
	return nil
}

// Update implements inventory.Records.
func (t subnets) Update(n *inventory.Subnet, now time.Time) error {
	if err := t.addresses().keepsAddresses(n); err != nil {
		return err
	}
	args, err := t.subnetArgs(n)
	if err != nil {
		return err
	}
	now = stamp(now)
	rows, err := t.write(updateSubnetSQL, append(args, ms(now), n.Name, n.Version)...)
	if err := t.updated(rows, err, "subnet", n.Name, n.Version, subnetVersionSQL, n.Name); err != nil {
		return err
	}
	has, err := t.ranges(n)
	if err != nil {
		return err
	}
	if !slices.Equal(has, n.Ranges) {
		for _, all := range []string{deleteRangesSQL, deleteRanges6SQL} {
			if _, err := t.write(all, n.Name); err != nil {
				return err
			}
		}
		if err := t.insertRanges(n); err != nil {
			return err
		}
	}
	n.UpdatedAt = now
	n.Version++
	return nil
}

// subnetArgs refuses a network that overlaps another, and returns the arguments that insert and update share, in the
// order of the columns from cidr to options.
func (t networkTx) subnetArgs(n *inventory.Subnet) ([]any, error) {
	first, last, err := bounds(n.CIDR)
	if err != nil {
		return nil, err
	}
	var name, cidr string
	var found bool
	if n.Is6() {
		name, cidr, found, err = t.overlap6(n)
	} else {
		found, err = t.row([]any{&name, &cidr}, overlapSQL, last, first, n.Name)
	}
	if err != nil {
		return nil, err
	} else if found {
		return nil, inventory.Errorf(inventory.Conflict, "subnet %s (%s) overlaps subnet %s (%s)", n.Name, n.CIDR, name, cidr).
			WithHint("one address belongs to one subnet: change one of the two networks")
	}
	var texts [5]string
	for i, v := range []any{n.DNS, n.NTP, n.Routes, n.StaticRanges, n.Options} {
		if texts[i], err = jsonText(v); err != nil {
			return nil, err
		}
	}
	return []any{
		n.CIDR.String(), first, last, n.Interface, string(n.Mode), addressText(n.Gateway), texts[0], texts[1], n.Domain,
		n.MTU, texts[2], durationMS(n.LeaseFor), durationMS(n.BootLeaseFor), string(n.Unknown), string(n.Advertise), bit(n.IsRouter), texts[3], texts[4],
	}, nil
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
	if n.Is6() {
		return t.insertRanges6(n)
	}
	for _, r := range n.Ranges {
		first, err := addressNumber(r.First)
		if err != nil {
			return err
		}
		last, err := addressNumber(r.Last)
		if err != nil {
			return err
		}
		if _, err := t.write(insertRangeSQL, n.Name, first, last); err != nil {
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
	n, err := t.write(deleteSubnetSQL, name)
	return changed(n, err, "subnet", name)
}

func taken(noun, name string) error {
	return inventory.Errorf(inventory.Conflict, "there is a %s %s already", noun, name).
		WithHint("choose another name, or change that one")
}

const (
	ranges6SQL       = `SELECT first, last FROM ranges6 WHERE subnet = $1 ORDER BY first`
	allRanges6SQL    = `SELECT subnet, first, last FROM ranges6 ORDER BY subnet, first`
	insertRange6SQL  = `INSERT INTO ranges6 (subnet, first, last) VALUES ($1, $2, $3)`
	deleteRanges6SQL = `DELETE FROM ranges6 WHERE subnet = $1`
)

// outsideIPv4 is what an IPv6 network has for its first and last address as a number: no number lies between them.
const outsideIPv4First, outsideIPv4Last = -1, -2

func (t networkTx) ranges6(subnet string) ([]inventory.Range, error) {
	return list(t.tx, func(s scan) (r inventory.Range, err error) {
		err = s(blobColumn(&r.First), blobColumn(&r.Last))
		return r, err
	}, ranges6SQL, subnet)
}

// allRanges6 adds the IPv6 ranges of all subnets.
func (t networkTx) allRanges6(at map[string]*inventory.Subnet) error {
	return t.each(func(s scan) error {
		var name string
		var r inventory.Range
		if err := s(&name, blobColumn(&r.First), blobColumn(&r.Last)); err != nil {
			return err
		}
		at[name].Ranges = append(at[name].Ranges, r)
		return nil
	}, allRanges6SQL)
}

func (t networkTx) insertRanges6(n *inventory.Subnet) error {
	for _, r := range n.Ranges {
		if _, err := t.write(insertRange6SQL, n.Name, addressBytes(r.First), addressBytes(r.Last)); err != nil {
			return err
		}
	}
	return nil
}

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
