// Package networks owns the commands for DHCP: slipway subnet, range, class, reservation, lease and address. It decides nothing: it
// calls the REST API.
package networks

import (
	"net/netip"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/nouns"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// SubnetCommand is slipway subnet.
type SubnetCommand struct {
	List   nouns.List[subnet, inventory.Subnet]      `cmd:"" help:"List subnets."`
	Show   nouns.Show[subnet, inventory.Subnet]      `cmd:"" help:"Show a subnet."`
	Create nouns.Create[subnetNew, inventory.Subnet] `cmd:"" help:"Add a subnet."`
	Update nouns.Set[subnetEdit, inventory.Subnet]   `cmd:"" help:"Change a subnet; other settings stay."`
	Delete nouns.Delete[subnet, inventory.Subnet]    `cmd:"" help:"Delete subnets with their ranges, reservations and leases."`

	Usage      subnetUsage      `cmd:"" help:"Count the addresses of a subnet by their use."`
	Snippet    subnetSnippet    `cmd:"" help:"Write the configuration with which another DHCP server sends machines here."`
	Probe      subnetProbe      `cmd:"" help:"Ask the DHCP servers of a subnet from where they let machines boot."`
	Servers    subnetServers    `cmd:"" help:"List the other DHCP servers that Slipway has seen on a subnet."`
	Interfaces subnetInterfaces `cmd:"" help:"List the server's network interfaces and their boot URLs."`
}

// subnet is how people read a subnet.
type subnet struct{ nouns.Plain[inventory.Subnet] }

// Fields implements nouns.Noun.
func (subnet) Fields(f *nouns.Fields, n inventory.Subnet) {
	f.Both("name", n.Name)
	f.Both("cidr", n.CIDR.String())
	f.Both("mode", string(n.Mode))
	f.Both("interface", n.Interface)
	f.Both("gateway", cli.AddrText(n.Gateway))
	f.Shown("dns", cli.AddrsText(n.DNS))
	f.Shown("ntp", cli.AddrsText(n.NTP))
	f.Shown("domain", n.Domain)
	f.Shown("mtu", cli.CountText(n.MTU))
	for _, r := range n.Routes {
		f.Shown("route", r.To.String()+" via "+r.Via.String())
	}
	f.Shown("lease for", n.LeaseFor.String())
	f.Shown("boot lease for", n.BootLeaseFor.String())
	f.Listed("ranges", strings.Join(rangeTexts(n.Ranges), " "))
	f.Both("unknown", string(n.Unknown))
	f.Shown("range", rangeTexts(n.Ranges)...)
	f.Shown("static range", rangeTexts(n.StaticRanges)...)
	f.Shown("option", optionTexts(n.Options)...)
}

func rangeTexts(list []inventory.Range) (out []string) {
	for _, r := range list {
		out = append(out, r.First.String()+"-"+r.Last.String())
	}
	return out
}

// subnetFlags are what can be said of a subnet; nil is not given.
type subnetFlags struct {
	subnet
	Interface    *string        `help:"Interface it is directly attached to; empty: reached by relay only." placeholder:"NAME"`
	Mode         *string        `help:"full, reservations, proxy or off (default full)." placeholder:"MODE"`
	Gateway      *string        `help:"Router of the machines." placeholder:"ADDR"`
	DNS          []string       `name:"dns" help:"Name server; repeat for more." placeholder:"ADDR"`
	NTP          []string       `name:"ntp" help:"Time server; repeat for more." placeholder:"ADDR"`
	Domain       *string        `help:"Domain of the machines." placeholder:"NAME"`
	MTU          *int           `name:"mtu" help:"Largest packet." placeholder:"N"`
	Route        []string       `help:"A static route, CIDR=ROUTER; repeat for more." placeholder:"CIDR=ADDR"`
	Range        []string       `help:"Addresses to lease, FIRST-LAST; repeat for more." placeholder:"RANGE"`
	StaticRange  []string       `help:"Addresses that machines get for good, FIRST-LAST; repeat for more, empty for none." placeholder:"RANGE"`
	LeaseFor     *time.Duration `help:"How long operating systems keep an address (default 24h)." placeholder:"DURATION"`
	BootLeaseFor *time.Duration `help:"How long firmware keeps an address (default 10m)." placeholder:"DURATION"`
	Unknown      *string        `help:"Boot of machines that nobody has accepted: disk, wait or ignore (default disk)." placeholder:"POLICY"`
	Advertise    *string        `help:"IPv6: who makes the machines' addresses: managed (DHCPv6), slaac (they do), or off when another router advertises (default managed)." placeholder:"HOW"`
	Router       *bool          `help:"IPv6: advertise this server as the default router." negatable:""`
	Option       []string       `sep:"none" help:"A DHCP option, NAME=VALUE or NUMBER/TYPE=VALUE; repeat for more, give it empty for none." placeholder:"OPTION"`
}

// Apply implements nouns.Flags.
func (f subnetFlags) Apply(_ *cli.Session, n *inventory.Subnet) error {
	cli.Set(&n.Interface, f.Interface)
	cli.Set(&n.Mode, (*inventory.SubnetMode)(f.Mode))
	cli.Set(&n.Domain, f.Domain)
	cli.Set(&n.MTU, f.MTU)
	cli.Set(&n.LeaseFor, (*inventory.Duration)(f.LeaseFor))
	cli.Set(&n.BootLeaseFor, (*inventory.Duration)(f.BootLeaseFor))
	cli.Set(&n.Unknown, (*inventory.UnknownPolicy)(f.Unknown))
	cli.Set(&n.Advertise, (*inventory.Advertise)(f.Advertise))
	cli.Set(&n.IsRouter, f.Router)
	if f.Gateway != nil {
		n.Gateway = netip.Addr{}
		if *f.Gateway != "" {
			a, err := cli.ParseAddr("--gateway", *f.Gateway)
			if err != nil {
				return err
			}
			n.Gateway = a
		}
	}
	for _, l := range []struct {
		flag  string
		texts []string
		to    *[]netip.Addr
	}{{"--dns", f.DNS, &n.DNS}, {"--ntp", f.NTP, &n.NTP}} {
		if l.texts == nil {
			continue
		}
		*l.to = nil
		for _, text := range l.texts {
			a, err := cli.ParseAddr(l.flag, text)
			if err != nil {
				return err
			}
			*l.to = append(*l.to, a)
		}
	}
	if err := setOptions(&n.Options, f.Option); err != nil {
		return err
	}
	return f.applyLists(n)
}

func (f *subnetFlags) applyLists(n *inventory.Subnet) error {
	if f.Route != nil {
		n.Routes = nil
	}
	for _, text := range f.Route {
		to, via, _ := strings.Cut(text, "=")
		p, err := netip.ParsePrefix(to)
		if err != nil {
			return cli.Usage("write it as 10.9.0.0/16=10.0.0.254", "--route %q is not a route", text)
		}
		a, err := cli.ParseAddr("--route", via)
		if err != nil {
			return err
		}
		n.Routes = append(n.Routes, inventory.Route{To: p, Via: a})
	}
	for _, l := range []struct {
		texts []string
		to    *[]inventory.Range
	}{{f.Range, &n.Ranges}, {f.StaticRange, &n.StaticRanges}} {
		if l.texts != nil {
			*l.to = nil
		}
		for _, text := range l.texts {
			if text == "" {
				continue
			}
			r, err := parseRange(text)
			if err != nil {
				return err
			}
			*l.to = append(*l.to, r)
		}
	}
	return nil
}

func parseRange(text string) (inventory.Range, error) {
	first, last, _ := strings.Cut(text, "-")
	a, err1 := netip.ParseAddr(first)
	b, err2 := netip.ParseAddr(last)
	if err1 != nil || err2 != nil {
		return inventory.Range{}, cli.Usage("write its first and last address: 10.0.0.100-10.0.0.199", "%q is not a range", text)
	}
	return inventory.Range{First: a, Last: b}, nil
}

// subnetNew are what can be said of a new subnet.
type subnetNew struct {
	CIDR string `name:"cidr" required:"" help:"The network, such as 10.0.0.0/24 or fd00:1::/64." placeholder:"CIDR"`
	subnetFlags
}

// New implements nouns.NewFlags.
func (subnetNew) New(name string) inventory.Subnet {
	n := inventory.Subnet{Name: name}
	n.FillDefaults()
	return n
}

// Apply implements nouns.Flags.
func (f subnetNew) Apply(s *cli.Session, n *inventory.Subnet) (err error) {
	if n.CIDR, err = cli.ParseCIDR(f.CIDR); err != nil {
		return err
	}
	return f.subnetFlags.Apply(s, n)
}

// subnetEdit are what can be said of a subnet that exists.
type subnetEdit struct {
	CIDR *string `name:"cidr" help:"Another network." placeholder:"CIDR"`
	subnetFlags
}

// Apply implements nouns.Flags.
func (f subnetEdit) Apply(s *cli.Session, n *inventory.Subnet) (err error) {
	if f.CIDR != nil {
		if n.CIDR, err = cli.ParseCIDR(*f.CIDR); err != nil {
			return err
		}
	}
	return f.subnetFlags.Apply(s, n)
}

// RangeCommand is slipway range.
type RangeCommand struct {
	Add    rangeAdd    `cmd:"" help:"Add a range to a subnet."`
	Remove rangeRemove `cmd:"" help:"Take a range from a subnet."`
}

type rangeAdd struct {
	Subnet string `arg:""`
	Range  string `arg:"" help:"FIRST-LAST"`
}

// Run adds a range.
func (c *rangeAdd) Run(s *cli.Session, api *client.Client) error {
	r, err := parseRange(c.Range)
	if err != nil {
		return err
	}
	return s.Stored(api.AddRange(s.Ctx, c.Subnet, r))
}

type rangeRemove struct {
	Subnet string `arg:""`
	Range  string `arg:"" help:"FIRST-LAST"`
}

// Run takes a range away.
func (c *rangeRemove) Run(s *cli.Session, api *client.Client) error {
	r, err := parseRange(c.Range)
	if err != nil {
		return err
	}
	return s.Stored(api.RemoveRange(s.Ctx, c.Subnet, r))
}

// ReservationCommand is slipway reservation.
type ReservationCommand struct {
	List   nouns.ListBy[reservation, inventory.Reservation, subnetFilter] `cmd:"" help:"List reservations."`
	Show   nouns.Show[reservation, inventory.Reservation]                 `cmd:"" help:"Show a reservation."`
	Create reservationCreate                                              `cmd:"" help:"Keep an address for a machine."`
	Update nouns.Set[reservationFlags, inventory.Reservation]             `cmd:"" help:"Change the name or the options of a reservation; other settings stay."`
	Delete nouns.Delete[reservation, inventory.Reservation]               `cmd:"" help:"Delete reservations."`
}

// subnetFilter narrows a list to a subnet.
type subnetFilter struct {
	Subnet string `help:"Only those of this subnet." placeholder:"NAME"`
}

// Query implements nouns.Filter.
func (f subnetFilter) Query() client.Query { return client.Query{Subnet: f.Subnet} }

// reservation is how people read a reservation.
type reservation struct{}

// About implements nouns.Noun.
func (reservation) About() (one, many string) { return "address", "addresses" }

// Calls implements nouns.Noun.
func (reservation) Calls(c *client.Client) client.Noun[inventory.Reservation] { return c.Reservations }

// Version implements nouns.Flags.
func (reservation) Version(r inventory.Reservation) int64 { return r.Version }

// Fields implements nouns.Noun.
func (reservation) Fields(f *nouns.Fields, r inventory.Reservation) {
	f.Both("address", r.Address.String())
	f.Both("subnet", r.Subnet)
	f.Both("mac", string(r.MAC))
	f.Both("client id", r.ClientID)
	f.Both("uuid", r.UUID)
	f.Both("port", r.Port)
	f.Both("hostname", r.Hostname)
	f.Shown("option", optionTexts(r.Options)...)
}

type reservationCreate struct {
	Address  string   `arg:""`
	MAC      string   `name:"mac" help:"The machine's MAC." placeholder:"MAC" xor:"who" required:""`
	ClientID string   `help:"Its client identifier (option 61) in hex." placeholder:"HEX" xor:"who" required:""`
	UUID     string   `name:"uuid" help:"Its SMBIOS UUID (option 97)." placeholder:"UUID" xor:"who" required:""`
	Port     string   `help:"Switch port of the machine, as lease list shows it: CIRCUIT@SWITCH, or CIRCUIT on any switch." placeholder:"PORT" xor:"who" required:""`
	Hostname string   `help:"Host name that DHCP gives the machine." placeholder:"NAME"`
	Option   []string `sep:"none" help:"A DHCP option, NAME=VALUE or NUMBER/TYPE=VALUE; repeat for more." placeholder:"OPTION"`
	DryRun   bool     `help:"Only show what would be stored."`
}

// Run reserves an address.
func (c *reservationCreate) Run(s *cli.Session) error {
	a, err := cli.ParseAddr("reservation", c.Address)
	if err != nil {
		return err
	}
	r := inventory.Reservation{Address: a, MAC: inventory.MAC(c.MAC), ClientID: c.ClientID, UUID: c.UUID, Port: c.Port, Hostname: c.Hostname}
	if err := setOptions(&r.Options, c.Option); err != nil {
		return err
	}
	return cli.Write(s, reservation{}.Calls, "POST", "", r, c.DryRun)
}

// reservationFlags are what can be changed of a reservation.
type reservationFlags struct {
	reservation
	Hostname *string  `help:"Host name that DHCP gives the machine." placeholder:"NAME"`
	Option   []string `sep:"none" help:"A DHCP option, NAME=VALUE or NUMBER/TYPE=VALUE; repeat for more, give it empty for none." placeholder:"OPTION"`
}

// Apply implements nouns.Flags.
func (f reservationFlags) Apply(_ *cli.Session, r *inventory.Reservation) error {
	cli.Set(&r.Hostname, f.Hostname)
	return setOptions(&r.Options, f.Option)
}

// LeaseCommand is slipway lease.
type LeaseCommand struct {
	List   nouns.ListBy[lease, inventory.Lease, leaseFilter] `cmd:"" help:"List leases."`
	Show   nouns.Show[lease, inventory.Lease]                `cmd:"" help:"Show a lease."`
	Delete nouns.Delete[lease, inventory.Lease]              `cmd:"" help:"Delete leases. If a machine still uses the address, two machines may get it."`
}

// leaseFilter narrows a list of leases.
type leaseFilter struct {
	Subnet string `help:"Only those of this subnet." placeholder:"NAME"`
	Host   string `help:"Only those of this host." placeholder:"HOST"`
}

// Query implements nouns.Filter.
func (f leaseFilter) Query() client.Query { return client.Query{Subnet: f.Subnet, Host: f.Host} }

// lease is how people read a lease.
type lease struct{}

// About implements nouns.Noun.
func (lease) About() (one, many string) { return "address", "addresses" }

// Calls implements nouns.Noun.
func (lease) Calls(c *client.Client) client.Noun[inventory.Lease] { return c.Leases }

// Fields implements nouns.Noun.
func (lease) Fields(f *nouns.Fields, l inventory.Lease) {
	f.Both("address", l.Address.String())
	f.Both("subnet", l.Subnet)
	f.Both("state", leaseState(l, time.Now()))
	f.Both("mac", string(l.MAC))
	f.Shown("client id", l.ClientID)
	f.Both("hostname", l.Hostname)
	f.Both("port", l.Port)
	f.Both("for", leaseKind(l))
	f.Shown("since", cli.TimeText(l.StartsAt))
	f.Both("until", cli.TimeText(l.ExpiresAt))
}

// leaseState is the state for people: a bound lease that has run out is expired.
func leaseState(l inventory.Lease, now time.Time) string {
	if l.State == inventory.LeaseBound && now.After(l.ExpiresAt) {
		return "expired"
	}
	return string(l.State)
}

func leaseKind(l inventory.Lease) string {
	if l.IsBoot {
		return "boot"
	}
	return "system"
}
