package preseed

import (
	"net/netip"
	"strings"

	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig"
)

// network says what the installer itself uses: the port that the machine booted from, with DHCP, or with the static
// address of the only interface when the file comes with the initrd, for else the network is up before it is read. The
// installed system's network is cloud-init's.
func (w *writer) network() {
	w.comment("Network of the installer")
	h, n := w.c.Host, w.c.Network
	w.answer("", "netcfg/choose_interface", "select", "auto")
	if h.Hostname != "" {
		w.answer("/host/hostname", "netcfg/get_hostname", "string", h.Hostname)
		w.answer("/host/hostname", "netcfg/hostname", "string", h.Hostname)
	}
	if h.Domain != "" { // an empty answer would win over what DHCP says
		w.answer("/host/domain", "netcfg/get_domain", "string", h.Domain)
	}
	if w.t.InitrdPath == "" || len(n.Interfaces) != 1 || len(n.Bonds)+len(n.VLANs)+len(n.Bridges) > 0 {
		return
	}
	i := n.Interfaces[0]
	if i.DHCP4 || len(i.Addresses) == 0 {
		return
	}
	address, err := netip.ParsePrefix(i.Addresses[0])
	if err != nil || !address.Addr().Is4() {
		return
	}
	gateway := ""
	for _, r := range i.Routes {
		if r.To == "0.0.0.0/0" && gateway == "" {
			gateway = r.Via
		}
	}
	at := "/network/interfaces/" + i.Name
	w.answer("", "netcfg/disable_autoconfig", "boolean", "true")
	w.answer(at, "netcfg/get_ipaddress", "string", address.Addr().String())
	w.answer(at, "netcfg/get_netmask", "string", installer.Netmask(address.Bits()))
	w.answer(at+"/routes", "netcfg/get_gateway", "string", gateway)
	w.answer(at+"/dns", "netcfg/get_nameservers", "string", strings.Join(resolvers(n, i), " "))
	w.answer("", "netcfg/confirm_static", "boolean", "true")
}

// resolvers are the first three name servers, as many as a resolver reads.
func resolvers(n machineconfig.Network, i machineconfig.Interface) []string {
	var out []string
	for _, s := range append(append([]string{}, i.DNS...), n.DNS...) {
		if len(out) < 3 {
			out = append(out, s)
		}
	}
	return out
}
