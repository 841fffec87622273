package sqlstore

import (
	"fmt"
	"net/netip"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// family is how reservations, leases and ranges of IPv4 or IPv6 are kept. Each has tables of its own: addresses of IPv4 are numbers
// there, and those of IPv6 blobs of 16 bytes.
type family struct {
	column func(*netip.Addr) column.Column
	key    func(netip.Addr) (any, error)
	first  any // below every key

	reservations, leases                                     addressQueries
	reservationVersion, insertReservation, updateReservation string
	reservationBy                                            [4]string // by what names a machine
	ranges, allRanges, insertRange, deleteRanges             string
	saveLease                                                string
}

// addressQueries are the statements that reservations and leases have in common.
type addressQueries struct{ find, list, ofSubnet, delete string }

var (
	ipv4 = newFamily("", column.Address4, func(a netip.Addr) (any, error) { return column.Number4(a) }, int64(-1))
	ipv6 = newFamily("6", column.Address16, func(a netip.Addr) (any, error) { return column.Bytes16(a), nil }, []byte{})

	families = []*family{ipv4, ipv6}
)

const (
	reservationColumns = `address, subnet, mac, client_id, uuid, port, hostname, options, created_at, updated_at`
	leaseColumns       = `address, subnet, mac, client_id, hostname, port, state, is_boot, starts_at, expires_at`

	macLeases6SQL = `SELECT ` + leaseColumns + `, iaid FROM leases6 WHERE mac = $1 ORDER BY starts_at DESC, address`
)

func newFamily(suffix string, of func(*netip.Addr) column.Column, key func(netip.Addr) (any, error), first any) *family {
	reservations, leases, columnsOfLease := "reservations"+suffix, "leases"+suffix, leaseColumns
	if suffix == "6" {
		columnsOfLease += ", iaid"
	}
	f := &family{
		column: of, key: key, first: first,
		reservations:       newAddressQueries(reservations, reservationColumns+", version"),
		leases:             newAddressQueries(leases, columnsOfLease),
		reservationVersion: `SELECT version FROM ` + reservations + ` WHERE address = $1`,
		insertReservation:  `INSERT INTO ` + reservations + ` (` + reservationColumns + `, version) VALUES (` + marks(10) + `, 1)`,
		updateReservation: `UPDATE ` + reservations + ` SET subnet = $1, mac = $2, client_id = $3, uuid = $4, port = $5, hostname = $6,
options = $7, updated_at = $8, version = version + 1 WHERE address = $9 AND version = $10`,
	}
	ranges := "ranges" + suffix
	f.ranges = `SELECT first, last FROM ` + ranges + ` WHERE subnet = $1 ORDER BY first`
	f.allRanges = `SELECT subnet, first, last FROM ` + ranges + ` ORDER BY subnet, first`
	f.insertRange = `INSERT INTO ` + ranges + ` (subnet, first, last) VALUES ($1, $2, $3)`
	f.deleteRanges = `DELETE FROM ` + ranges + ` WHERE subnet = $1`
	for i, c := range []string{"mac", "client_id", "uuid", "port"} {
		f.reservationBy[i] = fmt.Sprintf(
			`SELECT address FROM %s WHERE subnet = $1 AND %[2]s = $2 AND %[2]s <> '' AND address <> $3`, reservations, c)
	}
	all := strings.Split(columnsOfLease, ", ")
	var sets []string
	for _, c := range all[1:] {
		sets = append(sets, c+" = excluded."+c)
	}
	f.saveLease = fmt.Sprintf(`INSERT INTO %s (%s) VALUES (%s) ON CONFLICT (address) DO UPDATE SET %s`,
		leases, columnsOfLease, marks(len(all)), strings.Join(sets, ", "))
	return f
}

func newAddressQueries(table, columns string) addressQueries {
	from := `SELECT ` + columns + ` FROM ` + table
	return addressQueries{
		find:     from + ` WHERE address = $1`,
		list:     from + ` WHERE address > $1 ORDER BY address LIMIT $2`,
		ofSubnet: from + ` WHERE subnet = $1 AND address > $2 ORDER BY address LIMIT $3`,
		delete:   `DELETE FROM ` + table + ` WHERE address = $1`,
	}
}

// familyOf returns how an address is kept.
func familyOf(a netip.Addr) *family {
	if is6(a) {
		return ipv6
	}
	return ipv4
}

// is6 reports whether an address is kept in the tables for IPv6.
func is6(a netip.Addr) bool { return a.Is6() && !a.Is4In6() }

func (f *family) readReservation(s database.Scan) (r inventory.Reservation, err error) {
	err = s(f.column(&r.Address), &r.Subnet, &r.MAC, &r.ClientID, &r.UUID, &r.Port, &r.Hostname,
		column.JSON(&r.Options), column.Time(&r.CreatedAt), column.Time(&r.UpdatedAt), &r.Version)
	return r, err
}

func (f *family) readLease(s database.Scan) (l inventory.Lease, err error) {
	var iaid int64
	into := append(make([]any, 0, 11), f.column(&l.Address), &l.Subnet, &l.MAC, &l.ClientID, &l.Hostname, &l.Port, &l.State, &l.IsBoot,
		column.Time(&l.StartsAt), column.Time(&l.ExpiresAt))
	if f == ipv6 {
		into = append(into, &iaid)
	}
	err = s(into...)
	l.IAID = uint32(iaid)
	return l, err
}

// pageOf returns a page of what is kept by address, of a subnet or of all. IPv4 comes first.
func pageOf[T any](
	t *tx, subnet string, p inventory.Page, of func(*family) (read func(database.Scan) (T, error), q *addressQueries),
) (page []T, err error) {
	var last netip.Addr
	if p.After != "" {
		if last, err = netip.ParseAddr(p.After); err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "%q is not an address to list after", p.After)
		}
	}
	most := limit(p.Limit)
	for _, f := range families {
		after := f.first
		switch {
		case most <= int64(len(page)), f == ipv4 && is6(last):
			continue
		case last.IsValid() && f == familyOf(last):
			if after, err = f.key(last); err != nil {
				return nil, err
			}
		}
		read, q := of(f)
		query, args := q.list, []any{after, most - int64(len(page))}
		if subnet != "" {
			query, args = q.ofSubnet, append([]any{subnet}, args...)
		}
		more, err := list(t, read, query, args...)
		if err != nil {
			return nil, err
		}
		page = append(page, more...)
	}
	return page, nil
}
