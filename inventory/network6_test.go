package inventory

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestSubnet6Validate(t *testing.T) {
	at := netip.MustParseAddr
	for _, c := range []struct {
		name string
		edit func(*Subnet)
		want string // "" when it is right
	}{
		{"as it is", func(*Subnet) {}, ""},
		{"slaac", func(s *Subnet) { s.Advertise = AdvertiseSLAAC }, ""},
		{"the router", func(s *Subnet) { s.IsRouter = true }, ""},
		{"host bits", func(s *Subnet) { s.CIDR = netip.MustParsePrefix("fd00:1::1/64") }, "has host bits set"},
		{"multicast", func(s *Subnet) { s.CIDR = netip.MustParsePrefix("ff02::/64") }, "not an IPv6 network"},
		{"too small", func(s *Subnet) { s.CIDR = netip.MustParsePrefix("fd00:1::/126") }, "not an IPv6 network"},
		{"IPv4 in IPv6", func(s *Subnet) { s.CIDR = netip.MustParsePrefix("::ffff:10.0.0.0/112") }, "not an IPv6 network"},
		{"proxy", func(s *Subnet) { s.Mode = "proxy" }, "proxy"},
		{"no way to advertise", func(s *Subnet) { s.Advertise = "always" }, "always"},
		{"slaac in a /80", func(s *Subnet) {
			s.CIDR, s.Ranges, s.Advertise = netip.MustParsePrefix("fd00:1::/80"), nil, AdvertiseSLAAC
		}, "/64"},
		{"a router that does not advertise", func(s *Subnet) { s.Advertise, s.IsRouter = AdvertiseOff, true }, "router"},
		{"a gateway", func(s *Subnet) { s.Gateway = at("fd00:1::1") }, "routers from advertisements"},
		{"IPv4 DNS", func(s *Subnet) { s.DNS = []netip.Addr{at("10.0.0.1")} }, "10.0.0.1"},
		{"an MTU below IPv6's", func(s *Subnet) { s.MTU = 1000 }, "1280"},
		{"a range outside", func(s *Subnet) { s.Ranges[0].Last = at("fd00:2::1") }, "not a range inside"},
		{"the routers' address", func(s *Subnet) { s.Ranges[0].First = at("fd00:1::") }, "not a range inside"},
		{"ranges that overlap", func(s *Subnet) { s.Ranges = append(s.Ranges, Range{at("fd00:1::1fff"), at("fd00:1::2fff")}) }, "overlap"},
	} {
		s := Subnet{
			Name: "six", CIDR: netip.MustParsePrefix("fd00:1::/64"), Mode: ModeFull, Unknown: UnknownDisk,
			LeaseFor: Duration(time.Hour), BootLeaseFor: Duration(time.Minute), Ranges: []Range{{at("fd00:1::1000"), at("fd00:1::1fff")}},
		}
		c.edit(&s)
		err := s.Validate()
		if c.want == "" && (err != nil || s.Advertise == "") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q (advertise %q)", c.name, err, c.want, s.Advertise)
		}
	}
	four := Subnet{Name: "four", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Advertise: AdvertiseManaged}
	if err := four.Validate(); err == nil || !strings.Contains(err.Error(), "IPv6") {
		t.Errorf("an IPv4 subnet that advertises: %v", err)
	}
}
