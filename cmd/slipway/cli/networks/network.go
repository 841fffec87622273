// Package networks owns the commands for DHCP: slipway subnet, range, class, reservation, lease and address. It decides nothing: it
// calls the REST API.
package networks

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func subnets(c *client.Client) client.Noun[inventory.Subnet] { return c.Subnets }

// SubnetCommand is slipway subnet.
type SubnetCommand struct {
	List   subnetList   `cmd:"" help:"List subnets."`
	Show   subnetShow   `cmd:"" help:"Show a subnet."`
	Create subnetCreate `cmd:"" help:"Add a subnet."`
	Update subnetUpdate `cmd:"" help:"Change a subnet; other settings stay."`
	Delete subnetDelete `cmd:"" help:"Delete subnets with their ranges, reservations and leases."`

	Usage      subnetUsage      `cmd:"" help:"Count what the addresses of a subnet are doing."`
	Snippet    subnetSnippet    `cmd:"" help:"Write the configuration with which another DHCP server sends machines here."`
	Probe      subnetProbe      `cmd:"" help:"Ask the DHCP servers of a subnet where they lead machines that boot from the network."`
	Servers    subnetServers    `cmd:"" help:"List the other DHCP servers that were noticed on a subnet."`
	Interfaces subnetInterfaces `cmd:"" help:"List the server's network interfaces and their boot URLs."`
}

type subnetList struct{}

// Run lists subnets.
func (*subnetList) Run(s *cli.Session) error {
	return cli.ShowList(s, subnets, client.Query{}, 0, []string{"NAME", "CIDR", "MODE", "INTERFACE", "GATEWAY", "RANGES", "UNKNOWN"}, func(n inventory.Subnet) []string {
		return []string{n.Name, n.CIDR.String(), string(n.Mode), n.Interface, cli.AddrText(n.Gateway), rangesText(n.Ranges), string(n.Unknown)}
	})
}

func rangesText(list []inventory.Range) string {
	var out []string
	for _, r := range list {
		out = append(out, r.First.String()+"-"+r.Last.String())
	}
	return strings.Join(out, " ")
}

type subnetShow struct {
	Subnet string `arg:""`
}

// Run shows a subnet.
func (c *subnetShow) Run(s *cli.Session) error {
	return cli.ShowOne(s, subnets, c.Subnet, func(t *cli.TableWriter, n inventory.Subnet) {
		t.Field("name", n.Name)
		t.Field("cidr", n.CIDR.String())
		t.Field("mode", string(n.Mode))
		t.Field("interface", n.Interface)
		t.Field("gateway", cli.AddrText(n.Gateway))
		t.Field("dns", cli.AddrsText(n.DNS))
		t.Field("ntp", cli.AddrsText(n.NTP))
		t.Field("domain", n.Domain)
		if n.MTU > 0 {
			t.Field("mtu", fmt.Sprint(n.MTU))
		}
		for _, r := range n.Routes {
			t.Field("route", r.To.String()+" via "+r.Via.String())
		}
		t.Field("lease for", n.LeaseFor.String())
		t.Field("boot lease for", n.BootLeaseFor.String())
		t.Field("unknown", string(n.Unknown))
		for _, r := range n.Ranges {
			t.Field("range", r.First.String()+"-"+r.Last.String())
		}
		for _, r := range n.StaticRanges {
			t.Field("static range", r.First.String()+"-"+r.Last.String())
		}
		showOptions(t, "option", n.Options)
	})
}

// subnetFlags are what can be said of a subnet; nil is not given.
type subnetFlags struct {
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
	DryRun       bool           `help:"Only show what would change."`
}

