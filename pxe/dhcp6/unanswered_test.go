package dhcp6

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
	"golang.org/x/net/ipv6"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease6"
)

// boots is an engine that gives every machine a loader.
type boots struct{ kinds []string }

func (*boots) Offer(context.Context, pxe.Client, string) pxe.Reply {
	return pxe.Reply{File: "http://[fd00::1]/boot/snponly.efi"}
}

func (b *boots) Note(_ context.Context, _ pxe.Client, kind, _ string) {
	b.kinds = append(b.kinds, kind)
}
func (*boots) Conflict(netip.Addr, string, inventory.MAC, string) {}
func (*boots) Exhausted(string)                                   {}
func (*boots) Save(context.Context, []inventory.Lease) error      { return nil }

// stranger is the MAC of a machine that nobody has heard of.
const known, stranger = inventory.MAC("52:54:00:01:02:03"), inventory.MAC("52:54:00:01:02:04")

func TestWhyAMachineGetsNoAddress(t *testing.T) {
	at := netip.MustParseAddr
	full := inventory.Subnet{Name: "six", CIDR: netip.MustParsePrefix("fd00::/64"), Mode: inventory.ModeFull, LeaseFor: inventory.Duration(time.Hour), Ranges: []inventory.Range{{First: at("fd00::1000"), Last: at("fd00::1fff")}}}
	with := func(change func(*inventory.Subnet)) []inventory.Subnet {
		s := full
		change(&s)
		return []inventory.Subnet{s}
	}
	solicit := func(t *testing.T) dhcpv6.DHCPv6 { return discover(t) }
	for _, c := range []struct {
		name     string
		subnets  []inventory.Subnet
		ours     []netip.Addr
		asks     func(t *testing.T) dhcpv6.DHCPv6
		who      inventory.MAC
		want     string // "": it is answered
		isMeant  bool
		isRelays bool
		isOthers bool // another instance answers on the subnet
	}{
		{name: "it is offered one", subnets: []inventory.Subnet{full}, ours: []netip.Addr{at("fd00::1")}},
		{name: "no subnet", ours: []netip.Addr{at("fd00::1")}, want: string(lease6.NoSubnet), isMeant: true},
		{name: "no subnet behind a relay", want: string(lease6.NoSubnet), isRelays: true, asks: func(t *testing.T) dhcpv6.DHCPv6 {
			m, err := dhcpv6.EncapsulateRelay(discover(t), dhcpv6.MessageTypeRelayForward, net.ParseIP("fd09::1"), net.ParseIP("fe80::5054:ff:fe01:203"))
			if err != nil {
				t.Fatal(err)
			}
			return m
		}},
		{name: "off", subnets: with(func(s *inventory.Subnet) { s.Mode = inventory.ModeOff }), ours: []netip.Addr{at("fd00::1")}, want: string(lease6.IsOff), isMeant: true},
		{name: "reservations", subnets: with(func(s *inventory.Subnet) { s.Mode = inventory.ModeReservations }), ours: []netip.Addr{at("fd00::1")}, want: string(lease6.NoReservation), isMeant: true},
		{name: "another instance answers", subnets: []inventory.Subnet{full}, ours: []netip.Addr{at("fd00::1")}, isOthers: true, want: string(lease6.Elsewhere), isMeant: true},
		{name: "no address is left", subnets: with(func(s *inventory.Subnet) { s.Ranges = nil }), ours: []netip.Addr{at("fd00::1")}, want: string(lease6.Exhausted)},
		{name: "we have no address", subnets: with(func(s *inventory.Subnet) { s.Interface = "eth9" }), want: "the interface has no IPv6 address in the subnet"},
		{name: "another network", subnets: []inventory.Subnet{full}, ours: []netip.Addr{at("fd00::1")}, want: string(lease6.WrongNetwork), asks: func(t *testing.T) dhcpv6.DHCPv6 {
			m := discover(t, dhcpv6.WithServerID(&dhcpv6.DUIDOpaque{Type: 9, Data: []byte{1}}))
			m.MessageType = dhcpv6.MessageTypeRequest
			m.Options.OneIANA().Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP("fd01::7")})
			return m
		}},
		{name: "an operating system", asks: func(t *testing.T) dhcpv6.DHCPv6 {
			m := discover(t)
			m.Options.Del(dhcpv6.OptionClientArchType)
			return m
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told []pxe.Unanswered
			engine := &boots{}
			s := New(Config{
				Book: lease6.New(lease6.Network{Subnets: c.subnets, Ours: c.ours}, nil), Leases: engine, Boots: engine, BootPort: 80, DUID: []byte{0, 9, 1},
				Unanswered: func(u pxe.Unanswered) { told = append(told, u) }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
				Answers: func(subnet string) bool { return subnet == "six" && !c.isOthers },
			})
			conn, err := net.ListenPacket("udp6", "[::1]:0")
			if err != nil {
				t.Skip("no IPv6 here: ", err)
			}
			defer conn.Close()
			if c.asks == nil {
				c.asks = solicit
			}
			p := &port{link: link{name: "eth9", addrs: c.ours}, conn: ipv6.NewPacketConn(conn)}
			s.handle(t.Context(), arrival{
				port: p, at: time.Now(), source: netip.MustParseAddrPort("[fe80::5054:ff:fe01:203]:546"), local: at("ff02::1:2"), packet: c.asks(t).ToBytes(),
			})
			if c.want == "" {
				if len(told) != 0 {
					t.Errorf("%+v", told)
				}
				return
			}
			if len(told) != 1 {
				t.Fatalf("told of %d, want one: %+v", len(told), told)
			}
			u := told[0]
			if u.Reason != c.want || u.IsMeant != c.isMeant || u.IsElsewhere != c.isOthers || u.Client.MAC != known || u.Iface != "eth9" || u.Client.Relay.IsValid() != c.isRelays || u.Type == "" {
				t.Errorf("%+v, want %q", u, c.want)
			}
		})
	}
}

