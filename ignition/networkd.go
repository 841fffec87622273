package ignition

import (
	"fmt"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// networkd writes the files of systemd.netdev(5) and systemd.network(5) for a link.
func (r *rendering) networkd(p *port) {
	base := "/etc/systemd/network/10-" + r.own + "-" + p.name
	if text := r.netdev(p); text != "" {
		r.text(base+".netdev", 0, text, p.from)
	} else if p.tunnel != nil { // it holds keys
		r.file(machineconfig.File{
			Path: base + ".netdev", Mode: 0o640, Group: "systemd-network", Content: machineconfig.Content{Text: tunnelText(p.tunnel)},
		}, p.from, 0)
	}
	var b strings.Builder
	b.WriteString("[Match]\n")
	if p.match != (machineconfig.PortMatch{}) {
		b.WriteString(matchLines(p.match, "Name") + "Type=ether\n")
	} else if p.mac != "" { // the current address of a bond's member is the bond's
		b.WriteString("PermanentMACAddress=" + strings.ToLower(p.mac) + "\n")
	} else {
		b.WriteString("Name=" + p.name + "\n")
	}
	if p.l3.MTU > 0 || p.l3.Optional {
		b.WriteString("\n[Link]\n")
		if p.l3.MTU > 0 {
			b.WriteString("MTUBytes=" + strconv.Itoa(p.l3.MTU) + "\n")
		}
		if p.l3.Optional {
			b.WriteString("RequiredForOnline=no\n")
		}
	}
	b.WriteString("\n[Network]\n")
	r.networkSection(&b, p)
	for _, route := range p.l3.Routes {
		b.WriteString("\n[Route]\nDestination=" + r.line(p.from, route.To) + "\n")
		if route.Via != "" {
			b.WriteString("Gateway=" + r.line(p.from, route.Via) + "\n")
		}
		if route.Metric > 0 {
			b.WriteString("Metric=" + strconv.Itoa(route.Metric) + "\n")
		}
		if route.OnLink {
			b.WriteString("GatewayOnLink=yes\n")
		}
		if route.Table > 0 {
			b.WriteString("Table=" + strconv.Itoa(route.Table) + "\n")
		}
	}
	for _, rule := range p.l3.Rules {
		b.WriteString("\n[RoutingPolicyRule]\nPriority=" + strconv.Itoa(rule.Priority) + "\nTable=" + strconv.Itoa(rule.Table) + "\n")
		for _, f := range []struct{ key, value string }{{"From", rule.From}, {"To", rule.To}} {
			if f.value != "" {
				b.WriteString(f.key + "=" + r.line(p.from, f.value) + "\n")
			}
		}
		if rule.Mark > 0 {
			b.WriteString("FirewallMark=" + strconv.Itoa(rule.Mark) + "\n")
		}
	}
	dhcpSections(&b, p.l3)
	r.text(base+".network", 0, b.String(), p.from)
}

func (r *rendering) networkSection(b *strings.Builder, p *port) {
	switch l := p.l3; {
	case l.DHCP4 && l.DHCP6:
		b.WriteString("DHCP=yes\n")
	case l.DHCP4:
		b.WriteString("DHCP=ipv4\n")
	case l.DHCP6:
		b.WriteString("DHCP=ipv6\n")
	default:
		b.WriteString("DHCP=no\n")
	}
	if p.master != "" {
		if p.isBond {
			b.WriteString("Bond=" + p.master + "\n")
			if p.isPrimary {
				b.WriteString("PrimarySlave=yes\n")
			}
		} else {
			b.WriteString("Bridge=" + p.master + "\n")
		}
		if !hasAddress(p.l3) && p.l3.LinkLocal == "" {
			b.WriteString("LinkLocalAddressing=no\n")
		}
	}
	if l := p.l3.LinkLocal; l != "" {
		b.WriteString("LinkLocalAddressing=" + map[string]string{"none": "no", "both": "yes", "ipv4": "ipv4", "ipv6": "ipv6"}[l] + "\n")
	}
	for _, v := range p.vlans {
		b.WriteString("VLAN=" + v + "\n")
	}
	if ra := p.l3.AcceptRA; ra != nil {
		fmt.Fprintf(b, "IPv6AcceptRA=%t\n", *ra)
	}
	for _, a := range r.lines(p.from, p.l3.Addresses) {
		b.WriteString("Address=" + a + "\n")
	}
	for _, d := range r.lines(p.from, p.l3.DNS) {
		b.WriteString("DNS=" + d + "\n")
	}
	if len(p.l3.Search) > 0 {
		b.WriteString("Domains=" + strings.Join(r.lines(p.from, p.l3.Search), " ") + "\n")
	}
}

// netdev makes the link itself; "" for a port, which exists.
func (r *rendering) netdev(p *port) string {
	head := "[NetDev]\nName=" + p.name + "\nKind=" + p.kind + "\n"
	switch p.kind {
	case "bond":
		text := head + "\n[Bond]\nMode=" + r.line(p.from, p.bond.Mode) + "\n"
		if p.bond.MIIMonMS > 0 {
			text += "MIIMonitorSec=" + strconv.Itoa(p.bond.MIIMonMS) + "ms\n"
		}
		for _, d := range []struct {
			key string
			ms  int
		}{{"UpDelaySec", p.bond.UpDelayMS}, {"DownDelaySec", p.bond.DownDelayMS}, {"ARPIntervalSec", p.bond.ARPIntervalMS}} {
			if d.ms > 0 {
				text += d.key + "=" + strconv.Itoa(d.ms) + "ms\n"
			}
		}
		if len(p.bond.ARPTargets) > 0 {
			text += "ARPIPTargets=" + strings.Join(r.lines(p.from, p.bond.ARPTargets), " ") + "\n"
		}
		if p.bond.MinLinks > 0 {
			text += "MinLinks=" + strconv.Itoa(p.bond.MinLinks) + "\n"
		}
		if p.bond.PrimaryReselect != "" {
			text += "PrimaryReselectPolicy=" + r.line(p.from, p.bond.PrimaryReselect) + "\n"
		}
		if p.bond.LACPRate != "" {
			text += "LACPTransmitRate=" + r.line(p.from, p.bond.LACPRate) + "\n"
		}
		if p.bond.HashPolicy != "" {
			text += "TransmitHashPolicy=" + r.line(p.from, p.bond.HashPolicy) + "\n"
		}
		return text
	case "bridge":
		if p.stp != nil {
			head += fmt.Sprintf("\n[Bridge]\nSTP=%t\n", *p.stp)
		}
		return head
	case "vlan":
		return head + "\n[VLAN]\nId=" + strconv.Itoa(p.id) + "\n"
	}
	return ""
}

// dhcpSections say what is taken of DHCP. A router's advertisements bring routes and servers, too.
func dhcpSections(b *strings.Builder, l machineconfig.L3) {
	d := l.DHCP
	if d == (machineconfig.DHCP{}) {
		return
	}
	common := ""
	if d.UseDNS != nil {
		common += fmt.Sprintf("UseDNS=%t\n", *d.UseDNS)
	}
	if l.DHCP4 {
		b.WriteString("\n[DHCPv4]\n")
		if d.RouteMetric > 0 {
			b.WriteString("RouteMetric=" + strconv.Itoa(d.RouteMetric) + "\n")
		}
		if d.UseRoutes != nil {
			fmt.Fprintf(b, "UseRoutes=%t\n", *d.UseRoutes)
		}
		if d.Identifier != "" {
			b.WriteString("ClientIdentifier=" + d.Identifier + "\n")
		}
		b.WriteString(common)
	}
	if !l.DHCP6 {
		return
	}
	if common != "" {
		b.WriteString("\n[DHCPv6]\n" + common)
	}
	ra := common
	if d.RouteMetric > 0 {
		ra += "RouteMetric=" + strconv.Itoa(d.RouteMetric) + "\n"
	}
	if d.UseRoutes != nil {
		ra += fmt.Sprintf("UseGateway=%t\nUseRoutePrefix=%[1]t\n", *d.UseRoutes)
	}
	if ra != "" {
		b.WriteString("\n[IPv6AcceptRA]\n" + ra)
	}
}

// tunnelText is the netdev of a tunnel. The routes of its peers go into the main table.
func tunnelText(g *machineconfig.WireGuard) string {
	var b strings.Builder
	b.WriteString("[NetDev]\nName=" + g.Name + "\nKind=wireguard\n\n[WireGuard]\nPrivateKey=" + late.Marker(g.PrivateKey) + "\nRouteTable=main\n")
	if g.ListenPort > 0 {
		b.WriteString("ListenPort=" + strconv.Itoa(g.ListenPort) + "\n")
	}
	for _, p := range g.Peers {
		b.WriteString("\n[WireGuardPeer]\nPublicKey=" + p.PublicKey + "\nAllowedIPs=" + strings.Join(p.AllowedIPs, ",") + "\n")
		if p.PresharedKey != "" {
			b.WriteString("PresharedKey=" + late.Marker(p.PresharedKey) + "\n")
		}
		if p.Endpoint != "" {
			b.WriteString("Endpoint=" + p.Endpoint + "\n")
		}
		if p.KeepaliveS > 0 {
			b.WriteString("PersistentKeepalive=" + strconv.Itoa(p.KeepaliveS) + "\n")
		}
	}
	return b.String()
}
