package lease

import (
	"net/netip"
	"sync"
	"testing"

	"slipway.dev/slipway/inventory"
)

// TestManyAtOnce is for the race detector as much as for its own check: no address goes to two machines.
func TestManyAtOnce(t *testing.T) {
	b := New(Network{Subnets: []inventory.Subnet{big()}}, nil)
	const workers, each = 8, 200
	var mu sync.Mutex
	owner := map[netip.Addr]inventory.MAC{}
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range each {
				c := client(w*each + i)
				o, why := b.Offer(c, netip.Addr{}, t0)
				if why != "" {
					t.Error(why)
					return
				}
				r := b.Confirm(c, Selecting, o.Address, t0)
				if r.Verdict != Ack || !b.Commit(r.Lease) {
					t.Errorf("%s was not committed: %s", o.Address, r.Reason)
				}
				mu.Lock()
				if other, taken := owner[o.Address]; taken {
					t.Errorf("%s went to %s and %s", o.Address, other, c.MAC)
				}
				owner[o.Address] = c.MAC
				mu.Unlock()
				if i%50 == 0 {
					b.Reconfigure(Network{Subnets: []inventory.Subnet{big()}})
					b.Counts("rack", t0)
				}
			}
		})
	}
	all.Wait()
}
