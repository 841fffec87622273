package provision

import (
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// refusals remembers what was refused lately: a tool that asks again every few seconds is noted once a minute.
type refusals struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

const (
	refusedAgain = time.Minute
	maxRefusals  = 10_000
)

// first reports whether that refusal is worth a note.
func (r *refusals) first(what string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.seen[what]) < refusedAgain {
		return false
	}
	if r.seen == nil || len(r.seen) >= maxRefusals {
		r.seen = map[string]time.Time{}
	}
	r.seen[what] = now
	return true
}

// delivered remembers renderings that are being fetched: a machine asks for several documents of one, and a digest
// stands for the same bytes for ever.
type delivered struct {
	mu       sync.Mutex
	byDigest map[inventory.Digest]inventory.Rendering
}

// maxDelivered bounds the memory; a rendering has some 10 KB.
const maxDelivered = 2000

func (c *delivered) find(tx inventory.Tx, d inventory.Digest) (inventory.Rendering, error) {
	c.mu.Lock()
	r, ok := c.byDigest[d]
	c.mu.Unlock()
	if ok {
		return r, nil
	}
	r, err := tx.FindRendering(d)
	if err != nil {
		return r, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byDigest == nil || len(c.byDigest) >= maxDelivered {
		c.byDigest = map[inventory.Digest]inventory.Rendering{}
	}
	c.byDigest[d] = r
	return r, nil
}
