package sqlstore

import (
	"hash/maphash"
	"slices"
	"sync"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// leaseHints say on which IPv4 addresses a network card may have leases. They stand in for an index by MAC: MACs come in
// no order, so with an index each lease changes a page of its own, and to write, sync and copy back that page costs more
// than all the rest of the lease. A hint may be stale, and is checked against the row; none is ever missing.
type leaseHints struct {
	mu      sync.RWMutex
	seed    maphash.Seed
	latest  map[uint64]uint32   // address by the hash of a MAC
	earlier map[uint64][]uint32 // others that it has had
	n       int
	limit   int // of hints, before they are read again from the leases; 0 before they were read at all
}

const spareHints = 1 << 16 // how many come between two readings at least

func newLeaseHints() *leaseHints {
	return &leaseHints{seed: maphash.MakeSeed(), latest: map[uint64]uint32{}, earlier: map[uint64][]uint32{}}
}

// add says that a network card may have a lease on an address.
func (h *leaseHints) add(mac inventory.MAC, a int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key, address := maphash.String(h.seed, string(mac)), uint32(a) // two MACs may share a hash: leasesOf4 asks for the MAC, too
	had, is := h.latest[key]
	if is && had == address {
		return
	}
	// The new address goes first: a card most often asks for the one that it had last.
	h.latest[key] = address
	others := h.earlier[key]
	if at := slices.Index(others, address); at >= 0 { // it has come back
		others[at] = had
		return
	}
	if is {
		h.earlier[key] = append(others, had)
	}
	h.n++ // a transaction that is undone leaves its hints, which only costs a query
}

// of returns the addresses on which a network card may have leases.
func (h *leaseHints) of(mac inventory.MAC) []uint32 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	key := maphash.String(h.seed, string(mac))
	a, is := h.latest[key]
	if !is {
		return nil
	}
	// A copy, because the caller reads it without the lock.
	return append([]uint32{a}, h.earlier[key]...)
}

func (h *leaseHints) isFull() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.n >= h.limit
}

// readHints makes the hints again from the leases, when there are too many of them. It must run between two transactions of the writer:
// what is undone later must not count.
func (s *Store) readHints(t *database.Tx) error {
	if !s.hints.isFull() {
		return nil
	}
	// Built apart and then exchanged, so that no reader finds half of them.
	fresh := newLeaseHints()
	err := t.Each(func(scan database.Scan) error {
		var (
			address int64
			mac     inventory.MAC
		)
		err := scan(&address, &mac)
		fresh.add(mac, address)
		return err
	}, leaseMACsSQL)
	if err != nil {
		return err
	}
	// The limit leaves space for twice as many, so that they are seldom read again.
	h := s.hints
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seed, h.latest, h.earlier, h.n, h.limit = fresh.seed, fresh.latest, fresh.earlier, fresh.n, 2*fresh.n+spareHints
	return nil
}

// leasesOf4 returns the IPv4 leases of a network card, in no order.
func (t networkTx) leasesOf4(mac inventory.MAC) (all []inventory.Lease, err error) {
	if t.store.hints == nil {
		return list(t.tx, ipv4.readLease, leasesOfMACSQL, string(mac))
	}
	// The query also has the MAC: a hint may be old, or of another card with the same hash.
	for _, a := range t.store.hints.of(mac) {
		some, err := list(t.tx, ipv4.readLease, leaseOfSQL, int64(a), string(mac))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
