package serve

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/gopacket/gopacket/macs"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/wire"
)

// listInterfaces lists the machine's network interfaces, those that are served and those that could be.
func listInterfaces(cfg *Config, log *slog.Logger) []wire.Interface {
	found, err := net.Interfaces()
	if err != nil {
		log.Error("interfaces not read", "err", err)
		return nil
	}
	var all []wire.Interface
	for _, i := range found {
		if i.Flags&net.FlagLoopback != 0 {
			continue
		}
		out := wire.Interface{
			Name: i.Name, MAC: inventory.MAC(i.HardwareAddr.String()), IsUp: i.Flags&net.FlagUp != 0,
			IsServed: slices.Contains(cfg.Interfaces, i.Name), Addresses: []netip.Prefix{},
		}
		addrs, _ := i.Addrs() // an interface that went away meanwhile has none
		for _, addr := range addrs {
			p, err := netip.ParsePrefix(addr.String())
			// The answer is for the form that makes a subnet, which offers IPv4 networks only.
			if err != nil || !p.Addr().Is4() {
				continue
			}
			if out.IsServed && out.BootURL == "" {
				out.BootURL = pxe.BaseURL(p.Addr(), cfg.BootPort)
			}
			out.Addresses = append(out.Addresses, p)
		}
		all = append(all, out)
	}
	return all
}

// qemu is the prefix of QEMU's and libvirt's machines, which no registry lists.
const qemu = "52:54:00:"

// vendorOf says who made a network card, by the registered prefix of its MAC; "" when nobody knows.
func vendorOf(m inventory.MAC) string {
	if strings.HasPrefix(string(m), qemu) {
		return "QEMU"
	}
	hw, err := net.ParseMAC(string(m))
	if err != nil {
		return ""
	}
	return inventory.Clean(strings.TrimSuffix(macs.ValidMACPrefixMap[[3]byte(hw[:3])], ","), 64)
}
