// Package door owns the limits on connections at the TCP listeners and the Unix socket. It limits them in total and for
// each source, and chooses the connection to close when a new one needs its place. It also divides the file descriptors
// among the listeners. It never looks at what connections carry.
//
// Start reading at Door.Enter. Every step of it costs the same, however many connections there are.
package door

import (
	"cmp"
	"container/list"
	"io"
	"net/netip"
	"sync"
	"time"
)

// Config is everything that a Door needs.
type Config struct {
	All       int // connections at the same time
	PerSource int // of one source; 0 means as many as of all
	// KnownPart reserves a part of the connections for known sources: 8 means one in eight, 0 means none.
	KnownPart int
	Knows     func(netip.Addr) bool // nil: nobody is known before Place.Trust
	// Unlimited are sources without a limit of their own, such as proxies; nil means none.
	Unlimited func(netip.Addr) bool
	// Arrivals limits how fast new connections come in.
	Arrivals Arrivals
	Now      func() time.Time // nil for time.Now
}

// Door counts the connections of one listener. Unknown sources compete with each other: they never take the place of a
// known one.
type Door struct {
	cfg Config

	mu       sync.Mutex
	crowds   [2]crowd // of strangers and of those that are known
	arrivals arrivals
	// evictedN and refusedN count since the start.
	evictedN, refusedN uint64
}

// New returns a Door without connections.
func New(cfg Config) *Door {
	cfg.PerSource = cmp.Or(cfg.PerSource, cfg.All)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	d := &Door{cfg: cfg, arrivals: arrivals{cfg: cfg.Arrivals}}
	for i := range d.crowds {
		d.crowds[i].sources = map[netip.Addr]*source{}
	}
	return d
}

// The crowds of a door.
const (
	strangers = iota
	known
)

// crowd is the connections of a kind of sources.
type crowd struct {
	n       int
	sources map[netip.Addr]*source
	byIdle  ranking // sources by how many idle connections they have
	byAll   ranking // and by how many they have
}

// source is an address with its connections, the longest idle and the longest busy first.
type source struct {
	addr       netip.Addr
	idle, busy list.List // of *Place
	inIdle     *list.Element
	inAll      *list.Element
}

func (s *source) n() int { return s.idle.Len() + s.busy.Len() }

// Place is one connection of a listener.
type Place struct {
	door   *Door
	conn   io.Closer
	addr   netip.Addr
	crowd  int
	in     *list.Element // of the source's idle or busy ones; nil: it has left
	requN  int           // requests that are being answered
	isBusy bool
}

// sourceOf counts an IPv6 network as one source: anyone who has one address of it has them all.
func sourceOf(a netip.Addr) netip.Addr {
	if a.Is6() && !a.Is4In6() && !a.IsLoopback() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a.Unmap()
}

// fairN is how many connections a source may keep that is busy with all of them, whatever other sources come.
const fairN = 4

// Enter lets a connection in. When the listener is full, the longest idle connection of the source with the most of them
// makes room. After idle ones, a source that has far more than its part loses one. The place is nil when nobody makes room.
func (d *Door) Enter(addr netip.Addr, conn io.Closer) *Place {
	of := strangers
	if d.cfg.Knows != nil && d.cfg.Knows(addr.Unmap()) {
		of = known
	}
	p := &Place{door: d, conn: conn, addr: sourceOf(addr), crowd: of}
	d.mu.Lock()
	var out *Place
	isUnlimited := d.cfg.Unlimited != nil && d.cfg.Unlimited(p.addr)
	ok := d.arrivals.allow(p.addr, of == known, isUnlimited, d.cfg.Now())
	if ok {
		out, ok = d.makeRoom(p)
	}
	if ok {
		d.crowds[of].add(p)
	} else {
		d.refusedN++
	}
	d.mu.Unlock()
	if out != nil {
		_ = out.conn.Close() // which would wait for the lock
	}
	if !ok {
		return nil
	}
	return p
}

// makeRoom takes a place away if p needs that. It reports whether there is room for p.
func (d *Door) makeRoom(p *Place) (out *Place, ok bool) {
	own := &d.crowds[p.crowd]
	isUnlimited := d.cfg.Unlimited != nil && d.cfg.Unlimited(p.addr)
	if s := own.sources[p.addr]; s != nil && !isUnlimited && s.n() >= d.cfg.PerSource {
		return d.evict(own, s.longestIdle()), s.n() < d.cfg.PerSource
	}
	some := &d.crowds[strangers]
	if p.crowd == strangers && some.n < d.mostStrangers() && d.n() < d.cfg.All || p.crowd == known && d.n() < d.cfg.All {
		return nil, true
	}
	if out = d.evict(some, some.heaviestIdle()); out == nil && p.crowd == known {
		out = d.evict(some, some.heaviest(0)) // known sources go before strangers
		if out == nil {
			out = d.evict(own, own.heaviestIdle())
		}
	}
	if out == nil {
		least := fairN
		if s := own.sources[p.addr]; s != nil {
			least = max(least, s.n()+1)
		}
		out = d.evict(own, own.heaviest(least))
	}
	return out, out != nil
}

