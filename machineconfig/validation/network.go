package validation

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

func network(v *checker) {
	n := v.c.Network
	w := &wires{checker: v, links: map[string]*link{}, addrs: map[netip.Addr]string{}, defaults: map[string]string{}}
	for _, i := range n.Interfaces {
		w.add("interfaces", i.Name, i.L3)
		w.links[i.Name].isPattern = i.Match != machineconfig.PortMatch{}
	}
	for _, b := range n.Bonds {
		w.add("bonds", b.Name, b.L3)
	}
	for _, l := range n.VLANs {
		w.add("vlans", l.Name, l.L3)
	}
	for _, b := range n.Bridges {
		w.add("bridges", b.Name, b.L3)
	}
	for _, g := range n.WireGuards {
		w.add("wireguards", g.Name, g.L3)
	}
	w.macs()
	w.bonds()
	w.vlans()
	w.bridges()
	w.matches()
	w.wireguards()
	w.rules()
	for _, l := range w.order {
		w.l3(l)
	}
	w.servers("/network", n.DNS, n.Search)
}

func (w *wires) macs() {
	seen := map[string]string{}
	for _, i := range w.c.Network.Interfaces {
		at := pointer.Add(pointer.Add("/network/interfaces", i.Name), "mac")
		if i.MAC == "" {
			continue
		}
		if other, twice := seen[i.MAC]; twice {
			w.r.Errorf(at, "duplicate", "is the MAC of %s too", shown(other))
		}
		seen[i.MAC] = i.Name
		if i.MAC == machineconfig.BootPort {
			w.r.Errorf(at, "unknown", "stands for the port that the machine boots from, which is not known").
				Hint = "let the machine boot from the network once, or write the MAC"
			continue
		}
		m, err := inventory.ParseMAC(i.MAC)
		switch {
		case err != nil:
			w.invalid(at, "write it as 52:54:00:12:34:56, or boot for the port that the machine boots from", "%s is not a MAC", shown(i.MAC))
		case string(m) != i.MAC:
			w.invalid(at, "write "+string(m), "%s is not in the usual form", shown(i.MAC))
		}
	}
}

var bondModes = []string{"802.3ad", "active-backup", "balance-rr", "balance-xor", "broadcast", "balance-tlb", "balance-alb"}

func (w *wires) bonds() {
	for _, b := range w.c.Network.Bonds {
		at := pointer.Add("/network/bonds", b.Name)
		w.oneOf(pointer.Add(at, "mode"), b.Mode, bondModes...)
		if len(b.Members) == 0 {
			w.r.Errorf(pointer.Add(at, "members"), "missing", "has no member")
		}
		w.members(at, b.Name, b.Members, "interfaces")
		if b.MIIMonMS < 0 || b.MIIMonMS > 60000 {
			w.invalid(pointer.Add(at, "miiMonMS"), "100 is usual", "%d is not a time in ms up to 60000", b.MIIMonMS)
		}
		w.bondWatch(at, b)
		if b.LACPRate != "" && w.oneOf(pointer.Add(at, "lacpRate"), b.LACPRate, "slow", "fast") && b.Mode != "802.3ad" {
			w.r.Errorf(pointer.Add(at, "lacpRate"), "conflict", "has a meaning in mode 802.3ad only")
		}
		if b.HashPolicy != "" && w.oneOf(pointer.Add(at, "hashPolicy"), b.HashPolicy, "layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4", "vlan+srcmac") &&
			!slices.Contains([]string{"802.3ad", "balance-xor", "balance-tlb"}, b.Mode) {
			w.r.Errorf(pointer.Add(at, "hashPolicy"), "conflict", "has no meaning in mode %s", b.Mode)
		}
		if b.Primary != "" && !slices.Contains(b.Members, b.Primary) {
			w.r.Errorf(pointer.Add(at, "primary"), "reference", "%s is not a member", shown(b.Primary))
		} else if b.Primary != "" && !slices.Contains([]string{"active-backup", "balance-tlb", "balance-alb"}, b.Mode) {
			w.r.Errorf(pointer.Add(at, "primary"), "conflict", "has no meaning in mode %s", b.Mode)
		}
	}
}

