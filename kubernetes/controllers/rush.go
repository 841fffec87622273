package controllers

import (
	"sync"
	"time"
)

const (
	rushCount = 16 // so many machines asked for
	rushSpan  = time.Second
	rushMost  = 10 * time.Second // that something waits for the end of a rush
	rushLook  = 100 * time.Millisecond
)

// rush knows whether many machines are asked for at the moment.
type rush struct {
	mu    sync.Mutex
	asked [rushCount]time.Time // the last ones, a ring
	next  int
}

func (r *rush) note(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[r.next] = now
	r.next = (r.next + 1) % rushCount
}

func (r *rush) is(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldest := r.asked[r.next]
	return !oldest.IsZero() && now.Sub(oldest) < rushSpan
}

// calm holds what comes in a rush.
type calm[R comparable] struct {
	rush  *rush
	queue func(R)
	is    func() bool       // false once nobody listens any more
	later func(look func()) // looks again

	mu    sync.Mutex
	held  map[R]bool
	since time.Time // of the first of them
}

func (c *calm[R]) add(r R, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.held) == 0 {
		if !c.rush.is(now) {
			c.queue(r)
			return
		}
		c.held, c.since = map[R]bool{}, now
		c.later(func() { c.look(time.Now()) })
	}
	c.held[r] = true
}

// look lets go what is held, once the rush is over.
func (c *calm[R]) look(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.is():
	case c.rush.is(now) && now.Sub(c.since) < rushMost:
		c.later(func() { c.look(time.Now()) })
		return
	default:
		for r := range c.held {
			c.queue(r)
		}
	}
	c.held = nil
}