// apply lays the flags over a subnet.
func (f *subnetFlags) apply(n *inventory.Subnet) error {
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

type subnetCreate struct {
	Name string `arg:"" help:"Its name, a DNS label."`
	CIDR string `name:"cidr" required:"" help:"The network, such as 10.0.0.0/24 or fd00:1::/64." placeholder:"CIDR"`
	subnetFlags
}

// Run adds a subnet.
func (c *subnetCreate) Run(s *cli.Session) error {
	p, err := cli.ParseCIDR(c.CIDR)
	if err != nil {
		return err
	}
	n := inventory.Subnet{Name: c.Name, CIDR: p}
	n.FillDefaults()
	if err := c.apply(&n); err != nil {
		return err
	}
	return cli.Write(s, subnets, "POST", "", n, c.DryRun)
}

type subnetUpdate struct {
	Subnet string  `arg:""`
	CIDR   *string `name:"cidr" help:"Another network." placeholder:"CIDR"`
	subnetFlags
}

// Run changes a subnet as it is stored now.
func (c *subnetUpdate) Run(s *cli.Session, api *client.Client) error {
	n, err := api.Subnets.Get(s.Ctx, c.Subnet)
	if err != nil {
		return err
	}
	if c.CIDR != nil {
		if n.CIDR, err = cli.ParseCIDR(*c.CIDR); err != nil {
			return err
		}
	}
	if err := c.apply(&n); err != nil {
		return err
	}
	return cli.Write(s, subnets, "PUT", c.Subnet, n, c.DryRun, client.IfVersion(n.Version))
}

type subnetDelete struct {
	Subnets []string `arg:""`
	DryRun  bool     `help:"Only show what would be deleted."`
}

// Run deletes subnets.
func (c *subnetDelete) Run(s *cli.Session) error { return cli.Remove(s, subnets, c.Subnets, c.DryRun) }

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

func reservations(c *client.Client) client.Noun[inventory.Reservation] { return c.Reservations }

// ReservationCommand is slipway reservation.
type ReservationCommand struct {
	List   reservationList   `cmd:"" help:"List reservations."`
	Show   reservationShow   `cmd:"" help:"Show a reservation."`
	Create reservationCreate `cmd:"" help:"Keep an address for a machine."`
	Update reservationUpdate `cmd:"" help:"Change the name or the options of a reservation; other settings stay."`
	Delete reservationDelete `cmd:"" help:"Delete reservations."`
}

type reservationList struct {
	Subnet string `help:"Only those of this subnet." placeholder:"NAME"`
}

// Run lists reservations.
func (c *reservationList) Run(s *cli.Session) error {
	return cli.ShowList(s, reservations, client.Query{Subnet: c.Subnet}, 0, []string{"ADDRESS", "SUBNET", "MAC", "CLIENT ID", "UUID", "PORT", "HOSTNAME"},
		func(r inventory.Reservation) []string {
			return []string{r.Address.String(), r.Subnet, string(r.MAC), r.ClientID, r.UUID, r.Port, r.Hostname}
		})
}

type reservationShow struct {
	Address string `arg:""`
}

// Run shows a reservation.
func (c *reservationShow) Run(s *cli.Session) error {
	return cli.ShowOne(s, reservations, c.Address, func(t *cli.TableWriter, r inventory.Reservation) {
		t.Field("address", r.Address.String())
		t.Field("subnet", r.Subnet)
		t.Field("mac", string(r.MAC))
		t.Field("client id", r.ClientID)
		t.Field("uuid", r.UUID)
		t.Field("port", r.Port)
		t.Field("hostname", r.Hostname)
		showOptions(t, "option", r.Options)
	})
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
	return cli.Write(s, reservations, "POST", "", r, c.DryRun)
}

type reservationUpdate struct {
	Address  string   `arg:""`
	Hostname *string  `help:"Host name that DHCP gives the machine." placeholder:"NAME"`
	Option   []string `sep:"none" help:"A DHCP option, NAME=VALUE or NUMBER/TYPE=VALUE; repeat for more, give it empty for none." placeholder:"OPTION"`
	DryRun   bool     `help:"Only show what would change."`
}

// Run changes a reservation as it is stored now.
func (c *reservationUpdate) Run(s *cli.Session, api *client.Client) error {
	r, err := api.Reservations.Get(s.Ctx, c.Address)
	if err != nil {
		return err
	}
	cli.Set(&r.Hostname, c.Hostname)
	if err := setOptions(&r.Options, c.Option); err != nil {
		return err
	}
	return cli.Write(s, reservations, "PUT", c.Address, r, c.DryRun, client.IfVersion(r.Version))
}

type reservationDelete struct {
	Addresses []string `arg:""`
	DryRun    bool     `help:"Only show what would be deleted."`
}

// Run deletes reservations.
func (c *reservationDelete) Run(s *cli.Session) error {
	return cli.Remove(s, reservations, c.Addresses, c.DryRun)
}

func leases(c *client.Client) client.Noun[inventory.Lease] { return c.Leases }

// LeaseCommand is slipway lease.
type LeaseCommand struct {
	List   leaseList   `cmd:"" help:"List leases."`
	Show   leaseShow   `cmd:"" help:"Show a lease."`
	Delete leaseDelete `cmd:"" help:"Forget leases. A machine that still uses the address does not learn it."`
}

type leaseList struct {
	Subnet string `help:"Only those of this subnet." placeholder:"NAME"`
	Host   string `help:"Only those of this host." placeholder:"HOST"`
}

// Run lists leases.
func (c *leaseList) Run(s *cli.Session) error {
	return cli.ShowList(s, leases, client.Query{Subnet: c.Subnet, Host: c.Host}, 0, []string{"ADDRESS", "SUBNET", "STATE", "MAC", "HOSTNAME", "PORT", "FOR", "UNTIL"},
		func(l inventory.Lease) []string {
			return []string{l.Address.String(), l.Subnet, leaseState(l, time.Now()), string(l.MAC), l.Hostname, l.Port, leaseKind(l), cli.TimeText(l.ExpiresAt)}
		})
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

type leaseShow struct {
	Address string `arg:""`
}

// Run shows a lease.
func (c *leaseShow) Run(s *cli.Session) error {
	return cli.ShowOne(s, leases, c.Address, func(t *cli.TableWriter, l inventory.Lease) {
		t.Field("address", l.Address.String())
		t.Field("subnet", l.Subnet)
		t.Field("state", leaseState(l, time.Now()))
		t.Field("mac", string(l.MAC))
		t.Field("client id", l.ClientID)
		t.Field("hostname", l.Hostname)
		t.Field("port", l.Port)
		t.Field("for", leaseKind(l))
		t.Field("since", cli.TimeText(l.StartsAt))
		t.Field("until", cli.TimeText(l.ExpiresAt))
	})
}

type leaseDelete struct {
	Addresses []string `arg:""`
	DryRun    bool     `help:"Only show what would be deleted."`
}

// Run forgets leases.
func (c *leaseDelete) Run(s *cli.Session) error { return cli.Remove(s, leases, c.Addresses, c.DryRun) }
