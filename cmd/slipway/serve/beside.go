package serve

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/dhcp"
	"slipway.dev/slipway/pxe/lease"
)

const (
	foreignLookAt  = time.Minute // how often the list of other servers is checked for those that are gone
	foreignAskEach = 10 * time.Minute
)

// probe asks a subnet's network for other DHCP servers, and says where they lead each kind of machine.
func (a *appliance) probe(ctx context.Context, n inventory.Subnet, server netip.Addr) ([]pxe.ProbeLine, error) {
	if n.Is6() {
		return a.probe6(ctx, n, server)
	}
	setup, us, err := a.probeSetup(n, server)
	if err != nil {
		return nil, err
	}
	offers, err := a.dhcp.Probe(ctx, setup)
	var known *inventory.Error
	switch {
	case err != nil && ctx.Err() == nil && !errors.As(err, &known):
		return nil, inventory.Errorf(inventory.Unavailable, "no check is possible: %v", err).WithHint("see whether the interface is up and has its address: slipway subnet interfaces")
	case err != nil:
		return nil, err
	}
	return pxe.JudgeProbe(pxe.ProbeSubject{Subnet: n, Asked: server, Us: lookup.AddressesOf(a.cfg.Interfaces), Base: pxe.BaseURL(us, a.cfg.BootPort)}, offers), nil
}

// probeSetup finds the interface to ask on, and our address there. A network that is reached by relay only is asked for
// at its server, as a relay agent.
func (a *appliance) probeSetup(n inventory.Subnet, server netip.Addr) (setup dhcp.ProbeSetup, us netip.Addr, err error) {
	for _, name := range a.cfg.Interfaces {
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

// watchForeign closes the issues of other servers that are gone. A server that answers machines is heard anyway, so it asks only
// now and then, for servers that have been quiet.
func (a *appliance) watchForeign(ctx context.Context) error {
	tick := time.NewTicker(foreignLookAt)
	defer tick.Stop()
	began := time.Now()
	for askedAt := began; ; {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			a.engine.ForeignGone(append(a.dhcp.Foreigners(), a.dhcp6.Foreigners()...), now.Sub(began))
			if now.Sub(askedAt) >= foreignAskEach {
				askedAt = now
				a.askForeign(ctx)
			}
		}
	}
}

// askForeign asks on the interfaces whose network is ours alone.
func (a *appliance) askForeign(ctx context.Context) {
	a.askForeign6(ctx)
	for _, name := range a.cfg.Interfaces {
		n, ok := a.networks.Book.SubnetFor(lease.Path{Interface: name, Local: lookup.AddressesOf([]string{name})})
		// In the other modes a second server is expected, and often the only one that leases addresses.
		if !ok || n.Mode != inventory.ModeFull {
			continue
		}
		if err := a.dhcp.Look(ctx, name, dhcp.AnswersWithin); err != nil && ctx.Err() == nil {
			a.log.Warn("other dhcp servers not asked for", "iface", name, "err", err)
		}
	}
}

// foreignServers returns the other DHCP servers noticed on a subnet.
func (a *appliance) foreignServers(subnet string) []pxe.ForeignServer {
	return slices.DeleteFunc(append(a.dhcp.Foreigners(), a.dhcp6.Foreigners()...), func(f pxe.ForeignServer) bool { return f.Subnet != subnet })
}
