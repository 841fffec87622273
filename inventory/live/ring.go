package live

import "slipway.dev/slipway/inventory"

// ring holds the newest events, oldest first from head. Every event with an id above floor and up to last is in it.
type ring struct {
	events      []inventory.Event
	head, n     int
	floor, last int64
}

func newRing(size int) ring { return ring{events: make([]inventory.Event, size)} }

// startAt says that events up to that id are not in the ring.
func (r *ring) startAt(id int64) { r.floor, r.last = id, id }

// add puts in an event newer than all others, in place of the oldest when the ring is full.
func (r *ring) add(e inventory.Event) {
	if r.n == len(r.events) {
		r.floor = r.events[r.head].ID
		r.head = (r.head + 1) % len(r.events)
		r.n--
	}
	r.events[(r.head+r.n)%len(r.events)] = e
	r.n++
	r.last = e.ID
}

// after reads up to limit events above the id, of which there must be one; it finds the first by bisection. It returns those
// that pass the filter, and the id up to which it has read.
func (r *ring) after(id int64, limit int, f inventory.EventFilter) (events []inventory.Event, next int64) {
	low, high := 0, r.n
	for low < high {
		if mid := (low + high) / 2; r.events[(r.head+mid)%len(r.events)].ID > id {
			high = mid
		} else {
			low = mid + 1
		}
	}
	if f == (inventory.EventFilter{}) {
		events = make([]inventory.Event, 0, min(limit, r.n-low))
	}
	for i := low; i < min(r.n, low+limit); i++ {
		e := &r.events[(r.head+i)%len(r.events)]
		if next = e.ID; Matches(f, *e) {
			events = append(events, *e)
		}
	}
	return events, next
}

// view is what a subscription sees of the hub.
type view struct {
	isReady, isOver bool
	last            int64
	isInRing        bool              // events holds what comes next; otherwise the store has it
	events          []inventory.Event // only what is in the ring and passes the filter
	next            int64             // the id up to which events goes
	changed         <-chan struct{}
}

// look returns what there is after an id for a filter.
func (h *Hub) look(after int64, f inventory.EventFilter) view {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := view{isReady: h.isReady, isOver: h.isOver, last: h.ring.last, changed: h.changed}
	if h.isReady && after >= h.ring.floor && after < h.ring.last {
		v.isInRing = true
		v.events, v.next = h.ring.after(after, h.cfg.BatchN, f)
	}
	return v
}
