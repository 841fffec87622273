package dhcp

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/insomniacslk/dhcp/dhcpv4"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// rack is a subnet that sets everything it can.
func rack() *inventory.Subnet {
	return &inventory.Subnet{
		Name: "rack1", CIDR: netip.MustParsePrefix("10.98.0.0/24"), Interface: "eno2", Mode: inventory.ModeFull,
		Gateway: ip("10.98.0.254"), DNS: []netip.Addr{ip("10.98.0.1"), ip("9.9.9.9")}, NTP: []netip.Addr{ip("10.98.0.1")},
		Domain: "rack1.example.net", MTU: 9000,
		Routes:   []inventory.Route{{To: netip.MustParsePrefix("172.16.0.0/12"), Via: ip("10.98.0.253")}},
		LeaseFor: inventory.Duration(24 * time.Hour), BootLeaseFor: inventory.Duration(10 * time.Minute), Unknown: inventory.UnknownWait,
		Ranges: []inventory.Range{{First: ip("10.98.0.85"), Last: ip("10.98.0.99")}},
	}
}

func decoded(t testing.TB, packet []byte, a arrival) *query {
	t.Helper()
	k, b, reason := normalise(packet)
	if reason != dropNone {
		t.Fatal(reason)
	}
	return queryOf(k, b, a)
}

func queryOf(k kind, b []byte, a arrival) *query {
	q := &query{}
	q.decode(k, b, a)
	return q
}

// order returns the codes of a reply's options as they lie in the packet.
func order(b []byte) (codes []int) {
	for i := offOptions; i < len(b) && b[i] != optEnd; i += 2 + int(b[i+1]) {
		codes = append(codes, int(b[i]))
	}
	return codes
}

