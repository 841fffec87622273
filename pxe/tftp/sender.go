package tftp

import "time"

const (
	// The wait before a flight is sent again follows the measured round trip (RFC 1123 section 4.2.3.2), within these
	// bounds. Firmware that writes what it got answers late now and then: a shorter wait would send every block twice.
	firstWait    = 200 * time.Millisecond
	shortestWait = 50 * time.Millisecond
	longestWait  = time.Second

	// giveUp is how long a client may be silent. lastGiveUp holds for the last flight: GRUB and U-Boot have their file
	// with its last block and do not acknowledge it.
	giveUp     = 15 * time.Second
	lastGiveUp = 3 * time.Second
)

// sender is the sending side of one transfer without socket and clock: it is told what came and when, and says which
// blocks to send. Blocks count from 1 and do not wrap here; the answer to the options is block 0.
type sender struct {
	size   int64
	block  int   // bytes of a block
	window int64 // blocks of a flight: they are sent without waiting for an acknowledgement (RFC 7440)
	most   time.Duration

	last  int64 // the last block: shorter than the others, perhaps empty
	acked int64 // the client has everything up to this block; -1 while it has not acknowledged the options
	next  int64 // the block after the newest flight

	sentAt     time.Time // the newest flight, or its newest copy
	isHeard    bool      // the client acknowledged something
	isCopy     bool      // sentAt is of a copy: an answer may be to either, and measures nothing (Karn)
	progressAt time.Time
	wait       time.Duration
	trip, vary time.Duration // smoothed round trip and its variation (RFC 6298 section 2)
	resent     int64         // blocks that were sent again
}

// flight is the blocks from (included) to (excluded); none when they are equal.
type flight struct{ from, to int64 }

// verdict is what a sender makes of what came, or did not.
type verdict int

const (
	goesOn verdict = iota
	arrived
	unconfirmed // everything was sent, and the last flight was not acknowledged
	silent
)

// newSender returns the sender of a file. hasOptions says that the client waits for an answer to its options first.
func newSender(size int64, r request, block int, hasOptions bool) *sender {
	s := &sender{size: size, block: block, window: int64(max(r.window, 1)), most: longestWait, last: size/int64(block) + 1, wait: firstWait}
	if r.timeout > 0 {
		s.most = min(s.most, r.timeout)
	}
	if hasOptions {
		// Nothing is known of the client yet (RFC 6298 section 2.1). A second answer to the options ends some clients: atftp
		// says "unexpected OACK" when it was only slow to take the first.
		s.acked, s.wait = -1, s.most
	}
	return s
}

// begin returns what to send first.
func (s *sender) begin(now time.Time) flight {
	s.progressAt = now
	return s.fly(now)
}

// fly returns the next flight.
func (s *sender) fly(now time.Time) flight {
	f := flight{s.acked + 1, min(s.acked+1+s.window, s.last+1)}
	if s.acked < 0 {
		f.to = 1 // the answer to the options
	}
	s.isCopy = f.from < s.next // a part of it was on its way before
	if s.isCopy {
		s.resent += min(s.next, f.to) - f.from
	}
	s.next, s.sentAt = f.to, now
	return f
}

// acknowledge takes an acknowledgement.
func (s *sender) acknowledge(number uint16, now time.Time) (flight, verdict) {
	n := s.acked + int64(number-uint16(s.acked)) // the wire's numbers wrap, and so does the difference
	switch {
	case n >= s.next: // of no block that is on its way
		return flight{}, goesOn
	case n == s.acked && (s.window == 1 || s.acked < 0 || now.Sub(s.sentAt) < max(s.trip, time.Millisecond)):
		// Answering a repeated acknowledgement would double every block that follows (RFC 1123 section 4.2.3.1). In a
		// window it says that the flight's first block is lost, but only once in a round trip.
		return flight{}, goesOn
	case n > s.acked:
		if n == s.next-1 && !s.isCopy {
			s.measure(now.Sub(s.sentAt))
		}
		s.acked, s.progressAt, s.isHeard = n, now, true
		s.wait = s.patience()
	}
	if s.acked == s.last {
		return flight{}, arrived
	}
	return s.fly(now), goesOn
}

// expire returns the flight to send again when its answer is overdue.
func (s *sender) expire(now time.Time) (flight, verdict) {
	quiet := now.Sub(s.progressAt)
	switch isLast := s.next > s.last; {
	case now.Sub(s.sentAt) < s.wait:
		return flight{}, goesOn
	case isLast && quiet >= lastGiveUp && s.isHeard:
		return flight{}, unconfirmed
	case quiet >= giveUp:
		return flight{}, silent
	}
	s.wait = min(2*s.wait, s.most)
	return s.fly(now), goesOn
}

// measure takes a round trip into account as RFC 6298 says.
func (s *sender) measure(trip time.Duration) {
	if s.trip == 0 {
		s.trip, s.vary = trip, trip/2
		return
	}
	s.vary += ((s.trip - trip).Abs() - s.vary) / 4
	s.trip += (trip - s.trip) / 8
}

func (s *sender) patience() time.Duration {
	if s.trip == 0 {
		return min(firstWait, s.most)
	}
	return min(max(s.trip+4*s.vary, shortestWait), s.most)
}

// span is where in the file a block's bytes are.
func (s *sender) span(block int64) (offset int64, length int) {
	offset = (block - 1) * int64(s.block)
	return offset, int(min(int64(s.block), s.size-offset))
}

// has is how many bytes the client has for certain.
func (s *sender) has() int64 { return min(max(s.acked, 0)*int64(s.block), s.size) }
