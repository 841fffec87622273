package lease

import "slipway.dev/slipway/inventory"

// Drop forgets a lease that At returned, after an admin deleted it. The address is free at once, and the machine that
// had it gets a NAK when it renews. A lease that was renewed since At stays, and so does an address that is being
// acknowledged at this moment.
func (b *Book) Drop(l inventory.Lease) {
	if !l.Address.Is4() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[l.Subnet]
	if p == nil {
		return
	}
	r := p.byAddr[toInt(l.Address)]
	if r == nil || p.lease(r) != l {
		return
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
