package claim

import (
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

// PoolCount counts the accepted hosts that a pool's selector matches.
func PoolCount(tx inventory.Tx, p inventory.Pool) (n contract.PoolCount, err error) {
	counts, err := PoolCounts(tx, []inventory.Pool{p})
	if err != nil {
		return n, err
	}
	return counts[0], nil
}

// PoolCounts counts for several pools, reading every host once.
func PoolCounts(tx inventory.Tx, pools []inventory.Pool) ([]contract.PoolCount, error) {
	counts, selectors := make([]contract.PoolCount, len(pools)), make([]inventory.Selector, len(pools))
	for i, p := range pools {
		var err error
		if selectors[i], err = inventory.ParseSelector(p.Selector); err != nil {
			return nil, err
		}
	}
	for page := (inventory.Page{Limit: 1000}); ; {
		hosts, err := tx.ListHosts(inventory.HostFilter{}, page)
		if err != nil {
			return nil, fmt.Errorf("read hosts: %w", err)
		}
		for i := range hosts {
			h := &hosts[i]
			page.After = h.Name
			for k := range pools {
				if h.State != inventory.Discovered && (len(selectors[k]) == 0 || selectors[k].Matches(h)) {
					countHost(&counts[k], h)
				}
			}
		}
		if len(hosts) < page.Limit {
			return counts, nil
		}
	}
}

func countHost(n *contract.PoolCount, h *inventory.Host) {
	n.Total++
	switch {
	case h.State == inventory.Failed:
		n.Failed++
	case h.State == inventory.Releasing || h.State == inventory.Cleaning:
		n.Cleaning++
	case h.ClaimID != "":
		n.Claimed++
	case h.State == inventory.Available && !h.InMaintenance && !h.IsProtected && !h.IsAdopted && !h.IsCordoned && !h.IsDirty:
		n.Available++
	}
}
