package delivery

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
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

// urls returns a URL of the boot at each instance that the machine reaches, with blanks between them. The one that it asked comes first. A
// machine asks the next one when one does not answer: its instance may be gone for good before the machine reports.
func (v *Values) urls(ctx context.Context, d *delivery, at func(base string) string) ([]byte, error) {
	var others []netip.Addr
	err := v.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		others, err = OnNetwork(tx, v.Others, d.session.Subnet)
		return err
	})
	if err != nil {
		return nil, err
	}
	all := pxe.OwnFirst(string(d.host.ID), d.Base, others)
	for i, base := range all {
		all[i] = at(base)
	}
	return []byte(strings.Join(all, " ")), nil
}
