package serve

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/leader"
	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/dhcp"
	"slipway.dev/slipway/pxe/dhcp6"
	"slipway.dev/slipway/pxe/lease"
)

const (
	foreignLookAt  = time.Minute // how often the list of other servers is checked for those that are gone
	foreignAskEach = 10 * time.Minute
)

// otherServers asks the networks of the interfaces for DHCP servers other than this one.
type otherServers struct {
	cfg      *Config
	networks *lookup.Networks
	engine   leader.Engine
	// subnets returns those that this instance answers on.
	subnets func() []string
	log     *slog.Logger
	// instances are the addresses of the other instances, which answer like this one.
	instances func() []netip.Addr
	// The servers are made with the listeners, before anything asks.
	dhcp  *dhcp.Server
	dhcp6 *dhcp6.Server
}

// probe asks a subnet's network for other DHCP servers, and says where they lead each kind of machine.
func (o *otherServers) probe(ctx context.Context, n inventory.Subnet, server netip.Addr) ([]pxe.ProbeLine, error) {
	if n.Is6() {
		return o.probe6(ctx, n, server)
	}
	setup, us, err := o.probeSetup(n, server)
	if err != nil {
		return nil, err
	}
	offers, err := o.dhcp.Probe(ctx, setup)
	var known *inventory.Error
	switch {
	case err != nil && ctx.Err() == nil && !errors.As(err, &known):
		return nil, inventory.Errorf(inventory.Unavailable, "no check is possible: %v", err).WithHint("see whether the interface is up and has its address: slipway subnet interfaces")
	case err != nil:
		return nil, err
	}
	return pxe.JudgeProbe(pxe.ProbeSubject{
		Subnet: n, Asked: server, Us: append(lookup.AddressesOf(o.cfg.Interfaces), o.instances()...), Base: pxe.BaseURL(us, o.cfg.BootPort),
	}, offers), nil
}

// probeSetup finds the interface to ask on, and our address there. A network that is reached by relay only is asked for
// at its server, as a relay agent.
func (o *otherServers) probeSetup(n inventory.Subnet, server netip.Addr) (setup dhcp.ProbeSetup, us netip.Addr, err error) {
	for _, name := range o.cfg.Interfaces {
		for _, own := range lookup.AddressesOf([]string{name}) {
			// An address within the subnet counts more than one that is only on its interface: the last match wins for it.
			if n.CIDR.Contains(own) || n.Interface == name && !us.IsValid() {
				setup.Interface, us = name, own
			}
			if server.IsValid() && !setup.Relay.IsValid() {
				setup.Relay = own
			}
		}
	}
	setup.Wait, setup.Server = dhcp.AnswersWithin, server
	switch {
	case server.IsValid() && !setup.Relay.IsValid():
		return setup, us, inventory.Errorf(inventory.Conflict, "none of the interfaces that machines are answered on has an address to ask %s from", server)
	case !server.IsValid() && !us.IsValid():
		return setup, us, inventory.Errorf(inventory.Conflict, "subnet %s is on no interface that machines are answered on", n.Name).
			WithHint("name its DHCP server: slipway subnet probe %s --ask ADDRESS", n.Name)
	}
	if server.IsValid() && us.IsValid() {
		setup.Relay = us
	} else if server.IsValid() {
		// A relay outside of the network names the subnet by option 82 link selection (RFC 3527); giaddr alone would name its
		// own.
		us, setup.Link = setup.Relay, n.CIDR.Addr()
	}
	return setup, us, nil
}

// watch closes the issues of other servers that are gone. A server that answers machines is heard anyway, so it asks only
// now and then, for servers that have been quiet.
func (o *otherServers) watch(ctx context.Context) error {
	tick := time.NewTicker(foreignLookAt)
	defer tick.Stop()
	began := time.Now()
	for askedAt := began; ; {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			o.engine.ForeignGone(append(o.dhcp.Foreigners(), o.dhcp6.Foreigners()...), o.subnets(), now.Sub(began))
			if now.Sub(askedAt) >= foreignAskEach {
				askedAt = now
				o.askForeign(ctx)
			}
		}
	}
}

// askForeign asks on the interfaces whose network is ours alone.
func (o *otherServers) askForeign(ctx context.Context) {
	o.askForeign6(ctx)
	for _, name := range o.cfg.Interfaces {
		n, ok := o.networks.Book.SubnetFor(lease.Path{Interface: name, Local: lookup.AddressesOf([]string{name})})
		// In the other modes a second server is expected, and often the only one that leases addresses.
		if !ok || n.Mode != inventory.ModeFull {
			continue
		}
		if err := o.dhcp.Look(ctx, name, dhcp.AnswersWithin); err != nil && ctx.Err() == nil {
			o.log.Warn("other dhcp servers not asked for", "iface", name, "err", err)
		}
	}
}

// foreignServers returns the other DHCP servers noticed on a subnet.
func (o *otherServers) foreignServers(subnet string) []pxe.ForeignServer {
	return slices.DeleteFunc(append(o.dhcp.Foreigners(), o.dhcp6.Foreigners()...), func(f pxe.ForeignServer) bool { return f.Subnet != subnet })
}

// probe6 is probe for an IPv6 network.
func (o *otherServers) probe6(ctx context.Context, n inventory.Subnet, server netip.Addr) ([]pxe.ProbeLine, error) {
	setup := dhcp6.ProbeSetup{Server: server, Link: n.CIDR.Addr().Next(), Wait: dhcp.AnswersWithin}
	var us []netip.Addr
	for _, name := range o.cfg.Interfaces {
		ours := lookup.Addresses6Of([]string{name})
		isHere := n.Interface == name || slices.ContainsFunc(ours, n.CIDR.Contains)
		if us = append(us, ours...); setup.Interface == "" && (isHere || server.IsValid() && len(ours) > 0) {
			setup.Interface = name
		}
	}
	// A machine of this subnet boots from an address within it, which goes first.
	if i := slices.IndexFunc(us, n.CIDR.Contains); i > 0 {
		us[0], us[i] = us[i], us[0]
	}
	switch {
	case setup.Interface == "" && server.IsValid():
		return nil, inventory.Errorf(inventory.Conflict, "none of the interfaces that machines are answered on has an IPv6 address to ask %s from", server)
	case setup.Interface == "":
		return nil, inventory.Errorf(inventory.Conflict, "subnet %s is on no interface that machines are answered on", n.Name).
			WithHint("name its DHCPv6 server: slipway subnet probe %s --ask ADDRESS", n.Name)
	}
	offers, err := o.dhcp6.Probe(ctx, setup)
	if err != nil {
		return nil, err
	}
	base := ""
	if len(us) > 0 {
		base = pxe.BaseURL(us[0], o.cfg.BootPort)
	}
	return pxe.JudgeProbe(pxe.ProbeSubject{Subnet: n, Us: append(us, o.instances()...), Base: base}, offers), nil
}

// askForeign6 asks for other DHCPv6 servers on the interfaces whose IPv6 network is ours alone.
func (o *otherServers) askForeign6(ctx context.Context) {
	for _, name := range o.cfg.Interfaces {
		// In the other modes an admin expects another server there.
		if !slices.ContainsFunc(o.networks.Subnets6(name), func(n inventory.Subnet) bool { return n.Mode == inventory.ModeFull }) {
			continue
		}
		if err := o.dhcp6.Look(ctx, name, dhcp.AnswersWithin); err != nil && ctx.Err() == nil {
			o.log.Warn("other dhcpv6 servers not asked for", "iface", name, "err", err)
		}
	}
}