// members checks that the members of a bond or bridge are there, of the right kind, and belong to it alone.
func (w *wires) members(at, name string, members []string, kinds ...string) {
	w.atMost(pointer.Add(at, "members"), len(members), maxMembers)
	members = members[:min(len(members), maxMembers)]
	for i, m := range members {
		p := at + "/members/" + strconv.Itoa(i)
		l := w.links[m]
		switch {
		case l == nil:
			f := w.r.Errorf(p, "reference", "%s is not there", shown(m))
			f.Hint = "add it under network.interfaces"
			if near := w.near(m, w.names()); near != "" {
				f.Hint = near
			}
		case m == name:
			w.r.Errorf(p, "cycle", "is a member of itself")
		case !slices.Contains(kinds, l.kind):
			w.r.Errorf(p, "reference", "%s cannot be a member: it is one of %s", shown(m), l.kind)
		case l.user != "":
			w.r.Errorf(p, "conflict", "%s is a member of %s already", shown(m), l.user)
		default:
			l.user = name
			if len(l.l3.Addresses)+len(l.l3.Routes) > 0 || l.l3.DHCP4 || l.l3.DHCP6 {
				w.r.Errorf(l.path, "conflict", "has addresses and is a member of %s", name).Hint = "give the addresses to " + name
			}
		}
	}
}

func (w *wires) vlans() {
	seen := map[string]string{}
	for _, l := range w.c.Network.VLANs {
		at := pointer.Add("/network/vlans", l.Name)
		if l.ID < 1 || l.ID > 4094 {
			w.invalid(pointer.Add(at, "id"), "", "%d is not between 1 and 4094", l.ID)
		}
		parent := w.links[l.Parent]
		switch {
		case parent == nil:
			f := w.r.Errorf(pointer.Add(at, "parent"), "reference", "%s is not there", shown(l.Parent))
			f.Hint = "add it under network.interfaces"
			if near := w.near(l.Parent, w.names()); near != "" {
				f.Hint = near
			}
		case parent.kind == "wireguards":
			w.r.Errorf(pointer.Add(at, "parent"), "reference", "%s is a tunnel of WireGuard, which carries no VLANs", shown(l.Parent)).
				Hint = "use an interface, bond or bridge"
		case parent.isPattern:
			w.r.Errorf(pointer.Add(at, "parent"), "reference", "%s stands for every port that matches", shown(l.Parent)).
				Hint = "name one port, by its name or MAC"
		case parent.kind == "vlans":
			w.r.Errorf(pointer.Add(at, "parent"), "reference", "%s is a VLAN itself", shown(l.Parent)).
				Hint = "use an interface, bond or bridge"
		case l.MTU > 0 && parent.l3.MTU > 0 && l.MTU > parent.l3.MTU:
			w.invalid(pointer.Add(at, "mtu"), "raise the MTU of "+l.Parent, "%d is more than its parent's %d", l.MTU, parent.l3.MTU)
		}
		key := l.Parent + "." + strconv.Itoa(l.ID)
		if other, twice := seen[key]; twice {
			w.r.Errorf(pointer.Add(at, "id"), "duplicate", "%d on %s is %s already", l.ID, shown(l.Parent), shown(other))
		}
		seen[key] = l.Name
	}
}

func (w *wires) bridges() {
	for _, b := range w.c.Network.Bridges {
		at := pointer.Add("/network/bridges", b.Name)
		w.members(at, b.Name, b.Members, "interfaces", "bonds", "vlans")
		for i, m := range b.Members[:min(len(b.Members), maxMembers)] {
			for _, l := range w.c.Network.VLANs {
				if l.Name == m && l.Parent == b.Name {
					w.r.Errorf(at+"/members/"+strconv.Itoa(i), "cycle", "%s lies on %s itself", shown(m), shown(b.Name))
				}
			}
		}
	}
}

func (w *wires) l3(l *link) {
	c := l.l3
	w.atMost(pointer.Add(l.path, "addresses"), len(c.Addresses), 256)
	w.atMost(pointer.Add(l.path, "routes"), len(c.Routes), 1024)
	var prefixes []netip.Prefix
	for i, s := range c.Addresses {
		if p, ok := w.address(l.path+"/addresses/"+strconv.Itoa(i), s); ok {
			prefixes = append(prefixes, p)
		}
	}
	if c.MTU != 0 && (c.MTU < 68 || c.MTU > 65535) {
		w.invalid(pointer.Add(l.path, "mtu"), "1500 is usual, 9000 for jumbo frames", "%d is not an MTU", c.MTU)
	} else if c.MTU != 0 && c.MTU < 1280 && slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Addr().Is6() }) {
		w.r.Warnf(pointer.Add(l.path, "mtu"), "conflict", "%d is too small for IPv6, which needs 1280", c.MTU)
	}
	keys := make([]string, 0, len(c.Routes))
	for _, r := range c.Routes {
		keys = append(keys, r.PathKey())
		w.route(l, pointer.Add(pointer.Add(l.path, "routes"), r.PathKey()), r, prefixes)
	}
	w.duplicates(pointer.Add(l.path, "routes"), keys)
	w.dhcp(l)
	w.servers(l.path, c.DNS, c.Search)
}

