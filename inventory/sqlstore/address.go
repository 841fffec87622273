package sqlstore

import (
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

const (
	allocationSelect = `SELECT a.address, a.subnet, COALESCE(a.machine_uid, ''), COALESCE(m.name, ''), COALESCE(h.id, ''), COALESCE(h.name, ''),
a.is_fixed, a.note, a.created_at FROM allocations AS a LEFT JOIN machines AS m ON m.uid = a.machine_uid
LEFT JOIN hosts AS h ON h.id = COALESCE(a.host_id, m.host_id)`

	findAllocationSQL     = allocationSelect + ` WHERE a.address = $1`
	listAllocationsSQL    = allocationSelect + ` ORDER BY a.address`
	subnetAllocationsSQL  = allocationSelect + ` WHERE a.subnet = $1 ORDER BY a.address`
	machineAllocationsSQL = allocationSelect + ` WHERE a.machine_uid = $1 ORDER BY a.address`
	hostAllocationsSQL    = allocationSelect + ` WHERE a.host_id = $1 ORDER BY a.address`
	insertAllocationSQL   = `INSERT INTO allocations (address, subnet, machine_uid, host_id, is_fixed, note, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	deleteAllocationSQL   = `DELETE FROM allocations WHERE address = $1`
	leaveAllocationsSQL   = `UPDATE allocations SET machine_uid = NULL, host_id = $1, note = $2 WHERE machine_uid = $3`

	holdingSelect = `SELECT x.kind, x.value, COALESCE(x.machine_uid, ''), COALESCE(m.name, ''), COALESCE(h.id, ''), COALESCE(h.name, ''), x.domain, x.subnet,
x.path, x.source FROM holdings AS x LEFT JOIN machines AS m ON m.uid = x.machine_uid LEFT JOIN hosts AS h ON h.id = COALESCE(x.host_id, m.host_id)`

	listHoldingsSQL   = holdingSelect + ` ORDER BY x.kind, x.value, x.owner`
	ownerHoldingsSQL  = holdingSelect + ` WHERE x.owner = $1 ORDER BY x.kind, x.value`
	findHoldingsSQL   = holdingSelect + ` WHERE x.kind = $1 AND x.value = $2 ORDER BY x.owner`
	heldTwiceSQL      = `SELECT kind, value FROM holdings GROUP BY kind, value HAVING COUNT(*) > 1`
	insertHoldingSQL  = `INSERT INTO holdings (kind, value, owner, machine_uid, host_id, domain, subnet, path, source) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	deleteHoldingsSQL = `DELETE FROM holdings WHERE owner = $1`
)

// orNull is a text for a column whose foreign key may be absent.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func readAllocation(s database.Scan) (a inventory.Allocation, err error) {
	err = s(column.Address16(&a.Address), &a.Subnet, &a.MachineUID, &a.Machine, &a.HostID, &a.Host, &a.IsFixed, &a.Note,
		column.Time(&a.CreatedAt))
	return a, err
}

// FindAllocation implements inventory.AddressTx.
func (t addressTx) FindAllocation(a netip.Addr) (inventory.Allocation, error) {
	return find(t.tx, readAllocation, "address", a.String(), findAllocationSQL, column.Bytes16(a))
}

// ListAllocations implements inventory.AddressTx.
func (t addressTx) ListAllocations(f inventory.AddressFilter) (all []inventory.Allocation, err error) {
	query, args := ownerQuery(f.Owner, machineAllocationsSQL, hostAllocationsSQL)
	switch {
	case query == "" && f.Subnet == "":
		query = listAllocationsSQL
	case query == "":
		query, args = subnetAllocationsSQL, []any{f.Subnet}
	}
	all, err = list(t.tx, readAllocation, query, args...)
	all = slices.DeleteFunc(all, func(a inventory.Allocation) bool { return f.Subnet != "" && a.Subnet != f.Subnet })
	slices.SortFunc(all, func(a, b inventory.Allocation) int { return a.Address.Compare(b.Address) })
	return all, err
}

// ownerQuery chooses the query for a machine or a host; "" for neither.
func ownerQuery(owner, ofMachine, ofHost string) (query string, args []any) {
	const machine, host = "machine/", "host/"
	switch {
	case len(owner) > len(machine) && owner[:len(machine)] == machine:
		return ofMachine, []any{owner[len(machine):]}
	case len(owner) > len(host) && owner[:len(host)] == host:
		return ofHost, []any{owner[len(host):]}
	}
	return "", nil
}

