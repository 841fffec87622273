package lookup

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/door"
)

// remembered are the addresses that interfaces had when they could be read last.
var remembered struct {
	sync.Mutex
	of map[string][]netip.Prefix
}

// PrefixesOf returns the addresses of an interface with their networks. While no file descriptor is left to ask with, they are
// those of before: that nobody could ask does not mean that they are gone.
func PrefixesOf(name string) (all []netip.Prefix) {
	i, err := net.InterfaceByName(name)
	var addrs []net.Addr
	if err == nil {
		addrs, err = i.Addrs()
	}
	remembered.Lock()
	defer remembered.Unlock()
	if door.IsOutOfFiles(err) {
		return remembered.of[name]
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, p)
		}
	}
	if remembered.of == nil {
		remembered.of = map[string][]netip.Prefix{}
	}
	remembered.of[name] = all
	return all
}

// hasLink reports whether the other end of an interface is there. One that cannot be looked at counts as such: nobody knows that it is not.
func hasLink(name string) bool {
	i, err := net.InterfaceByName(name)
	return err != nil || i.Flags&net.FlagRunning != 0
}

// AddressesOf returns all IPv4 addresses of the interfaces.
func AddressesOf(interfaces []string) (ours []netip.Addr) {
	for _, name := range interfaces {
		for _, p := range PrefixesOf(name) {
			if p.Addr().Is4() {
				ours = append(ours, p.Addr())
			}
		}
	}
	return ours
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
func SubnetName(iface string) string { return inventory.NameFrom(iface, "boot") }

// Links returns where other instances reach a listener: at the host of listen, or at all addresses of this machine if it names none.
func Links(listen string) (links []string) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil
	}
	if at, err := netip.ParseAddr(host); host != "" && (err != nil || !at.IsUnspecified()) {
		return []string{listen}
	}
	all, _ := net.InterfaceAddrs() // without any, nobody reaches this machine
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().IsGlobalUnicast() {
			links = append(links, net.JoinHostPort(p.Addr().Unmap().String(), port))
		}
	}
	return links
}
