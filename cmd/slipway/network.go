package main

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func subnets(c *client.Client) client.Noun[inventory.Subnet] { return c.Subnets }

type subnetCommand struct {
	List   subnetList   `cmd:"" help:"List subnets."`
	Show   subnetShow   `cmd:"" help:"Show a subnet."`
	Create subnetCreate `cmd:"" help:"Add a subnet."`
	Update subnetUpdate `cmd:"" help:"Change a subnet; what is not given stays."`
	Delete subnetDelete `cmd:"" help:"Delete subnets with their ranges, reservations and leases."`

	Usage      subnetUsage      `cmd:"" help:"Count what the addresses of a subnet are doing."`
	Snippet    subnetSnippet    `cmd:"" help:"Write what another DHCP server is told to send machines here."`
	Probe      subnetProbe      `cmd:"" help:"Ask the DHCP servers of a subnet where they lead machines that boot from the network."`
	Servers    subnetServers    `cmd:"" help:"List the other DHCP servers that were noticed on a subnet."`
	Interfaces subnetInterfaces `cmd:"" help:"List the server's network interfaces and their boot doors."`
}

type subnetList struct{}

// Run lists subnets.
func (*subnetList) Run(s *session) error {
	return showList(s, subnets, client.Query{}, 0, []string{"NAME", "CIDR", "MODE", "INTERFACE", "GATEWAY", "RANGES", "UNKNOWN"}, func(n inventory.Subnet) []string {
		return []string{n.Name, n.CIDR.String(), string(n.Mode), n.Interface, addrText(n.Gateway), rangesText(n.Ranges), string(n.Unknown)}
	})
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func addrsText(list []netip.Addr) string {
	var out []string
	for _, a := range list {
		out = append(out, a.String())
	}
	return strings.Join(out, " ")
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
func (c *subnetShow) Run(s *session) error {
	return showOne(s, subnets, c.Subnet, func(t *tableWriter, n inventory.Subnet) {
		t.field("name", n.Name)
		t.field("cidr", n.CIDR.String())
		t.field("mode", string(n.Mode))
		t.field("interface", n.Interface)
		t.field("gateway", addrText(n.Gateway))
		t.field("dns", addrsText(n.DNS))
		t.field("ntp", addrsText(n.NTP))
		t.field("domain", n.Domain)
		if n.MTU > 0 {
			t.field("mtu", fmt.Sprint(n.MTU))
		}
		for _, r := range n.Routes {
			t.field("route", r.To.String()+" via "+r.Via.String())
		}
		t.field("lease for", n.LeaseFor.String())
		t.field("boot lease for", n.BootLeaseFor.String())
		t.field("unknown", string(n.Unknown))
		for _, r := range n.Ranges {
			t.field("range", r.First.String()+"-"+r.Last.String())
		}
		for _, r := range n.StaticRanges {
			t.field("static range", r.First.String()+"-"+r.Last.String())
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
	Unknown      *string        `help:"What machines get that nobody has accepted: disk, wait or ignore (default disk)." placeholder:"POLICY"`
	Advertise    *string        `help:"IPv6: who makes the machines' addresses: managed (DHCPv6), slaac (they do), or off when another router advertises (default managed)." placeholder:"HOW"`
	Router       *bool          `help:"IPv6: advertise this server as the default router." negatable:""`
	Option       []string       `sep:"none" help:"A DHCP option, NAME=VALUE or NUMBER/TYPE=VALUE; repeat for more, give it empty for none." placeholder:"OPTION"`
	DryRun       bool           `help:"Only show what would change."`
}

// apply lays the flags over a subnet.
func (f *subnetFlags) apply(n *inventory.Subnet) error {
	set(&n.Interface, f.Interface)
	set(&n.Mode, (*inventory.SubnetMode)(f.Mode))
	set(&n.Domain, f.Domain)
	set(&n.MTU, f.MTU)
	set(&n.LeaseFor, (*inventory.Duration)(f.LeaseFor))
	set(&n.BootLeaseFor, (*inventory.Duration)(f.BootLeaseFor))
	set(&n.Unknown, (*inventory.UnknownPolicy)(f.Unknown))
	set(&n.Advertise, (*inventory.Advertise)(f.Advertise))
	set(&n.IsRouter, f.Router)
	if f.Gateway != nil {
		n.Gateway = netip.Addr{}
		if *f.Gateway != "" {
			a, err := parseAddr("--gateway", *f.Gateway)
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
			a, err := parseAddr(l.flag, text)
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
			return usage("write it as 10.9.0.0/16=10.0.0.254", "--route %q is not a route", text)
		}
		a, err := parseAddr("--route", via)
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

func set[T any](field *T, v *T) {
	if v != nil {
		*field = *v
	}
}

func parseAddr(flag, text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, usage("write it as 10.0.0.1", "%s %q is not an address", flag, text)
	}
	return a, nil
}

func parseRange(text string) (inventory.Range, error) {
	first, last, _ := strings.Cut(text, "-")
	a, err1 := netip.ParseAddr(first)
	b, err2 := netip.ParseAddr(last)
	if err1 != nil || err2 != nil {
		return inventory.Range{}, usage("write its first and last address: 10.0.0.100-10.0.0.199", "%q is not a range", text)
	}
	return inventory.Range{First: a, Last: b}, nil
}

func parseCIDR(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, usage("write it as 10.0.0.0/24", "--cidr %q is not a network", text)
	}
	return p, nil
}

type subnetCreate struct {
	Name string `arg:"" help:"Its name, a DNS label."`
	CIDR string `name:"cidr" required:"" help:"The network, such as 10.0.0.0/24 or fd00:1::/64." placeholder:"CIDR"`
	subnetFlags
}

// Run adds a subnet.
func (c *subnetCreate) Run(s *session) error {
	p, err := parseCIDR(c.CIDR)
	if err != nil {
		return err
	}
	n := inventory.Subnet{Name: c.Name, CIDR: p}
	n.FillDefaults()
	if err := c.apply(&n); err != nil {
		return err
	}
	return write(s, subnets, "POST", "", n, c.DryRun)
}

type subnetUpdate struct {
	Subnet string  `arg:""`
	CIDR   *string `name:"cidr" help:"Another network." placeholder:"CIDR"`
	subnetFlags
}

// Run changes a subnet as it is stored now.
func (c *subnetUpdate) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	n, err := api.Subnets.Get(s.ctx, c.Subnet)
	if err != nil {
		return err
	}
	if c.CIDR != nil {
		if n.CIDR, err = parseCIDR(*c.CIDR); err != nil {
			return err
		}
	}
	if err := c.apply(&n); err != nil {
		return err
	}
	return write(s, subnets, "PUT", c.Subnet, n, c.DryRun, client.IfVersion(n.Version))
}

type subnetDelete struct {
	Subnets []string `arg:""`
	DryRun  bool     `help:"Only show what would be deleted."`
}

// Run deletes subnets.
func (c *subnetDelete) Run(s *session) error { return remove(s, subnets, c.Subnets, c.DryRun) }

type rangeCommand struct {
	Add    rangeAdd    `cmd:"" help:"Add a range to a subnet."`
	Remove rangeRemove `cmd:"" help:"Take a range from a subnet."`
}

type rangeAdd struct {
	Subnet string `arg:""`
	Range  string `arg:"" help:"FIRST-LAST"`
}

// Run adds a range.
func (c *rangeAdd) Run(s *session) error {
	r, err := parseRange(c.Range)
	if err != nil {
		return err
	}
	api, err := s.client()
	if err != nil {
		return err
	}
	n, err := api.AddRange(s.ctx, c.Subnet, r)
	if err != nil {
		return err
	}
	return s.stored(n)
}

type rangeRemove struct {
	Subnet string `arg:""`
	Range  string `arg:"" help:"FIRST-LAST"`
}

// Run takes a range away.
func (c *rangeRemove) Run(s *session) error {
	r, err := parseRange(c.Range)
	if err != nil {
		return err
	}
	api, err := s.client()
	if err != nil {
		return err
	}
	n, err := api.RemoveRange(s.ctx, c.Subnet, r)
	if err != nil {
		return err
	}
	return s.stored(n)
}

func reservations(c *client.Client) client.Noun[inventory.Reservation] { return c.Reservations }

type reservationCommand struct {
	List   reservationList   `cmd:"" help:"List reservations."`
	Show   reservationShow   `cmd:"" help:"Show a reservation."`
	Create reservationCreate `cmd:"" help:"Keep an address for a machine."`
	Update reservationUpdate `cmd:"" help:"Change the name or the options of a reservation; what is not given stays."`
	Delete reservationDelete `cmd:"" help:"Delete reservations."`
}

type reservationList struct {
	Subnet string `help:"Only those of this subnet." placeholder:"NAME"`
}

// Run lists reservations.
func (c *reservationList) Run(s *session) error {
	return showList(s, reservations, client.Query{Subnet: c.Subnet}, 0, []string{"ADDRESS", "SUBNET", "MAC", "CLIENT ID", "UUID", "PORT", "HOSTNAME"},
		func(r inventory.Reservation) []string {
			return []string{r.Address.String(), r.Subnet, string(r.MAC), r.ClientID, r.UUID, r.Port, r.Hostname}
		})
}

type reservationShow struct {
	Address string `arg:""`
}

// Run shows a reservation.
func (c *reservationShow) Run(s *session) error {
	return showOne(s, reservations, c.Address, func(t *tableWriter, r inventory.Reservation) {
		t.field("address", r.Address.String())
		t.field("subnet", r.Subnet)
		t.field("mac", string(r.MAC))
		t.field("client id", r.ClientID)
		t.field("uuid", r.UUID)
		t.field("port", r.Port)
		t.field("hostname", r.Hostname)
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
func (c *reservationCreate) Run(s *session) error {
	a, err := parseAddr("reservation", c.Address)
	if err != nil {
		return err
	}
	r := inventory.Reservation{Address: a, MAC: inventory.MAC(c.MAC), ClientID: c.ClientID, UUID: c.UUID, Port: c.Port, Hostname: c.Hostname}
	if err := setOptions(&r.Options, c.Option); err != nil {
		return err
	}
	return write(s, reservations, "POST", "", r, c.DryRun)
}

type reservationUpdate struct {
	Address  string   `arg:""`
	Hostname *string  `help:"Host name that DHCP gives the machine." placeholder:"NAME"`
	Option   []string `sep:"none" help:"A DHCP option, NAME=VALUE or NUMBER/TYPE=VALUE; repeat for more, give it empty for none." placeholder:"OPTION"`
	DryRun   bool     `help:"Only show what would change."`
}

// Run changes a reservation as it is stored now.
func (c *reservationUpdate) Run(s *session) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	r, err := api.Reservations.Get(s.ctx, c.Address)
	if err != nil {
		return err
	}
	set(&r.Hostname, c.Hostname)
	if err := setOptions(&r.Options, c.Option); err != nil {
		return err
	}
	return write(s, reservations, "PUT", c.Address, r, c.DryRun, client.IfVersion(r.Version))
}

type reservationDelete struct {
	Addresses []string `arg:""`
	DryRun    bool     `help:"Only show what would be deleted."`
}

// Run deletes reservations.
func (c *reservationDelete) Run(s *session) error {
	return remove(s, reservations, c.Addresses, c.DryRun)
}

func leases(c *client.Client) client.Noun[inventory.Lease] { return c.Leases }

type leaseCommand struct {
	List   leaseList   `cmd:"" help:"List leases."`
	Show   leaseShow   `cmd:"" help:"Show a lease."`
	Delete leaseDelete `cmd:"" help:"Forget leases. A machine that still uses the address is not told."`
}

type leaseList struct {
	Subnet string `help:"Only those of this subnet." placeholder:"NAME"`
	Host   string `help:"Only those of this host." placeholder:"HOST"`
}

// Run lists leases.
func (c *leaseList) Run(s *session) error {
	return showList(s, leases, client.Query{Subnet: c.Subnet, Host: c.Host}, 0, []string{"ADDRESS", "SUBNET", "STATE", "MAC", "HOSTNAME", "PORT", "FOR", "UNTIL"},
		func(l inventory.Lease) []string {
			return []string{l.Address.String(), l.Subnet, leaseState(l, time.Now()), string(l.MAC), l.Hostname, l.Port, leaseKind(l), timeText(l.ExpiresAt)}
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
func (c *leaseShow) Run(s *session) error {
	return showOne(s, leases, c.Address, func(t *tableWriter, l inventory.Lease) {
		t.field("address", l.Address.String())
		t.field("subnet", l.Subnet)
		t.field("state", leaseState(l, time.Now()))
		t.field("mac", string(l.MAC))
		t.field("client id", l.ClientID)
		t.field("hostname", l.Hostname)
		t.field("port", l.Port)
		t.field("for", leaseKind(l))
		t.field("since", timeText(l.StartsAt))
		t.field("until", timeText(l.ExpiresAt))
	})
}

type leaseDelete struct {
	Addresses []string `arg:""`
	DryRun    bool     `help:"Only show what would be deleted."`
}

// Run forgets leases.
func (c *leaseDelete) Run(s *session) error { return remove(s, leases, c.Addresses, c.DryRun) }
