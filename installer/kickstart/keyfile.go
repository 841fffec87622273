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

const keyfileFolder = "/etc/NetworkManager/system-connections/"

// keyfiles writes the network as NetworkManager keeps it, instead of what Anaconda has written for the installation.
func (w *writer) keyfiles() {
	n := &w.c.Network
	w.postLine("rm -f " + keyfileFolder + "*.nmconnection /etc/sysconfig/network-scripts/ifcfg-[!l]*")
	for i := range n.WireGuards {
		g := &n.WireGuards[i]
		k := &keyfile{id: g.Name, kind: "wireguard", device: g.Name, more: plain.KeyfileTunnel(*g)}
		l := g.L3
		l.MTU = 0 // is in its own section
		w.keyfile(pointer.Of("network", "wireguards", g.Name), k, &l)
	}
	if !n.HasLinks() {
		k := &keyfile{id: "slipway-any", kind: "ethernet", extra: []string{"multi-connect=3", "autoconnect-priority=-100"}}
		w.keyfile("/network/dns", k, &machineconfig.L3{DHCP4: true, DHCP6: true})
		return
	}
	for _, i := range n.Interfaces {
		at := pointer.Of("network", "interfaces", i.Name)
		k := &keyfile{id: i.Name, kind: "ethernet", device: i.Name}
		switch i.MAC {
		case "":
		case "boot":
			w.report.Errorf(at+"/mac", "unknown-mac", "is the port that the machine boots from, which is not known").
				Hint = "add the host's NICs to the inventory, or give the MAC"
		default:
			k.own = append(k.own, "mac-address="+strings.ToUpper(i.MAC))
			w.rename(i)
		}
		if i.Match != (machineconfig.PortMatch{}) {
			k.device, k.more = "", plain.KeyfileMatch(i.Match)
			k.extra = append(k.extra, strings.TrimSpace(plain.KeyfileMany))
		}
		if wake := plain.KeyfileWake(i.WakeOnLAN); wake != "" {
			k.own = append(k.own, strings.TrimSpace(wake))
		}
		w.enslave(k)
		w.keyfile(at, k, &i.L3)
	}
	for _, b := range n.Bonds {
		k := &keyfile{id: b.Name, kind: "bond", device: b.Name, section: "bond", own: bondOptions(b)}
		w.enslave(k)
		w.keyfile(pointer.Of("network", "bonds", b.Name), k, &b.L3)
		w.ports(b.Members)
	}
	for _, b := range n.Bridges {
		k := &keyfile{id: b.Name, kind: "bridge", device: b.Name, section: "bridge"}
		if b.STP != nil {
			k.own = append(k.own, "stp="+strconv.FormatBool(*b.STP))
		}
		w.keyfile(pointer.Of("network", "bridges", b.Name), k, &b.L3)
		w.ports(b.Members)
	}
	for _, v := range n.VLANs {
		k := &keyfile{id: v.Name, kind: "vlan", device: v.Name, section: "vlan", own: []string{"id=" + strconv.Itoa(v.ID), "parent=" + v.Parent}}
		w.enslave(k)
		w.keyfile(pointer.Of("network", "vlans", v.Name), k, &v.L3)
	}
}

// keyfile is one connection of NetworkManager. Section ethernet is written for every kind, because it has the MTU.
type keyfile struct {
	id, kind, device string
	extra            []string // of section connection
	section          string   // its kind's own section; ethernet when empty
	own              []string // lines of that
	master           string
	masterKind       string
	more             string // further sections, with a blank line before each
}

// enslave finds what a link is a port of.
func (w *writer) enslave(k *keyfile) {
	for _, b := range w.c.Network.Bonds {
		if slices.Contains(b.Members, k.id) {
			k.master, k.masterKind = b.Name, "bond"
		}
	}
	for _, b := range w.c.Network.Bridges {
		if slices.Contains(b.Members, k.id) {
			k.master, k.masterKind = b.Name, "bridge"
		}
	}
}

// ports writes the members that are no links of the configuration by themselves.
func (w *writer) ports(members []string) {
	n := &w.c.Network
	known := map[string]bool{}
	n.Links(func(_, name string, _ *machineconfig.L3) { known[name] = true })
	for _, m := range members {
		if !known[m] {
			k := &keyfile{id: m, kind: "ethernet", device: m}
			w.enslave(k)
			w.keyfile(pointer.Of("network", "interfaces", m), k, &machineconfig.L3{})
		}
	}
}