// mostStrangers is how many places strangers have at the most.
func (d *Door) mostStrangers() int {
	if d.cfg.KnownPart == 0 {
		return d.cfg.All
	}
	return d.cfg.All - d.cfg.All/d.cfg.KnownPart
}

func (d *Door) n() int { return d.crowds[strangers].n + d.crowds[known].n }

// evict takes a place of a crowd away; its caller closes the connection.
func (d *Door) evict(of *crowd, p *Place) *Place {
	if p != nil {
		of.remove(p)
		d.evictedN++
	}
	return p
}

// Shed closes up to n idle connections, those of unknown sources first: the process has run out of file descriptors.
func (d *Door) Shed(n int) (closed int) {
	for closed < n {
		d.mu.Lock()
		out := d.evict(&d.crowds[strangers], d.crowds[strangers].heaviestIdle())
		if out == nil {
			out = d.evict(&d.crowds[known], d.crowds[known].heaviestIdle())
		}
		d.mu.Unlock()
		if out == nil {
			break
		}
		_ = out.conn.Close()
		closed++
	}
	return closed
}

// Len returns how many connections there are.
func (d *Door) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.n()
}

// Counts returns how many connections were closed to make room, and how many were not let in.
func (d *Door) Counts() (evicted, refused uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.evictedN, d.refusedN
}

// Leave gives the place back. It may be called more than once.
func (p *Place) Leave() {
	p.door.mu.Lock()
	defer p.door.mu.Unlock()
	p.door.crowds[p.crowd].remove(p)
}

// Trust makes the connection one of a known source, because its client has proved its identity.
func (p *Place) Trust() {
	p.door.mu.Lock()
	defer p.door.mu.Unlock()
	p.door.arrivals.trust(p.addr, p.door.cfg.Now())
	if p.in == nil || p.crowd == known {
		return
	}
	p.door.crowds[strangers].remove(p)
	p.crowd = known
	p.door.crowds[known].add(p)
}

// begin notes that a request is being answered, and end that it is no more: then the connection may make room for another.
func (p *Place) begin() { p.work(1) }
func (p *Place) end()   { p.work(-1) }

func (p *Place) work(by int) {
	p.door.mu.Lock()
	defer p.door.mu.Unlock()
	p.requN += by
	if isBusy := p.requN > 0; isBusy != p.isBusy {
		of := &p.door.crowds[p.crowd]
		isIn := p.in != nil
		of.remove(p)
		p.isBusy = isBusy
		if isIn {
			of.add(p)
		}
	}
}

func (c *crowd) add(p *Place) {
	s := c.sources[p.addr]
	if s == nil {
		s = &source{addr: p.addr}
		c.sources[p.addr] = s
	}
	c.n++
	if p.isBusy {
		p.in = s.busy.PushBack(p)
	} else {
		p.in = s.idle.PushBack(p)
	}
	c.rank(s)
}

func (c *crowd) remove(p *Place) {
	if p.in == nil {
		return
	}
	s := c.sources[p.addr]
	if p.isBusy {
		s.busy.Remove(p.in)
	} else {
		s.idle.Remove(p.in)
	}
	p.in = nil
	c.n--
	c.rank(s)
	if s.n() == 0 {
		delete(c.sources, p.addr)
	}
}

// rank puts a source where its connections have it.
func (c *crowd) rank(s *source) {
	c.byIdle.set(s, &s.inIdle, s.idle.Len())
	c.byAll.set(s, &s.inAll, s.n())
}

func (s *source) longestIdle() *Place {
	if first := s.idle.Front(); first != nil {
		return first.Value.(*Place)
	}
	return nil
}

// heaviestIdle returns the longest idle connection of the source that has most of them.
func (c *crowd) heaviestIdle() *Place {
	if s := c.byIdle.first(0); s != nil {
		return s.longestIdle()
	}
	return nil
}

// heaviest returns the longest busy connection of the source that has most connections, if these are more than least.
func (c *crowd) heaviest(least int) *Place {
	s := c.byAll.first(least)
	if s == nil || s.busy.Len() == 0 {
		return nil
	}
	return s.busy.Front().Value.(*Place)
}

// ranking has sources by a count. A count changes by one at a time, so that each change costs the same.
type ranking struct {
	rows []*list.List // of *ranked: those with that count
	top  int
}

type ranked struct {
	source *source
	row    int
}

func (r *ranking) set(s *source, in **list.Element, count int) {
	if *in != nil {
		was := (*in).Value.(*ranked).row
		if was == count {
			return
		}
		r.rows[was].Remove(*in)
		*in = nil
	}
	if count > 0 {
		for len(r.rows) <= count {
			r.rows = append(r.rows, list.New())
		}
		*in = r.rows[count].PushBack(&ranked{s, count})
		r.top = max(r.top, count)
	}
	for r.top > 0 && r.rows[r.top].Len() == 0 {
		r.top--
	}
}

// first returns a source with the highest count, if that is more than least.
func (r *ranking) first(least int) *source {
	if r.top <= least {
		return nil
	}
	return r.rows[r.top].Front().Value.(*ranked).source
}
