// Package hint remembers on which IPv4 addresses a network card may have leases. Its hints take the place of an index by MAC. MACs have
// no order, so with an index each lease changes another page of the file. To write, sync and copy back that page takes longer than all
// the rest of the lease. A hint may be old, and the caller compares it with the row; none is ever missing.
package hint

import (
	"hash/maphash"
	"slices"
	"sync"

	"slipway.dev/slipway/inventory"
)

// Leases are the hints of one database file. Many goroutines may use them.
type Leases struct {
	mu      sync.RWMutex
	seed    maphash.Seed
	latest  map[uint64]uint32   // address by the hash of a MAC
	earlier map[uint64][]uint32 // others that it has had
	n       int
	limit   int // of hints, before they are read again from the leases; 0 before they were read at all
}

const spare = 1 << 16 // how many come between two readings at least

// New returns hints that know nothing yet, and so are full.
func New() *Leases {
	return &Leases{seed: maphash.MakeSeed(), latest: map[uint64]uint32{}, earlier: map[uint64][]uint32{}}
}

// Add says that a network card may have a lease on an address.
func (h *Leases) Add(mac inventory.MAC, a int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key, address := maphash.String(h.seed, string(mac)), uint32(a) // two MACs may share a hash: the caller asks for the MAC, too
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

// Of returns the addresses on which a network card may have leases.
func (h *Leases) Of(mac inventory.MAC) []uint32 {
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

// IsFull reports whether the hints must be read again from the leases.
func (h *Leases) IsFull() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.n >= h.limit
}

// Replace takes over hints that were built apart, so that no reader finds half of them. The limit leaves space for twice as many: they are
// seldom read again.
func (h *Leases) Replace(fresh *Leases) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seed, h.latest, h.earlier, h.n, h.limit = fresh.seed, fresh.latest, fresh.earlier, fresh.n, 2*fresh.n+spare
}
