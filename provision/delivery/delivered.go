package delivery

import (
	"sync"

	"slipway.dev/slipway/inventory"
)

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
	// The whole memory goes at once. It holds copies of the store, which are read again when they are needed.
	if c.byDigest == nil || len(c.byDigest) >= maxDelivered {
		c.byDigest = map[inventory.Digest]inventory.Rendering{}
	}
	c.byDigest[d] = r
	return r, nil
}
