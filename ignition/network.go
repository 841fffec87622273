package ignition

import (
	"slices"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

// link is a network link with all that others say about it.
type port struct {
	name, kind, from string // kind: ethernet, bond, bridge or vlan
	mac              string
	master           string // bond or bridge that it is a member of
	isBond           bool   // the master is a bond
	isPrimary        bool
	parent           string // of a VLAN
	id               int
	bond             *machineconfig.Bond
	stp              *bool
	vlans            []string // VLANs on it
	l3               machineconfig.L3

	match  machineconfig.PortMatch
	wol    *bool
	tunnel *machineconfig.WireGuard
}

// ports lists all links: those that the configuration names, then members and parents that it only refers to.
func (r *rendering) ports() []*port {
	var list []*port
	add := func(p *port) {
		r.line(p.from, p.name)
		list = append(list, p)
	}
	n := r.c.Network
	for _, i := range n.Interfaces {
		add(&port{name: i.Name, kind: "ethernet", mac: i.MAC, match: i.Match, wol: i.WakeOnLAN, l3: i.L3, from: pointer.Of("network", "interfaces", i.Name)})
	}
	for _, b := range n.Bonds {
		add(&port{name: b.Name, kind: "bond", bond: &b, l3: b.L3, from: pointer.Of("network", "bonds", b.Name)})
	}
	for _, b := range n.Bridges {
		add(&port{name: b.Name, kind: "bridge", stp: b.STP, l3: b.L3, from: pointer.Of("network", "bridges", b.Name)})
	}
	for _, v := range n.VLANs {
		add(&port{name: v.Name, kind: "vlan", parent: v.Parent, id: v.ID, l3: v.L3, from: pointer.Of("network", "vlans", v.Name)})
	}
	for _, g := range n.WireGuards {
		add(&port{name: g.Name, kind: "wireguard", tunnel: &g, l3: g.L3, from: pointer.Of("network", "wireguards", g.Name)})
	}
	find := func(name, from string) *port {
		if i := slices.IndexFunc(list, func(p *port) bool { return p.name == name }); i >= 0 {
			return list[i]
		}
		add(&port{name: name, kind: "ethernet", from: from})
		return list[len(list)-1]
	}
	for _, b := range n.Bonds {
		for _, m := range b.Members {
			p := find(m, pointer.Of("network", "bonds", b.Name))
			p.master, p.isBond, p.isPrimary = b.Name, true, b.Primary == m
		}
	}
	for _, b := range n.Bridges {
		for _, m := range b.Members {
			find(m, pointer.Of("network", "bridges", b.Name)).master = b.Name
		}
	}
	for _, v := range n.VLANs {
		p := find(v.Parent, pointer.Of("network", "vlans", v.Name))
		p.vlans = append(p.vlans, v.Name)
	}
	return list
}

// network writes what the running system's network service reads. The initramfs has its own, from kernel arguments.
func (r *rendering) network() {
	n := r.c.Network
	if n.IsZero() {
		return
	}
	ports := r.ports()
	for _, p := range ports {
		if p.mac == "boot" {
			r.report.Errorf(p.from, "unknown-mac", "the port that the machine boots from is not known").Hint = "boot the machine once, or give the MAC address"
			continue
		}
		if text := linkFile(p); text != "" {
			r.text("/etc/systemd/network/10-"+r.own+"-"+p.name+".link", 0, text, p.from)
		}
		if r.os.isNM {
			r.keyfile(p)
		} else {
			r.networkd(p)
		}
	}
	r.dns(ports)
	r.waitForAny(ports)
	if !r.os.isNM && len(ports) > 0 && !r.os.isOneOf(variantFlatcar) {
		r.osUnit("systemd-networkd.service", true, "/network/interfaces")
		r.osUnit("systemd-resolved.service", true, "/network/interfaces")
	}
}

// linkFile is what udev does with a port: its name, and what wakes it. "" for nothing.
func linkFile(p *port) string {
	match, link := "", ""
	switch {
	case p.mac != "":
		match = "PermanentMACAddress=" + strings.ToLower(p.mac) + "\n"
		link = "Name=" + p.name + "\n"
	case p.match != (machineconfig.PortMatch{}):
		match = matchLines(p.match, "OriginalName")
	default:
		match = "OriginalName=" + p.name + "\n"
	}
	if p.wol != nil {
		link += "WakeOnLan=" + map[bool]string{true: "magic", false: "off"}[*p.wol] + "\n"
		if p.mac == "" { // the policies of systemd's own file, which this one takes the place of
			link = "NamePolicy=keep kernel database onboard slot path\nMACAddressPolicy=persistent\n" + link
		}
	}
	if link == "" {
		return ""
	}
	return "[Match]\n" + match + "\n[Link]\n" + link
}

// matchLines are the lines of a section Match of systemd.
func matchLines(m machineconfig.PortMatch, name string) string {
	text := ""
	if m.Glob() != "" {
		text += name + "=" + m.Glob() + "\n"
	}
	if m.Driver != "" {
		text += "Driver=" + m.Driver + "\n"
	}
	return text
}

// waitForAny lets the boot go on as soon as one port is online, where an interface stands for several.
func (r *rendering) waitForAny(ports []*port) {
	const name = "systemd-networkd-wait-online.service"
	if r.os.isNM || !slices.ContainsFunc(ports, func(p *port) bool { return p.match != (machineconfig.PortMatch{}) }) {
		return
	}
	for _, u := range r.c.Units {
		if u.Name == name {
			return
		}
	}
	r.unitFrom(unit{Name: name, DropIns: []dropIn{{
		Name: "10-" + r.own + ".conf", Contents: "[Service]\nExecStart=\nExecStart=/usr/lib/systemd/systemd-networkd-wait-online --any\n",
	}}}, "/network/interfaces")
}

// dns writes servers and search domains of the whole machine. NetworkManager has none besides those of connections,
// but for a global setting that overrides them all: it is used only when no connection is ours.
func (r *rendering) dns(ports []*port) {
	const from = "/network/dns"
	servers, search := r.lines(from, r.c.Network.DNS), r.lines(from, r.c.Network.Search)
	switch {
	case len(servers)+len(search) == 0:
	case !r.os.isNM:
		text := "[Resolve]\n"
		if len(servers) > 0 {
			text += "DNS=" + strings.Join(servers, " ") + "\n"
		}
		if len(search) > 0 {
			text += "Domains=" + strings.Join(search, " ") + "\n"
		}
		r.text("/etc/systemd/resolved.conf.d/10-"+r.own+".conf", 0, text, from)
	case !slices.ContainsFunc(ports, func(p *port) bool { return hasAddress(p.l3) }):
		text := "[global-dns]\n"
		if len(search) > 0 {
			text += "searches=" + strings.Join(search, ",") + "\n"
		}
		if len(servers) > 0 {
			text += "\n[global-dns-domain-*]\nservers=" + strings.Join(servers, ",") + "\n"
		}
		r.text("/etc/NetworkManager/conf.d/10-"+r.own+"-dns.conf", 0, text, from)
	}
}

func hasAddress(l machineconfig.L3) bool { return l.DHCP4 || l.DHCP6 || len(l.Addresses) > 0 }

// isIPv6 tells the families of addresses, prefixes and servers apart.
func isIPv6(s string) bool { return strings.Contains(s, ":") }
