package ra

import (
	"bytes"
	"encoding/hex"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

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
	dns := []netip.Addr{netip.MustParseAddr("fd00:1::")}
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
		{"slaac, DHCPv6 off", with(func(s *inventory.Subnet) { s.Advertise, s.Mode = inventory.AdvertiseSLAAC, inventory.ModeOff }), "86000000400000000000000000000000" + link + "030440c0" + lifetimes + prefix},
		{"slaac with a name server", with(func(s *inventory.Subnet) { s.Advertise, s.DNS = inventory.AdvertiseSLAAC, dns }), "86000000404000000000000000000000" + link + "030440c0" + lifetimes + prefix + "1903000000000258" + prefix},
		{"a name server that DHCPv6 tells of", with(func(s *inventory.Subnet) { s.DNS = dns }), "8600000040c000000000000000000000" + link + "03044080" + lifetimes + prefix},
		{
			"several: one makes us the router, the smallest MTU counts, another router's is left out", append(append(with(func(s *inventory.Subnet) { s.IsRouter, s.MTU = true, 1400 }), with(func(s *inventory.Subnet) { s.MTU = 1500 })...), append(with(func(*inventory.Subnet) {}), with(func(s *inventory.Subnet) { s.Advertise = inventory.AdvertiseOff })...)...),
			"8600000040c007080000000000000000" + "0501000000000578" + link + strings.Repeat("03044080"+lifetimes+prefix, 3),
		},
	} {
		if got := hex.EncodeToString(advertisement(c.subnets, own)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	want, _ := hex.DecodeString("8600000040c000000000000000000000" + "03044080" + lifetimes + prefix)
	if got := advertisement([]inventory.Subnet{six}, make(net.HardwareAddr, 8)); !bytes.Equal(got, want) { // InfiniBand has no such option
		t.Errorf("without a MAC: %x", got)
	}
}

func TestOnlyTheInstanceWithTheNetworkAdvertises(t *testing.T) {
	subnet := func(name, prefix string) inventory.Subnet {
		return inventory.Subnet{Name: name, CIDR: netip.MustParsePrefix(prefix), Mode: inventory.ModeFull, Advertise: inventory.AdvertiseManaged, IsRouter: true}
	}
	one, two := subnet("one", "fd00:1::/64"), subnet("two", "fd00:2::/64")
	all, held := []inventory.Subnet{one, two}, map[string]bool{}
	s := New(Config{Subnets: func(string) []inventory.Subnet { return all }, Answers: func(name string) bool { return held[name] }})
	ifi := &net.Interface{Name: "eth0", HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}}
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	var said spoken
	wants := func(what string, subnets ...inventory.Subnet) {
		t.Helper()
		at = at.Add(lookEvery)
		advert := s.due(ifi, &said, at)
		if want := advertisement(subnets, ifi.HardwareAddr); (advert != nil) != (len(subnets) > 0) || advert != nil && !bytes.Equal(advert, want) {
			t.Errorf("%s: %x", what, advert)
		}
		if advert != nil {
			said = spoken{string(advert), at}
		}
		if list, ok := s.subnets("eth0"); ok != (len(list) > 0) {
			t.Errorf("%s: a question is answered with %v", what, list)
		}
	}
	wants("another instance has both networks")
	held["one"] = true
	wants("one was taken over", one)
	wants("and said")
	held["two"] = true
	wants("both were taken over", one, two)
	clear(held)
	wants("both are lost: nothing is withdrawn")
	held["one"], held["two"] = true, true
	wants("both are back: it says so at once", one, two)
	looked := s.looks()
	s.Look()
	select {
	case <-looked:
	default:
		t.Error("nobody looks when the networks have changed")
	}
	all, held = nil, map[string]bool{}
	if list, ok := s.subnets("eth0"); !ok || list != nil {
		t.Error("where there is no subnet, machines have to learn that there is no router")
	}
}

func TestWhatIsAdvertisedUnasked(t *testing.T) {
	six := []inventory.Subnet{{CIDR: netip.MustParsePrefix("fd00:1::/64"), Mode: inventory.ModeFull, Advertise: inventory.AdvertiseManaged}}
	off := []inventory.Subnet{{Advertise: inventory.AdvertiseOff}}
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	said := func(subnets []inventory.Subnet) spoken { return spoken{string(advertisement(subnets, nil)), at} }
	for _, c := range []struct {
		name    string
		said    spoken
		subnets []inventory.Subnet
		after   time.Duration
		want    []inventory.Subnet // whose advertisement
		isDue   bool
	}{
		{"a subnet", spoken{}, six, 0, six, true},
		{"the same a while later", said(six), six, againAfter - time.Second, nil, false},
		{"and before it is forgotten", said(six), six, againAfter, six, true},
		{"no subnet, and there was none", spoken{}, nil, 0, nil, false},
		{"the subnet is gone: machines hear of it", said(six), nil, time.Second, nil, true},
		{"another router says it all", said(six), off, time.Second, nil, false},
	} {
		got := c.said.next(c.subnets, nil, at.Add(c.after))
		if c.isDue != (got != nil) || c.isDue && !bytes.Equal(got, advertisement(c.want, nil)) {
			t.Errorf("%s: %x", c.name, got)
		}
	}
}
