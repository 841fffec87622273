package machineconfig

// Network is how the machine is connected. Without any interface, bond, VLAN or bridge the OS's default stands, which
// is DHCP.
type Network struct {
	Interfaces []Interface `yaml:"interfaces,omitempty" json:"interfaces,omitempty"`
	Bonds      []Bond      `yaml:"bonds,omitempty" json:"bonds,omitempty"`
	VLANs      []VLAN      `yaml:"vlans,omitempty" json:"vlans,omitempty"`
	Bridges    []Bridge    `yaml:"bridges,omitempty" json:"bridges,omitempty"`
	DNS        []string    `yaml:"dns,omitempty" json:"dns,omitempty"`       // for all of them
	Search     []string    `yaml:"search,omitempty" json:"search,omitempty"` // for all of them
}

// IsZero reports whether the OS's default stands.
func (n Network) IsZero() bool {
	return len(n.Interfaces)+len(n.Bonds)+len(n.VLANs)+len(n.Bridges)+len(n.DNS)+len(n.Search) == 0
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
	return all
}

// Interface is a network port. With a MAC it is found by that and renamed to Name; without one it is found by Name.
type Interface struct {
	Name string `yaml:"name" json:"name"`
	MAC  string `yaml:"mac,omitempty" json:"mac,omitempty"` // "boot" stands for the port that the machine booted from
	L3   `yaml:",inline"`
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
}

// Route is a route. To is a prefix; the default routes are 0.0.0.0/0 and ::/0.
type Route struct {
	To     string `yaml:"to" json:"to"`
	Via    string `yaml:"via,omitempty" json:"via,omitempty"`
	Metric int    `yaml:"metric,omitempty" json:"metric,omitempty"`
	OnLink bool   `yaml:"onLink,omitempty" json:"onLink,omitempty"`
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
	L3         `yaml:",inline"`
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
