package lease

import (
	"net/netip"

	"slipway.dev/slipway/inventory"
)

// Path is how a packet came to us; zero fields are absent.
type Path struct {
	Link      netip.Addr   // link selection of the relay (RFC 3527)
	Selected  netip.Addr   // subnet selection by the client (RFC 3011)
	Relay     netip.Addr   // giaddr
	Client    netip.Addr   // ciaddr: what the client uses already
	Interface string       // where it was received
	Local     []netip.Addr // our addresses on that interface
}

// SubnetFor finds the subnet of a client. The relay's link selection counts first, then the client's own selection,
// then the address of the relay. A packet without any of them belongs to the interface. Of several subnets there, the
// one of the client's present address counts, else the one of our first address.
func SubnetFor(subnets []inventory.Subnet, p Path) (inventory.Subnet, bool) {
	for _, a := range []netip.Addr{p.Link, p.Selected, p.Relay} {
		if a.IsValid() && !a.IsUnspecified() {
			return containing(subnets, a, "")
		}
	}
	if p.Client.IsValid() && !p.Client.IsUnspecified() {
		if s, ok := containing(subnets, p.Client, p.Interface); ok {
			return s, true
		}
	}
	for _, a := range p.Local {
		if s, ok := containing(subnets, a, p.Interface); ok {
			return s, true
		}
	}
	for _, s := range subnets {
		if s.Interface != "" && s.Interface == p.Interface {
			return s, true
		}
	}
	return inventory.Subnet{}, false
}

// containing returns the subnet with that address, on that interface unless none is asked for. A subnet that names no
// interface may be on any.
func containing(subnets []inventory.Subnet, a netip.Addr, iface string) (inventory.Subnet, bool) {
	for _, s := range subnets {
		if s.CIDR.Contains(a) && (iface == "" || s.Interface == "" || s.Interface == iface) {
			return s, true
		}
	}
	return inventory.Subnet{}, false
}

// SubnetFor finds the subnet that a client is in, among those in force.
func (b *Book) SubnetFor(p Path) (inventory.Subnet, bool) {
	b.mu.Lock()
	subnets := b.subnets
	b.mu.Unlock()
	return SubnetFor(subnets, p)
}
