package inventory

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

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
	for i, l := range [][]netip.Addr{s.DNS, s.NTP} {
		field := []string{"dns", "ntp"}[i]
		if len(l) > 8 {
			return Errorf(Invalid, "subnet %s lists %d servers; at most 8 fit into an answer", s.Name, len(l)).At(field)
		}
		for _, a := range l {
			if !a.Is6() || a.Is4In6() || a.Zone() != "" {
				return Errorf(Invalid, "subnet %s: %s is not an IPv6 address", s.Name, a).At(field)
			}
		}
	}
	if s.MTU != 0 && (s.MTU < 1280 || s.MTU > 9216) {
		return Errorf(Invalid, "subnet %s: MTU %d is not between 1280 and 9216", s.Name, s.MTU).At("mtu")
	}
	if err := CheckOptions(OptionsOfSubnet, s.Name, "options", s.Options, true); err != nil {
		return err
	}
	return CheckText("domain", s.Domain, 253)
}

func (s *Subnet) checkLeaseTimes() error {
	for i, d := range []Duration{s.LeaseFor, s.BootLeaseFor} {
		if time.Duration(d) < time.Minute || time.Duration(d) > 365*24*time.Hour {
			return Errorf(Invalid, "subnet %s: a lease of %s is not between 1m and one year", s.Name, d).At([]string{"leaseFor", "bootLeaseFor"}[i])
		}
	}
	return nil
}

func (s *Subnet) checkRanges6() error {
	return s.checkRanges("both inside the network, the lower one first; the lowest address of all is the routers'",
		func(a netip.Addr) bool { return hostIn6(s.CIDR, a) })
}

// hostIn6 reports whether a may be a machine's address in an IPv6 network: its lowest is every router's (RFC 4291
// section 2.6.1).
func hostIn6(p netip.Prefix, a netip.Addr) bool {
	return a.Is6() && a.Zone() == "" && p.Contains(a) && a != p.Masked().Addr()
}