func TestEncode(t *testing.T) {
	base := answer{kind: offer, server: ip("10.98.0.1"), id: ip("10.98.0.1"), yours: ip("10.98.0.85"), leaseFor: time.Hour, subnet: rack()}
	long := "http://10.98.0.1/boot/" + strings.Repeat("x", 120)
	relay := opt(82, append(opt(1, []byte("port 7")...), opt(2, []byte("switch")...)...)...)
	asked := opt(55, 1, 3, 6, 15, 26, 42, 66, 67, 121)
	for _, c := range []struct {
		name   string
		packet []byte
		change func(*answer)
		want   []int
		check  func(t *testing.T, m *dhcpv4.DHCPv4)
	}{
		{
			"a client that lists no options gets all of them", build(discover, 1, nil), nil,
			[]int{53, 54, 51, 58, 59, 1, 3, 6, 121, 26, 15, 42},
			func(t *testing.T, m *dhcpv4.DHCPv4) {
				if got := m.Options[121]; !bytes.Equal(got, []byte{12, 172, 16, 10, 98, 0, 253, 0, 10, 98, 0, 254}) {
					t.Errorf("121 lacks the default route that clients then no longer take from 3: %v", got)
				}
				if m.IPAddressLeaseTime(0) != time.Hour || m.IPAddressRenewalTime(0) != 30*time.Minute || m.IPAddressRebindingTime(0) != 3150*time.Second {
					t.Error("lease times", m.IPAddressLeaseTime(0), m.IPAddressRenewalTime(0), m.IPAddressRebindingTime(0))
				}
			},
		},
		{"a client that lists options gets no others", build(discover, 1, nil, opt(55, 1, 3)), nil, []int{53, 54, 51, 58, 59, 1, 3}, nil},
		{
			"client id and relay information come back, the latter last", build(discover, 1, nil, relay, opt(61, 1, 2, 3), opt(55, 1)), nil,
			[]int{53, 54, 51, 58, 59, 1, 3, 61, 82},
			func(t *testing.T, m *dhcpv4.DHCPv4) {
				if !bytes.Equal(m.Options[82], relay[2:]) {
					t.Errorf("82 changed: %x", m.Options[82])
				}
			},
		},
		{
			"the UUID is mirrored", build(discover, 1, nil, opt(97, bytes.Repeat([]byte{0}, 17)...), opt(55, 1)), nil,
			[]int{53, 54, 51, 58, 59, 1, 97, 3},
			nil,
		},
		{
			"a loader's name lies in the header and, when asked for, in 66 and 67", build(discover, 1, nil, asked),
			func(a *answer) { a.boot = pxe.Reply{Next: ip("10.98.0.1"), File: "snponly.efi"} },
			[]int{53, 54, 51, 58, 59, 1, 67, 66, 3, 6, 121, 26, 15, 42},
			func(t *testing.T, m *dhcpv4.DHCPv4) {
				if m.BootFileName != "snponly.efi" || string(m.Options[67]) != "snponly.efi\x00" || string(m.Options[66]) != "10.98.0.1\x00" {
					t.Errorf("%q %q %q", m.BootFileName, m.Options[67], m.Options[66])
				}
				if !m.ServerIPAddr.Equal([]byte{10, 98, 0, 1}) {
					t.Error("siaddr", m.ServerIPAddr)
				}
			},
		},
		{
			"a loader's name is in the header alone when 67 is not asked for", build(discover, 1, nil, opt(55, 1)),
			func(a *answer) { a.boot = pxe.Reply{Next: ip("10.98.0.1"), File: "undionly.kpxe"} },
			[]int{53, 54, 51, 58, 59, 1, 3},
			func(t *testing.T, m *dhcpv4.DHCPv4) {
				if m.BootFileName != "undionly.kpxe" {
					t.Errorf("%q", m.BootFileName)
				}
			},
		},
		{
			"a URL too long for the header goes into 67 whether asked for or not", build(discover, 1, nil, opt(55, 1)),
			func(a *answer) { a.boot = pxe.Reply{File: long, Class: "HTTPClient"} },
			[]int{53, 54, 51, 58, 59, 1, 60, 67, 3},
			func(t *testing.T, m *dhcpv4.DHCPv4) {
				if m.BootFileName != "" || string(m.Options[67]) != long+"\x00" || string(m.Options[60]) != "HTTPClient" {
					t.Errorf("%q %q %q", m.BootFileName, m.Options[67], m.Options[60])
				}
			},
		},
		{
			"vendor and iPXE options are passed on", build(discover, 1, nil, opt(55, 1)),
			func(a *answer) {
				a.boot = pxe.Reply{PXE: []byte{6, 1, 8, 255}, IPXE: []byte{0xb0, 1, 1}, Class: "PXEClient"}
			},
			[]int{53, 54, 51, 58, 59, 1, 60, 43, 175, 3},
			nil,
		},
		{
			"a reserved host name is told", build(discover, 1, nil, opt(55, 1)), func(a *answer) { a.hostname = "db7" },
			[]int{53, 54, 51, 58, 59, 1, 3, 12},
			nil,
		},
		{
			"INFORM gets no address and no times", build(inform, 1, func(b []byte) { copy(b[offCiaddr:], addr4("10.98.0.50")) }, opt(55, 1, 3)),
			func(a *answer) { a.kind, a.yours = ack, netip.Addr{} },
			[]int{53, 54, 1, 3},
			func(t *testing.T, m *dhcpv4.DHCPv4) {
				if !m.YourIPAddr.IsUnspecified() || !m.ClientIPAddr.Equal([]byte{10, 98, 0, 50}) {
					t.Error(m.YourIPAddr, m.ClientIPAddr)
				}
			},
		},
		{
			"NAK says why and nothing else", build(request, 1, nil, relay, opt(61, 1, 2, 3), asked),
			func(a *answer) { *a = answer{kind: nak, id: a.id, server: a.server, reason: "not on this network"} },
			[]int{53, 54, 56, 61, 82},
			func(t *testing.T, m *dhcpv4.DHCPv4) {
				if m.Message() != "not on this network" || !m.YourIPAddr.IsUnspecified() {
					t.Error(m.Message(), m.YourIPAddr)
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := decoded(t, c.packet, arrival{})
			a := base
			if c.change != nil {
				c.change(&a)
			}
			b := encode(nil, q, &a, q.maxReply(1500))
			m, err := dhcpv4.FromBytes(b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, order(b)); diff != "" {
				t.Error(diff)
			}
			if len(b) < minReply {
				t.Errorf("%d bytes, at least 300 are needed", len(b))
			}
			if c.check != nil {
				c.check(t, m)
			}
		})
	}
}

func TestAReplyNeverExceedsWhatTheClientTakes(t *testing.T) {
	s := rack()
	for i := range 60 { // more routes than fit
		s.Routes = append(s.Routes, inventory.Route{To: netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 16, byte(i), 0}), 24), Via: ip("10.98.0.253")})
	}
	a := answer{
		kind: offer, server: ip("10.98.0.1"), id: ip("10.98.0.1"), yours: ip("10.98.0.85"), leaseFor: time.Hour, subnet: s,
		boot: pxe.Reply{File: "http://10.98.0.1/boot/" + strings.Repeat("x", 150), Class: "HTTPClient"},
	}
	relay := opt(82, bytes.Repeat([]byte{9}, 60)...)
	for _, c := range []struct {
		name    string
		options [][]byte
		limit   int
		routes  bool
	}{
		{"548 bytes of message without option 57", [][]byte{relay}, 548, false},
		{"as much as option 57 says, less headers", [][]byte{relay, opt(57, 5, 0xc0)}, 1444, true},
		{"never less than 576, whatever option 57 says", [][]byte{relay, opt(57, 0, 10)}, 548, false},
		{"never more than the link carries", [][]byte{relay, opt(57, 0xff, 0)}, 1472, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := decoded(t, build(discover, 1, nil, c.options...), arrival{})
			b := encode(nil, q, &a, q.maxReply(1500))
			if len(b) > c.limit {
				t.Errorf("%d bytes, at most %d are allowed", len(b), c.limit)
			}
			m, err := dhcpv4.FromBytes(b)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Options[67]) == 0 || len(m.Options[82]) != 60 || len(m.Options[54]) == 0 {
				t.Error("what a boot needs was left out")
			}
			if got := len(m.Options[121]) > 0; got != c.routes {
				t.Errorf("routes present: %v; want %v", got, c.routes)
			}
			if codes := order(b); codes[len(codes)-1] != 82 {
				t.Error("82 is not the last option", codes)
			}
		})
	}
}

