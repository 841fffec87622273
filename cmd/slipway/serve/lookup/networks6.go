package lookup

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
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
	four.Ours, six.Ours = AddressesOf(interfaces), Addresses6Of(interfaces)
	return four, six
}

// Addresses6Of returns all IPv6 addresses of the interfaces but the link-local ones.
func Addresses6Of(interfaces []string) (ours []netip.Addr) {
	for _, name := range interfaces {
		for _, p := range PrefixesOf(name) {
			if p.Addr().Is6() && !p.Addr().IsLinkLocalUnicast() {
				ours = append(ours, p.Addr())
			}
		}
	}
	return ours
}

// Subnets6 returns the IPv6 subnets of an interface: those that name it, and those that one of its addresses is in.
func (n *Networks) Subnets6(iface string) (list []inventory.Subnet) {
	ours := Addresses6Of([]string{iface})
	for _, s := range *n.Six.Load() {
		isHere := slices.ContainsFunc(ours, s.CIDR.Contains)
		if s.Interface == iface || s.Interface == "" && isHere {
			list = append(list, s)
		}
	}
	return list
}

// First6 is the command that makes a subnet of an interface's IPv6 network.
func First6(iface string, own netip.Prefix) string {
	line := fmt.Sprintf("to boot machines over IPv6: slipway subnet create %s-6 --cidr %s --interface %s", SubnetName(iface), own.Masked(), iface)
	if r, ok := highRange(own); ok {
		line += fmt.Sprintf(" --range %s-%s", r.First, r.Last)
	}
	return line
}

// highRange is a range of up to 61,440 addresses of a network, from ::1000 on: low ones are what people give by hand.
func highRange(own netip.Prefix) (r inventory.Range, ok bool) {
	if own.Bits() > 112 {
		return r, false
	}
	b := own.Masked().Addr().As16()
	b[14], b[15] = 0x10, 0
	r.First = netip.AddrFrom16(b)
	b[14], b[15] = 0xff, 0xff
	r.Last = netip.AddrFrom16(b)
	return r, true
}

// StaticIPv6 returns the first IPv6 address of an interface that a person set. An address from a router's advertisement
// does not count, nor one with a prefix longer
// than /120.
func StaticIPv6(iface string) (p netip.Prefix, ok bool) {
	link, err := netlink.LinkByName(iface)
	if err != nil {
		return p, false
	}
	addrs, err := netlink.AddrList(link, netlink.FAMILY_V6)
	if err != nil {
		return p, false
	}
	for _, a := range addrs {
		at, isValid := netip.AddrFromSlice(a.IP)
		bits, _ := a.Mask.Size()
		if isValid && at.IsGlobalUnicast() && a.Flags&unix.IFA_F_PERMANENT != 0 && bits >= 32 && bits <= 120 {
			return netip.PrefixFrom(at, bits), true
		}
	}
	return p, false
}

// hasIPv6 reports whether this machine has IPv6 at all: a kernel without it refuses to listen on it.
func hasIPv6() bool {
	l, err := (&net.ListenConfig{}).ListenPacket(context.Background(), "udp6", "[::1]:0")
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// Everywhere is a port of all addresses, of both families where there are both. Each family has a socket of its own.
func Everywhere(port int) []netip.AddrPort {
	all := []netip.AddrPort{netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port))}
	if hasIPv6() {
		all = append(all, netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(port)))
	}
	return all
}

// SubnetName makes a name out of that of an interface, which may have dots (VLANs), upper case and underscores.
func SubnetName(iface string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, iface)
	if clean = strings.Trim(clean, "-"); clean == "" {
		return "boot"
	}
	return clean
}
