package sqlstore

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	reservationColumns = `address, subnet, mac, client_id, uuid, port, hostname, options, created_at, updated_at, version`

	findReservationSQL     = `SELECT ` + reservationColumns + ` FROM reservations WHERE address = $1`
	listReservationsSQL    = `SELECT ` + reservationColumns + ` FROM reservations WHERE address > $1 ORDER BY address LIMIT $2`
	subnetReservationsSQL  = `SELECT ` + reservationColumns + ` FROM reservations WHERE subnet = $1 AND address > $2 ORDER BY address LIMIT $3`
	reservationVersionSQL  = `SELECT version FROM reservations WHERE address = $1`
	reservationByMACSQL    = `SELECT address FROM reservations WHERE subnet = $1 AND mac = $2 AND mac <> '' AND address <> $3`
	reservationByClientSQL = `SELECT address FROM reservations WHERE subnet = $1 AND client_id = $2 AND client_id <> '' AND address <> $3`
	reservationByUUIDSQL   = `SELECT address FROM reservations WHERE subnet = $1 AND uuid = $2 AND uuid <> '' AND address <> $3`
	reservationByPortSQL   = `SELECT address FROM reservations WHERE subnet = $1 AND port = $2 AND port <> '' AND address <> $3`
	insertReservationSQL   = `INSERT INTO reservations (address, subnet, mac, client_id, uuid, port, hostname, options, created_at, updated_at, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1)`
	updateReservationSQL = `UPDATE reservations SET subnet = $1, mac = $2, client_id = $3, uuid = $4, port = $5, hostname = $6,
options = $7, updated_at = $8, version = version + 1 WHERE address = $9 AND version = $10`
	deleteReservationSQL = `DELETE FROM reservations WHERE address = $1`

	leaseColumns = `address, subnet, mac, client_id, hostname, port, state, is_boot, starts_at, expires_at`

	findLeaseSQL    = `SELECT ` + leaseColumns + ` FROM leases WHERE address = $1`
	listLeasesSQL   = `SELECT ` + leaseColumns + ` FROM leases WHERE address > $1 ORDER BY address LIMIT $2`
	subnetLeasesSQL = `SELECT ` + leaseColumns + ` FROM leases WHERE subnet = $1 AND address > $2 ORDER BY address LIMIT $3`
	leaseOfSQL      = `SELECT ` + leaseColumns + ` FROM leases WHERE address = $1 AND mac = $2`
	leaseMACsSQL    = `SELECT address, mac FROM leases`
	saveLeaseSQL    = `INSERT INTO leases (` + leaseColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (address) DO UPDATE SET subnet = excluded.subnet, mac = excluded.mac, client_id = excluded.client_id,
