package sqlstore

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
	"slipway.dev/slipway/inventory/sqlstore/hint"
)

// readHints makes the hints again from the leases, when there are too many of them. It must run between two transactions of the writer:
// what is undone later must not count.
func (s *Store) readHints(t *database.Tx) error {
	if !s.hints.IsFull() {
		return nil
	}
	fresh := hint.New()
	err := t.Each(func(scan database.Scan) error {
		var address int64
		var mac inventory.MAC
		err := scan(&address, &mac)
		fresh.Add(mac, address)
		return err
	}, leaseMACsSQL)
	if err != nil {
		return err
	}
	s.hints.Replace(fresh)
	return nil
}

// leasesOf4 returns the IPv4 leases of a network card, in no order.
func (t networkTx) leasesOf4(mac inventory.MAC) (all []inventory.Lease, err error) {
	if t.store.hints == nil {
		return list(t.tx, ipv4.readLease, leasesOfMACSQL, string(mac))
	}
	// The query also has the MAC: a hint may be old, or of another card with the same hash.
	for _, a := range t.store.hints.Of(mac) {
		some, err := list(t.tx, ipv4.readLease, leaseOfSQL, int64(a), string(mac))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
