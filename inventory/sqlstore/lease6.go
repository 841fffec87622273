package sqlstore

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
)

// The IPv6 halves of reservations and leases; see lease.go. Their addresses are blobs of 16 bytes.
const (
	reservation6Columns = `address, subnet, mac, client_id, uuid, port, hostname, options, created_at, updated_at, version`

	findReservation6SQL     = `SELECT ` + reservation6Columns + ` FROM reservations6 WHERE address = $1`
	listReservations6SQL    = `SELECT ` + reservation6Columns + ` FROM reservations6 WHERE address > $1 ORDER BY address LIMIT $2`
	subnetReservations6SQL  = `SELECT ` + reservation6Columns + ` FROM reservations6 WHERE subnet = $1 AND address > $2 ORDER BY address LIMIT $3`
	reservation6VersionSQL  = `SELECT version FROM reservations6 WHERE address = $1`
	reservation6ByMACSQL    = `SELECT address FROM reservations6 WHERE subnet = $1 AND mac = $2 AND mac <> '' AND address <> $3`
	reservation6ByClientSQL = `SELECT address FROM reservations6 WHERE subnet = $1 AND client_id = $2 AND client_id <> '' AND address <> $3`
	reservation6ByUUIDSQL   = `SELECT address FROM reservations6 WHERE subnet = $1 AND uuid = $2 AND uuid <> '' AND address <> $3`
	reservation6ByPortSQL   = `SELECT address FROM reservations6 WHERE subnet = $1 AND port = $2 AND port <> '' AND address <> $3`
	insertReservation6SQL   = `INSERT INTO reservations6 (address, subnet, mac, client_id, uuid, port, hostname, options, created_at, updated_at, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1)`
	updateReservation6SQL = `UPDATE reservations6 SET subnet = $1, mac = $2, client_id = $3, uuid = $4, port = $5, hostname = $6,
options = $7, updated_at = $8, version = version + 1 WHERE address = $9 AND version = $10`
	deleteReservation6SQL = `DELETE FROM reservations6 WHERE address = $1`

	lease6Columns = `address, subnet, mac, client_id, iaid, hostname, port, state, is_boot, starts_at, expires_at`

	findLease6SQL    = `SELECT ` + lease6Columns + ` FROM leases6 WHERE address = $1`
	listLeases6SQL   = `SELECT ` + lease6Columns + ` FROM leases6 WHERE address > $1 ORDER BY address LIMIT $2`
	subnetLeases6SQL = `SELECT ` + lease6Columns + ` FROM leases6 WHERE subnet = $1 AND address > $2 ORDER BY address LIMIT $3`
	macLeases6SQL    = `SELECT ` + lease6Columns + ` FROM leases6 WHERE mac = $1 ORDER BY starts_at DESC, address`
	saveLease6SQL    = `INSERT INTO leases6 (` + lease6Columns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (address) DO UPDATE SET subnet = excluded.subnet, mac = excluded.mac, client_id = excluded.client_id, iaid = excluded.iaid,
hostname = excluded.hostname, port = excluded.port, state = excluded.state, is_boot = excluded.is_boot, starts_at = excluded.starts_at,
expires_at = excluded.expires_at`
	deleteLease6SQL = `DELETE FROM leases6 WHERE address = $1`
)

// is6 reports whether an address is kept in the tables for IPv6.
func is6(a netip.Addr) bool { return a.Is6() && !a.Is4In6() }

// addressBytes is an IPv6 address as the database keeps it.
func addressBytes(a netip.Addr) []byte { b := a.As16(); return b[:] }

// blobColumn reads an IPv6 address kept as its bytes.
func blobColumn(a *netip.Addr) column {
	return func(v any) (err error) {
		b, isBytes := v.([]byte)
		if !isBytes || len(b) != 16 {
			return fmt.Errorf("IPv6 address column holds %T", v)
		}
		*a = netip.AddrFrom16([16]byte(b))
		return nil
	}
}

func readReservation6(s scan) (r inventory.Reservation, err error) {
	err = s(blobColumn(&r.Address), &r.Subnet, &r.MAC, &r.ClientID, &r.UUID, &r.Port, &r.Hostname, jsonColumn(&r.Options), timeColumn(&r.CreatedAt),
		timeColumn(&r.UpdatedAt), &r.Version)
	return r, err
}

func readLease6(s scan) (l inventory.Lease, err error) {
	var iaid int64
	err = s(blobColumn(&l.Address), &l.Subnet, &l.MAC, &l.ClientID, &iaid, &l.Hostname, &l.Port, &l.State, &l.IsBoot,
		timeColumn(&l.StartsAt), timeColumn(&l.ExpiresAt))
	l.IAID = uint32(iaid)
	return l, err
}

// append6 adds what is kept by IPv6 address to a page that holds what is kept by IPv4 address: those come first.
func append6[T any](t *tx, have []T, read func(scan) (T, error), all, ofSubnet, subnet string, p inventory.Page) ([]T, error) {
	most := limit(p.Limit)
	if most -= int64(len(have)); most <= 0 {
		return have, nil
	}
	after := []byte{}
	if a, err := netip.ParseAddr(p.After); err == nil && is6(a) {
		after = addressBytes(a)
	}
	var more []T
	var err error
	if subnet == "" {
		more, err = list(t, read, all, after, most)
	} else {
		more, err = list(t, read, ofSubnet, subnet, after, most)
	}
	return append(have, more...), err
}

// isAfter4 reports whether a page starts behind all IPv4 addresses.
func isAfter4(p inventory.Page) bool {
	a, err := netip.ParseAddr(p.After)
	return err == nil && is6(a)
}

func (t networkTx) createReservation6(r *inventory.Reservation, now time.Time) error {
	if err := t.checkReservation6(r); err != nil {
		return err
	}
	if has, err := find(t.tx, readReservation6, "reservation", "", findReservation6SQL, addressBytes(r.Address)); err == nil {
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
	if _, err := t.write(insertReservation6SQL, addressBytes(r.Address), r.Subnet, string(r.MAC), r.ClientID, r.UUID, r.Port, r.Hostname, options, ms(now), ms(now)); err != nil {
		return err
	}
	r.CreatedAt, r.UpdatedAt, r.Version = now, now, 1
	return nil
}

func (t networkTx) updateReservation6(r *inventory.Reservation, now time.Time) error {
	if err := t.checkReservation6(r); err != nil {
		return err
	}
	options, err := jsonText(r.Options)
	if err != nil {
		return err
	}
	now = stamp(now)
	n, err := t.write(updateReservation6SQL, r.Subnet, string(r.MAC), r.ClientID, r.UUID, r.Port, r.Hostname, options, ms(now), addressBytes(r.Address), r.Version)
	if err := t.updated(n, err, "reservation", r.Address.String(), r.Version, reservation6VersionSQL, addressBytes(r.Address)); err != nil {
		return err
	}
	r.UpdatedAt = now
	r.Version++
	return nil
}

func (t networkTx) checkReservation6(r *inventory.Reservation) error {
	if err := t.hasSubnet(r.Subnet); err != nil {
		return err
	}
	for _, by := range []struct{ query, key string }{
		{reservation6ByMACSQL, string(r.MAC)},
		{reservation6ByClientSQL, r.ClientID},
		{reservation6ByUUIDSQL, r.UUID},
		{reservation6ByPortSQL, r.Port},
	} {
		var other netip.Addr
		found, err := t.row([]any{blobColumn(&other)}, by.query, r.Subnet, by.key, addressBytes(r.Address))
		if err != nil {
			return err
		}
		if found {
			return inventory.Errorf(inventory.Conflict, "%s has the address %s reserved in subnet %s already",
				machineOf(*r), other, r.Subnet).WithHint("delete the reservation of %s first", other)
		}
	}
	return nil
}

func (t networkTx) saveLease6(l inventory.Lease) error {
	_, err := t.write(saveLease6SQL, addressBytes(l.Address), l.Subnet, string(l.MAC), l.ClientID, int64(l.IAID), l.Hostname, l.Port,
		string(l.State), bit(l.IsBoot), ms(l.StartsAt), ms(l.ExpiresAt))
	if inventory.IsKind(err, inventory.Conflict) {
		if err := t.hasSubnet(l.Subnet); err != nil {
			return err
		}
	}
	return err
}

// leasesOf6 adds the IPv6 leases of a network card, the latest of both families first.
func (t networkTx) leasesOf6(have []inventory.Lease, mac inventory.MAC) ([]inventory.Lease, error) {
	more, err := list(t.tx, readLease6, macLeases6SQL, string(mac))
	if err != nil || len(more) == 0 {
		return have, err
	}
	return merge(have, more, func(a, b inventory.Lease) int {
		return cmp.Or(b.StartsAt.Compare(a.StartsAt), a.Address.Compare(b.Address))
	}), nil
}

// merge joins two lists that are in order.
func merge[T any](a, b []T, compare func(T, T) int) []T {
	all := make([]T, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compare(a[0], b[0]) <= 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}
