package clusterapi

import (
	"context"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

// calm is how long the controllers collect events of hosts before they count again.
const calm = 5 * time.Second

// yard caches all hosts of the inventory for the controllers of clusters and templates. An event of a host empties
// it.
type yard struct {
	appliance contract.Appliance

	mu    sync.Mutex
	hosts []contract.HostView // nil when they have to be read
}

// spoil empties the cache.
func (y *yard) spoil() {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.hosts = nil
}

// all returns all hosts; callers must not change the views. It holds mu while it reads, so many callers cause one
// read.
func (y *yard) all(ctx context.Context) ([]contract.HostView, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.hosts != nil {
		return y.hosts, nil
	}
	// Not nil: an inventory without hosts was read as well.
	hosts := []contract.HostView{}
	if err := y.appliance.EachHost(ctx, func(h contract.HostView) error {
		hosts = append(hosts, h)
		return nil
	}); err != nil {
		return nil, err
	}
	y.hosts = hosts
	return hosts, nil
}

// isAboutHosts reports whether an event may have changed how many hosts are free, or where they stand.
func isAboutHosts(ev inventory.Event) bool {
	switch ev.Kind {
	case inventory.EventHostDiscovered, inventory.EventHostChanged, inventory.EventHostDeleted, inventory.EventClaimed,
		inventory.EventFreed, inventory.EventInspected, inventory.EventStateChanged, inventory.EventChanged:
		return true
	}
	return false
}
