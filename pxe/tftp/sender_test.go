package tftp

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestFlightsFollowAcknowledgements walks through transfers step by step: after each acknowledgement, or silence, the
// flight that is sent.
func TestFlightsFollowAcknowledgements(t *testing.T) {
	type step struct {
		after   time.Duration
		ack     int // -1: nothing came
		want    flight
		verdict verdict
	}
	const ms = time.Millisecond
	none := flight{}
	for _, c := range []struct {
		what    string
		size    int64
		r       request
		options bool
		begin   flight
		steps   []step
	}{
		{"a file of two blocks", 600, request{}, false, flight{1, 2}, []step{
			{ms, 1, flight{2, 3}, goesOn},
			{ms, 2, none, arrived},
		}},
		{"a file that ends with a whole block has an empty last one", 1024, request{}, false, flight{1, 2}, []step{
			{ms, 1, flight{2, 3}, goesOn},
			{ms, 2, flight{3, 4}, goesOn},
			{ms, 3, none, arrived},
		}},
		{"options are acknowledged first", 10, request{}, true, flight{0, 1}, []step{
			{ms, 0, flight{1, 2}, goesOn},
			{ms, 1, none, arrived},
		}},
		{"a client that is slow to take the answer to its options gets it once in a second", 10, request{}, true, flight{0, 1}, []step{
			{900 * ms, -1, none, goesOn},
			{100 * ms, -1, flight{0, 1}, goesOn},
			{ms, 0, flight{1, 2}, goesOn},
			{ms, 1, none, arrived},
		}},
		{"an acknowledgement that comes twice changes nothing", 2000, request{}, false, flight{1, 2}, []step{
			{ms, 1, flight{2, 3}, goesOn},
			{ms, 1, none, goesOn},
			{60 * ms, 1, none, goesOn},
			{ms, 2, flight{3, 4}, goesOn},
		}},
		{"one of a block that was not sent changes nothing", 2000, request{}, false, flight{1, 2}, []step{
			{ms, 2, none, goesOn},
			{ms, 65535, none, goesOn},
			{ms, 1, flight{2, 3}, goesOn},
		}},
		{"a window", 5000, request{window: 4}, false, flight{1, 5}, []step{
			{ms, 4, flight{5, 9}, goesOn},
			{ms, 8, flight{9, 11}, goesOn},
			{ms, 10, none, arrived},
		}},
		{"a gap in a window: from there on again", 5000, request{window: 4}, false, flight{1, 5}, []step{
			{ms, 2, flight{3, 7}, goesOn},
			{ms, 6, flight{7, 11}, goesOn},
		}},
		{"the first block of a window is lost: once in a round trip", 5000, request{window: 4}, false, flight{1, 5}, []step{
			{20 * ms, 4, flight{5, 9}, goesOn},
			{20 * ms, 4, flight{5, 9}, goesOn},
			{ms, 4, none, goesOn},
			{ms, 8, flight{9, 11}, goesOn},
		}},
		{"silence: again, and each time later", 5000, request{}, false, flight{1, 2}, []step{
			{199 * ms, -1, none, goesOn},
			{ms, -1, flight{1, 2}, goesOn},
			{399 * ms, -1, none, goesOn},
			{ms, -1, flight{1, 2}, goesOn},
			{800 * ms, -1, flight{1, 2}, goesOn},
			{1000 * ms, -1, flight{1, 2}, goesOn},
			{999 * ms, -1, none, goesOn},
			{20 * time.Second, -1, none, silent},
		}},
		{"the wait follows the round trip", 5000, request{}, false, flight{1, 2}, []step{
			{ms, 1, flight{2, 3}, goesOn},
			{49 * ms, -1, none, goesOn},
			{ms, -1, flight{2, 3}, goesOn},
		}},
		{"the wait is as long as a long round trip", 50000, request{}, false, flight{1, 2}, []step{
			{150 * ms, 1, flight{2, 3}, goesOn},
			{150 * ms, 2, flight{3, 4}, goesOn},
			{300 * ms, -1, none, goesOn},
			{100 * ms, -1, flight{3, 4}, goesOn},
		}},
		{"the last block is never acknowledged", 600, request{}, true, flight{0, 1}, []step{
			{ms, 0, flight{1, 2}, goesOn},
			{ms, 1, flight{2, 3}, goesOn},
			{3 * time.Second, -1, none, unconfirmed},
		}},
		{"a client that never said anything has nothing", 10, request{}, false, flight{1, 2}, []step{
			{14 * time.Second, -1, flight{1, 2}, goesOn},
			{1100 * ms, -1, none, silent},
		}},
		{"what came after a second copy says nothing of the round trip", 5000, request{}, false, flight{1, 2}, []step{
			{200 * ms, -1, flight{1, 2}, goesOn},
			{ms, 1, flight{2, 3}, goesOn},
			{100 * ms, -1, none, goesOn},
		}},
		{"nor does what came of a part of a window", 5000, request{window: 4}, false, flight{1, 5}, []step{
			{ms, 2, flight{3, 7}, goesOn},
			{100 * ms, -1, none, goesOn},
		}},
		{"a client that says that it has nothing of the first window", 5000, request{window: 4}, false, flight{1, 5}, []step{
			{20 * ms, 0, flight{1, 5}, goesOn},
		}},
		{"one that acknowledges before the options were", 5000, request{window: 4}, true, flight{0, 1}, []step{
			{20 * ms, 65535, none, goesOn},
			{ms, 0, flight{1, 5}, goesOn},
		}},
		{"a client that is silent for just as long as is waited", 10, request{}, false, flight{1, 2}, []step{
			{14 * time.Second, -1, flight{1, 2}, goesOn},
			{giveUp - 14*time.Second, -1, none, silent},
		}},
		{"a file of nothing", 0, request{}, false, flight{1, 2}, []step{{ms, 1, none, arrived}}},
	} {
		t.Run(c.what, func(t *testing.T) {
			now := time.Unix(0, 0)
			s := newSender(c.size, c.r, 512, c.options)
			if got := s.begin(now); got != c.begin {
				t.Fatalf("begins with %v, want %v", got, c.begin)
			}
			for i, step := range c.steps {
				now = now.Add(step.after)
				f, v := s.expire(now)
				if step.ack >= 0 {
					f, v = s.acknowledge(uint16(step.ack), now)
				}
				if f != step.want || v != step.verdict {
					t.Fatalf("step %d: %v %v, want %v %v", i, f, v, step.want, step.verdict)
				}
			}
		})
	}
}

