package inventory

import (
	"cmp"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory/option"
)

// SubnetMode says how DHCP serves a subnet.
type SubnetMode string

// The modes of a subnet.
const (
	ModeFull         SubnetMode = "full"         // we are the DHCP server: ranges and reservations
	ModeReservations SubnetMode = "reservations" // we answer only machines that have a reservation
	ModeProxy        SubnetMode = "proxy"        // another server gives addresses, we only say what to boot
	ModeOff          SubnetMode = "off"          // we stay silent
)

// SubnetModes returns all modes, the one that does most first.
func SubnetModes() []SubnetMode { return []SubnetMode{ModeFull, ModeReservations, ModeProxy, ModeOff} }

// UnknownPolicy says what happens to a machine that nobody has accepted yet.
type UnknownPolicy string

// The policies for machines that are not accepted. All of them list the machine; none boots an image on it.
const (
	UnknownDisk   UnknownPolicy = "disk"   // let it tell us what it is once, then send it to its own disk
	UnknownWait   UnknownPolicy = "wait"   // let it tell us what it is, then hold it until it is accepted
	UnknownIgnore UnknownPolicy = "ignore" // give it an address and no boot options at all
)

// Subnet is a network that Slipway serves, IPv4 or IPv6. A wire with both families has two subnets.
type Subnet struct {
	Name      string       `json:"name"`
	CIDR      netip.Prefix `json:"cidr"`
	Interface string       `json:"interface,omitempty"` // where it is directly attached; empty: reached by relay only
	Mode      SubnetMode   `json:"mode"`

	Gateway netip.Addr   `json:"gateway,omitzero"`
	DNS     []netip.Addr `json:"dns,omitempty"`
	NTP     []netip.Addr `json:"ntp,omitempty"`
	Domain  string       `json:"domain,omitempty"`
	MTU     int          `json:"mtu,omitempty"`
	Routes  []Route      `json:"routes,omitempty"`

	LeaseFor     Duration      `json:"leaseFor"`     // for operating systems
	BootLeaseFor Duration      `json:"bootLeaseFor"` // for firmware and boot loaders
	Unknown      UnknownPolicy `json:"unknown"`
	Ranges       []Range       `json:"ranges,omitempty"`
	// StaticRanges are the addresses that machines are given for good, which DHCP never leases.
	StaticRanges []Range         `json:"staticRanges,omitempty" doc:"Addresses that machines are given for as long as they live, one each; DHCP never leases them"`
	Options      []option.Option `json:"options,omitempty"` // that answers carry besides

	Advertise Advertise `json:"advertise,omitempty"` // of an IPv6 subnet: managed, slaac or off
	IsRouter  bool      `json:"isRouter,omitempty"`  // of an IPv6 subnet: this server is advertised as default router

	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Version   int64     `json:"version"`
}

// Route is a classless static route (RFC 3442).
type Route struct {
	To  netip.Prefix `json:"to"`
	Via netip.Addr   `json:"via"`
}

// Range is a run of addresses that may be leased to anyone, both ends included.
type Range struct {
	First netip.Addr `json:"first"`
	Last  netip.Addr `json:"last"`
}

// Contains reports whether the address lies in the range.
func (r Range) Contains(a netip.Addr) bool { return r.First.Compare(a) <= 0 && a.Compare(r.Last) <= 0 }

// FillDefaults fills in the defaults of a new subnet: full mode, and leases of a day for operating systems and ten minutes
// for firmware. Unaccepted machines boot their own disk.
func (s *Subnet) FillDefaults() {
	s.Mode = cmp.Or(s.Mode, ModeFull)
	s.Unknown = cmp.Or(s.Unknown, UnknownDisk)
	s.LeaseFor = cmp.Or(s.LeaseFor, Duration(24*time.Hour))
	s.BootLeaseFor = cmp.Or(s.BootLeaseFor, Duration(10*time.Minute))
}