func (w *writer) keyfile(at string, k *keyfile, l *machineconfig.L3) {
	var b strings.Builder
	fmt.Fprintf(&b, "[connection]\nid=%s\ntype=%s\n", k.id, k.kind)
	if k.device != "" {
		fmt.Fprintf(&b, "interface-name=%s\n", k.device)
	}
	if k.master != "" {
		fmt.Fprintf(&b, "master=%s\nslave-type=%s\n", k.master, k.masterKind)
	}
	if l.Optional {
		b.WriteString("wait-device-timeout=0\n")
	}
	for _, e := range k.extra {
		b.WriteString(e + "\n")
	}
	ethernet := []string{}
	if k.section == "" {
		ethernet = append(ethernet, k.own...)
	}
	if l.MTU > 0 {
		ethernet = append(ethernet, "mtu="+strconv.Itoa(l.MTU))
	}
	if len(ethernet) > 0 {
		b.WriteString("\n[ethernet]\n" + strings.Join(ethernet, "\n") + "\n")
	}
	if k.section != "" {
		b.WriteString("\n[" + k.section + "]\n" + strings.Join(k.own, "\n") + "\n")
	}
	b.WriteString(k.more)
	if k.master == "" {
		w.family(&b, "ipv4", k.kind, l)
		w.family(&b, "ipv6", k.kind, l)
	}
	if installer.HasControl(strings.ReplaceAll(b.String(), "\n", "")) {
		w.report.Errorf(at, "not-expressible", "holds a control character").Hint = "take it out"
	}
	w.file(keyfileFolder+k.id+".nmconnection", 0o600, "", "", b.String(), at)
}

// family writes the section of one address family.
func (w *writer) family(b *strings.Builder, name, kind string, l *machineconfig.L3) {
	v4, v6 := families(l.Addresses)
	own, dhcp := v4, l.DHCP4
	if name == "ipv6" {
		own, dhcp = v6, l.DHCP6
	}
	how := method(name, own, dhcp, l.AcceptRA)
	switch {
	case name == "ipv6" && kind == "wireguard":
		how = plain.KeyfileTunnelIPv6(*l)
	case name == "ipv6" && plain.KeyfileHasNoIPv6(*l):
		how = "disabled"
	}
	fmt.Fprintf(b, "\n[%s]\nmethod=%s\n", name, how)
	for i, p := range own {
		fmt.Fprintf(b, "address%d=%s\n", i+1, p)
	}
	i := 0
	for _, r := range l.Routes {
		to, err := netip.ParsePrefix(r.To)
		if err != nil || to.Addr().Is4() != (name == "ipv4") {
			continue
		}
		i++
		fmt.Fprintf(b, "route%d=%s", i, to)
		if r.Via != "" || r.Metric != 0 {
			via := r.Via
			if via == "" {
				via = map[bool]string{true: "0.0.0.0", false: "::"}[to.Addr().Is4()]
			}
			b.WriteString("," + via)
		}
		if r.Metric != 0 {
			fmt.Fprintf(b, ",%d", r.Metric)
		}
		b.WriteString("\n" + plain.KeyfileRouteOptions(i, r))
	}
	if how == "disabled" && name == "ipv6" {
		return
	}
	b.WriteString(plain.KeyfileIP(*l, name == "ipv6"))
	w.names(b, name, l)
	if l.Optional {
		b.WriteString("may-fail=true\n")
	}
}

func method(name string, own []netip.Prefix, dhcp bool, ra *bool) string {
	switch {
	case dhcp && name == "ipv6" && ra != nil && !*ra:
		return "dhcp"
	case dhcp: // addresses beside it are kept
		return "auto"
	case len(own) > 0 && (name == "ipv4" || ra == nil || !*ra):
		return "manual"
	case name == "ipv4":
		return "disabled"
	case ra != nil && !*ra:
		return "link-local"
	}
	return "auto"
}

// names writes the resolvers and search domains of one family; the domains are in both, for either may be down.
func (w *writer) names(b *strings.Builder, family string, l *machineconfig.L3) {
	var servers []string
	for _, s := range unique(slices.Concat(l.DNS, w.c.Network.DNS)) {
		if a, err := netip.ParseAddr(s); err == nil && a.Is4() == (family == "ipv4") {
			servers = append(servers, s)
		}
	}
	if len(servers) > 0 {
		b.WriteString("dns=" + strings.Join(servers, ";") + ";\n")
	}
	if search := unique(slices.Concat(l.Search, w.c.Network.Search)); len(search) > 0 {
		b.WriteString("dns-search=" + strings.Join(search, ";") + ";\n")
	}
}

// rename gives a port that is found by its MAC the name it has in the configuration.
func (w *writer) rename(i machineconfig.Interface) {
	text := "[Match]\nMACAddress=" + strings.ToLower(i.MAC) + "\n\n[Link]\nName=" + i.Name + "\n"
	w.file("/etc/systemd/network/70-slipway-"+i.Name+".link", 0, "", "", text, pointer.Of("network", "interfaces", i.Name))
}
