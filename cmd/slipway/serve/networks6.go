package serve

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/dhcp6"
	"slipway.dev/slipway/pxe/lease"
	"slipway.dev/slipway/pxe/lease6"
)

// split gives each lease book its family: a book sees nothing of the other.
func split(subnets []inventory.Subnet, reservations []inventory.Reservation, interfaces []string) (lease.Network, lease6.Network) {
	var four lease.Network
	var six lease6.Network
	for _, s := range subnets {
		if s.Is6() {
			six.Subnets = append(six.Subnets, s)
		} else {
			four.Subnets = append(four.Subnets, s)
		}
	}
	for _, r := range reservations {
		if r.Address.Is6() {
			six.Reservations = append(six.Reservations, r)
		} else {
			four.Reservations = append(four.Reservations, r)
		}
	}
	four.Ours, six.Ours = addressesOf(interfaces), addresses6Of(interfaces)
	return four, six
}

// addresses6Of returns all IPv6 addresses of the interfaces but the link-local ones.
func addresses6Of(interfaces []string) (ours []netip.Addr) {
	for _, name := range interfaces {
		i, err := net.InterfaceByName(name)
		if err != nil {
			continue
		}
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is6() && !p.Addr().IsLinkLocalUnicast() {
				ours = append(ours, p.Addr())
			}
		}
	}
	return ours
}

// subnets6 returns the IPv6 subnets of an interface: those that name it, and those that one of its addresses is in.
func (n *networks) subnets6(iface string) (list []inventory.Subnet) {
	ours := addresses6Of([]string{iface})
	for _, s := range *n.six.Load() {
		isHere := slices.ContainsFunc(ours, s.CIDR.Contains)
		if s.Interface == iface || s.Interface == "" && isHere {
			list = append(list, s)
		}
	}
	return list
}

// serverDUID is what this server is called in DHCPv6: a DUID-UUID (RFC 6355) made of the fingerprint of its data
// directory's key, so that it stays when a network card is replaced.
func serverDUID(fingerprint string) []byte {
	sum := sha256.Sum256([]byte("slipway dhcpv6 " + fingerprint))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8 (RFC 9562)
	return append(binary.BigEndian.AppendUint16(nil, 4), sum[:16]...)
}

// dhcp6Door is the door for DHCPv6.
func (a *appliance) dhcp6Door(storeState func(error)) *dhcp6.Server {
	c := dhcp6.Config{
		Interfaces: a.cfg.Interfaces, Book: a.networks.book6, Leases: a.networks, Boots: a.engine, BootPort: a.cfg.BootPort, DUID: a.duid,
		ProbeFor: probeFor, Foreign: a.engine.Foreign6, StoreState: storeState, Now: time.Now, Log: a.log,
	}
	if !a.cfg.CheckConflict {
		c.ProbeFor = 0
	}
	a.dhcp6 = dhcp6.New(c)
	return a.dhcp6
}

// checkSubnets6 says which IPv6 subnets cannot boot anything: a machine fetches its loader from an address of ours.
func (a *appliance) checkSubnets6() (checks []Check) {
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
	for _, s := range *a.networks.six.Load() {
		if s.Interface == "" || s.Mode == inventory.ModeOff || slices.ContainsFunc(addresses6Of([]string{s.Interface}), s.CIDR.Contains) {
			continue
		}
		checks = append(checks, Check{
			Name: "subnet " + s.Name, Status: failed, Detail: fmt.Sprintf("%s has no address in %s: machines get addresses there and nothing to boot", s.Interface, s.CIDR),
			Hint: fmt.Sprintf("ip -6 addr add %s/%d dev %s", s.CIDR.Addr().Next(), s.CIDR.Bits(), s.Interface),
		})
	}
	return checks
}

// hasIPv6 reports whether this machine has IPv6 at all: a kernel without it refuses to listen on it.
func hasIPv6() bool {
	l, err := (&net.ListenConfig{}).ListenPacket(context.Background(), "udp6", "[::1]:0")
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// everywhere is a port of all addresses, of both families where there are both. Each family has a socket of its own.
func everywhere(port int) []netip.AddrPort {
	all := []netip.AddrPort{netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port))}
	if hasIPv6() {
		all = append(all, netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(port)))
	}
	return all
}
