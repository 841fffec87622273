package lease

import (
	"container/heap"
	"time"

	"slipway.dev/slipway/inventory"
)

// Limits keep unknown machines from taking every address. The zero value limits nothing.
type Limits struct {
	// KeptPart reserves a part of a subnet's ranges, which strangers never get: 8 means one eighth.
	KeptPart int
	// PerPort is how many addresses strangers may hold on one switch port, as relays name it.
	PerPort int
	// OfferFor is how long an offer to a stranger holds; 0 means the same as for all.
	OfferFor time.Duration
}

// holders are the dynamic addresses that strangers hold, offered or leased. There are at most as many as addresses.
type holders struct {
	ports  map[uint32]string // port by address
	perN   map[string]int    // addresses by port
	byTime holdingHeap
}

type holding struct {
	addr uint32
	ends int64 // ms since 1970
}

func newHolders() *holders { return &holders{ports: map[uint32]string{}, perN: map[string]int{}} }

func (h *holders) add(a uint32, port string, ends time.Time) {
	if old, is := h.ports[a]; is {
		if port != "" || old == "" { // a renewal comes without the relay
			h.setPort(a, port)
		}
		return
	}
	h.ports[a] = ""
	h.setPort(a, port)
	heap.Push(&h.byTime, holding{a, ends.UnixMilli()})
}

func (h *holders) setPort(a uint32, port string) {
	if old := h.ports[a]; old != "" {
		if h.perN[old]--; h.perN[old] <= 0 {
			delete(h.perN, old)
		}
	}
	h.ports[a] = port
	if port != "" {
		h.perN[port]++
	}
}

// remove forgets an address; its place in the heap goes when its time comes.
func (h *holders) remove(a uint32) {
	if _, is := h.ports[a]; is {
		h.setPort(a, "")
		delete(h.ports, a)
	}
}

// sweepHolders forgets the addresses that strangers hold no more. Each is looked at when the time that was first known
// for it is over, and so at most once: what it holds then is kept only if that ends in a later millisecond.
func (p *pool) sweepHolders(now time.Time) {
	h, ms := p.held, now.UnixMilli()
	for len(h.byTime) > 0 && h.byTime[0].ends <= ms {
		a, ends := h.byTime[0].addr, int64(0)
		if o := p.offered[a]; o != nil && !o.isKnown {
			ends = o.until.UnixMilli()
		}
		if r := p.byAddr[a]; r != nil && r.isHeld(now) {
			ends = max(ends, r.ends)
		}
		if _, is := h.ports[a]; is && ends > ms {
			h.byTime[0].ends = ends
			heap.Fix(&h.byTime, 0)
		} else {
			h.remove(a)
			heap.Pop(&h.byTime)
		}
	}
}

// refuseStranger says why a client that nobody knows gets no address, "" if it may have one. What it holds it keeps.
func (p *pool) refuseStranger(l Limits, c Client, m mac, now time.Time) Reason {
	if c.IsKnown || l.KeptPart == 0 && l.PerPort == 0 || p.subnet.Mode != inventory.ModeFull || p.reservation(c, m) != nil {
		return ""
	}
	p.sweepHolders(now)
	if port, is := p.holds(m, now); is && (port == c.Port || c.Port == "") {
		return ""
	} else if !is && l.KeptPart > 0 && len(p.held.ports) >= p.rangeN-p.rangeN/l.KeptPart {
		return KeptForKnown
	}
	if l.PerPort > 0 && c.Port != "" && p.held.perN[c.Port] >= l.PerPort {
		return PortFull
	}
	return ""
}

// holds returns the port on which a stranger holds an address already.
func (p *pool) holds(m mac, now time.Time) (port string, is bool) {
	if o := p.offerOf[m]; o != nil {
		port, is = p.held.ports[o.addr]
		return port, is
	}
	if r := p.byMAC[m]; r != nil && r.isHeld(now) {
		port, is = p.held.ports[r.addr]
	}
	return port, is
}

// noteHolder notes that a client holds an address, if it is a stranger.
func (p *pool) noteHolder(c Client, a uint32, until time.Time) {
	if c.IsKnown || !p.isDynamic(a) {
		p.held.remove(a)
		return
	}
	p.held.add(a, c.Port, until)
}

// loadStranger counts a stored lease of a machine that nobody knows.
func (p *pool) loadStranger(l inventory.Lease, knows func(inventory.MAC) bool) {
	a := toInt(l.Address)
	if l.State == inventory.LeaseBound && p.isDynamic(a) && (knows == nil || !knows(l.MAC)) {
		p.held.add(a, l.Port, l.ExpiresAt)
	}
}

// holdingHeap has the holding that is due next on top.
type holdingHeap []holding

func (h holdingHeap) Len() int           { return len(h) }
func (h holdingHeap) Less(i, j int) bool { return h[i].ends < h[j].ends }
func (h holdingHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *holdingHeap) Push(x any) { *h = append(*h, x.(holding)) }

// Pop implements heap.Interface.
func (h *holdingHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
