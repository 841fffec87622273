package instance

import (
	"context"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	freshEvery  = 250 * time.Millisecond // how often anybody may have the list read again
	freshWithin = time.Second
)

// fresh is the list of instances, read again for one that this instance does not know yet. A new instance serves people at once, and passes
// their requests on before the leader has read the list the next time.
type fresh struct {
	mu      sync.Mutex
	readAt  time.Time
	running map[string]bool // by id
}

// runs reports whether the list has an instance as running. One that cannot be read has nobody.
func (f *fresh) runs(store inventory.Store, id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.readAt) < freshEvery {
		return f.running[id]
	}
	ctx, cancel := context.WithTimeout(context.Background(), freshWithin)
	defer cancel()
	all, err := inventory.Read(ctx, store, func(tx inventory.Tx) ([]inventory.Instance, error) { return tx.ListInstances() })
	f.readAt, f.running = time.Now(), map[string]bool{}
	for _, i := range all {
		f.running[i.ID] = err == nil && i.Run != ""
	}
	return f.running[id]
}
