// Package identity judges identities on the boot network. It decides whether a request belongs to a boot, and whether a
// booting machine is the host whose MAC it has. It is pure: the engine reads what is known, and acts on the answer.
package identity

import (
	"fmt"
	"net/netip"
	"slices"

	"slipway.dev/slipway/inventory"
)

// Way is what shows that a request belongs to a boot.
type Way string

// The ways, each enough by itself.
const (
	ByKey       Way = "key"       // it has the key that was handed to this boot alone
	ByAddress   Way = "address"   // it comes from the address of the boot
	ByLease     Way = "lease"     // our DHCP gave its address to a port of the host
	ByNeighbour Way = "neighbour" // our own network says that a port of the host uses its address
	ByConfig    Way = "config"    // its address is one that the host's configuration gives to the host
	AsFirst     Way = "first"     // the boot has no address yet, and nothing shows that another machine has this one
)

// Boot is what a request is judged by: the boot that its URL names.
type Boot struct {
	Address netip.Addr      // invalid while the boot has none
	Ports   []inventory.MAC // of the host
}

// Caller is what Slipway knows of the sender of a request to the URL of a boot.
type Caller struct {
	Source     netip.Addr
	HasKey     bool
	Lessee     inventory.MAC // whom our DHCP leases Source to at this time, "" for nobody
	Neighbour  inventory.MAC // who uses Source on our own network, "" where that is not known
	Configured []netip.Addr  // that the configuration of this boot gives the host
}

// WayOf is the one rule for everything under the URL of a boot. It returns "" and the reason for a request that does not
// belong to the boot. The lease of our DHCP server counts before the neighbour table.
func WayOf(b Boot, c Caller) (Way, string) {
	isOurs := func(m inventory.MAC) bool { return slices.Contains(b.Ports, m) }
	switch {
	case c.HasKey:
		return ByKey, ""
	case b.Address.IsValid() && b.Address == c.Source:
		return ByAddress, ""
	case !c.Source.IsValid():
		return "", "the address of the request is not known"
	case isOurs(c.Lessee):
		return ByLease, ""
	case c.Lessee != "":
		return "", fmt.Sprintf("%s is leased to %s", c.Source, c.Lessee)
	case c.Neighbour != "" && !isOurs(c.Neighbour):
		return "", fmt.Sprintf("%s is used by %s", c.Source, c.Neighbour)
	case slices.Contains(c.Configured, c.Source):
		return ByConfig, ""
	case c.Neighbour != "":
		return ByNeighbour, ""
	case !b.Address.IsValid():
		return AsFirst, ""
	}
	return "", fmt.Sprintf("%s is no address of the machine, which boots at %s", c.Source, b.Address)
}