// Validate checks a subnet by itself; the store checks it against the others. Ranges are put in order.
func (s *Subnet) Validate() error {
	if err := checkField("name", "subnet", s.Name); err != nil {
		return err
	}
	if isDone, err := s.check6(); isDone || err != nil {
		return err
	}
	if !s.CIDR.IsValid() || !s.CIDR.Addr().Is4() || s.CIDR.Bits() > 30 || s.CIDR.Bits() < 8 {
		return Errorf(Invalid, "subnet %s: %q is not an IPv4 network between /8 and /30", s.Name, s.CIDR).At("cidr")
	}
	if s.CIDR != s.CIDR.Masked() {
		return Errorf(Invalid, "subnet %s: %s has host bits set", s.Name, s.CIDR).At("cidr").WithHint("write %s", s.CIDR.Masked())
	}
	if !slices.Contains(SubnetModes(), s.Mode) {
		return Errorf(Invalid, "subnet %s: %q is not a mode", s.Name, s.Mode).At("mode").WithHint("use full, reservations, proxy or off")
	}
	if !slices.Contains([]UnknownPolicy{UnknownDisk, UnknownWait, UnknownIgnore}, s.Unknown) {
		return Errorf(Invalid, "subnet %s: %q does not say what to do with unknown machines", s.Name, s.Unknown).At("unknown").
			WithHint("use disk, wait or ignore")
	}
	if s.Gateway.IsValid() && !addrIn(s.CIDR, s.Gateway) {
		return Errorf(Invalid, "subnet %s: gateway %s is outside %s", s.Name, s.Gateway, s.CIDR).At("gateway").WithHint("machines reach a gateway only in their own network")
	}
	if err := s.checkServers("IPv4", netip.Addr.Is4); err != nil {
		return err
	}
	for _, r := range s.Routes {
		if !r.To.IsValid() || !r.To.Addr().Is4() || !r.Via.Is4() {
			return Errorf(Invalid, "subnet %s: route to %s via %s is not an IPv4 route", s.Name, r.To, r.Via).At("routes")
		}
	}
	if s.MTU != 0 && (s.MTU < 576 || s.MTU > 9216) {
		return Errorf(Invalid, "subnet %s: MTU %d is not between 576 and 9216", s.Name, s.MTU).At("mtu")
	}
	if err := CheckText("domain", s.Domain, 253); err != nil {
		return err
	}
	if err := s.checkLeaseTimes(); err != nil {
		return err
	}
	if err := CheckOptions(option.OfSubnet, s.Name, "options", s.Options, false); err != nil {
		return err
	}
	return s.checkRanges("both inside the network, the lower one first", func(a netip.Addr) bool { return addrIn(s.CIDR, a) })
}

// checkServers checks the addresses of the servers that answers name.
func (s *Subnet) checkServers(family string, is func(netip.Addr) bool) error {
	for i, l := range [][]netip.Addr{s.DNS, s.NTP} {
		field := []string{"dns", "ntp"}[i]
		if len(l) > 8 {
			return Errorf(Invalid, "subnet %s lists %d servers; at most 8 fit into an answer", s.Name, len(l)).At(field)
		}
		for _, a := range l {
			if !is(a) {
				return Errorf(Invalid, "subnet %s: %s is not an %s address", s.Name, a, family).At(field)
			}
		}
	}
	return nil
}

func (s *Subnet) checkLeaseTimes() error {
	for i, d := range []Duration{s.LeaseFor, s.BootLeaseFor} {
		if time.Duration(d) < time.Minute || time.Duration(d) > 365*24*time.Hour {
			return Errorf(Invalid, "subnet %s: a lease of %s is not between 1m and one year", s.Name, d).At([]string{"leaseFor", "bootLeaseFor"}[i])
		}
	}
	return nil
}