// address checks an address with its prefix length.
func (w *wires) address(at, s string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		hint := "write it as 192.0.2.10/24 or 2001:db8::10/64"
		if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
			hint = "add the length of the network's prefix: " + s + "/24"
			if a.Is6() {
				hint = "add the length of the network's prefix: " + s + "/64"
			}
		}
		w.invalid(at, hint, "%s is not an address with a prefix length", shown(s))
		return p, false
	}
	a := p.Addr()
	switch {
	case a.Is4In6():
		w.invalid(at, "write "+a.Unmap().String(), "%s is an IPv4 address in IPv6 clothes", s)
	case a.IsUnspecified() || a.IsMulticast() || p.Bits() == 0:
		w.invalid(at, "", "%s is not an address of a machine", s)
	case a.Is4() && p.Bits() < 31 && (p.Masked().Addr() == a || last(p) == a):
		w.invalid(at, "choose one between them", "%s is the first or last address of its network", s)
	case w.addrs[a] != "":
		w.r.Errorf(at, "duplicate", "%s is set at %s too", a, w.addrs[a])
	default:
		w.addrs[a] = at
		return p, true
	}
	return p, false
}

// last returns the last address of an IPv4 network.
func last(p netip.Prefix) netip.Addr {
	a := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		a[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(a)
}

func (w *wires) route(l *link, at string, r machineconfig.Route, prefixes []netip.Prefix) {
	to, err := netip.ParsePrefix(r.To)
	switch {
	case r.To == "default":
		w.invalid(pointer.Add(at, "to"), "write 0.0.0.0/0, or ::/0 for IPv6", "default does not say for which family")
		return
	case err != nil:
		w.invalid(pointer.Add(at, "to"), "write it as 198.51.100.0/24 or 2001:db8::/32", "%s is not a prefix", shown(r.To))
		return
	case to.Masked() != to || to.Addr().Is4In6():
		w.invalid(pointer.Add(at, "to"), "write "+to.Masked().String(), "%s has bits beyond its prefix length", shown(r.To))
		return
	}
	if r.Metric < 0 || r.Metric > 1<<31-1 {
		w.invalid(pointer.Add(at, "metric"), "", "%d is not between 0 and 2147483647", r.Metric)
	}
	w.table(pointer.Add(at, "table"), r.Table)
	if l.kind != "wireguards" || r.Via != "" { // a tunnel has no gateways
		w.gateway(l, pointer.Add(at, "via"), r, to, prefixes)
	}
	if to.Bits() > 0 {
		return
	}
	key := strconv.FormatBool(to.Addr().Is4()) + strconv.Itoa(r.Metric) + "#" + strconv.Itoa(r.Table)
	if other := w.defaults[key]; other != "" {
		w.r.Warnf(at, "two-defaults", "is a second default route with the metric %d; the other is %s", r.Metric, other).
			Hint = "give one of them another metric"
	}
	w.defaults[key] = at
}

// gateway checks where a route leads.
func (w *wires) gateway(l *link, at string, r machineconfig.Route, to netip.Prefix, prefixes []netip.Prefix) {
	via, err := netip.ParseAddr(r.Via)
	switch {
	case r.Via == "":
		w.r.Errorf(at, "missing", "is needed: the address of the gateway")
	case err != nil || via.Zone() != "" || via.IsUnspecified() || via.IsMulticast():
		w.invalid(at, "write an address without a prefix length", "%s is not the address of a gateway", shown(r.Via))
	case via.Is4() != to.Addr().Is4():
		w.invalid(at, "", "%s is not of the same family as %s", r.Via, r.To)
	case slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Addr() == via }):
		w.invalid(at, "", "%s is the machine's own address", r.Via)
	case r.OnLink, via.Is6() && via.IsLinkLocalUnicast(), via.Is4() && l.l3.DHCP4:
	case via.Is6() && (l.l3.DHCP6 || l.l3.AcceptRA != nil && *l.l3.AcceptRA):
	case !slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(via) }):
		w.r.Errorf(at, "unreachable", "%s is in no network of %s", r.Via, shown(l.name)).
			Hint = "correct the gateway or the prefix length, or add onLink: true"
	}
}

// servers checks DNS servers and search domains.
func (w *wires) servers(at string, dns, search []string) {
	for i, s := range dns {
		if a, err := netip.ParseAddr(s); err != nil || a.IsUnspecified() || a.IsMulticast() || a.Zone() != "" {
			w.invalid(at+"/dns/"+strconv.Itoa(i), "write an address such as 192.0.2.53", "%s is not the address of a DNS server", shown(s))
		}
	}
	for i, s := range search {
		w.match(at+"/search/"+strconv.Itoa(i), strings.TrimSuffix(s, "."), domainRE, "a domain", "write it as example.com")
	}
}
