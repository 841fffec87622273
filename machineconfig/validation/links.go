package validation

import (
	"encoding/base64"
	"net"
	"net/netip"
	"regexp"
	"strconv"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

var (
	globRE   = regexp.MustCompile(`^[A-Za-z0-9*?\[\]!_.:-]{1,63}$`)
	driverRE = regexp.MustCompile(`^[A-Za-z0-9*?\[\]!_.-]{1,63}$`)
)

// matches checks interfaces that stand for every port that matches.
func (w *wires) matches() {
	for _, i := range w.c.Network.Interfaces {
		m := i.Match
		if m == (machineconfig.PortMatch{}) {
			continue
		}
		at := pointer.Add(pointer.Add("/network/interfaces", i.Name), "match")
		l := w.links[i.Name]
		w.form(pointer.Add(at, "name"), m.Name, globRE, "a glob of names", "write it as en*, with *, ? and [...]")
		w.form(pointer.Add(at, "driver"), m.Driver, driverRE, "the name of a driver", "write it as ethtool -i does, such as ixgbe")
		switch {
		case i.MAC != "":
			w.r.Errorf(at, "conflict", "excludes a MAC, which finds one port").Hint = "remove one of them"
		case m.Link && l.user != "":
			w.r.Errorf(pointer.Add(at, "link"), "conflict", "is not for members of %s, which watches their links itself", l.user).
				Hint = "remove it"
		case m.Link && len(i.Addresses) > 0:
			w.r.Errorf(pointer.Add(at, "link"), "conflict", "may find more than one port, and an address belongs to one").
				Hint = "use dhcp4, or find the port by its MAC"
		case len(i.Addresses) > 0:
			w.r.Warnf(at, "many", "may find more than one port, and each would have the address").
				Hint = "find the port by its MAC, or see that one matches only"
		}
	}
}

// bondWatch checks how a bond watches its members.
func (w *wires) bondWatch(at string, b machineconfig.Bond) {
	for _, d := range []struct {
		key string
		ms  int
	}{{"upDelayMS", b.UpDelayMS}, {"downDelayMS", b.DownDelayMS}} {
		switch {
		case d.ms == 0:
		case d.ms < 0 || d.ms > 600_000:
			w.invalid(pointer.Add(at, d.key), "", "%d is not a time in ms up to 600000", d.ms)
		case b.MIIMonMS <= 0:
			w.r.Errorf(pointer.Add(at, d.key), "missing", "has a meaning with miiMonMS only").Hint = "add miiMonMS: 100"
		case d.ms%b.MIIMonMS != 0:
			w.invalid(pointer.Add(at, d.key), "write "+strconv.Itoa((d.ms/b.MIIMonMS+1)*b.MIIMonMS), "%d is no multiple of miiMonMS, %d", d.ms, b.MIIMonMS)
		}
	}
	switch {
	case b.ARPIntervalMS < 0 || b.ARPIntervalMS > 600_000:
		w.invalid(pointer.Add(at, "arpIntervalMS"), "", "%d is not a time in ms up to 600000", b.ARPIntervalMS)
	case b.ARPIntervalMS > 0 && b.MIIMonMS > 0:
		w.r.Errorf(pointer.Add(at, "arpIntervalMS"), "conflict", "and miiMonMS exclude each other").Hint = "remove one of them"
	case b.ARPIntervalMS > 0 && len(b.ARPTargets) == 0:
		w.r.Errorf(pointer.Add(at, "arpTargets"), "missing", "is needed for arpIntervalMS").
			Hint = "write addresses that always answer, such as the gateway's"
	case b.ARPIntervalMS > 0 && (b.Mode == "802.3ad" || b.Mode == "balance-tlb" || b.Mode == "balance-alb"):
		w.r.Errorf(pointer.Add(at, "arpIntervalMS"), "conflict", "has no meaning in mode %s", b.Mode).Hint = "use miiMonMS"
	}
	w.atMost(pointer.Add(at, "arpTargets"), len(b.ARPTargets), 16) // the kernel's limit
	for i, t := range b.ARPTargets {
		if a, err := netip.ParseAddr(t); err != nil || !a.Is4() {
			w.invalid(at+"/arpTargets/"+strconv.Itoa(i), "write it as 192.0.2.1", "%s is not an IPv4 address", shown(t))
		}
	}
	if b.MinLinks < 0 || b.MinLinks > len(b.Members) {
		w.invalid(pointer.Add(at, "minLinks"), "", "%d is not between 0 and the number of members, %d", b.MinLinks, len(b.Members))
	} else if b.MinLinks > 0 && b.Mode != "802.3ad" {
		w.r.Errorf(pointer.Add(at, "minLinks"), "conflict", "has a meaning in mode 802.3ad only")
	}
	if b.PrimaryReselect != "" && w.oneOf(pointer.Add(at, "primaryReselect"), b.PrimaryReselect, "always", "better", "failure") && b.Primary == "" {
		w.r.Errorf(pointer.Add(at, "primaryReselect"), "missing", "has a meaning with primary only")
	}
}

// dhcp checks what is taken of DHCP.
func (w *wires) dhcp(l *link) {
	c, at := l.l3, pointer.Add(l.path, "dhcp")
	if c.DHCP.RouteMetric < 0 {
		w.invalid(pointer.Add(at, "routeMetric"), "", "%d is not between 0 and 2147483647", c.DHCP.RouteMetric)
	}
	if c.DHCP.Identifier != "" {
		w.oneOf(pointer.Add(at, "identifier"), c.DHCP.Identifier, "mac", "duid")
	}
	if c.DHCP != (machineconfig.DHCP{}) && !c.DHCP4 && !c.DHCP6 {
		w.r.Errorf(at, "missing", "has no effect: the interface uses no DHCP").Hint = "add dhcp4: true, or remove it"
	}
	if c.LinkLocal != "" {
		w.oneOf(pointer.Add(l.path, "linkLocal"), c.LinkLocal, "none", "ipv4", "ipv6", "both")
		if c.DHCP6 && (c.LinkLocal == "none" || c.LinkLocal == "ipv4") {
			w.r.Errorf(pointer.Add(l.path, "linkLocal"), "conflict", "takes the address away that DHCPv6 needs").Hint = "write ipv6 or both"
		}
	}
}

// rules checks policy routes. A priority is the machine's, not an interface's.
func (w *wires) rules() {
	seen := map[int]string{}
	for _, l := range w.order {
		w.atMost(pointer.Add(l.path, "rules"), len(l.l3.Rules), 256)
		for _, r := range l.l3.Rules {
			at := pointer.Add(pointer.Add(l.path, "rules"), strconv.Itoa(r.Priority))
			if r.Priority < 1 || r.Priority > 32765 {
				w.invalid(pointer.Add(at, "priority"), "the kernel's own rules are 0, 32766 and 32767", "%d is not between 1 and 32765", r.Priority)
			}
			if other := seen[r.Priority]; other != "" {
				w.r.Errorf(at, "duplicate", "has the priority of %s", other).Hint = "give each rule its own priority"
			}
			seen[r.Priority] = at
			if r.Table == 0 {
				w.r.Errorf(pointer.Add(at, "table"), "missing", "is needed: the table with the route")
			}
			w.table(pointer.Add(at, "table"), r.Table)
			if r.From+r.To == "" && r.Mark == 0 {
				w.r.Errorf(at, "missing", "matches every packet").Hint = "give from, to or mark"
			}
			if r.Mark < 0 {
				w.invalid(pointer.Add(at, "mark"), "", "%d is not a mark", r.Mark)
			}
			from, okFrom := w.rulePrefix(pointer.Add(at, "from"), r.From)
			to, okTo := w.rulePrefix(pointer.Add(at, "to"), r.To)
			if okFrom && okTo && from.Addr().Is4() != to.Addr().Is4() {
				w.invalid(pointer.Add(at, "to"), "", "%s is not of the same family as %s", r.To, r.From)
			}
		}
	}
}

// wireguards checks tunnels.
func (w *wires) wireguards() {
	for _, g := range w.c.Network.WireGuards {
		at := pointer.Add("/network/wireguards", g.Name)
		w.secret(pointer.Add(at, "privateKey"), g.PrivateKey)
		if g.ListenPort < 0 || g.ListenPort > 65535 {
			w.invalid(pointer.Add(at, "listenPort"), "", "%d is not a port", g.ListenPort)
		}
		if g.DHCP4 || g.DHCP6 {
			w.r.Errorf(at, "conflict", "is a tunnel, on which no DHCP server answers").Hint = "give it addresses"
		}
		w.atMost(pointer.Add(at, "peers"), len(g.Peers), 256)
		for _, p := range g.Peers {
			w.peer(pointer.Add(pointer.Add(at, "peers"), p.PublicKey), p)
		}
	}
}

func (w *wires) peer(at string, p machineconfig.Peer) {
	if key, err := base64.StdEncoding.DecodeString(p.PublicKey); err != nil || len(key) != 32 {
		w.invalid(pointer.Add(at, "publicKey"), "write it as wg pubkey prints it", "%s is not a public key of WireGuard", shown(p.PublicKey))
	}
	if p.PresharedKey != "" {
		w.secret(pointer.Add(at, "presharedKey"), p.PresharedKey)
	}
	if p.Endpoint != "" {
		host, port, err := net.SplitHostPort(p.Endpoint)
		n, portErr := strconv.Atoi(port)
		_, addrErr := netip.ParseAddr(host)
		if err != nil || portErr != nil || n < 1 || n > 65535 || addrErr != nil && !domainRE.MatchString(host) {
			w.invalid(pointer.Add(at, "endpoint"), "write it as vpn.example.com:51820", "%s is not host:port", shown(p.Endpoint))
		}
	}
	if len(p.AllowedIPs) == 0 {
		w.r.Errorf(pointer.Add(at, "allowedIPs"), "missing", "is needed: nothing would go through the tunnel")
	}
	w.atMost(pointer.Add(at, "allowedIPs"), len(p.AllowedIPs), 1024)
	for i, s := range p.AllowedIPs {
		w.rulePrefix(at+"/allowedIPs/"+strconv.Itoa(i), s)
	}
	if p.KeepaliveS < 0 || p.KeepaliveS > 65535 {
		w.invalid(pointer.Add(at, "keepaliveS"), "25 is usual", "%d is not a time in seconds", p.KeepaliveS)
	}
}
