package machineconfig

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/quoting"
)

// AddressOf returns the address that is kept for the machine in a subnet, with the length of the subnet's prefix. Its
// error is an *inventory.Error.
type AddressOf func(subnet string) (netip.Prefix, error)

// FillAddresses puts in one address from each subnet that an interface, bond, VLAN, bridge or tunnel asks for. It comes after
// Fill; who has no addresses gives nil.
func FillAddresses(c *Config, of AddressOf) (report Report) {
	c.Network.each(func(path string, l *L3) {
		for i, subnet := range l.FromSubnets {
			at := path + "/fromSubnets/" + strconv.Itoa(i)
			p, err := addressOf(of, subnet)
			if err != nil {
				report.Errorf(at, "address", "%s", err.msg).Hint = err.hint
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

// addressOf asks for an address, and says in words for people why there is none.
func addressOf(of AddressOf, subnet string) (netip.Prefix, *templateError) {
	if err := inventory.CheckName("subnet", subnet); err != nil {
		return netip.Prefix{}, &templateError{msg: shown(subnet) + " is not the name of a subnet", hint: "list them with: slipway subnet list"}
	}
	if of == nil {
		return netip.Prefix{}, &templateError{msg: "no address of subnet " + subnet + " is known here"}
	}
	p, err := of(subnet)
	if err == nil {
		return p, nil
	}
	e := &templateError{msg: inventory.Clean(err.Error(), 300)}
	if said, ok := errors.AsType[*inventory.Error](err); ok {
		e.msg, e.hint = said.Msg, said.Hint
	}
	return p, e
}

// each calls f with everything that carries addresses: its path and what it carries.
func (n *Network) each(f func(path string, l *L3)) {
	n.Links(func(list, name string, l *L3) { f(pointer("/network/"+list, name), l) })
}

// EachAddress calls f with every address of the network, its path and the layer that says it.
func (c *Config) EachAddress(f func(path, source, address string)) {
	where := sources{provenance: c.Provenance}
	c.Network.each(func(path string, l *L3) {
		for i, a := range l.Addresses {
			at := path + "/addresses/" + strconv.Itoa(i)
			f(at, where.of(at), a)
		}
	})
}

// SourceOf returns the layer and line that says the value at a path, "" when nothing does.
func (c *Config) SourceOf(path string) string { return (&sources{provenance: c.Provenance}).of(path) }

// expandAddresses replaces the templates in what names one machine alone: its names and addresses.
func (x *expander) expandAddresses(c *Config) {
	x.in(c, &c.Host.Hostname, quoting.None, "", "host", "hostname")
	x.in(c, &c.Host.Domain, quoting.None, "", "host", "domain")
	if b := c.Bootstrap; b != nil {
		x.in(c, &b.NodeName, quoting.None, "", "bootstrap", "nodeName")
		x.in(c, &b.NodeIP, quoting.None, "", "bootstrap", "nodeIP")
	}
	c.Network.each(func(path string, l *L3) {
		for i := range l.Addresses {
			x.in(c, &l.Addresses[i], quoting.None, path, "addresses", strconv.Itoa(i))
			l.Addresses[i] = strings.TrimSpace(l.Addresses[i])
		}
		for i := range l.Routes {
			r := &l.Routes[i]
			x.in(c, &r.Via, quoting.None, pointer(path, "routes"), routeKey(*r), "via")
		}
	})
}

// address is the address that is kept for the machine in a subnet, with its prefix length.
func (x *expander) address(subnet string) (string, error) {
	p, err := addressOf(x.vars.addresses, subnet)
	if err != nil {
		return "", err
	}
	return p.String(), nil
}

// WithAddresses lets templates ask for the addresses that are kept for the machine.
func (v Vars) WithAddresses(of AddressOf) Vars {
	v.addresses = of
	return v
}
