package dhcp

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

func waiting(q *queue, k kind, mac byte, xid byte, at time.Time) entry {
	e := entry{arrival: arrival{at: at}, kind: k, packet: build(k, mac, func(b []byte) { b[4] = xid })}
	q.keep(&e)
	return e
}

// What waits is not touched by the packets that are read after it, however long it is.
func TestAWaitingPacketHasItsOwnBytes(t *testing.T) {
	q := newQueue(4)
	for _, n := range []int{offOptions, keptSize, keptSize + 1, maxPacketSize} {
		read := make([]byte, n)
		read[n-1] = 1
		e := entry{packet: read}
		q.keep(&e)
		read[n-1] = 2
		if len(e.packet) != n || e.packet[n-1] != 1 {
			t.Errorf("%d bytes: %d are kept, the last is %d", n, len(e.packet), e.packet[len(e.packet)-1])
		}
		q.release(e.buf)
	}
}

func show(batch []entry) (out []string) {
	for _, e := range batch {
		out = append(out, fmt.Sprintf("%s %d xid %d", e.kind, e.packet[offChaddr+5], e.packet[4]))
	}
	return out
}

func TestQueue(t *testing.T) {
	now := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	q := newQueue(4)
	replaced, full := q.push([]entry{
		waiting(q, discover, 1, 1, now), waiting(q, discover, 2, 1, now), waiting(q, request, 1, 1, now),
		waiting(q, discover, 1, 2, now), waiting(q, discover, 3, 1, now.Add(-2*time.Second)), waiting(q, discover, 4, 1, now),
		waiting(q, discover, 5, 1, now),
	}, nil)
	if replaced != 1 || full != 1 {
		t.Errorf("%d replaced and %d too many, want 1 and 1", replaced, full)
	}
	if q.len() != 5 {
		t.Errorf("%d wait, want 5", q.len())
	}
	batch, stale := q.take(nil, 3, now.Add(-time.Second), nil)
	if diff := cmp.Diff([]string{"request 1 xid 1", "discover 1 xid 2", "discover 2 xid 1"}, show(batch)); diff != "" {
		t.Error("requests come first, the newest of equal packets wins:", diff)
	}
	batch, more := q.take(nil, 3, now.Add(-time.Second), nil)
	if diff := cmp.Diff([]string{"discover 4 xid 1"}, show(batch)); diff != "" || stale+more != 1 {
		t.Error("what is older than a second is dropped:", diff, stale+more)
	}
	if q.len() != 0 {
		t.Errorf("%d still wait", q.len())
	}
}

func TestRequestsDoNotStarveDiscovers(t *testing.T) {
	now := time.Now()
	q := newQueue(64)
	for i := range byte(40) {
		q.push([]entry{waiting(q, request, i+1, 1, now), waiting(q, discover, i+1, 1, now)}, nil)
	}
	batch, _ := q.take(nil, 16, now.Add(-time.Second), nil)
	discovers := 0
	for _, e := range batch {
		if e.kind == discover {
			discovers++
		}
	}
	if len(batch) != 16 || discovers != 4 {
		t.Errorf("%d of %d are DISCOVERs, want 4 of 16", discovers, len(batch))
	}
}

func TestQueueWrapsAround(t *testing.T) {
	now := time.Now()
	q := newQueue(3)
	for i := range byte(20) {
		q.push([]entry{waiting(q, discover, i+1, i, now), waiting(q, discover, i+1, i+1, now)}, nil)
		batch, _ := q.take(nil, 8, now.Add(-time.Second), nil)
		if len(batch) != 1 || batch[0].packet[4] != i+1 {
			t.Fatalf("round %d: %v", i, show(batch))
		}
	}
}

func TestOneSourceCannotFlood(t *testing.T) {
	now := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	l := newSourceLimit(20, 42)
	loud := hardwareAddr{0x52, 0x54, 0, 0, 0, 1}
	passed := 0
	for range 1000 {
		if l.allow(loud, now) {
			passed++
		}
	}
	if passed != 20 {
		t.Errorf("%d packets of a flood passed, want 20", passed)
	}
	dropped := 0
	for i := range 30000 { // a whole site that starts at once
		if !l.allow(hardwareAddr{2, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)}, now) {
			dropped++
		}
	}
	if dropped > 3 {
		t.Errorf("%d of 30000 quiet machines were dropped because of one that is loud", dropped)
	}
	if !l.allow(loud, now.Add(time.Second)) {
		t.Error("the next second starts anew")
	}
}

// While there is no room for REQUESTs, no stranger is offered anything; everything else is looked at, and DISCOVERs are as
// soon as there is room again.
func TestDiscoversOfStrangersAreHeldWhileNothingCanBePromised(t *testing.T) {
	now := time.Now()
	q := newQueue(16)
	known := waiting(q, discover, 1, 1, now)
	known.isKnown = true
	q.push([]entry{known, waiting(q, discover, 2, 1, now), waiting(q, request, 3, 1, now)}, nil)
	<-q.woken
	q.hold(true)
	batch, _ := q.take(nil, 16, now.Add(-time.Second), nil)
	if diff := cmp.Diff([]string{"discover 1 xid 1", "request 3 xid 1"}, show(batch)); diff != "" {
		t.Error("taken while they are held:", diff)
	}
	q.hold(true)
	if len(q.woken) != 0 {
		t.Error("woken while they are held")
	}
	q.hold(false)
	if len(q.woken) != 1 {
		t.Error("not woken when they are held no longer")
	}
	batch, _ = q.take(nil, 16, now.Add(-time.Second), nil)
	if diff := cmp.Diff([]string{"discover 2 xid 1"}, show(batch)); diff != "" {
		t.Error("taken after that:", diff)
	}
}

func TestPromisesThatWaitHoldDiscovers(t *testing.T) {
	var held []bool
	s := &shelf{leases: map[netip.Addr]inventory.Lease{}}
	c := &commits{
		cfg: &Config{Leases: s, Now: time.Now}, metrics: newMetrics(func() int { return 0 }), limit: 8, woken: make(chan struct{}, 1),
		hold: func(is bool) { held = append(held, is) },
	}
	for range 3 {
		c.add(pending{}, false)
	}
	if len(held) != 0 {
		t.Errorf("held with three of eight: %v", held)
	}
	c.add(pending{}, false)
	c.add(pending{}, false)
	if diff := cmp.Diff([]bool{true}, held); diff != "" {
		t.Error("with half of what there is room for:", diff)
	}
	c.flush(t.Context(), nil, newOutbox(newBuffers(), c.metrics))
	if diff := cmp.Diff([]bool{true, false}, held); diff != "" {
		t.Error("when they are written:", diff)
	}
}
