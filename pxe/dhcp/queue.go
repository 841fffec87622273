package dhcp

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// entry is a packet that waits to be looked at.
type entry struct {
	arrival
	kind   kind
	packet []byte          // as normalise left it
	buf    *[keptSize]byte // that holds it; nil: it has bytes of its own, or those that it was read into
}

// keptSize is what nearly all packets fit into: what waits takes as much memory as it says, and not as it could.
const keptSize = 512

// key is what makes two waiting packets the same question: the newer one replaces the older.
type key struct {
	mac   hardwareAddr
	kind  kind
	isPXE bool
	port  *port
}

func (e *entry) key() key {
	return key{hardwareAddr(e.packet[offChaddr:]), e.kind, e.isPXE, e.port}
}

// queue holds packets between the sockets and the server, in three bounded lanes: what known machines send, and of
// strangers DISCOVERs and everything else. Under overload a known machine is worth more than any stranger, and a REQUEST
// more than a DISCOVER, because it finishes an exchange that has already cost us.
type queue struct {
	mu    sync.Mutex
	lanes [3]lane
	woken chan struct{}
	held  atomic.Bool // DISCOVERs of strangers wait, whatever else does
	free  sync.Pool
}

// The lanes.
const (
	ofKnown = iota
	ofOthers
	ofDiscovers
)

// lane is which one a packet waits in.
func (e *entry) lane() int {
	switch {
	case e.isKnown:
		return ofKnown
	case e.kind == discover:
		return ofDiscovers
	}
	return ofOthers
}

// lane is a ring of entries with an index by key.
type lane struct {
	ring  []entry
	first uint64 // sequence number of the oldest entry; its slot is first % len(ring)
	next  uint64
	index map[key]uint64
}

func newQueue(size int) *queue {
	q := &queue{woken: make(chan struct{}, 1)}
	q.free.New = func() any { return new([keptSize]byte) }
	for i := range q.lanes {
		q.lanes[i] = lane{ring: make([]entry, size), index: make(map[key]uint64, size)}
	}
	return q
}

// keep copies a packet out of what it was read into.
func (q *queue) keep(e *entry) {
	if len(e.packet) > keptSize {
		e.packet = slices.Clone(e.packet)
		return
	}
	e.buf = q.free.Get().(*[keptSize]byte)
	e.packet = e.buf[:copy(e.buf[:], e.packet)]
}

// release takes the buffer of a packet that nobody looks at any more.
func (q *queue) release(b *[keptSize]byte) {
	if b != nil {
		q.free.Put(b)
	}
}

// push adds packets and reports how many replaced an older one and how many found the lane full.
func (q *queue) push(batch []entry, why *reasons) (replaced, full int) {
	if len(batch) == 0 {
		return 0, 0
	}
	q.mu.Lock()
	for i := range batch {
		old, isSame, ok := q.lanes[batch[i].lane()].push(&batch[i])
		switch {
		case !ok:
			full++
			why.dropped(&batch[i], dropFull)
			q.release(batch[i].buf)
		case isSame:
			replaced++
			q.release(old)
		}
	}
	q.mu.Unlock()
	q.wake()
	return replaced, full
}

// isFlooded reports whether no more DISCOVERs of strangers can wait. Under overload most of what comes is one more, which is
// then dropped before it costs as much as one that is kept.
func (q *queue) isFlooded() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.lanes[ofDiscovers]
	return l.len() == len(l.ring)
}

// hold keeps the DISCOVERs of strangers waiting, or releases them. Without room for the REQUEST that follows, an
// offer costs as much as a whole exchange and leads to nothing.
func (q *queue) hold(isHeld bool) {
	if q.held.Swap(isHeld) && !isHeld {
		q.wake()
	}
}

// wake has the server look at the queue.
func (q *queue) wake() {
	select {
	case q.woken <- struct{}{}:
	default:
	}
}

func (l *lane) push(e *entry) (old *[keptSize]byte, isSame, ok bool) {
	k := e.key()
	if seq, found := l.index[k]; found {
		slot := &l.ring[seq%uint64(len(l.ring))]
		old, *slot = slot.buf, *e
		return old, true, true
	}
	if l.next-l.first == uint64(len(l.ring)) {
		return nil, false, false
	}
	l.ring[l.next%uint64(len(l.ring))] = *e
	l.index[k] = l.next
	l.next++
	return nil, false, true
}

func (l *lane) pop() entry {
	slot := &l.ring[l.first%uint64(len(l.ring))]
	e := *slot
	*slot = entry{}
	delete(l.index, e.key())
	l.first++
	return e
}

func (l *lane) len() int { return int(l.next - l.first) }

// take moves up to limit entries that are not older than since into batch and counts the others. A quarter of a batch
// is kept for the DISCOVERs of strangers and one for what else they send, so that no flood starves the others.
func (q *queue) take(batch []entry, limit int, since time.Time, why *reasons) (taken []entry, stale int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lanes, last := q.lanes[:], min(limit/4, q.lanes[ofDiscovers].len())
	if q.held.Load() {
		lanes, last = lanes[:ofDiscovers], 0
	}
	middle := min(limit/4, q.lanes[ofOthers].len())
	rooms := [3]int{limit - middle - last, limit - last, limit}
	for i := range lanes {
		l, room := &lanes[i], rooms[i]
		for l.len() > 0 && len(batch) < room {
			e := l.pop()
			if e.at.Before(since) {
				stale++
				why.dropped(&e, dropStale)
				q.release(e.buf)
				continue
			}
			batch = append(batch, e)
		}
	}
	return batch, stale
}

// len returns how many packets wait.
func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lanes[ofKnown].len() + q.lanes[ofOthers].len() + q.lanes[ofDiscovers].len()
}
