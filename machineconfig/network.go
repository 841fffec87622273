package machineconfig

import (
	"strconv"

	"slipway.dev/slipway/machineconfig/pointer"
)

// Network is how the machine is connected. Without any interface, bond, VLAN or bridge the OS's default stands, which
// is DHCP.
type Network struct {
	Interfaces []Interface `yaml:"interfaces,omitempty" json:"interfaces,omitempty"`
	Bonds      []Bond      `yaml:"bonds,omitempty" json:"bonds,omitempty"`
	VLANs      []VLAN      `yaml:"vlans,omitempty" json:"vlans,omitempty"`
	Bridges    []Bridge    `yaml:"bridges,omitempty" json:"bridges,omitempty"`
	WireGuards []WireGuard `yaml:"wireguards,omitempty" json:"wireguards,omitempty"`
	DNS        []string    `yaml:"dns,omitempty" json:"dns,omitempty"`       // for all of them
	Search     []string    `yaml:"search,omitempty" json:"search,omitempty"` // for all of them
}

// IsZero reports whether the OS's default stands.
func (n Network) IsZero() bool {
	return len(n.Interfaces)+len(n.Bonds)+len(n.VLANs)+len(n.Bridges)+len(n.WireGuards)+len(n.DNS)+len(n.Search) == 0
}

// HasLinks reports whether an interface, bond, VLAN or bridge is described. A tunnel alone leaves the OS's default.
func (n Network) HasLinks() bool {
	return len(n.Interfaces)+len(n.Bonds)+len(n.VLANs)+len(n.Bridges) > 0
}

// Addresses returns all addresses of the network, with their prefix lengths.
func (n Network) Addresses() (all []string) {
	for _, i := range n.Interfaces {
		all = append(all, i.Addresses...)
	}
	for _, b := range n.Bonds {
		all = append(all, b.Addresses...)
	}
	for _, v := range n.VLANs {
		all = append(all, v.Addresses...)
	}
	for _, b := range n.Bridges {
		all = append(all, b.Addresses...)
	}
	for _, w := range n.WireGuards {
		all = append(all, w.Addresses...)
	}
	return all
}

// Links calls f for everything that carries addresses, with its list.
func (n *Network) Links(f func(list, name string, l *L3)) {
	for i := range n.Interfaces {
		f("interfaces", n.Interfaces[i].Name, &n.Interfaces[i].L3)
	}
	for i := range n.Bonds {
		f("bonds", n.Bonds[i].Name, &n.Bonds[i].L3)
	}
	for i := range n.VLANs {
		f("vlans", n.VLANs[i].Name, &n.VLANs[i].L3)
	}
	for i := range n.Bridges {
		f("bridges", n.Bridges[i].Name, &n.Bridges[i].L3)
	}
	for i := range n.WireGuards {
		f("wireguards", n.WireGuards[i].Name, &n.WireGuards[i].L3)
	}
}

// EachLink calls f with everything that carries addresses: its path and what it carries.
func (n *Network) EachLink(f func(path string, l *L3)) {
	n.Links(func(list, name string, l *L3) { f(pointer.Add("/network/"+list, name), l) })
}

// Interface is a network port. With a MAC it is found by that and renamed to Name; without one it is found by Name. With
// Match it stands for every port that matches: Name is a word for them then, and no port is renamed.
type Interface struct {
	Name      string    `yaml:"name" json:"name"`
	MAC       string    `yaml:"mac,omitempty" json:"mac,omitempty"` // "boot" stands for the port that the machine booted from
	Match     PortMatch `yaml:"match,omitempty" json:"match,omitzero"`
	WakeOnLAN *bool     `yaml:"wakeOnLAN,omitempty" json:"wakeOnLAN,omitempty"` // by a magic packet
	L3        `yaml:",inline"`
}

// PortMatch finds ports by what they are. All that is given has to be true of a port.
type PortMatch struct {
	Name   string `yaml:"name,omitempty" json:"name,omitempty"`     // a glob of the kernel's names: en*
	Driver string `yaml:"driver,omitempty" json:"driver,omitempty"` // of the kernel: ixgbe
	Link   bool   `yaml:"link,omitempty" json:"link,omitempty"`     // it has a link: something is at the other end of its cable
}

// Glob is the pattern of names. If only a link is required, it is that of every wired port.
func (m PortMatch) Glob() string {
	if m.Name == "" && m.Driver == "" && m.Link {
		return "e*"
	}
	return m.Name
}

// L3 is what an interface of any kind carries.
type L3 struct {
	MTU       int      `yaml:"mtu,omitempty" json:"mtu,omitempty"`
	Addresses []string `yaml:"addresses,omitempty" json:"addresses,omitempty"` // with prefix length
	// FromSubnets are subnets of which the machine gets one address each, kept for it as long as it lives.
	FromSubnets []string `yaml:"fromSubnets,omitempty" json:"fromSubnets,omitempty"`
	DHCP4       bool     `yaml:"dhcp4,omitempty" json:"dhcp4,omitempty"`
	DHCP6       bool     `yaml:"dhcp6,omitempty" json:"dhcp6,omitempty"`
	AcceptRA    *bool    `yaml:"acceptRA,omitempty" json:"acceptRA,omitempty"`
	Routes      []Route  `yaml:"routes,omitempty" json:"routes,omitempty"`
	DNS         []string `yaml:"dns,omitempty" json:"dns,omitempty"`
	Search      []string `yaml:"search,omitempty" json:"search,omitempty"`
	Optional    bool     `yaml:"optional,omitempty" json:"optional,omitempty"` // the boot does not wait for it
	DHCP        DHCP     `yaml:"dhcp,omitempty" json:"dhcp,omitzero"`
	// LinkLocal says which link-local addresses it takes: none, ipv4, ipv6 or both; the OS's default when empty.
	LinkLocal string `yaml:"linkLocal,omitempty" json:"linkLocal,omitempty"`
	Rules     []Rule `yaml:"rules,omitempty" json:"rules,omitempty"`
}

