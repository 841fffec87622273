package talos

import (
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/machineconfig"
)

// network merges interfaces by the key by which Talos finds them, and replaces name servers and search domains.
func (p *patcher) network() {
	n := p.c.Network
	dns, search := slices.Clone(n.DNS), slices.Clone(n.Search)
	l3 := func(l machineconfig.L3) { dns, search = append(dns, l.DNS...), append(search, l.Search...) }
	for _, i := range n.Interfaces {
		l3(i.L3)
		if !p.isMember(i.Name) || !isPlain(i.L3) {
			p.l3(p.device(i.Name), i.L3, i.Name, "/network/interfaces/"+i.Name, i.MAC == "")
		}
	}
	for _, b := range n.Bonds {
		l3(b.L3)
		p.bond(b)
	}
	for _, b := range n.Bridges {
		l3(b.L3)
		p.bridge(b)
	}
	for _, v := range n.VLANs {
		l3(v.L3)
		p.vlan(v)
	}
	for _, g := range n.WireGuards {
		l3(g.L3)
		p.wireguard(g)
	}
	p.resolvers(unique(dns), unique(search))
}

func unique(all []string) []string {
	var out []string
	for _, s := range all {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// isMember reports whether a bond or bridge has that interface.
func (p *patcher) isMember(name string) bool {
	return slices.ContainsFunc(p.c.Network.Bonds, func(b machineconfig.Bond) bool { return slices.Contains(b.Members, name) }) ||
		slices.ContainsFunc(p.c.Network.Bridges, func(b machineconfig.Bridge) bool { return slices.Contains(b.Members, name) })
}

// isPlain reports whether an interface carries nothing of its own.
func isPlain(l machineconfig.L3) bool {
	return l.MTU == 0 && len(l.Addresses)+len(l.Routes) == 0 && !l.DHCP4 && !l.DHCP6 && l.AcceptRA == nil
}

func (p *patcher) mac(name string) string {
	for _, i := range p.c.Network.Interfaces {
		if i.Name == name {
			return i.MAC
		}
	}
	return ""
}

// device returns the entry of an interface, which is made if there is none.
func (p *patcher) device(name string) *yaml.Node {
	all := p.at(yaml.SequenceNode, "machine", "network", "interfaces")
	mac := p.mac(name)
	if m := p.match(name); m != (machineconfig.PortMatch{}) {
		return p.matched(all, name, m)
	}
	if mac == "boot" {
		f := p.r.Errorf("/network/interfaces/"+name+"/mac", "not-expressible", "Talos cannot tell which port it booted from")
		f.Hint = "write the port's MAC"
	}
	for _, d := range all.Content {
		if mac != "" && strings.EqualFold(scalar(lookup(d, "deviceSelector", "hardwareAddr")), mac) || mac == "" && scalar(lookup(d, "interface")) == name {
			return d
		}
	}
	d := object("interface", text(name))
	if mac != "" {
		d = object("deviceSelector", object("hardwareAddr", text(mac)))
	}
	all.Content = append(all.Content, d)
	return d
}

// l3 writes addresses and routes. Devices and VLANs have the same keys for them.
func (p *patcher) l3(d *yaml.Node, l machineconfig.L3, name, at string, isNamed bool) {
	if len(l.Addresses) > 0 {
		put(d, "addresses", texts(l.Addresses))
	}
	if l.MTU > 0 {
		put(d, "mtu", integer(l.MTU))
	}
	put(d, "dhcp", boolean(l.DHCP4 || l.DHCP6))
	if l.DHCP6 || l.DHCP4 {
		options := object("ipv4", boolean(l.DHCP4), "ipv6", boolean(l.DHCP6))
		if l.DHCP.RouteMetric > 0 {
			put(options, "routeMetric", integer(l.DHCP.RouteMetric))
		}
		put(d, "dhcpOptions", options)
	}
	for key, isSet := range map[string]bool{"useDNS": l.DHCP.UseDNS != nil, "useRoutes": l.DHCP.UseRoutes != nil, "identifier": l.DHCP.Identifier != ""} {
		if isSet {
			p.r.Errorf(at+"/dhcp/"+key, "not-expressible", "Talos takes all that DHCP says").Hint = "leave it out, or write a document of Talos"
		}
	}
	if l.LinkLocal != "" {
		p.r.Errorf(at+"/linkLocal", "not-expressible", "Talos has no choice of link-local addresses").Hint = "leave it out"
	}
	if l.AcceptRA != nil && !*l.AcceptRA {
		if isNamed {
			put(p.at(yaml.MappingNode, "machine", "sysctls"), "net.ipv6.conf."+name+".accept_ra", text("0"))
		} else {
			p.r.Errorf(at+"/acceptRA", "not-expressible", "Talos needs the interface's name to refuse router advertisements").
				Hint = "find the interface by name instead of MAC, or set the sysctl net.ipv6.conf.default.accept_ra"
		}
	}
	p.routes(d, l.Routes)
}

func (p *patcher) routes(d *yaml.Node, routes []machineconfig.Route) {
	if len(routes) == 0 {
		return
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, r := range routes {
		via, err := netip.ParseAddr(r.Via)
		if r.OnLink && err == nil { // a route to the gateway itself makes it reachable
			list.Content = append(list.Content, object("network", text(netip.PrefixFrom(via, via.BitLen()).String())))
		}
		n := object("network", text(r.To))
		if r.Via != "" {
			put(n, "gateway", text(r.Via))
		}
		if r.Metric > 0 {
			put(n, "metric", integer(r.Metric))
		}
		list.Content = append(list.Content, n)
	}
	put(d, "routes", list)
}

func (p *patcher) bond(b machineconfig.Bond) {
	at := "/network/bonds/" + b.Name
	n := &yaml.Node{Kind: yaml.MappingNode}
	var names []string
	selectors := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, m := range b.Members {
		if mac := p.mac(m); mac != "" {
			selectors.Content = append(selectors.Content, object("hardwareAddr", text(mac)))
		} else {
			names = append(names, m)
		}
	}
	switch {
	case len(names) > 0 && len(selectors.Content) > 0:
		p.r.Errorf(at+"/members", "not-expressible", "Talos finds the members of a bond by MAC or by name, not both").
			Hint = "give all of them a MAC, or none"
	case len(names) > 0:
		put(n, "interfaces", texts(names))
	default:
		put(n, "deviceSelectors", selectors)
	}
	for _, f := range []struct{ key, value string }{
		{"mode", b.Mode}, {"xmitHashPolicy", b.HashPolicy}, {"lacpRate", b.LACPRate}, {"primary", b.Primary},
	} {
		if f.value != "" {
			put(n, f.key, text(f.value))
		}
	}
	if b.Primary != "" && p.mac(b.Primary) != "" {
		p.r.Errorf(at+"/primary", "not-expressible", "Talos names the primary member of a bond, and keeps its own names for interfaces found by MAC").
			Hint = "find the members by name"
	}
	for _, f := range []struct {
		key   string
		value int
	}{
		{"miimon", b.MIIMonMS}, {"updelay", b.UpDelayMS}, {"downdelay", b.DownDelayMS}, {"arpInterval", b.ARPIntervalMS}, {"minLinks", b.MinLinks},
	} {
		if f.value > 0 {
			put(n, f.key, integer(f.value))
		}
	}
	if b.PrimaryReselect != "" {
		put(n, "primaryReselect", text(b.PrimaryReselect))
	}
	if len(b.ARPTargets) > 0 {
		put(n, "arpIPTarget", texts(b.ARPTargets))
	}
	d := p.device(b.Name)
	put(d, "bond", n)
	p.l3(d, b.L3, b.Name, at, true)
}

func (p *patcher) bridge(b machineconfig.Bridge) {
	at := "/network/bridges/" + b.Name
	var names []string
	for _, m := range b.Members {
		if p.mac(m) != "" {
			p.r.Errorf(at+"/members", "not-expressible", "Talos names the members of a bridge, and keeps its own names for interfaces found by MAC").
				Hint = "find " + m + " by name"
		}
		names = append(names, p.vlanName(m))
	}
	n := object("interfaces", texts(names))
	if b.STP != nil {
		put(n, "stp", object("enabled", boolean(*b.STP)))
	}
	d := p.device(b.Name)
	put(d, "bridge", n)
	p.l3(d, b.L3, b.Name, at, true)
}

// vlanName is what Talos calls a VLAN of ours; other names stay.
func (p *patcher) vlanName(name string) string {
	for _, v := range p.c.Network.VLANs {
		if v.Name == name {
			return v.Parent + "." + integer(v.ID).Value
		}
	}
	return name
}

func (p *patcher) vlan(v machineconfig.VLAN) {
	at := "/network/vlans/" + v.Name
	if p.mac(v.Parent) != "" && p.isMember(v.Name) {
		p.r.Errorf(at, "not-expressible", "Talos names this VLAN after an interface whose name only it knows").Hint = "find " + v.Parent + " by name"
	}
	parent := p.device(v.Parent)
	all, err := child(parent, "vlans", yaml.SequenceNode)
	if err != nil {
		p.r.Errorf(at, "invalid", "the machine configuration cannot be merged into: %v", err)
		return
	}
	n := object("vlanId", integer(v.ID))
	i := slices.IndexFunc(all.Content, func(c *yaml.Node) bool { return scalar(lookup(c, "vlanId")) == integer(v.ID).Value })
	if i >= 0 {
		n = all.Content[i]
	} else {
		all.Content = append(all.Content, n)
	}
	p.l3(n, v.L3, p.vlanName(v.Name), at, p.mac(v.Parent) == "")
}

// resolvers go into the document that rules them: Talos refuses two.
func (p *patcher) resolvers(dns, search []string) {
	doc := p.docs.kind("ResolverConfig")
	if len(dns) > 0 && doc == nil {
		put(p.at(yaml.MappingNode, "machine", "network"), "nameservers", texts(dns))
	}
	if len(dns) > 0 && doc != nil {
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, a := range dns {
			list.Content = append(list.Content, object("address", text(a)))
		}
		put(doc, "nameservers", list)
	}
	if len(search) > 0 && doc == nil {
		put(p.at(yaml.MappingNode, "machine", "network"), "searchDomains", texts(search))
	}
	if len(search) > 0 && doc != nil {
		put(p.in(doc, "searchDomains"), "domains", texts(search))
	}
}
