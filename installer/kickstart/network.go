package kickstart

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/plain"
	"slipway.dev/slipway/machineconfig/pointer"
)

// network says how the machine is connected: as network commands where these can, which is what people expect in a
// kickstart file, and as NetworkManager's own key files where they cannot.
func (w *writer) network() {
	n := w.c.Network
	host := ""
	if fqdn := w.c.Host.FQDN(); w.c.Host.Hostname != "" {
		host = w.option("/host/hostname", "hostname", fqdn)
	}
	switch {
	case !n.HasLinks() && len(n.WireGuards)+len(n.Search) == 0:
		w.command("network --bootproto=dhcp --device=link --activate --onboot=yes" + host + w.resolvers(n.DNS))
	case w.isSimple():
		w.simple()
		if host != "" {
			w.command("network" + host)
		}
	default:
		w.command("network --bootproto=dhcp --device=link --activate --onboot=yes" + host)
		w.keyfiles()
	}
}

func (w *writer) resolvers(servers []string) string {
	return w.option("/network/dns", "nameserver", strings.Join(servers, ","))
}

// isSimple reports whether network commands can say everything: one address of each family, no route but the default
// ones, and no port that has to be renamed.
func (w *writer) isSimple() bool {
	n := &w.c.Network
	simple := len(n.Search)+len(n.WireGuards) == 0 // only newer releases have an option for search domains
	n.Links(func(_, _ string, l *machineconfig.L3) {
		v4, v6 := families(l.Addresses)
		if len(v4) > 1 || len(v6) > 1 || l.Optional || l.AcceptRA != nil || len(l.Search) > 0 || l.DHCP4 && len(v4) > 0 || l.DHCP6 && len(v6) > 0 {
			simple = false
		}
		if l.DHCP != (machineconfig.DHCP{}) || l.LinkLocal != "" || len(l.Rules) > 0 {
			simple = false
		}
		for _, r := range l.Routes {
			if r.To != "0.0.0.0/0" && r.To != "::/0" || r.Metric != 0 || r.Table != 0 || r.OnLink || r.Via == "" {
				simple = false
			}
		}
	})
	for _, i := range n.Interfaces {
		simple = simple && (i.MAC == "" || !w.isUsed(i.Name)) && i.WakeOnLAN == nil
		simple = simple && (i.Match == machineconfig.PortMatch{} || i.Match == machineconfig.PortMatch{Link: true} && len(n.Interfaces) == 1)
	}
	for _, b := range n.Bonds {
		simple = simple && len(b.ARPTargets) < 2 // whose commas part the options
	}
	for _, b := range n.Bridges {
		// A port that belongs to a bridge is known to Anaconda only when it is a plain interface.
		for _, m := range b.Members {
			simple = simple && !slices.ContainsFunc(n.Bonds, func(b machineconfig.Bond) bool { return b.Name == m }) &&
				!slices.ContainsFunc(n.VLANs, func(v machineconfig.VLAN) bool { return v.Name == m })
		}
	}
	return simple
}

// isUsed reports whether a port is named by something else, so that its own name matters.
func (w *writer) isUsed(name string) bool {
	return w.isMember(name) || slices.ContainsFunc(w.c.Network.VLANs, func(v machineconfig.VLAN) bool { return v.Parent == name })
}

func (w *writer) isMember(name string) bool {
	n := &w.c.Network
	return slices.ContainsFunc(n.Bonds, func(b machineconfig.Bond) bool { return slices.Contains(b.Members, name) }) ||
		slices.ContainsFunc(n.Bridges, func(b machineconfig.Bridge) bool { return slices.Contains(b.Members, name) })
}

func families(addresses []string) (v4, v6 []netip.Prefix) {
	for _, a := range addresses {
		p, err := netip.ParsePrefix(a)
		switch {
		case err != nil: // Validate has refused it
		case p.Addr().Is4():
			v4 = append(v4, p)
		default:
			v6 = append(v6, p)
		}
	}
	return v4, v6
}

// simple writes one network command for each link.
func (w *writer) simple() {
	n := &w.c.Network
	for _, i := range n.Interfaces {
		if w.isMember(i.Name) {
			continue // the bond's or bridge's own line names it
		}
		at := pointer.Of("network", "interfaces", i.Name)
		device := w.option(at, "device", i.Name)
		switch i.MAC {
		case "":
			if i.Match.Link {
				device = " --device=link"
			}
		case "boot":
			device = " --device=bootif"
		default:
			device = w.option(at+"/mac", "device", strings.ToLower(i.MAC)) + " --bindto=mac"
			w.rename(i)
		}
		w.command("network" + device + w.l3(at, &i.L3))
	}
	for _, b := range n.Bonds {
		at := pointer.Of("network", "bonds", b.Name)
		w.command("network" + w.option(at, "device", b.Name) + w.option(at, "bondslaves", strings.Join(b.Members, ",")) +
			w.option(at, "bondopts", strings.Join(bondOptions(b), ",")) + w.l3(at, &b.L3))
	}
	for _, b := range n.Bridges {
		at := pointer.Of("network", "bridges", b.Name)
		stp := ""
		if b.STP != nil {
			stp = " --bridgeopts=stp=" + map[bool]string{true: "yes", false: "no"}[*b.STP]
		}
		w.command("network" + w.option(at, "device", b.Name) + w.option(at, "bridgeslaves", strings.Join(b.Members, ",")) + stp + w.l3(at, &b.L3))
	}
	for _, v := range n.VLANs {
		at := pointer.Of("network", "vlans", v.Name)
		w.command("network" + w.option(at, "device", v.Parent) + " --vlanid=" + strconv.Itoa(v.ID) + w.option(at, "interfacename", v.Name) + w.l3(at, &v.L3))
	}
}

func bondOptions(b machineconfig.Bond) []string {
	opts := []string{"mode=" + b.Mode}
	for _, o := range []struct{ name, value string }{
		{"miimon", number(b.MIIMonMS)}, {"lacp_rate", b.LACPRate}, {"xmit_hash_policy", b.HashPolicy}, {"primary", b.Primary},
	} {
		if o.value != "" {
			opts = append(opts, o.name+"="+o.value)
		}
	}
	return append(opts, plain.BondOptions(b)...)
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// l3 says addresses as options of a network command.
func (w *writer) l3(at string, l *machineconfig.L3) string {
	v4, v6 := families(l.Addresses)
	var b strings.Builder
	switch {
	case len(v4) > 0:
		fmt.Fprintf(&b, " --bootproto=static --ip=%s --netmask=%s", v4[0].Addr(), installer.Netmask(v4[0].Bits()))
	case l.DHCP4:
		b.WriteString(" --bootproto=dhcp")
	default:
		b.WriteString(" --noipv4")
	}
	switch {
	case len(v6) > 0:
		fmt.Fprintf(&b, " --ipv6=%s", v6[0])
	case l.DHCP6:
		b.WriteString(" --ipv6=dhcp")
	default:
		b.WriteString(" --ipv6=auto")
	}
	for _, r := range l.Routes {
		name := "gateway"
		if r.To == "::/0" {
			name = "ipv6gateway"
		}
		b.WriteString(w.option(at+"/routes", name, r.Via))
	}
	dns := slices.Concat(l.DNS, w.c.Network.DNS)
	b.WriteString(w.option(at+"/dns", "nameserver", strings.Join(unique(dns), ",")))
	if l.MTU > 0 {
		b.WriteString(" --mtu=" + strconv.Itoa(l.MTU))
	}
	return b.String() + " --activate --onboot=yes"
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