// DHCP says what is taken of DHCP, and how the machine names itself there. It is for both families.
type DHCP struct {
	RouteMetric int    `yaml:"routeMetric,omitempty" json:"routeMetric,omitempty"`
	UseDNS      *bool  `yaml:"useDNS,omitempty" json:"useDNS,omitempty"`         // DNS servers; true when nil
	UseRoutes   *bool  `yaml:"useRoutes,omitempty" json:"useRoutes,omitempty"`   // routes; true when nil
	Identifier  string `yaml:"identifier,omitempty" json:"identifier,omitempty"` // mac or duid; the OS's default when empty
}

// Rule is a policy route: packets that match look their route up in Table.
type Rule struct {
	Priority int    `yaml:"priority" json:"priority"` // the resolver asks the lowest first
	From     string `yaml:"from,omitempty" json:"from,omitempty"`
	To       string `yaml:"to,omitempty" json:"to,omitempty"`
	Mark     int    `yaml:"mark,omitempty" json:"mark,omitempty"`
	Table    int    `yaml:"table" json:"table"`
}

// Route is a route. To is a prefix; the default routes are 0.0.0.0/0 and ::/0.
type Route struct {
	To     string `yaml:"to" json:"to"`
	Via    string `yaml:"via,omitempty" json:"via,omitempty"`
	Metric int    `yaml:"metric,omitempty" json:"metric,omitempty"`
	OnLink bool   `yaml:"onLink,omitempty" json:"onLink,omitempty"`
	Table  int    `yaml:"table,omitempty" json:"table,omitempty"` // the main one when 0
}

// PathKey names the route in paths: 0.0.0.0/0, 0.0.0.0/0@100 with a metric, 0.0.0.0/0@100#200 with a table.
func (r Route) PathKey() string {
	key := r.To
	if r.Metric != 0 {
		key += "@" + strconv.Itoa(r.Metric)
	}
	if r.Table != 0 {
		key += "#" + strconv.Itoa(r.Table)
	}
	return key
}

// Bond bundles interfaces.
type Bond struct {
	Name       string   `yaml:"name" json:"name"`
	Mode       string   `yaml:"mode" json:"mode"` // 802.3ad, active-backup, balance-rr, balance-xor, broadcast, balance-tlb, balance-alb
	Members    []string `yaml:"members" json:"members"`
	MIIMonMS   int      `yaml:"miiMonMS,omitempty" json:"miiMonMS,omitempty"`
	LACPRate   string   `yaml:"lacpRate,omitempty" json:"lacpRate,omitempty"` // slow or fast
	HashPolicy string   `yaml:"hashPolicy,omitempty" json:"hashPolicy,omitempty"`
	Primary    string   `yaml:"primary,omitempty" json:"primary,omitempty"`
	// UpDelayMS and DownDelayMS are how long a member is watched before its change of link counts.
	UpDelayMS       int      `yaml:"upDelayMS,omitempty" json:"upDelayMS,omitempty"`
	DownDelayMS     int      `yaml:"downDelayMS,omitempty" json:"downDelayMS,omitempty"`
	ARPIntervalMS   int      `yaml:"arpIntervalMS,omitempty" json:"arpIntervalMS,omitempty"`
	ARPTargets      []string `yaml:"arpTargets,omitempty" json:"arpTargets,omitempty"` // IPv4 addresses
	MinLinks        int      `yaml:"minLinks,omitempty" json:"minLinks,omitempty"`
	PrimaryReselect string   `yaml:"primaryReselect,omitempty" json:"primaryReselect,omitempty"` // always, better or failure
	L3              `yaml:",inline"`
}

// VLAN is a tagged network on an interface, bond or bridge.
type VLAN struct {
	Name   string `yaml:"name" json:"name"`
	Parent string `yaml:"parent" json:"parent"`
	ID     int    `yaml:"id" json:"id"`
	L3     `yaml:",inline"`
}

// Bridge joins interfaces.
type Bridge struct {
	Name    string   `yaml:"name" json:"name"`
	Members []string `yaml:"members,omitempty" json:"members,omitempty"`
	STP     *bool    `yaml:"stp,omitempty" json:"stp,omitempty"`
	L3      `yaml:",inline"`
}

// WireGuard is a tunnel of WireGuard.
type WireGuard struct {
	Name       string `yaml:"name" json:"name"`
	PrivateKey string `yaml:"privateKey" json:"privateKey"` // secret://NAME
	ListenPort int    `yaml:"listenPort,omitempty" json:"listenPort,omitempty"`
	Peers      []Peer `yaml:"peers,omitempty" json:"peers,omitempty"`
	L3         `yaml:",inline"`
}

// Peer is the other end of a tunnel.
type Peer struct {
	PublicKey    string   `yaml:"publicKey" json:"publicKey"`
	PresharedKey string   `yaml:"presharedKey,omitempty" json:"presharedKey,omitempty"` // secret://NAME
	Endpoint     string   `yaml:"endpoint,omitempty" json:"endpoint,omitempty"`         // host:port
	AllowedIPs   []string `yaml:"allowedIPs" json:"allowedIPs"`
	KeepaliveS   int      `yaml:"keepaliveS,omitempty" json:"keepaliveS,omitempty"` // seconds between packets that keep a NAT open
}