// checkRanges puts the ranges in order, and refuses those that are not inside or overlap, be they leased or static.
func (s *Subnet) checkRanges(hint string, isInside func(netip.Addr) bool) error {
	for _, l := range []struct {
		field string
		list  []Range
	}{{"ranges", s.Ranges}, {"staticRanges", s.StaticRanges}} {
		slices.SortFunc(l.list, compareRange)
		for i, r := range l.list {
			if !isInside(r.First) || !isInside(r.Last) || r.Last.Less(r.First) {
				return Errorf(Invalid, "subnet %s: %s to %s is not a range inside %s", s.Name, r.First, r.Last, s.CIDR).At(l.field).
					WithHint("write it as FIRST-LAST, %s", hint)
			}
			if i > 0 && l.list[i-1].Last.Compare(r.First) >= 0 {
				return Errorf(Invalid, "subnet %s: ranges %s-%s and %s-%s overlap", s.Name,
					l.list[i-1].First, l.list[i-1].Last, r.First, r.Last).At(l.field).
					WithHint("join them to one, or move one of them")
			}
		}
	}
	for _, r := range s.Ranges {
		for _, f := range s.StaticRanges {
			if r.First.Compare(f.Last) <= 0 && f.First.Compare(r.Last) <= 0 {
				return Errorf(Invalid, "subnet %s: the static range %s-%s overlaps the range %s-%s, which DHCP leases", s.Name,
					f.First, f.Last, r.First, r.Last).At("staticRanges").WithHint("an address is either leased or static: move one of the two")
			}
		}
	}
	return nil
}

// Advertise says how the routers' advertisements of an IPv6 subnet come about (RFC 4861 section 4.2).
type Advertise string

// The ways to advertise.
const (
	AdvertiseManaged Advertise = "managed" // we advertise the prefix as on-link; addresses come by DHCPv6
	AdvertiseSLAAC   Advertise = "slaac"   // machines make their own addresses; DHCPv6 tells them what to boot
	AdvertiseOff     Advertise = "off"     // another router advertises; it has to set the M flag, or the O flag
)

// Advertises returns all ways to advertise, the default first.
func Advertises() []Advertise { return []Advertise{AdvertiseManaged, AdvertiseSLAAC, AdvertiseOff} }

// Is6 reports whether it is an IPv6 network.
func (s *Subnet) Is6() bool { return s.CIDR.Addr().Is6() }

// check6 fills in and checks what differs between the families; isDone is true for an IPv6 subnet, of which it has
// checked all.
func (s *Subnet) check6() (isDone bool, err error) {
	if !s.CIDR.IsValid() || !s.Is6() {
		if s.Advertise != "" || s.IsRouter {
			return false, Errorf(Invalid, "subnet %s: advertise and isRouter are for IPv6 networks", s.Name).At("advertise").
				WithHint("make a subnet of its own for the IPv6 network of that wire")
		}
		return false, nil
	}
	s.Advertise = cmp.Or(s.Advertise, AdvertiseManaged)
	for _, check := range []func() error{s.checkPrefix6, s.checkModes6, s.checkServers6, s.checkLeaseTimes, s.checkRanges6} {
		if err := check(); err != nil {
			return true, err
		}
	}
	return true, nil
}

func (s *Subnet) checkPrefix6() error {
	a := s.CIDR.Addr()
	if a.Is4In6() || s.CIDR.Bits() < 32 || s.CIDR.Bits() > 120 || a.IsLinkLocalUnicast() || a.IsMulticast() {
		return Errorf(Invalid, "subnet %s: %q is not an IPv6 network between /32 and /120 for machines", s.Name, s.CIDR).At("cidr").
			WithHint("most networks are a /64, such as 2001:db8:0:1::/64 or fd00:1::/64")
	}
	if s.CIDR != s.CIDR.Masked() {
		return Errorf(Invalid, "subnet %s: %s has host bits set", s.Name, s.CIDR).At("cidr").WithHint("write %s", s.CIDR.Masked())
	}
	return nil
}

func (s *Subnet) checkModes6() error {
	if !slices.Contains([]SubnetMode{ModeFull, ModeReservations, ModeOff}, s.Mode) {
		return Errorf(Invalid, "subnet %s: %q is not a mode of an IPv6 subnet", s.Name, s.Mode).At("mode").
			WithHint("use full, reservations or off: DHCPv6 knows no server that only says what to boot")
	}
	if !slices.Contains([]UnknownPolicy{UnknownDisk, UnknownWait, UnknownIgnore}, s.Unknown) {
		return Errorf(Invalid, "subnet %s: %q does not say what to do with unknown machines", s.Name, s.Unknown).At("unknown").
			WithHint("use disk, wait or ignore")
	}
	if !slices.Contains(Advertises(), s.Advertise) {
		return Errorf(Invalid, "subnet %s: %q is not a way to advertise", s.Name, s.Advertise).At("advertise").WithHint("use managed, slaac or off")
	}
	if s.Advertise == AdvertiseSLAAC && s.CIDR.Bits() != 64 {
		return Errorf(Invalid, "subnet %s: machines make their own addresses in a /64 only", s.Name).At("advertise").WithHint("use managed")
	}
	if s.IsRouter && s.Advertise == AdvertiseOff {
		return Errorf(Invalid, "subnet %s: a router advertises itself", s.Name).At("isRouter").WithHint("use advertise managed or slaac with it")
	}
	return nil
}