func TestRoute(t *testing.T) {
	source := netip.MustParseAddrPort("10.98.0.85:4011")
	put := func(at int, s string) func([]byte) { return func(b []byte) { copy(b[at:], addr4(s)) } }
	flag := func(b []byte) { b[offFlags] = 0x80 }
	both := func(f ...func([]byte)) func([]byte) {
		return func(b []byte) {
			for _, g := range f {
				g(b)
			}
		}
	}
	for _, c := range []struct {
		name  string
		k     kind
		pkt   func([]byte)
		opts  [][]byte
		reply kind
		isPXE bool
		want  destination
	}{
		{"a relayed answer goes to the relay", discover, both(put(offGiaddr, "10.5.0.1"), flag), nil, offer, false, destination{to: netip.MustParseAddrPort("10.5.0.1:67")}},
		{"a relay that names its port is answered there", discover, put(offGiaddr, "10.5.0.1"), [][]byte{opt(82, opt(19)...)}, offer, false, destination{to: netip.MustParseAddrPort("10.5.0.1:4011")}},
		{"a relayed NAK goes to the relay", request, put(offGiaddr, "10.5.0.1"), nil, nak, false, destination{to: netip.MustParseAddrPort("10.5.0.1:67")}},
		{"a NAK is broadcast", request, put(offCiaddr, "10.98.0.85"), nil, nak, false, destination{to: netip.MustParseAddrPort("255.255.255.255:68")}},
		{"a client with an address is answered there", request, both(put(offCiaddr, "10.98.0.85"), flag), nil, ack, false, destination{to: netip.MustParseAddrPort("10.98.0.85:68")}},
		{"a client that asks for a broadcast gets one", discover, flag, nil, offer, false, destination{to: netip.MustParseAddrPort("255.255.255.255:68")}},
		{"any other gets a frame", discover, nil, nil, offer, false, destination{to: netip.MustParseAddrPort("10.98.0.85:68"), isFrame: true}},
		{"on port 4011 the sender is answered", request, put(offCiaddr, "10.98.0.85"), nil, ack, true, destination{to: source}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := decoded(t, build(c.k, 1, c.pkt, c.opts...), arrival{source: source, isPXE: c.isPXE})
			a := &answer{kind: c.reply, yours: ip("10.98.0.85")}
			if c.reply == nak {
				a.yours = netip.Addr{}
			}
			if got := route(q, a); got != c.want {
				t.Errorf("goes to %v, want %v", got, c.want)
			}
			if c.reply == nak && q.isRelayed() {
				if b := encode(nil, q, a, 548); b[offFlags] != 0x80 {
					t.Error("the relay is not told to broadcast the NAK")
				}
			}
		})
	}
}
