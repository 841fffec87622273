package ra

import (
	"encoding/hex"
	"net"
	"net/netip"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestAdvertisement(t *testing.T) {
	own := net.HardwareAddr{0x52, 0x54, 0, 1, 2, 3}
	six := inventory.Subnet{CIDR: netip.MustParsePrefix("fd00:1::/64"), Mode: inventory.ModeFull, Advertise: inventory.AdvertiseManaged}
	with := func(edit func(*inventory.Subnet)) []inventory.Subnet {
		s := six
		edit(&s)
		return []inventory.Subnet{s}
	}
	const link, lifetimes, prefix = "0101525400010203", "00278d0000093a8000000000", "fd000001000000000000000000000000"
	for _, c := range []struct {
		name    string
		subnets []inventory.Subnet
		want    string
	}{
		{"no IPv6 subnet: the smallest", nil, "86000000400000000000000000000000"},
		{"managed", with(func(*inventory.Subnet) {}), "8600000040c000000000000000000000" + link + "03044080" + lifetimes + prefix},
		{"DHCPv6 off: no flags", with(func(s *inventory.Subnet) { s.Mode = inventory.ModeOff }), "86000000400000000000000000000000" + link + "03044080" + lifetimes + prefix},
		{"slaac", with(func(s *inventory.Subnet) { s.Advertise = inventory.AdvertiseSLAAC }), "86000000404000000000000000000000" + link + "030440c0" + lifetimes + prefix},
		{"the router, and its MTU", with(func(s *inventory.Subnet) { s.IsRouter, s.MTU = true, 1400 }), "8600000040c007080000000000000000" + "0501000000000578" + link + "03044080" + lifetimes + prefix},
		{"another router's", with(func(s *inventory.Subnet) { s.Advertise = inventory.AdvertiseOff }), ""},
	} {
		if got := hex.EncodeToString(advertisement(c.subnets, own)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
