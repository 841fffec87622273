package plain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// Parts of NetworkManager's connections, nm-settings-keyfile(5), which more than one format writes.

// KeyfileIP are lines of the section ipv4 or ipv6: what is taken of DHCP, link-local addresses and policy routes.
func KeyfileIP(l machineconfig.L3, v6 bool) string {
	var b strings.Builder
	d := l.DHCP
	if d.RouteMetric > 0 {
		fmt.Fprintf(&b, "route-metric=%d\n", d.RouteMetric)
	}
	if d.UseDNS != nil {
		fmt.Fprintf(&b, "ignore-auto-dns=%t\n", !*d.UseDNS)
	}
	if d.UseRoutes != nil {
		fmt.Fprintf(&b, "ignore-auto-routes=%t\n", !*d.UseRoutes)
	}
	if d.Identifier != "" && !v6 {
		b.WriteString("dhcp-client-id=" + d.Identifier + "\n")
	}
	if !v6 && l.LinkLocal != "" {
		value := "2" // disabled
		if l.LinkLocal == "ipv4" || l.LinkLocal == "both" {
			value = "3" // enabled
		}
		b.WriteString("link-local=" + value + "\n")
	}
	n := 0
	for _, r := range l.Rules {
		isV6 := strings.Contains(r.From+r.To, ":")
		if r.From+r.To != "" && isV6 != v6 {
			continue
		}
		n++
		from := r.From
		if r.From+r.To == "" {
			from = map[bool]string{false: "0.0.0.0/0", true: "::/0"}[v6]
		}
		r.From = from
		fmt.Fprintf(&b, "routing-rule%d=%s\n", n, ruleWords(r))
	}
	return b.String()
}

// KeyfileHasNoIPv6 reports whether an interface has no IPv6 at all, since it takes no link-local address of it.
func KeyfileHasNoIPv6(l machineconfig.L3) bool {
	if l.LinkLocal != "none" && l.LinkLocal != "ipv4" || l.DHCP6 {
		return false
	}
	return !slices.ContainsFunc(l.Addresses, func(a string) bool { return strings.Contains(a, ":") })
}

// KeyfileRouteOptions is the line of options of a route, "" for none.
func KeyfileRouteOptions(n int, r machineconfig.Route) string {
	var options []string
	if r.OnLink {
		options = append(options, "onlink=true")
	}
	if r.Table > 0 {
		options = append(options, "table="+strconv.Itoa(r.Table))
	}
	if options == nil {
		return ""
	}
	return fmt.Sprintf("route%d_options=%s\n", n, strings.Join(options, ","))
}

// KeyfileMany are the lines of the section connection of one that is for all ports that match.
const KeyfileMany = "multi-connect=3\n"

// KeyfileMatch is the section match, with a blank line before it; "" for a port of its own.
func KeyfileMatch(m machineconfig.PortMatch) string {
	if m == (machineconfig.PortMatch{}) {
		return ""
	}
	text := "\n[match]\n"
	if m.Glob() != "" {
		text += "interface-name=" + m.Glob() + ";\n"
	}
	if m.Driver != "" {
		text += "driver=" + m.Driver + ";\n"
	}
	return text
}

// KeyfileWake is the line of the section ethernet that says what wakes the machine, "" for nothing.
func KeyfileWake(on *bool) string {
	if on == nil {
		return ""
	}
	return "wake-on-lan=" + map[bool]string{true: "64", false: "0"}[*on] + "\n"
}

// BondOptions are options of the kernel's bonding driver besides mode, miimon, lacp_rate, xmit_hash_policy and primary.
func BondOptions(b machineconfig.Bond) []string {
	var out []string
	for _, o := range []struct {
		name  string
		value int
	}{
		{"updelay", b.UpDelayMS}, {"downdelay", b.DownDelayMS}, {"arp_interval", b.ARPIntervalMS}, {"min_links", b.MinLinks},
	} {
		if o.value > 0 {
			out = append(out, o.name+"="+strconv.Itoa(o.value))
		}
	}
	if len(b.ARPTargets) > 0 {
		out = append(out, "arp_ip_target="+strings.Join(b.ARPTargets, ","))
	}
	if b.PrimaryReselect != "" {
		out = append(out, "primary_reselect="+b.PrimaryReselect)
	}
	return out
}

// KeyfileTunnelIPv6 is how a tunnel of WireGuard has IPv6: NetworkManager refuses one that waits for router advertisements.
func KeyfileTunnelIPv6(l machineconfig.L3) string {
	isIPv6 := func(s string) bool { return strings.Contains(s, ":") }
	switch {
	case slices.ContainsFunc(l.Addresses, isIPv6):
		return "manual"
	case slices.ContainsFunc(l.Routes, func(r machineconfig.Route) bool { return isIPv6(r.To) }):
		return "link-local"
	}
	return "disabled"
}

// KeyfileTunnel are the sections of a tunnel of WireGuard, with a blank line before each.
func KeyfileTunnel(g machineconfig.WireGuard) string {
	var b strings.Builder
	b.WriteString("\n[wireguard]\nprivate-key=" + late.Marker(g.PrivateKey) + "\n")
	if g.ListenPort > 0 {
		fmt.Fprintf(&b, "listen-port=%d\n", g.ListenPort)
	}
	if g.MTU > 0 {
		fmt.Fprintf(&b, "mtu=%d\n", g.MTU)
	}
	for _, p := range g.Peers {
		b.WriteString("\n[wireguard-peer." + p.PublicKey + "]\nallowed-ips=" + strings.Join(p.AllowedIPs, ";") + ";\n")
		if p.Endpoint != "" {
			b.WriteString("endpoint=" + p.Endpoint + "\n")
		}
		if p.PresharedKey != "" {
			b.WriteString("preshared-key=" + late.Marker(p.PresharedKey) + "\npreshared-key-flags=0\n")
		}
		if p.KeepaliveS > 0 {
			fmt.Fprintf(&b, "persistent-keepalive=%d\n", p.KeepaliveS)
		}
	}
	return b.String()
}
