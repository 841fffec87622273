package invite

import (
	"net/netip"
	"slices"
	"sync"
)

const mostAtOnce, mostOfSource = 64, 4 // requests at the same time

// places bounds how many requests of strangers are served at the same time. An IPv6 /64 counts as one address. A stranger may take many
// places and send nothing, from many addresses. So a newcomer takes the place of the request that has waited longest for its body, of the
// address that has most. A machine that means it sends its body at once, and is not in the way.
type places struct {
	mu   sync.Mutex
	all  []*place // the oldest first
	here map[netip.Prefix]int
}

// place is that of one request.
type place struct {
	source netip.Prefix
	give   func() // makes the request end
	waits  bool   // for its body
	isLost bool
}

// enter takes a place for a request from an address, nil if there is none. give is called when the request has to end.
func (p *places) enter(source netip.Addr, give func()) *place {
	is := &place{source: sourceOf(source), give: give, waits: true}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.here[is.source]
	if n >= mostOfSource {
		return nil
	}
	if len(p.all) >= mostAtOnce {
		out := p.oldestOfMost()
		if out == nil || p.here[out.source] <= n {
			return nil
		}
		out.isLost = true
		p.remove(out)
		out.give()
	}
	if p.here == nil {
		p.here = map[netip.Prefix]int{}
	}
	p.all = append(p.all, is)
	p.here[is.source]++
	return is
}

// oldestOfMost returns the oldest request that waits, of an address that has most places; nil: none waits.
func (p *places) oldestOfMost() (out *place) {
	for _, q := range p.all {
		if q.waits && (out == nil || p.here[q.source] > p.here[out.source]) {
			out = q
		}
	}
	return out
}

// arrived notes that a request has its body. It reports whether the request still has its place, which it keeps then.
func (p *places) arrived(is *place) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	is.waits = false
	return !is.isLost
}

// leave gives a place back.
func (p *places) leave(is *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !is.isLost {
		p.remove(is)
	}
}

func (p *places) remove(is *place) {
	p.all = slices.DeleteFunc(p.all, func(q *place) bool { return q == is })
	if p.here[is.source]--; p.here[is.source] == 0 {
		delete(p.here, is.source)
	}
}