func (s *Subnet) checkServers6() error {
	if s.Gateway.IsValid() || len(s.Routes) > 0 {
		return Errorf(Invalid, "subnet %s: IPv6 machines learn their routers from advertisements, not from DHCPv6", s.Name).At("gateway").
			WithHint("leave gateway and routes out; isRouter says that this server is the router")
	}
	if err := s.checkServers("IPv6", func(a netip.Addr) bool { return a.Is6() && !a.Is4In6() && a.Zone() == "" }); err != nil {
		return err
	}
	if s.MTU != 0 && (s.MTU < 1280 || s.MTU > 9216) {
		return Errorf(Invalid, "subnet %s: MTU %d is not between 1280 and 9216", s.Name, s.MTU).At("mtu")
	}
	if err := CheckOptions(option.OfSubnet, s.Name, "options", s.Options, true); err != nil {
		return err
	}
	return CheckText("domain", s.Domain, 253)
}

func (s *Subnet) checkRanges6() error {
	return s.checkRanges("both inside the network, the lower one first; the lowest address of all is the routers'",
		func(a netip.Addr) bool { return hostIn6(s.CIDR, a) })
}

func compareRange(a, b Range) int { return a.First.Compare(b.First) }

// addrIn reports whether a lies in the prefix and is neither its network nor its broadcast address.
func addrIn(p netip.Prefix, a netip.Addr) bool {
	if p.Addr().Is6() {
		return hostIn6(p, a)
	}
	return p.Contains(a) && a != p.Masked().Addr() && a != lastAddr(p)
}

// lastAddr returns the highest address of an IPv4 prefix.
func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for i := range b {
		if n := p.Bits() - 8*i; n < 8 {
			b[i] |= byte(0xff >> max(n, 0))
		}
	}
	return netip.AddrFrom4(b)
}

// hostIn6 reports whether a may be a machine's address in an IPv6 network: its lowest is every router's (RFC 4291
// section 2.6.1).
func hostIn6(p netip.Prefix, a netip.Addr) bool {
	return a.Is6() && a.Zone() == "" && p.Contains(a) && a != p.Masked().Addr()
}

// Reservation gives one machine one address permanently. Exactly one of MAC, ClientID, UUID and Port says which machine.
type Reservation struct {
	Address   netip.Addr      `json:"address"`
	Subnet    string          `json:"subnet"`
	MAC       MAC             `json:"mac,omitempty"`
	ClientID  string          `json:"clientID,omitempty"` // option 61 in hex, as leases show it
	UUID      string          `json:"uuid,omitempty"`     // option 97, lower case
	Port      string          `json:"port,omitempty"`     // switch port: CIRCUIT@SWITCH, or CIRCUIT alone; see PortName
	Hostname  string          `json:"hostname,omitempty"`
	Options   []option.Option `json:"options,omitempty"` // before those of its classes and its subnet
	CreatedAt time.Time       `json:"createdAt"`
	UpdatedAt time.Time       `json:"updatedAt"`
	Version   int64           `json:"version"`
}

