package lookup

import (
	"net/netip"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// Told are neighbours of other instances: who uses which address on their networks, as they say. Many goroutines may use it.
type Told struct {
	mu     sync.Mutex
	byAddr map[netip.Addr]neighbour
}

type neighbour struct {
	mac inventory.MAC
	at  time.Time
}

const (
	toldFor = 10 * time.Minute // an address may belong to another machine then
	toldMax = 50_000           // machines that boot at once
)

// Learn notes who uses an address.
func (t *Told) Learn(a netip.Addr, mac inventory.MAC) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byAddr == nil || len(t.byAddr) >= toldMax { // what is lost here comes again with the machine's next request
		t.byAddr = map[netip.Addr]neighbour{}
	}
	t.byAddr[a] = neighbour{mac, time.Now()}
}

// Of returns who uses an address.
func (t *Told) Of(a netip.Addr) (inventory.MAC, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, ok := t.byAddr[a]
	return n.mac, ok && time.Since(n.at) < toldFor
}
