package lease

import "net/netip"

// Drop forgets the lease on an address after an admin deleted it. The address is free at once, and the machine that
// had it gets a NAK when it renews. An address that is being acknowledged at this moment stays.
func (b *Book) Drop(a netip.Addr) {
	if !a.Is4() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.pools {
		r := p.byAddr[toInt(a)]
		if r == nil {
			continue
		}
		p.dequeue(r)
		delete(p.byAddr, r.addr)
		if p.byMAC[r.mac] == r {
			delete(p.byMAC, r.mac)
		}
		if p.offered[r.addr] == nil {
			p.giveBack(r.addr)
		}
	}
}