// Validate checks a reservation against its subnet.
func (r *Reservation) Validate(s *Subnet) error {
	if !addrIn(s.CIDR, r.Address) {
		return Errorf(Invalid, "reservation %s is not a host address of subnet %s (%s)", r.Address, s.Name, s.CIDR).At("address")
	}
	n := 0
	for _, key := range []string{string(r.MAC), r.ClientID, r.UUID, r.Port} {
		if key != "" {
			n++
		}
	}
	if n != 1 {
		return Errorf(Invalid, "reservation %s names %d machines", r.Address, n).At("mac").
			WithHint("give exactly one of mac, clientID, uuid and port")
	}
	if r.MAC != "" {
		if m, err := ParseMAC(string(r.MAC)); err != nil || m != r.MAC {
			return Errorf(Invalid, "reservation %s: %q is not a MAC address", r.Address, r.MAC).At("mac")
		}
	}
	if r.Hostname != "" {
		if err := checkField("hostname", "host", r.Hostname); err != nil {
			return err
		}
	}
	if err := CheckText("port", r.Port, maxPortName); err != nil {
		return err
	}
	if err := CheckText("clientID", r.ClientID, 512); err != nil {
		return err
	}
	return CheckOptions(option.OfReservation, r.Address.String(), "options", r.Options, s.Is6())
}

// LeaseState is what an address is doing.
type LeaseState string

// The states of a lease. An offer is not one: it lives in memory only, because nothing was promised.
const (
	LeaseBound    LeaseState = "bound"    // acknowledged until ExpiresAt
	LeaseReleased LeaseState = "released" // given back; kept so that the client gets it again
	LeaseDeclined LeaseState = "declined" // somebody else uses it: not given to anyone until ExpiresAt
)

// Lease is an address given to a machine. It is on disk before the machine gets it. A lease row stays after it has expired,
// so that the machine gets the same address again, until another needs it.
type Lease struct {
	Address   netip.Addr `json:"address"`
	Subnet    string     `json:"subnet"`
	MAC       MAC        `json:"mac"`
	ClientID  string     `json:"clientID,omitempty"` // option 61 in hex
	IAID      uint32     `json:"iaid,omitempty"`     // of an IPv6 lease: the client's name for the interface; ClientID is its DUID
	Hostname  string     `json:"hostname,omitempty"` // as the client says
	Port      string     `json:"port,omitempty"`     // switch port that its relay named (option 82); see PortName
	State     LeaseState `json:"state"`
	IsBoot    bool       `json:"isBoot"` // given to firmware or a boot loader
	StartsAt  time.Time  `json:"startsAt"`
	ExpiresAt time.Time  `json:"expiresAt"`

	// Epoch is that of NetworkDuty(Subnet) in which an instance decided on the lease. It is not stored: who stores the lease compares it, so
	// that nothing is stored that was decided from leases of before another instance had the network. 0: it has not been decided there.
	Epoch int64 `json:"-"`
}

// maxPortName is how long the name of a switch port may be: two suboptions of 255 bytes in hex, and what joins them.
const maxPortName = 1200

// PortName names a switch port by option 82 of relays (RFC 3046). circuit is suboption 1. device is suboption 2 or, where
// the relay sends none, its address. It is "CIRCUIT@DEVICE"; "" when no circuit was named. It writes bytes that are no
// plain text in hex after 0x.
func PortName(circuit []byte, device string) string {
	if len(circuit) == 0 {
		return ""
	}
	return PortText(circuit) + "@" + device
}

// PortText writes a suboption of option 82 for people: as it is when it is plain text, else in hex after 0x.
func PortText(b []byte) string {
	for i, c := range b {
		if c <= ' ' || c >= 0x7f || strings.ContainsRune(`@,="'`, rune(c)) || i == 1 && b[0] == '0' && c == 'x' {
			return "0x" + hex.EncodeToString(b)
		}
	}
	return string(b)
}

// PortCircuit returns the first part of a port's name.
func PortCircuit(name string) string {
	circuit, _, _ := strings.Cut(name, "@")
	return circuit
}

// CheckPort checks the port that a host is pinned to: it names the switch too, because circuits repeat between them.
func CheckPort(name string) error {
	if err := CheckText("port", name, maxPortName); err != nil || name == "" {
		return err
	}
	circuit, device, _ := strings.Cut(name, "@")
	if circuit == "" || device == "" || strings.ContainsAny(name, " ,") {
		return Errorf(Invalid, "%q is not a switch port", Clean(name, 80)).At("port").
			WithHint("write CIRCUIT@SWITCH as slipway lease list shows it, for example ge-0/0/5@rack7")
	}
	return nil
}
