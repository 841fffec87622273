package serve

import (
	"net"
	"net/netip"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web"
)

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
