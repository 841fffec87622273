package ignition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/plain"
)

// keyfile writes NetworkManager's connection of a link, nm-settings-keyfile(5).
func (r *rendering) keyfile(p *port) {
	var b strings.Builder
	b.WriteString("[connection]\nid=" + p.name + "\ntype=" + p.kind + "\n")
	if p.match != (machineconfig.PortMatch{}) {
		b.WriteString(plain.KeyfileMany)
	} else if p.mac == "" { // with a MAC address it is found by that, renamed or not
		b.WriteString("interface-name=" + p.name + "\n")
	}
	if p.master != "" {
		kind := "bridge"
		if p.isBond {
			kind = "bond"
		}
		b.WriteString("master=" + p.master + "\nslave-type=" + kind + "\n")
	}
	wake := plain.KeyfileWake(p.wol)
	if p.mac != "" || p.l3.MTU > 0 && p.tunnel == nil || wake != "" {
		b.WriteString("\n[ethernet]\n")
		if p.mac != "" {
			b.WriteString("mac-address=" + strings.ToUpper(p.mac) + "\n")
		}
		if p.l3.MTU > 0 {
			b.WriteString("mtu=" + strconv.Itoa(p.l3.MTU) + "\n")
		}
		b.WriteString(wake)
	}
	b.WriteString(plain.KeyfileMatch(p.match))
	r.keyfileKind(&b, p)
	if p.master == "" || hasAddress(p.l3) {
		r.keyfileIP(&b, p, false)
		r.keyfileIP(&b, p, true)
	}
	r.text("/etc/NetworkManager/system-connections/"+p.name+".nmconnection", 0o600, b.String(), p.from)
}

func (r *rendering) keyfileKind(b *strings.Builder, p *port) {
	switch p.kind {
	case "bond":
		b.WriteString("\n[bond]\nmode=" + r.line(p.from, p.bond.Mode) + "\n")
		if p.bond.MIIMonMS > 0 {
			b.WriteString("miimon=" + strconv.Itoa(p.bond.MIIMonMS) + "\n")
		}
		if p.bond.LACPRate != "" {
			b.WriteString("lacp_rate=" + r.line(p.from, p.bond.LACPRate) + "\n")
		}
		if p.bond.HashPolicy != "" {
			b.WriteString("xmit_hash_policy=" + r.line(p.from, p.bond.HashPolicy) + "\n")
		}
		if p.bond.Primary != "" {
			b.WriteString("primary=" + r.line(p.from, p.bond.Primary) + "\n")
		}
		for _, o := range plain.BondOptions(*p.bond) {
			b.WriteString(r.line(p.from, o) + "\n")
		}
	case "wireguard":
		b.WriteString(plain.KeyfileTunnel(*p.tunnel))
	case "bridge":
		b.WriteString("\n[bridge]\n")
		if p.stp != nil {
			fmt.Fprintf(b, "stp=%t\n", *p.stp)
		}
	case "vlan":
		fmt.Fprintf(b, "\n[vlan]\nid=%d\nparent=%s\nflags=1\n", p.id, p.parent)
	}
}

// keyfileIP writes one family's addresses, routes and servers.
func (r *rendering) keyfileIP(b *strings.Builder, p *port, v6 bool) {
	ours := func(list []string) []string {
		return slices.DeleteFunc(r.lines(p.from, list), func(s string) bool { return isIPv6(s) != v6 })
	}
	addrs := ours(p.l3.Addresses)
	section, method := "ipv4", method4(p.l3, addrs)
	if v6 {
		section, method = "ipv6", method6(p.l3, addrs)
		if p.tunnel != nil {
			method = plain.KeyfileTunnelIPv6(p.l3)
		} else if plain.KeyfileHasNoIPv6(p.l3) {
			method = "disabled"
		}
	}
	fmt.Fprintf(b, "\n[%s]\nmethod=%s\n", section, method)
	for i, a := range addrs {
		fmt.Fprintf(b, "address%d=%s\n", i+1, a)
	}
	n := 0
	for _, route := range p.l3.Routes {
		if isIPv6(route.To) != v6 {
			continue
		}
		n++
		b.WriteString(r.keyfileRoute(n, route, v6, p.from))
	}
	if method == "disabled" && v6 {
		return
	}
	b.WriteString(plain.KeyfileIP(p.l3, v6))
	if method == "disabled" || method == "link-local" {
		return
	}
	dns, search := ours(p.l3.DNS), r.lines(p.from, p.l3.Search)
	if hasAddress(p.l3) {
		dns = append(dns, ours(r.c.Network.DNS)...)
		search = append(search, r.lines("/network/dns", r.c.Network.Search)...)
	}
	if len(dns) > 0 {
		b.WriteString("dns=" + strings.Join(dns, ";") + ";\n")
	}
	if len(search) > 0 {
		b.WriteString("dns-search=" + strings.Join(search, ";") + ";\n")
	}
}

func method4(l machineconfig.L3, addrs []string) string {
	switch {
	case l.DHCP4:
		return "auto"
	case len(addrs) > 0:
		return "manual"
	}
	return "disabled"
}

// method6 follows what the kernel and systemd do by default: without a word, router advertisements are taken.
func method6(l machineconfig.L3, addrs []string) string {
	refuses := l.AcceptRA != nil && !*l.AcceptRA
	switch {
	case l.DHCP6 && refuses:
		return "dhcp"
	case !refuses:
		return "auto"
	case len(addrs) > 0:
		return "manual"
	}
	return "link-local"
}

func (r *rendering) keyfileRoute(n int, route machineconfig.Route, v6 bool, from string) string {
	text := fmt.Sprintf("route%d=%s", n, r.line(from, route.To))
	via := r.line(from, route.Via)
	if via == "" && route.Metric > 0 {
		via = "0.0.0.0"
		if v6 {
			via = "::"
		}
	}
	if via != "" {
		text += "," + via
	}
	if route.Metric > 0 {
		text += "," + strconv.Itoa(route.Metric)
	}
	return text + "\n" + plain.KeyfileRouteOptions(n, route)
}
