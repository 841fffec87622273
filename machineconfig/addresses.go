package machineconfig

import (
	"errors"
	"net/netip"
	"strconv"

	"slipway.dev/slipway/inventory"
)

// AddressOf returns the address that is kept for the machine in a subnet, with the length of the subnet's prefix. Its
// error is an *inventory.Error.
type AddressOf func(subnet string) (netip.Prefix, error)

// FillAddresses puts in one address from each subnet that an interface, bond, VLAN, bridge or tunnel asks for. It comes after
// Fill; who has no addresses gives nil.
func FillAddresses(c *Config, of AddressOf) (report Report) {
	c.Network.EachLink(func(path string, l *L3) {
		for i, subnet := range l.FromSubnets {
			at := path + "/fromSubnets/" + strconv.Itoa(i)
			p, err := of.In(subnet)
			if err != nil {
				report.Errorf(at, "address", "%s", err.Msg).Hint = err.Hint
				continue
			}
			if c.Provenance != nil {
				c.Provenance[path+"/addresses/"+strconv.Itoa(len(l.Addresses))] = "subnet " + subnet
			}
			l.Addresses = append(l.Addresses, p.String())
		}
	})
	report.Locate(c)
	return report
}

// In asks for the address in a subnet. Its error is for people.
func (of AddressOf) In(subnet string) (netip.Prefix, *inventory.Error) {
	if inventory.CheckName("subnet", subnet) != nil {
		return netip.Prefix{}, inventory.Errorf(inventory.Invalid, "%q is not the name of a subnet", inventory.Clean(subnet, 80)).
			WithHint("list them with: slipway subnet list")
	}
	if of == nil {
		return netip.Prefix{}, inventory.Errorf(inventory.Invalid, "no address of subnet %s is known here", subnet)
	}
	p, err := of(subnet)
	if err == nil {
		return p, nil
	}
	if said, ok := errors.AsType[*inventory.Error](err); ok {
		return p, said
	}
	return p, inventory.Errorf(inventory.Invalid, "%s", inventory.Clean(err.Error(), 300))
}
