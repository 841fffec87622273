package sqlstore

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

const (
	leasesOfMACSQL = `SELECT address, subnet, mac, client_id, hostname, port, state, is_boot, starts_at, expires_at FROM leases WHERE mac = $1`
	leaseMACsSQL   = `SELECT address, mac FROM leases`
	leaseOfSQL     = `SELECT address, subnet, mac, client_id, hostname, port, state, is_boot, starts_at, expires_at FROM leases
WHERE address = $1 AND mac = $2`
)

// machineOf names the machine that a reservation is for.
func machineOf(r inventory.Reservation) any {
	switch {
	case r.MAC != "":
		return inventory.HostRef(string(r.MAC))
	case r.ClientID != "":
		return "client id " + r.ClientID
	case r.Port != "":
		return "port " + r.Port
	}
	return "UUID " + r.UUID
}

// FindReservation implements inventory.NetworkTx.
func (t networkTx) FindReservation(a netip.Addr) (inventory.Reservation, error) {
	f := familyOf(a)
	key, err := f.key(a)
	if err != nil {
		return inventory.Reservation{}, err
	}
	return find(t.tx, f.readReservation, "reservation", a.String(), f.reservations.find, key)
}

// ListReservations implements inventory.NetworkTx.
func (t networkTx) ListReservations(subnet string, p inventory.Page) ([]inventory.Reservation, error) {
	return pageOf(t.tx, subnet, p, func(f *family) (func(database.Scan) (inventory.Reservation, error), *addressQueries) {
		return f.readReservation, &f.reservations
	})
}

