package validation

import (
	"net/netip"
	"regexp"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

var ifnameRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$`)

// maxMembers is the most members of a bond or bridge.
const maxMembers = 256

// link is an interface of any kind, for checks that do not care which.
type link struct {
	kind string // interfaces, bonds, vlans or bridges
	name string
	path string
	l3   machineconfig.L3
	user string // bond or bridge that it is a member of

	isPattern bool // it stands for the ports that match
}

// wires checks how links hang together.
type wires struct {
	*checker
	links    map[string]*link
	order    []*link
	addrs    map[netip.Addr]string
	defaults map[string]string // family and metric to the path of the default route
}

func (w *wires) add(kind, name string, l3 machineconfig.L3) {
	l := &link{kind: kind, name: name, path: pointer.Add("/network/"+kind, name), l3: l3}
	hint := "use letters, digits, -, _ and ."
	if len(name) > 15 {
		hint = "Linux allows 15 letters"
	}
	w.match(l.path, name, ifnameRE, "the name of an interface", hint)
	if w.links[name] != nil {
		w.r.Errorf(l.path, "duplicate", "has the name of another interface").
			Hint = "names are unique among interfaces, bonds, vlans, bridges and wireguards"
		return
	}
	w.links[name] = l
	w.order = append(w.order, l)
}

func (w *wires) names() []string {
	var names []string
	for _, l := range w.order {
		names = append(names, l.name)
	}
	return names
}

func (w *wires) table(at string, table int) {
	if table < 0 || table > 1<<31-1 {
		w.invalid(at, "use a number from 1 to 252 or above 255", "%d is not a table of routes", table)
	}
}

func (w *wires) rulePrefix(at, s string) (netip.Prefix, bool) {
	if s == "" {
		return netip.Prefix{}, false
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		w.invalid(at, "write it as 192.0.2.0/24 or 192.0.2.7/32", "%s is not a prefix", shown(s))
	case p.Masked() != p:
		w.invalid(at, "write "+p.Masked().String(), "%s has bits beyond its prefix length", shown(s))
	default:
		return p, true
	}
	return p, false
}
