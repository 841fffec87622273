package cloudinit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// maxNetworkArg is the most bytes that the network may take of the kernel's arguments, of which there are about 2,000.
const maxNetworkArg = 1000

// NetworkConfig returns the network in version 2 of cloud-init's format under the key network, which netplan reads as well.
// Without any interface it is a comment. cloud-init then asks DHCP, while an empty mapping of interfaces would leave the
// machine without a network.
func NetworkConfig(t machineconfig.Target, c *machineconfig.Config) ([]byte, machineconfig.Report) {
	o, r := networkV2(t, c)
	if o == nil || r.HasErrors() {
		return []byte("# no interface is configured: the system's default stands, which is DHCP\n"), r
	}
	return block(object{{"network", o}}), r
}

// networkArg returns the network as an argument of the kernel, "" if there is nothing to say.
func networkArg(t machineconfig.Target, c *machineconfig.Config) string {
	o, r := networkV2(t, c)
	if o == nil || r.HasErrors() {
		return ""
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write([]byte(flow(o)))                       // a buffer takes everything
	_ = z.Close()
	return "network-config=" + base64.StdEncoding.EncodeToString(b.Bytes())
}

func networkV2(t machineconfig.Target, c *machineconfig.Config) (object, machineconfig.Report) {
	n := c.Network
	var r machineconfig.Report
	if !n.HasLinks() {
		if len(n.DNS)+len(n.Search) > 0 {
			r.Errorf("/network/dns", "not-expressible", "names DNS servers for no interface, which cloud-init cannot say").
				Hint = "name the interfaces under network.interfaces, or give the servers by DHCP"
		}
		return nil, r
	}
	checkNetwork(&r, t, n)
	w := networkWriter{global: n}
	for _, i := range n.Interfaces {
		w.ethernets = append(w.ethernets, entry{i.Name, w.ethernet(i)})
	}
	for _, b := range n.Bonds {
		w.bonds = append(w.bonds, entry{b.Name, w.bond(b)})
	}
	for _, b := range n.Bridges {
		w.bridges = append(w.bridges, entry{b.Name, w.bridge(b)})
	}
	for _, v := range n.VLANs {
		o := object{{"id", v.ID}, {"link", v.Parent}}
		w.vlans = append(w.vlans, entry{v.Name, w.l3(o, v.L3, false)})
	}
	w.declareMembers()
	o := object{{"version", 2}}.with("ethernets", w.ethernets).with("bonds", w.bonds).with("bridges", w.bridges).with("vlans", w.vlans)
	if late.HasMarker(flow(o)) {
		r.Errorf("/network", "late-value", "holds a secret or another value that is known only at boot").
			Hint = "the network has to be known when the configuration is rendered: write the value itself"
		return nil, r
	}
	return o, r
}

// checkNetwork finds what the machine could not make of the network.
func checkNetwork(r *machineconfig.Report, t machineconfig.Target, n machineconfig.Network) {
	for _, i := range n.Interfaces {
		if i.MAC == "boot" {
			r.Errorf(pointer.Of("network", "interfaces", i.Name), "boot-mac", "stands for the port that the machine booted from, which is not known").
				Hint = "boot the host once so that its ports are known, or write the MAC address"
		}
	}
	for _, i := range n.Interfaces {
		for _, route := range i.Routes {
			if route.OnLink && rendererOf(t) != "netplan" {
				r.Warnf(pointer.Of("network", "interfaces", i.Name), "on-link", "has a gateway outside of its networks, which cloud-init says with netplan only").
					Hint = "add a route to the gateway itself"
			}
		}
	}
	for _, v := range n.VLANs {
		if id := strconv.Itoa(v.ID); rendererOf(t) == "sysconfig" && v.Name != v.Parent+"."+id && v.Name != "vlan"+id {
			r.Errorf(pointer.Of("network", "vlans", v.Name), "vlan-name", "has a name without its number, from which %s takes it", t).
				Hint = "name it " + v.Parent + "." + id + " or vlan" + id
		}
	}
	for _, b := range n.Bonds {
		if len(b.ARPTargets) > 0 && rendererOf(t) != "netplan" { // cloud-init ends with a KeyError, and there is no network
			r.Errorf(pointer.Of("network", "bonds", b.Name)+"/arpTargets", "not-expressible", "cloud-init says targets of ARP to netplan only").
				Hint = "watch the links with miiMonMS, or use an image of Debian or Ubuntu"
		}
	}
	if rendererOf(t) != "networkd" || has(t, networkdVirtual) {
		return
	}
	const hint = "use an image with netplan, or write the .netdev files under files"
	for _, b := range n.Bonds {
		r.Errorf(pointer.Of("network", "bonds", b.Name), "not-expressible", "cloud-init does not create bonds with systemd-networkd on %s", t).Hint = hint
	}
	for _, b := range n.Bridges {
		r.Errorf(pointer.Of("network", "bridges", b.Name), "not-expressible", "cloud-init does not create bridges with systemd-networkd on %s", t).Hint = hint
	}
	for _, v := range n.VLANs {
		r.Errorf(pointer.Of("network", "vlans", v.Name), "not-expressible", "cloud-init does not create VLANs with systemd-networkd on %s", t).Hint = hint
	}
}

type networkWriter struct {
	global                           machineconfig.Network
	ethernets, bonds, bridges, vlans object
}

func (w *networkWriter) ethernet(i machineconfig.Interface) object {
	var o object
	if i.MAC != "" {
		// The id is the name: some renderers name a bond's members by the one, some by the other.
		o = object{{"match", object{{"macaddress", quoted(strings.ToLower(i.MAC))}}}, {"set-name", i.Name}}
	}
	if m := i.Match; m != (machineconfig.PortMatch{}) {
		match := object{}
		if m.Glob() != "" {
			match = append(match, entry{"name", quoted(m.Glob())})
		}
		if m.Driver != "" {
			match = append(match, entry{"driver", quoted(m.Driver)})
		}
		o = append(o, entry{"match", match})
		i.Optional = i.Optional || m.Link // a port without a link is not waited for
	}
	if i.WakeOnLAN != nil {
		o = append(o, entry{"wakeonlan", *i.WakeOnLAN})
	}
	return w.l3(o, i.L3, w.isMember(i.Name))
}

// isMember reports whether an interface only carries a bond or bridge.
func (w *networkWriter) isMember(name string) bool {
	for _, b := range w.global.Bonds {
		for _, m := range b.Members {
			if m == name {
				return true
			}
		}
	}
	for _, b := range w.global.Bridges {
		for _, m := range b.Members {
			if m == name {
				return true
			}
		}
	}
	return false
}

func (w *networkWriter) bond(b machineconfig.Bond) object {
	p := object{}.with("mode", b.Mode)
	if b.MIIMonMS > 0 {
		p = append(p, entry{"mii-monitor-interval", quoted(strconv.Itoa(b.MIIMonMS))}) // the schema wants a string
	}
	for _, n := range []struct {
		key   string
		value int
	}{{"up-delay", b.UpDelayMS}, {"down-delay", b.DownDelayMS}, {"arp-interval", b.ARPIntervalMS}} {
		if n.value > 0 {
			p = append(p, entry{n.key, quoted(strconv.Itoa(n.value))})
		}
	}
	p = p.with("arp-ip-targets", quotedList(b.ARPTargets))
	if b.MinLinks > 0 {
		p = append(p, entry{"min-links", b.MinLinks})
	}
	p = p.with("primary-reselect-policy", b.PrimaryReselect)
	p = p.with("lacp-rate", b.LACPRate).with("transmit-hash-policy", b.HashPolicy).with("primary", b.Primary)
	o := object{{"interfaces", strs(b.Members)}}.with("parameters", p)
	return w.l3(o, b.L3, w.isMember(b.Name))
}

func (w *networkWriter) bridge(b machineconfig.Bridge) object {
	o := object{{"interfaces", strs(b.Members)}}
	if b.STP != nil {
		o = append(o, entry{"parameters", object{{"stp", *b.STP}}})
	}
	return w.l3(o, b.L3, false)
}

// l3 adds addresses and what belongs to them. The machine's own DNS servers go to every interface that has an address.
func (w *networkWriter) l3(o object, l machineconfig.L3, isMember bool) object {
	if l.MTU > 0 {
		o = append(o, entry{"mtu", l.MTU})
	}
	if l.Optional {
		o = append(o, entry{"optional", true})
	}
	if l.DHCP4 {
		o = append(o, entry{"dhcp4", true})
	}
	if l.DHCP6 {
		o = append(o, entry{"dhcp6", true})
	}
	if l.AcceptRA != nil {
		o = append(o, entry{"accept-ra", *l.AcceptRA})
	}
	o = dhcpV2(o, l)
	var addresses, routes list
	for _, a := range l.Addresses {
		addresses = append(addresses, quoted(a))
	}
	for _, route := range l.Routes {
		routes = append(routes, routeV2(route))
	}
	o = o.with("addresses", addresses).with("routes", routes).with("routing-policy", rulesV2(l.Rules))
	dns, search := l.DNS, l.Search
	if !isMember && (l.DHCP4 || l.DHCP6 || len(l.Addresses) > 0) {
		dns, search = union(w.global.DNS, dns), union(w.global.Search, search)
	}
	ns := object{}.with("addresses", quotedList(dns)).with("search", quotedList(search))
	return o.with("nameservers", ns)
}

// routeV2 writes a default route as a prefix: the word default makes four of 22.4's five renderers crash.
func routeV2(route machineconfig.Route) object {
	to := route.To
	if to == "default" {
		to = "0.0.0.0/0"
		if strings.Contains(route.Via, ":") {
			to = "::/0"
		}
	}
	o := object{{"to", quoted(to)}}
	if route.Via != "" {
		o = append(o, entry{"via", quoted(route.Via)})
	}
	if route.Metric > 0 {
		o = append(o, entry{"metric", route.Metric})
	}
	if route.OnLink {
		o = append(o, entry{"on-link", true})
	}
	if route.Table > 0 {
		o = append(o, entry{"table", route.Table})
	}
	return o
}

// dhcpV2 says what is taken of DHCP, and link-local addresses. netplan wants the same for both families.
func dhcpV2(o object, l machineconfig.L3) object {
	d := l.DHCP
	if d.Identifier != "" {
		o = append(o, entry{"dhcp-identifier", d.Identifier})
	}
	overrides := object{}
	if d.UseDNS != nil {
		overrides = append(overrides, entry{"use-dns", *d.UseDNS})
	}
	if d.UseRoutes != nil {
		overrides = append(overrides, entry{"use-routes", *d.UseRoutes})
	}
	if d.RouteMetric > 0 {
		overrides = append(overrides, entry{"route-metric", d.RouteMetric})
	}
	if l.DHCP4 {
		o = o.with("dhcp4-overrides", overrides)
	}
	if l.DHCP6 {
		o = o.with("dhcp6-overrides", overrides)
	}
	switch l.LinkLocal {
	case "none":
		o = append(o, entry{"link-local", list{}})
	case "both":
		o = append(o, entry{"link-local", list{"ipv4", "ipv6"}})
	case "ipv4", "ipv6":
		o = append(o, entry{"link-local", list{l.LinkLocal}})
	}
	return o
}

func rulesV2(rules []machineconfig.Rule) list {
	var out list
	for _, r := range rules {
		o := object{}
		if r.From != "" {
			o = append(o, entry{"from", quoted(r.From)})
		}
		if r.To != "" {
			o = append(o, entry{"to", quoted(r.To)})
		}
		if r.Mark > 0 {
			o = append(o, entry{"mark", r.Mark})
		}
		out = append(out, append(o, entry{"table", r.Table}, entry{"priority", r.Priority}))
	}
	return out
}

// declareMembers adds an entry for each interface that is used and not configured: netplan wants it declared.
func (w *networkWriter) declareMembers() {
	known := map[string]bool{}
	for _, o := range []object{w.ethernets, w.bonds, w.bridges, w.vlans} {
		for _, e := range o {
			known[e.key] = true
		}
	}
	declare := func(name string) {
		if name != "" && !known[name] {
			known[name] = true
			w.ethernets = append(w.ethernets, entry{name, object{}})
		}
	}
	for _, b := range w.global.Bonds {
		for _, m := range b.Members {
			declare(m)
		}
	}
	for _, b := range w.global.Bridges {
		for _, m := range b.Members {
			declare(m)
		}
	}
	for _, v := range w.global.VLANs {
		declare(v.Parent)
	}
}

func quotedList(in []string) list {
	var out list
	for _, s := range in {
		out = append(out, quoted(s))
	}
	return out
}

// union returns a and what b has besides.
func union(a, b []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range append(append([]string{}, a...), b...) {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