// CreateReservation implements inventory.NetworkTx.
func (t networkTx) CreateReservation(r *inventory.Reservation, now time.Time) error {
	if kept, err := t.addresses().FindAllocation(r.Address); err == nil {
		return inventory.Errorf(inventory.Conflict, "address %s is kept for %s", r.Address, kept.Holder).
			WithHint("choose another address, or one outside of the static ranges of subnet %s", kept.Subnet)
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	f := familyOf(r.Address)
	address, err := t.checkReservation(f, r)
	if err != nil {
		return err
	}
	if has, err := find(t.tx, f.readReservation, "reservation", "", f.reservations.find, address); err == nil {
		return inventory.Errorf(inventory.Conflict, "address %s is reserved for %s", r.Address, machineOf(has)).
			WithHint("choose another address, or delete that reservation")
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	options, err := column.JSONText(r.Options)
	if err != nil {
		return err
	}
	now = stamp(now)
	err = t.Later(nil, f.insertReservation, address, r.Subnet, string(r.MAC), r.ClientID, r.UUID, r.Port, r.Hostname, options,
		column.MS(now), column.MS(now))
	if err != nil {
		return err
	}
	r.CreatedAt, r.UpdatedAt, r.Version = now, now, 1
	return nil
}

// UpdateReservation implements inventory.NetworkTx.
func (t networkTx) UpdateReservation(r *inventory.Reservation, now time.Time) error {
	f := familyOf(r.Address)
	address, err := t.checkReservation(f, r)
	if err != nil {
		return err
	}
	options, err := column.JSONText(r.Options)
	if err != nil {
		return err
	}
	now = stamp(now)
	n, err := t.Write(f.updateReservation, r.Subnet, string(r.MAC), r.ClientID, r.UUID, r.Port, r.Hostname, options,
		column.MS(now), address, r.Version)
	if err := t.updated(n, err, "reservation", r.Address.String(), r.Version, f.reservationVersion, address); err != nil {
		return err
	}
	r.UpdatedAt = now
	r.Version++
	return nil
}

// checkReservation refuses a subnet that does not exist and a machine that has another address in it; it returns the
// address as the database keeps it.
func (t networkTx) checkReservation(f *family, r *inventory.Reservation) (any, error) {
	address, err := f.key(r.Address)
	if err != nil {
		return nil, err
	}
	if err := t.hasSubnet(r.Subnet); err != nil {
		return nil, err
	}
	for i, key := range []string{string(r.MAC), r.ClientID, r.UUID, r.Port} {
		var other netip.Addr
		found, err := t.Row([]any{f.column(&other)}, f.reservationBy[i], r.Subnet, key, address)
		if err != nil {
			return nil, err
		}
		if found {
			return nil, inventory.Errorf(inventory.Conflict, "%s has the address %s reserved in subnet %s already",
				machineOf(*r), other, r.Subnet).WithHint("delete the reservation of %s first", other)
		}
	}
	return address, nil
}

func (t *tx) hasSubnet(name string) error {
	found, err := subnetTable.has(t, name)
	if err == nil && !found {
		return absent("subnet", name)
	}
	return err
}

// DeleteReservation implements inventory.NetworkTx.
func (t networkTx) DeleteReservation(a netip.Addr) error {
	return t.deleteAt(a, "reservation", func(f *family) string { return f.reservations.delete })
}

func (t networkTx) deleteAt(a netip.Addr, noun string, query func(*family) string) error {
	f := familyOf(a)
	address, err := f.key(a)
	if err != nil {
		return err
	}
	n, err := t.Write(query(f), address)
	return changed(n, err, noun, a.String())
}

// FindLease implements inventory.NetworkTx.
func (t networkTx) FindLease(a netip.Addr) (inventory.Lease, error) {
	f := familyOf(a)
	key, err := f.key(a)
	if err != nil {
		return inventory.Lease{}, err
	}
	return find(t.tx, f.readLease, "lease", a.String(), f.leases.find, key)
}

// ListLeases implements inventory.NetworkTx.
func (t networkTx) ListLeases(subnet string, p inventory.Page) ([]inventory.Lease, error) {
	return pageOf(t.tx, subnet, p, func(f *family) (func(database.Scan) (inventory.Lease, error), *addressQueries) {
		return f.readLease, &f.leases
	})
}

// ListLeasesOf implements inventory.NetworkTx.
func (t networkTx) ListLeasesOf(mac inventory.MAC) ([]inventory.Lease, error) {
	have, err := t.leasesOf4(mac)
	if err != nil {
		return nil, err
	}
	more, err := list(t.tx, ipv6.readLease, macLeases6SQL, string(mac))
	have = append(have, more...)
	slices.SortFunc(have, func(a, b inventory.Lease) int {
		return cmp.Or(b.StartsAt.Compare(a.StartsAt), a.Address.Compare(b.Address))
	})
	return have, err
}

// SaveLease implements inventory.NetworkTx. It is the hottest write there is: one statement, and only when the
// database refuses it a second one that says why. The DHCP server sends its ACK after Write has returned. The disk has the lease
// then. A server that is killed before has promised nothing.
func (t networkTx) SaveLease(l inventory.Lease) error {
	f := familyOf(l.Address)
	address, err := f.key(l.Address)
	if err != nil {
		return err
	}
	args := append(make([]any, 0, 11), address, l.Subnet, string(l.MAC), l.ClientID, l.Hostname, l.Port, string(l.State),
		column.Bit(l.IsBoot), column.MS(l.StartsAt), column.MS(l.ExpiresAt))
	if f == ipv6 {
		args = append(args, int64(l.IAID))
	}
	err = t.Later(func(err error) error {
		if inventory.IsKind(err, inventory.Conflict) { // a lease overwrites another one: only its subnet can be wrong
			return absent("subnet", l.Subnet)
		}
		return err
	}, f.saveLease, args...)
	if at, is4 := address.(int64); is4 && err == nil && t.store.hints != nil {
		t.store.hints.Add(l.MAC, at) // before the commit: a hint without its row does no harm, a row without hint would be lost
	}
	return err
}

// DeleteLease implements inventory.NetworkTx.
func (t networkTx) DeleteLease(a netip.Addr) error {
	return t.deleteAt(a, "lease", func(f *family) string { return f.leases.delete })
}
