package serve

import (
	"net"
	"net/netip"
	"slices"
	"sync"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/door"
	"slipway.dev/slipway/web"
)

// remembered are the addresses that interfaces had when they could be looked at last.
var remembered struct {
	sync.Mutex
	of map[string][]netip.Prefix
}

// prefixesOf returns the addresses of an interface with their networks. While no file descriptor is left to ask with, they are
// those of before: that nobody could ask does not mean that they are gone.
func prefixesOf(name string) (all []netip.Prefix) {
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

// interfaces lists the machine's network interfaces, those that are served and those that could be.
func (a *appliance) interfaces() []web.Interface {
	found, err := net.Interfaces()
	if err != nil {
		a.log.Error("interfaces not read", "err", err)
		return nil
	}
	var all []web.Interface
	for _, i := range found {
		if i.Flags&net.FlagLoopback != 0 {
			continue
		}
		out := web.Interface{
			Name: i.Name, MAC: inventory.MAC(i.HardwareAddr.String()), IsUp: i.Flags&net.FlagUp != 0,
			IsServed: slices.Contains(a.cfg.Interfaces, i.Name), Addresses: []netip.Prefix{},
		}
		addrs, _ := i.Addrs() // an interface that went away meanwhile has none
		for _, addr := range addrs {
			p, err := netip.ParsePrefix(addr.String())
			if err != nil || !p.Addr().Is4() {
				continue
			}
			if out.IsServed && out.BootURL == "" {
				out.BootURL = pxe.BaseURL(p.Addr(), a.cfg.BootPort)
			}
			out.Addresses = append(out.Addresses, p)
		}
		all = append(all, out)
	}
	return all
}
