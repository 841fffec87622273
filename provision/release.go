package provision

import (
	"sync"

	"slipway.dev/slipway/inventory"
)

// inspections remembers what hosts are made of: an inspection never changes.
type inspections struct {
	mu     sync.Mutex
	byHost map[inventory.HostID]inventory.Inspection
}

// maxInspections bounds the memory; one has some 5 KB.
const maxInspections = 20_000

func (c *inspections) find(tx inventory.Tx, h inventory.HostID, n int) (inventory.Inspection, error) {
	c.mu.Lock()
	i, ok := c.byHost[h]
	c.mu.Unlock()
	if ok && i.N == n {
		return i, nil
	}
	i, err := tx.FindInspection(h, n)
	if err != nil {
		return i, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byHost == nil || len(c.byHost) >= maxInspections {
		c.byHost = map[inventory.HostID]inventory.Inspection{}
	}
	c.byHost[h] = i
	return i, nil
}
