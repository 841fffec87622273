package inventory

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
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
	StaticRanges []Range  `json:"staticRanges,omitempty" doc:"Addresses that machines are given for as long as they live, one each; DHCP never leases them"`
	Options      []Option `json:"options,omitempty"` // that answers carry besides

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
	for i, l := range [][]netip.Addr{s.DNS, s.NTP} {
		field := []string{"dns", "ntp"}[i]
		if len(l) > 8 {
			return Errorf(Invalid, "subnet %s lists %d servers; at most 8 fit into an answer", s.Name, len(l)).At(field)
		}
		for _, a := range l {
			if !a.Is4() {
				return Errorf(Invalid, "subnet %s: %s is not an IPv4 address", s.Name, a).At(field)
			}
		}
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
	for i, d := range []Duration{s.LeaseFor, s.BootLeaseFor} {
		if time.Duration(d) < time.Minute || time.Duration(d) > 365*24*time.Hour {
			return Errorf(Invalid, "subnet %s: a lease of %s is not between 1m and one year", s.Name, d).At([]string{"leaseFor", "bootLeaseFor"}[i])
		}
	}
	if err := CheckOptions(OptionsOfSubnet, s.Name, "options", s.Options, false); err != nil {
		return err
	}
	return s.checkRanges("both inside the network, the lower one first", func(a netip.Addr) bool { return addrIn(s.CIDR, a) })
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

// Reservation gives one machine one address permanently. Exactly one of MAC, ClientID, UUID and Port says which machine.
type Reservation struct {
	Address   netip.Addr `json:"address"`
	Subnet    string     `json:"subnet"`
	MAC       MAC        `json:"mac,omitempty"`
	ClientID  string     `json:"clientID,omitempty"` // option 61 in hex, as leases show it
	UUID      string     `json:"uuid,omitempty"`     // option 97, lower case
	Port      string     `json:"port,omitempty"`     // switch port: CIRCUIT@SWITCH, or CIRCUIT alone; see PortName
	Hostname  string     `json:"hostname,omitempty"`
	Options   []Option   `json:"options,omitempty"` // before those of its classes and its subnet
	CreatedAt time.Time  `json:"createdAt"`
	UpdatedAt time.Time  `json:"updatedAt"`
	Version   int64      `json:"version"`
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
	return CheckOptions(OptionsOfReservation, r.Address.String(), "options", r.Options, s.Is6())
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
}
