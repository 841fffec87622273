package delivery

import (
	"fmt"
	"net/netip"

	"slipway.dev/slipway/inventory"
)

// OnNetwork returns those addresses of other instances that are on a subnet: a machine there reaches them as it reaches ours.
func OnNetwork(tx inventory.Tx, others func() []netip.Addr, subnet string) (on []netip.Addr, err error) {
	if others == nil || subnet == "" {
		return nil, nil
	}
	all := others()
	if len(all) == 0 {
		return nil, nil
	}
	s, err := tx.Subnets().Find(subnet)
	if inventory.IsKind(err, inventory.NotFound) { // it was deleted after the boot began
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read subnet: %w", err)
	}
	for _, a := range all {
		if s.CIDR.Contains(a.Unmap()) {
			on = append(on, a)
		}
	}
	return on, nil
}
