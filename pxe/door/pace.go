package door

import (
	"net/netip"
	"time"
)

// Pace is how many new connections may come in a second, and how many at once after a quiet time. The zero Pace is no limit.
type Pace struct{ PerSecond, Burst float64 }

// Arrivals limits how fast new connections come in: over TLS each of them costs a handshake. Known sources, and those that
// have lately proved their identity, each have a limit of their own. A flood of unknown sources keeps none of them out.
type Arrivals struct {
	All, PerSource Pace
	PerKnown       Pace // of a known source, in place of PerSource; the zero Pace: the same
}

// each returns the pace of one source.
func (a *Arrivals) each(isKnown bool) Pace {
	if isKnown && a.PerKnown != (Pace{}) {
		return a.PerKnown
	}
	return a.PerSource
}

const (
	pacedSources  = 4096
	trustedSource = 1024
	// trustedFor is how long a source that has proved who it is counts as known.
	trustedFor = 24 * time.Hour
)

// arrivals are the buckets of a door. They are guarded by the lock of the door.
type arrivals struct {
	cfg      Arrivals
	all      bucket
	bySource map[netip.Addr]*bucket
	trusted  map[netip.Addr]time.Time
}

// bucket holds what is left of a burst.
type bucket struct {
	left float64
	at   time.Time
}

// isFull reports whether a bucket holds a whole burst again: it need not be kept.
func (b *bucket) isFull(p Pace, now time.Time) bool {
	return b.left+now.Sub(b.at).Seconds()*p.PerSecond >= p.Burst
}

func (b *bucket) take(p Pace, now time.Time) bool {
	if p == (Pace{}) {
		return true
	}
	if b.at.IsZero() || now.Before(b.at) {
		b.left, b.at = p.Burst, now
	}
	b.left, b.at = min(p.Burst, b.left+now.Sub(b.at).Seconds()*p.PerSecond), now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// allow reports whether one more connection of a source may come in now.
func (a *arrivals) allow(s netip.Addr, isKnown, isUnlimited bool, now time.Time) bool {
	if a.cfg == (Arrivals{}) {
		return true
	}
	isKnown = isKnown || now.Sub(a.trusted[s]) < trustedFor
	if !isUnlimited {
		b := a.bySource[s]
		if b == nil {
			a.makeRoom(now)
			b = &bucket{}
			a.bySource[s] = b
		}
		if !b.take(a.cfg.each(isKnown), now) {
			return false
		}
	}
	if isKnown || isUnlimited {
		return true
	}
	return a.all.take(a.cfg.All, now)
}

// makeRoom forgets sources that have been quiet, and a few others when all are busy: these begin again with a burst, which the
// limit of all still bounds.
func (a *arrivals) makeRoom(now time.Time) {
	if a.bySource == nil {
		a.bySource = map[netip.Addr]*bucket{}
	}
	if len(a.bySource) < pacedSources {
		return
	}
	looked := 0
	for s, b := range a.bySource { // in an order that nobody outside can know
		if looked++; b.isFull(a.cfg.PerSource, now) || looked == 64 {
			delete(a.bySource, s)
		}
		if looked == 64 {
			return
		}
	}
}

// trust notes that a source has proved who it is.
func (a *arrivals) trust(s netip.Addr, now time.Time) {
	if a.cfg == (Arrivals{}) {
		return
	}
	if a.trusted == nil || len(a.trusted) >= trustedSource {
		a.trusted = map[netip.Addr]time.Time{}
	}
	a.trusted[s] = now
}