hostname = excluded.hostname, port = excluded.port, state = excluded.state, is_boot = excluded.is_boot, starts_at = excluded.starts_at,
expires_at = excluded.expires_at`
	deleteLeaseSQL = `DELETE FROM leases WHERE address = $1`
)

func readReservation(s scan) (r inventory.Reservation, err error) {
	err = s(addressColumn(&r.Address), &r.Subnet, &r.MAC, &r.ClientID, &r.UUID, &r.Port, &r.Hostname, jsonColumn(&r.Options), timeColumn(&r.CreatedAt),
		timeColumn(&r.UpdatedAt), &r.Version)
	return r, err
}

// FindReservation implements inventory.NetworkTx.
func (t networkTx) FindReservation(a netip.Addr) (inventory.Reservation, error) {
	if is6(a) {
		return find(t.tx, readReservation6, "reservation", a.String(), findReservation6SQL, addressBytes(a))
	}
	n, err := addressNumber(a)
	if err != nil {
		return inventory.Reservation{}, err
	}
	return find(t.tx, readReservation, "reservation", a.String(), findReservationSQL, n)
}

// ListReservations implements inventory.NetworkTx.
func (t networkTx) ListReservations(subnet string, p inventory.Page) ([]inventory.Reservation, error) {
	if isAfter4(p) {
		return append6(t.tx, nil, readReservation6, listReservations6SQL, subnetReservations6SQL, subnet, p)
	}
	after, err := addressAfter(p)
	if err != nil {
		return nil, err
	}
	var page []inventory.Reservation
	if subnet == "" {
		page, err = list(t.tx, readReservation, listReservationsSQL, after, limit(p.Limit))
	} else {
		page, err = list(t.tx, readReservation, subnetReservationsSQL, subnet, after, limit(p.Limit))
	}
	if err != nil {
		return nil, err
	}
	return append6(t.tx, page, readReservation6, listReservations6SQL, subnetReservations6SQL, subnet, p)
}

// addressAfter reads the key of a page of addresses.
func addressAfter(p inventory.Page) (int64, error) {
	if p.After == "" {
		return -1, nil
	}
	a, err := netip.ParseAddr(p.After)
	if err != nil {
		return 0, inventory.Errorf(inventory.Invalid, "%q is not an address to list after", p.After)
	}
	return addressNumber(a)
}

// CreateReservation implements inventory.NetworkTx.
func (t networkTx) CreateReservation(r *inventory.Reservation, now time.Time) error {
	if kept, err := t.addresses().FindAllocation(r.Address); err == nil {
		return inventory.Errorf(inventory.Conflict, "address %s is kept for %s", r.Address, kept.Holder).
			WithHint("choose another address, or one outside of the static ranges of subnet %s", kept.Subnet)
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	if is6(r.Address) {
		return t.createReservation6(r, now)
	}
	address, err := t.checkReservation(r)
	if err != nil {
		return err
	}
	if has, err := find(t.tx, readReservation, "reservation", "", findReservationSQL, address); err == nil {
		return inventory.Errorf(inventory.Conflict, "address %s is reserved for %s", r.Address, machineOf(has)).
			WithHint("choose another address, or delete that reservation")
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	options, err := jsonText(r.Options)
	if err != nil {
		return err
	}
	now = stamp(now)
	_, err = t.write(insertReservationSQL, address, r.Subnet, string(r.MAC), r.ClientID, r.UUID, r.Port, r.Hostname, options, ms(now), ms(now))
	if err != nil {
		return err
	}
	r.CreatedAt, r.UpdatedAt, r.Version = now, now, 1
	return nil
}

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

// UpdateReservation implements inventory.NetworkTx.
func (t networkTx) UpdateReservation(r *inventory.Reservation, now time.Time) error {
	if is6(r.Address) {
		return t.updateReservation6(r, now)
	}
	address, err := t.checkReservation(r)
	if err != nil {
		return err
	}
	options, err := jsonText(r.Options)
	if err != nil {
		return err
	}
	now = stamp(now)
	n, err := t.write(updateReservationSQL, r.Subnet, string(r.MAC), r.ClientID, r.UUID, r.Port, r.Hostname, options, ms(now), address, r.Version)
	if err := t.updated(n, err, "reservation", r.Address.String(), r.Version, reservationVersionSQL, address); err != nil {
		return err
	}
	r.UpdatedAt = now
	r.Version++
	return nil
}

// checkReservation refuses a subnet that does not exist and a machine that has another address in it; it returns the
// address as the database keeps it.
func (t networkTx) checkReservation(r *inventory.Reservation) (int64, error) {
	address, err := addressNumber(r.Address)
	if err != nil {
		return 0, err
	}
	if err := t.hasSubnet(r.Subnet); err != nil {
		return 0, err
	}
	for _, by := range []struct{ query, key string }{
		{reservationByMACSQL, string(r.MAC)}, {reservationByClientSQL, r.ClientID}, {reservationByUUIDSQL, r.UUID}, {reservationByPortSQL, r.Port},
	} {
		var other netip.Addr
		found, err := t.row([]any{addressColumn(&other)}, by.query, r.Subnet, by.key, address)
		if err != nil {
			return 0, err
		}
		if found {
			return 0, inventory.Errorf(inventory.Conflict, "%s has the address %s reserved in subnet %s already",
				machineOf(*r), other, r.Subnet).WithHint("delete the reservation of %s first", other)
		}
	}
	return address, nil
}

func (t *tx) hasSubnet(name string) error {
	var version int64
	found, err := t.row([]any{&version}, subnetVersionSQL, name)
	if err == nil && !found {
		return absent("subnet", name)
	}
	return err
}

// DeleteReservation implements inventory.NetworkTx.
func (t networkTx) DeleteReservation(a netip.Addr) error {
	if is6(a) {
		n, err := t.write(deleteReservation6SQL, addressBytes(a))
		return changed(n, err, "reservation", a.String())
	}
	address, err := addressNumber(a)
	if err != nil {
		return err
	}
	n, err := t.write(deleteReservationSQL, address)
	return changed(n, err, "reservation", a.String())
}

func readLease(s scan) (l inventory.Lease, err error) {
	err = s(addressColumn(&l.Address), &l.Subnet, &l.MAC, &l.ClientID, &l.Hostname, &l.Port, &l.State, &l.IsBoot,
		timeColumn(&l.StartsAt), timeColumn(&l.ExpiresAt))
	return l, err
}

// FindLease implements inventory.NetworkTx.
func (t networkTx) FindLease(a netip.Addr) (inventory.Lease, error) {
	if is6(a) {
		return find(t.tx, readLease6, "lease", a.String(), findLease6SQL, addressBytes(a))
	}
	n, err := addressNumber(a)
	if err != nil {
		return inventory.Lease{}, err
	}
	return find(t.tx, readLease, "lease", a.String(), findLeaseSQL, n)
}

// ListLeases implements inventory.NetworkTx.
func (t networkTx) ListLeases(subnet string, p inventory.Page) ([]inventory.Lease, error) {
	if isAfter4(p) {
		return append6(t.tx, nil, readLease6, listLeases6SQL, subnetLeases6SQL, subnet, p)
	}
	after, err := addressAfter(p)
	if err != nil {
		return nil, err
	}
	var page []inventory.Lease
	if subnet == "" {
		page, err = list(t.tx, readLease, listLeasesSQL, after, limit(p.Limit))
	} else {
		page, err = list(t.tx, readLease, subnetLeasesSQL, subnet, after, limit(p.Limit))
	}
	if err != nil {
		return nil, err
	}
	return append6(t.tx, page, readLease6, listLeases6SQL, subnetLeases6SQL, subnet, p)
}

// ListLeasesOf implements inventory.NetworkTx.
func (t networkTx) ListLeasesOf(mac inventory.MAC) ([]inventory.Lease, error) {
	have, err := t.leasesOf4(mac)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(have, func(a, b inventory.Lease) int {
		return cmp.Or(b.StartsAt.Compare(a.StartsAt), a.Address.Compare(b.Address))
	})
	return t.leasesOf6(have, mac)
}

// SaveLease implements inventory.NetworkTx. It is the hottest write there is: one statement, and only when the
// database refuses it a second one that says why.
func (t networkTx) SaveLease(l inventory.Lease) error {
	if is6(l.Address) {
		return t.saveLease6(l)
	}
	address, err := addressNumber(l.Address)
	if err != nil {
		return err
	}
	_, err = t.write(saveLeaseSQL, address, l.Subnet, string(l.MAC), l.ClientID, l.Hostname, l.Port, string(l.State),
		bit(l.IsBoot), ms(l.StartsAt), ms(l.ExpiresAt))
	if inventory.IsKind(err, inventory.Conflict) {
		if err := t.hasSubnet(l.Subnet); err != nil {
			return err
		}
	}
	if err == nil {
		t.store.hints.add(l.MAC, address) // before the commit: a hint without its row does no harm, a row without hint would be lost
	}
	return err
}

// DeleteLease implements inventory.NetworkTx.
func (t networkTx) DeleteLease(a netip.Addr) error {
	if is6(a) {
		n, err := t.write(deleteLease6SQL, addressBytes(a))
		return changed(n, err, "lease", a.String())
	}
	address, err := addressNumber(a)
	if err != nil {
		return err
	}
	n, err := t.write(deleteLeaseSQL, address)
	return changed(n, err, "lease", a.String())
}