// TestAMachineNeedNotAskAgainOverIPv6 lets another instance die while a machine waits for its answer.
func TestAMachineNeedNotAskAgainOverIPv6(t *testing.T) {
	at := netip.MustParseAddr
	subnet := inventory.Subnet{
		Name: "six", CIDR: netip.MustParsePrefix("fd00::/64"), Mode: inventory.ModeFull, LeaseFor: inventory.Duration(time.Hour),
		Ranges: []inventory.Range{{First: at("fd00::1000"), Last: at("fd00::1fff")}},
	}
	as := func(kind dhcpv6.MessageType, hasServer bool) []byte {
		m := discover(t)
		if m.MessageType = kind; hasServer {
			m.AddOption(dhcpv6.OptServerID(&dhcpv6.DUIDOpaque{Type: 9, Data: []byte{1}}))
		}
		if kind == dhcpv6.MessageTypeInformationRequest {
			m.Options.Del(dhcpv6.OptionIANA)
		}
		return m.ToBytes()
	}
	first := as(dhcpv6.MessageTypeSolicit, false)
	for _, c := range []struct {
		name  string
		asks  []byte
		then  []byte        // what it sends before the network comes
		after time.Duration // when the network comes
		wants kind
	}{
		{"SOLICIT", first, nil, 4 * time.Second, solicit},
		{"REQUEST", as(dhcpv6.MessageTypeRequest, true), nil, 4 * time.Second, request},
		{"RENEW", as(dhcpv6.MessageTypeRenew, true), nil, 4 * time.Second, renew},
		{"REBIND", as(dhcpv6.MessageTypeRebind, false), nil, 4 * time.Second, rebind},
		{"INFORMATION-REQUEST", as(dhcpv6.MessageTypeInformationRequest, false), nil, 4 * time.Second, inform},
		{"the last one counts", first, as(dhcpv6.MessageTypeRequest, true), 4 * time.Second, request},
		{"it wants nothing any more", first, as(dhcpv6.MessageTypeRelease, true), 4 * time.Second, 0},
		{"too late", first, nil, 9 * time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			isOurs, now := false, time.Now()
			s := New(Config{
				Book: lease6.New(lease6.Network{Subnets: []inventory.Subnet{subnet}, Ours: []netip.Addr{at("fd00::1")}}, nil),
				DUID: []byte{0, 9, 1}, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
				Answers: func(string) bool { return isOurs },
			})
			for _, packet := range [][]byte{c.asks, c.then} {
				if packet != nil {
					s.handle(t.Context(), arrival{
						port: &port{link: link{name: "eth9", addrs: []netip.Addr{at("fd00::1")}}}, at: now,
						source: netip.MustParseAddrPort("[fe80::5054:ff:fe01:203]:546"), local: at("ff02::1:2"), packet: packet,
					})
				}
			}
			if now = now.Add(c.after); c.wants != 0 && len(s.misses) != 1 {
				t.Error("nobody is woken")
			}
			isOurs = true
			all := s.missed.Take(now, s.cfg.Answers)
			var got kind
			if len(all) > 0 {
				m, err := parse(all[0].packet)
				if got = m.kind; err != nil {
					t.Fatal(err)
				}
			}
			if len(all) > 1 || got != c.wants || s.missed.N() != 0 {
				t.Errorf("it answers %v, %d packets, and keeps %d; want %v", got, len(all), s.missed.N(), c.wants)
			}
		})
	}
}

// A flood of made-up MACs is told of up to a rate; a known machine always.
func TestStrangersAreToldOfUpToARate(t *testing.T) {
	n := map[inventory.MAC]int{}
	now := time.Now()
	s := New(Config{
		Book: lease6.New(lease6.Network{}, nil), DUID: []byte{0, 9, 1}, Knows: func(m inventory.MAC) bool { return m == known },
		Unanswered: func(u pxe.Unanswered) { n[u.Client.MAC]++ }, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
	})
	for range 2000 {
		for _, peer := range []string{"[fe80::5054:ff:fe01:203]:546", "[fe80::5054:ff:fe01:204]:546"} {
			s.handle(t.Context(), arrival{
				port: &port{link: link{name: "eth9"}}, at: now, source: netip.MustParseAddrPort(peer), local: netip.MustParseAddr("ff02::1:2"), packet: discover(t, dhcpv6.WithArchType(iana.EFI_X86_64)).ToBytes(),
			})
		}
	}
	if n[known] != 2000 || n[stranger] != 500 {
		t.Errorf("told of %v", n)
	}
}
