package serve

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/dhcp"
	"slipway.dev/slipway/pxe/dhcp6"
)

// serverDUID is what this server is called in DHCPv6: a DUID-UUID (RFC 6355) made of the fingerprint of its data directory's
// key. It stays when a network card is replaced and when a backup is restored elsewhere. A client that finds another DUID takes
// us for another server and gives its address up (RFC 8415 section 18.2).
func serverDUID(fingerprint string) []byte {
	sum := sha256.Sum256([]byte("slipway dhcpv6 " + fingerprint))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8 (RFC 9562)
	return append(binary.BigEndian.AppendUint16(nil, 4), sum[:16]...)
}

// dhcp6Door is the door for DHCPv6.
func (a *appliance) dhcp6Door(storeState func(error)) *dhcp6.Server {
	c := dhcp6.Config{
		Interfaces: a.cfg.Interfaces, Book: a.networks.Book6, Leases: a.networks, Boots: a.engine, BootPort: a.cfg.BootPort, DUID: a.duid,
		ProbeFor: probeFor, Foreign: a.engine.Foreign, StoreState: storeState, Now: time.Now, Log: a.log,
		Unanswered: a.unanswered, Knows: a.networks.Known.HasMAC, Classes: a.networks.Classes,
	}
	if !a.cfg.CheckConflict {
		c.ProbeFor = 0
	}
	a.dhcp6 = dhcp6.New(c)
	return a.dhcp6
}

// probe6 is probe for an IPv6 network.
func (a *appliance) probe6(ctx context.Context, n inventory.Subnet, server netip.Addr) ([]pxe.ProbeLine, error) {
	setup := dhcp6.ProbeSetup{Server: server, Link: n.CIDR.Addr().Next(), Wait: dhcp.AnswersWithin}
	var us []netip.Addr
	for _, name := range a.cfg.Interfaces {
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
	offers, err := a.dhcp6.Probe(ctx, setup)
	if err != nil {
		return nil, err
	}
	base := ""
	if len(us) > 0 {
		base = pxe.BaseURL(us[0], a.cfg.BootPort)
	}
	return pxe.JudgeProbe(pxe.ProbeSubject{Subnet: n, Us: us, Base: base}, offers), nil
}

// askForeign6 asks for other DHCPv6 servers on the interfaces whose IPv6 network is ours alone.
func (a *appliance) askForeign6(ctx context.Context) {
	for _, name := range a.cfg.Interfaces {
		// In the other modes an admin expects another server there.
		if !slices.ContainsFunc(a.networks.Subnets6(name), func(n inventory.Subnet) bool { return n.Mode == inventory.ModeFull }) {
			continue
		}
		if err := a.dhcp6.Look(ctx, name, dhcp.AnswersWithin); err != nil && ctx.Err() == nil {
			a.log.Warn("other dhcpv6 servers not asked for", "iface", name, "err", err)
		}
	}
}

// checkSubnets6 says which IPv6 subnets cannot boot anything: a machine fetches its loader from an address of ours.
func (a *appliance) checkSubnets6() (checks []Check) {
	// Only the DHCPv6 listener knows which ports it did not get, and it is made after the first checks.
	if a.dhcp6 != nil {
		for _, name := range a.dhcp6.Taken() {
			checks = append(checks, Check{
				Name: "dhcpv6 " + name, Status: warning, Detail: "UDP port 547 is taken by another program: nobody is answered over DHCPv6 there",
				Hint: "stop it before you make an IPv6 subnet; find it with: ss -lunp 'sport = :547'",
			})
		}
	}
	if a.networks == nil {
		return checks // the server has not opened its networks yet
	}
	checks = append(checks, a.couldServe6()...)
	for _, s := range *a.networks.Six.Load() {
		if s.Interface == "" || s.Mode == inventory.ModeOff ||
			slices.ContainsFunc(lookup.Addresses6Of([]string{s.Interface}), s.CIDR.Contains) {
			continue
		}
		checks = append(checks, Check{
			Name: "subnet " + s.Name, Status: failed, Detail: fmt.Sprintf("%s has no address in %s: machines get addresses there and nothing to boot", s.Interface, s.CIDR),
			Hint: fmt.Sprintf("ip -6 addr add %s/%d dev %s", s.CIDR.Addr().Next(), s.CIDR.Bits(), s.Interface),
		})
	}
	return checks
}

// couldServe6 names the networks of the interfaces' IPv6 addresses that have no subnet. None is made by itself: an IPv6
// subnet sends router advertisements, which change every machine on the wire, not only those that boot.
func (a *appliance) couldServe6() (checks []Check) {
	for _, name := range a.cfg.Interfaces {
		p, found := lookup.StaticIPv6(name)
		if !found || slices.ContainsFunc(*a.networks.Six.Load(), func(s inventory.Subnet) bool { return s.CIDR.Overlaps(p) }) {
			continue
		}
		checks = append(checks, Check{
			Name: "ipv6 " + name, Status: doctor.OK, Detail: fmt.Sprintf("has %s, and there is no IPv6 subnet: nothing is served over IPv6", p), Hint: lookup.First6(name, p),
		})
	}
	return checks
}