func TestBlocksCoverTheFile(t *testing.T) {
	for _, size := range []int64{0, 1, 511, 512, 513, 1024, 100_000_000} {
		s := newSender(size, request{}, 512, false)
		var sum int64
		for n := int64(1); n <= s.last; n++ {
			offset, length := s.span(n)
			if offset != sum || length > 512 || length < 512 && n != s.last || length == 512 && n == s.last {
				t.Fatalf("%d bytes: block %d is %d bytes at %d, after %d", size, n, length, offset, sum)
			}
			sum += int64(length)
		}
		if sum != size {
			t.Errorf("%d bytes: %d in blocks", size, sum)
		}
	}
}

// TestEveryFileArrivesOverABadWire has a receiver by RFC 7440 behind a wire that loses, doubles and reorders packets,
// and files so long that block numbers wrap.
func TestEveryFileArrivesOverABadWire(t *testing.T) {
	for _, window := range []int{1, 4, 16, 64} {
		for seed := range uint64(8) {
			r := rand.New(rand.NewPCG(seed, uint64(window)))
			size := int64(70_000 + r.IntN(100)) // blocks of a byte: they wrap
			s := newSender(size, request{window: window}, 1, false)
			now := time.Unix(0, 0)
			pending := s.begin(now)
			var got int64 // blocks the client has, in order
			sent := int64(0)
			for end := false; !end; {
				now = now.Add(100 * time.Microsecond)
				var acks []uint16
				before, isGap := got, false
				for n := pending.from; n < pending.to; n++ {
					sent++
					copies := 1
					if x := r.IntN(200); x == 0 {
						copies = 0
					} else if x == 1 {
						copies = 2
					}
					for range copies {
						switch {
						case n == got+1:
							got++
						case !isGap && n > got:
							isGap = true
							acks = append(acks, uint16(got))
						}
					}
				}
				if pending.to > pending.from && (got == pending.to-1 || got == before) {
					acks = append(acks, uint16(got)) // the flight is complete, or nothing of it was new
				}
				if len(acks) > 1 && r.IntN(2) == 0 {
					acks[0], acks[1] = acks[1], acks[0]
				}
				pending = flight{}
				for _, a := range acks {
					if r.IntN(200) == 0 {
						continue
					}
					f, v := s.acknowledge(a, now)
					if v == arrived {
						end = true
					} else if f.to > f.from {
						pending = f
					}
				}
				if pending == (flight{}) && !end {
					now = now.Add(tick)
					var v verdict
					if pending, v = s.expire(now); v != goesOn {
						if v == unconfirmed && got == s.last {
							break
						}
						t.Fatalf("window %d, seed %d: ended with %v at block %d of %d, the client has %d", window, seed, v, s.acked, s.last, got)
					}
				}
			}
			if got != s.last {
				t.Fatalf("window %d, seed %d: the client has %d blocks of %d", window, seed, got, s.last)
			}
			if sent > s.last+s.last/2 {
				t.Errorf("window %d, seed %d: %d blocks sent for %d", window, seed, sent, s.last)
			}
		}
	}
}