// CreateAllocation implements inventory.AddressTx.
func (t addressTx) CreateAllocation(a *inventory.Allocation, now time.Time) error {
	if err := t.hasSubnet(a.Subnet); err != nil {
		return err
	}
	if kept, err := t.FindAllocation(a.Address); err == nil {
		return inventory.Errorf(inventory.Conflict, "address %s is kept for %s", a.Address, kept.Holder).WithHint("choose another address")
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	if r, err := t.networks().FindReservation(a.Address); err == nil {
		return inventory.Errorf(inventory.Conflict, "address %s is reserved for %s", a.Address, machineOf(r)).
			WithHint("choose another address, or delete that reservation")
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	has, err := t.ListAllocations(inventory.AddressFilter{Subnet: a.Subnet, Owner: a.Key()})
	if err != nil {
		return err
	}
	for _, other := range has {
		if other.Note == "" && a.Note == "" {
			return inventory.Errorf(inventory.Conflict, "%s has the address %s of subnet %s already", other.Holder, other.Address, a.Subnet).
				WithHint("free that one first: slipway address free %s", other.Address)
		}
	}
	host := string(a.HostID)
	if a.MachineUID != "" {
		host = ""
	}
	now = stamp(now)
	err = t.Later(nil, insertAllocationSQL, column.Bytes16(a.Address), a.Subnet, orNull(a.MachineUID), orNull(host), column.Bit(a.IsFixed), a.Note, column.MS(now))
	if err == nil {
		a.CreatedAt = now
	}
	return err
}

// DeleteAllocation implements inventory.AddressTx.
func (t addressTx) DeleteAllocation(a netip.Addr) error {
	n, err := t.Write(deleteAllocationSQL, column.Bytes16(a))
	return changed(n, err, "address", a.String())
}

// LeaveAllocations implements inventory.AddressTx.
func (t addressTx) LeaveAllocations(machineUID string, h inventory.HostID, note string) error {
	return t.Later(nil, leaveAllocationsSQL, string(h), note, machineUID)
}

// keepsAddresses refuses a change of a subnet that does not leave machines their addresses.
func (t addressTx) keepsAddresses(n *inventory.Subnet) error {
	kept, err := t.ListAllocations(inventory.AddressFilter{Subnet: n.Name})
	if err != nil {
		return err
	}
	for _, a := range kept {
		why := ""
		switch {
		case !n.CIDR.Contains(a.Address):
			why = "is outside of " + n.CIDR.String()
		case a.Address == n.Gateway:
			why = "would be the gateway"
		case slices.ContainsFunc(n.Ranges, func(r inventory.Range) bool { return r.Contains(a.Address) }):
			why = "would be leased by DHCP"
		default:
			continue
		}
		return inventory.Errorf(inventory.Conflict, "subnet %s: %s is kept for %s, and %s", n.Name, a.Address, a.Holder, why).At("ranges").
			WithHint("list what is kept with: slipway address list --subnet %s", n.Name)
	}
	return nil
}

func readHolding(s database.Scan) (h inventory.Holding, err error) {
	err = s(&h.Kind, &h.Value, &h.MachineUID, &h.Machine, &h.HostID, &h.Host, &h.Domain, &h.Subnet, &h.Path, &h.Source)
	return h, err
}

// ListHoldings implements inventory.AddressTx.
func (t addressTx) ListHoldings(f inventory.AddressFilter) (all []inventory.Holding, err error) {
	if f.Owner == "" {
		all, err = list(t.tx, readHolding, listHoldingsSQL)
	} else {
		all, err = list(t.tx, readHolding, ownerHoldingsSQL, f.Owner)
	}
	return slices.DeleteFunc(all, func(h inventory.Holding) bool { return f.Subnet != "" && h.Subnet != f.Subnet }), err
}

// FindHoldings implements inventory.AddressTx.
func (t addressTx) FindHoldings(k inventory.HoldingKind, value string) ([]inventory.Holding, error) {
	return list(t.tx, readHolding, findHoldingsSQL, string(k), value)
}

// SaveHoldings implements inventory.AddressTx. It does not write again what is stored already.
func (t addressTx) SaveHoldings(h inventory.Holder, all []inventory.Holding) error {
	old, err := t.ListHoldings(inventory.AddressFilter{Owner: h.Key()})
	if err != nil {
		return err
	}
	isOld := func(a, b inventory.Holding) bool {
		a.Holder, b.Holder = inventory.Holder{}, inventory.Holder{}
		return a == b
	}
	wanted := slices.Clone(all)
	slices.SortFunc(wanted, func(a, b inventory.Holding) int {
		return compareTexts(string(a.Kind), string(b.Kind), a.Value, b.Value)
	})
	wanted = slices.CompactFunc(wanted, func(a, b inventory.Holding) bool { return a.Kind == b.Kind && a.Value == b.Value })
	if slices.EqualFunc(old, wanted, isOld) {
		return nil
	}
	if err := t.Later(nil, deleteHoldingsSQL, h.Key()); err != nil {
		return err
	}
	host := string(h.HostID)
	if h.MachineUID != "" {
		host = ""
	}
	for _, x := range wanted {
		if err := t.Later(nil, insertHoldingSQL, string(x.Kind), x.Value, h.Key(), orNull(h.MachineUID), orNull(host), x.Domain, x.Subnet, x.Path, x.Source); err != nil {
			return err
		}
	}
	return nil
}

// compareTexts compares pairs of texts, the first that differs counts.
func compareTexts(pairs ...string) int {
	for i := 0; i+1 < len(pairs); i += 2 {
		switch a, b := pairs[i], pairs[i+1]; {
		case a < b:
			return -1
		case a > b:
			return 1
		}
	}
	return 0
}

// ListHeldTwice implements inventory.AddressTx.
func (t addressTx) ListHeldTwice() (all []inventory.Holding, err error) {
	type pair struct {
		kind  inventory.HoldingKind
		value string
	}
	twice, err := list(t.tx, func(s database.Scan) (p pair, err error) {
		err = s(&p.kind, &p.value)
		return p, err
	}, heldTwiceSQL)
	if err != nil {
		return nil, err
	}
	for _, p := range twice {
		holders, err := t.FindHoldings(p.kind, p.value)
		if err != nil {
			return nil, err
		}
		all = append(all, holders...)
	}
	return all, nil
}
