package ignition

import (
	"fmt"
	"strconv"
	"strings"
)

// networkd writes the files of systemd.netdev(5) and systemd.network(5) for a link.
func (r *rendering) networkd(p *port) {
	base := "/etc/systemd/network/10-" + r.own + "-" + p.name
	if text := r.netdev(p); text != "" {
		r.text(base+".netdev", 0, text, p.from)
	}
	var b strings.Builder
	b.WriteString("[Match]\n")
	if p.mac != "" { // the current address of a bond's member is the bond's
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
	}
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
		if !hasAddress(p.l3) {
			b.WriteString("LinkLocalAddressing=no\n")
		}
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
