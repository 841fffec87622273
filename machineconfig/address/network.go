package address

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

// MaySaveSubnet refuses a subnet by which an address that a machine has becomes the gateway, or one that DHCP leases. If
// the stored subnet has the value already, it stays.
func MaySaveSubnet(tx inventory.Tx, n *inventory.Subnet, now time.Time) error {
	tx = Whole(tx)
	was, err := Open(tx, nil, now, true)
	if err != nil {
		return err
	}
	is := *was // as it would be
	is.subnets = append(slices.DeleteFunc(slices.Clone(was.subnets), func(o inventory.Subnet) bool { return o.Name == n.Name }), *n)
	old := inventory.Subnet{}
	if i := slices.IndexFunc(was.subnets, func(o inventory.Subnet) bool { return o.Name == n.Name }); i >= 0 {
		old = was.subnets[i]
	}
	if n.Gateway == old.Gateway && n.Mode == old.Mode && slices.Equal(n.Ranges, old.Ranges) {
		return nil
	}
	held, err := tx.ListHoldings(inventory.AddressFilter{})
	if err != nil {
		return fmt.Errorf("read what is held: %w", err)
	}
	for _, h := range held {
		a, bad := netip.ParseAddr(h.Value)
		if h.Kind != inventory.HoldsAddress || bad != nil || !takes(n, a) || takes(&old, a) && (a == n.Gateway) == (a == old.Gateway) {
			continue
		}
		field, hint := "ranges", "leave it out of the ranges, or reserve it for that host: slipway reservation create %s --mac MAC"
		t := taker{with: "the gateway of subnet " + n.Name}
		if a == n.Gateway { // even one that is reserved or kept for the machine
			field, hint = "gateway", "choose another gateway, or take %s out of that configuration"
		} else {
			s, err := SubjectOf(tx, h.Holder)
			if err != nil {
				return err
			}
			if t, err = is.inNetwork(s, a); err != nil {
				return err
			}
			if t.with == "" { // reserved or kept for it
				continue
			}
		}
		return inventory.Errorf(inventory.Invalid, "subnet %s: %s is the address of %s%s, and would be %s", n.Name, a, h.Holder, From(h.Source), t.with).
			At(field).WithHint(hint, a).Naming(t.refs...)
	}
	return nil
}

// takes reports whether an address is a subnet's gateway, or one that its DHCP leases.
func takes(n *inventory.Subnet, a netip.Addr) bool {
	isLeased := func(r inventory.Range) bool { return r.Contains(a) }
	return n.Gateway == a || n.Mode == inventory.ModeFull && slices.ContainsFunc(n.Ranges, isLeased)
}

// MaySaveTarget refuses a virtual address that a machine has. The one that is stored stays.
func MaySaveTarget(tx inventory.Tx, t *inventory.JoinTarget) error {
	tx = Whole(tx)
	old, err := tx.JoinTargets().Find(t.Name)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("read target %s: %w", t.Name, err)
	}
	if !t.VIP.IsValid() || t.VIP == old.VIP {
		return nil
	}
	return isNobodys(tx, t.VIP.Unmap(), "vip", "the virtual address of target "+t.Name)
}

// MaySaveBMC refuses a controller at an address that a machine has. The one that is stored stays.
func MaySaveBMC(tx inventory.Tx, b *inventory.BMC) error {
	tx = Whole(tx)
	a, ok := controllerAddress(*b)
	if !ok {
		return nil
	}
	old, err := tx.FindBMC(b.HostID)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("read controller: %w", err)
	}
	if was, had := controllerAddress(old); had && was == a {
		return nil
	}
	return isNobodys(tx, a, "address", "that of a controller")
}

// isNobodys refuses to make an address something of the network that a machine has or that is kept for one.
func isNobodys(tx inventory.Tx, a netip.Addr, field, what string) error {
	held, err := tx.FindHoldings(inventory.HoldsAddress, a.String())
	if err != nil {
		return fmt.Errorf("read who holds %s: %w", a, err)
	}
	kept, err := tx.FindAllocation(a)
	switch {
	case err == nil:
		held = append(held, inventory.Holding{Holder: kept.Holder})
	case !isNotFound(err):
		return fmt.Errorf("read who holds %s: %w", a, err)
	}
	if len(held) == 0 {
		return nil
	}
	return inventory.Errorf(inventory.Invalid, "%s is the address of %s, and would be %s", a, held[0].Holder, what).At(field).
		WithHint("choose another address, or take it out of that configuration")
}

// SubjectOf is a holder with the host that it is on.
func SubjectOf(tx inventory.Tx, h inventory.Holder) (Subject, error) {
	s := Subject{Holder: h}
	if h.HostID == "" {
		return s, nil
	}
	on, err := tx.FindHost(h.HostID)
	if err != nil {
		return s, fmt.Errorf("read host of %s: %w", h, err)
	}
	s.On = &on
	return s, nil
}

// From names the layer that a value comes from, in parentheses; "" for a value of the inventory.
func From(source string) string {
	if source == "" || source == "inventory" {
		return ""
	}
	return " (" + source + ")"
}
