package dhcp6

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/net/ipv6"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease6"
)

// noted is an engine that keeps what it is told.
type noted struct {
	boots
	told []string
}

func (n *noted) Offer(_ context.Context, c pxe.Client, _ string) pxe.Reply {
	n.told = append(n.told, "boot of "+c.Address.String())
	return pxe.Reply{}
}

func (n *noted) Exhausted(subnet string) { n.told = append(n.told, "full "+subnet) }

func (n *noted) Conflict(a netip.Addr, _ string, _ inventory.MAC, _ string) {
	n.told = append(n.told, "conflict "+a.String())
}

// talk plays messages of clients to a server, whose subnet is fd00::/64 with two addresses to lease.
type talk struct {
	*testing.T
	s      *Server
	p      *port
	engine *noted
	source netip.Addr // of the next message; invalid: the client's link-local address
	relay  netip.Addr // link address of the relay in between; invalid without one
}

func newTalk(t *testing.T, change func(*inventory.Subnet)) *talk {
	at := netip.MustParseAddr
	sub := inventory.Subnet{
		Name: "six", CIDR: netip.MustParsePrefix("fd00::/64"), Mode: inventory.ModeFull, LeaseFor: inventory.Duration(time.Hour),
		Ranges: []inventory.Range{{First: at("fd00::1000"), Last: at("fd00::1001")}},
	}
	if change != nil {
		change(&sub)
	}
	conn, err := net.ListenPacket("udp6", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here: ", err)
	}
	t.Cleanup(func() { conn.Close() })
	engine := &noted{}
	return &talk{
		T: t, engine: engine,
		p: &port{link: link{name: "eth9", addrs: []netip.Addr{at("fd00::1")}}, conn: ipv6.NewPacketConn(conn)},
		s: New(Config{
			Book:   lease6.New(lease6.Network{Subnets: []inventory.Subnet{sub}, Ours: []netip.Addr{at("fd00::1")}}, nil),
			Leases: engine, Boots: engine, BootPort: 80, DUID: []byte{0, 9, 1}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		}),
	}
}

// message is one of client n with its association, naming addresses. Those that go to one server have its name.
func (k *talk) message(n byte, kind dhcpv6.MessageType, addrs ...string) *dhcpv6.Message {
	k.Helper()
	m := discover(k)
	m.MessageType = kind
	m.Options.Del(dhcpv6.OptionClientArchType)
	m.Options.Update(dhcpv6.OptClientID(&dhcpv6.DUIDLL{HWType: 1, LinkLayerAddr: net.HardwareAddr{2, 0, 0, 0, 0, n}}))
	switch kind {
	case dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeDecline:
		m.AddOption(dhcpv6.OptServerID(&dhcpv6.DUIDOpaque{Type: 9, Data: []byte{1}}))
	case dhcpv6.MessageTypeInformationRequest:
		m.Options.Del(dhcpv6.OptionIANA)
	}
	for _, a := range addrs {
		m.Options.OneIANA().Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP(a)})
	}
	return m
}

// says plays a message and returns what becomes of it: the result that is counted, the answer's type and status, and for
// each association its address with those that are taken back, or its status.
func (k *talk) says(m *dhcpv6.Message) string {
	k.Helper()
	packet := m.ToBytes()
	if k.relay.IsValid() {
		r, err := dhcpv6.EncapsulateRelay(m, dhcpv6.MessageTypeRelayForward, net.IP(k.relay.AsSlice()), net.ParseIP("fe80::1"))
		if err != nil {
			k.Fatal(err)
		}
		packet = r.ToBytes()
	}
	source := k.source
	if !source.IsValid() {
		id := m.Options.ClientID().ToBytes()
		source = netip.MustParseAddr(fmt.Sprintf("fe80::ff:fe00:%x", id[len(id)-1]))
	}
	a := arrival{port: k.p, at: time.Now(), source: netip.AddrPortFrom(source, clientPort), local: netip.MustParseAddr("ff02::1:2"), packet: packet}
	parsed, err := parse(packet)
	if err != nil {
		k.Fatal(err)
	}
	x := &exchange{arrival: a, message: parsed}
	if why := x.check(); why != "" {
		k.Fatal(why)
	}
	count := func(what result) float64 {
		var m dto.Metric
		if err := k.s.Metrics.Packets.WithLabelValues(x.kind.String(), string(what)).Write(&m); err != nil {
			k.Fatal(err)
		}
		return m.GetCounter().GetValue()
	}
	before := map[result]float64{}
	for _, what := range []result{answered, refused, ignored} {
		before[what] = count(what)
	}
	if why := k.s.locate(x); why != "" {
		return "not ours: " + string(why)
	}
	k.s.dispatch(k.Context(), x)
	k.s.commits.flush(k.Context())
	words := []string{}
	for what, n := range before {
		if count(what) > n {
			words = append(words, string(what))
		}
	}
	if strings.Join(words, "") != string(ignored) {
		words = append(words, x.answer.kind.String())
		if x.answer.hasCode {
			words = append(words, fmt.Sprint("status ", x.answer.status))
		}
		for _, b := range x.answer.bindings {
			switch {
			case b.status != success:
				words = append(words, fmt.Sprint("none ", b.status))
			case b.addr.IsValid():
				words = append(words, b.addr.String())
			}
			for _, a := range b.stale {
				words = append(words, "not "+a.String())
			}
		}
	}
	return strings.Join(words, " ")
}

// boots plays a message of client 1's firmware, and returns what the engine was told, too.
func (k *talk) boots(kind dhcpv6.MessageType, addrs ...string) string {
	k.Helper()
	m := k.message(1, kind, addrs...)
	m.AddOption(dhcpv6.OptClientArchType(iana.EFI_X86_64))
	return k.says(m) + ", " + strings.Join(k.engine.told, " ")
}

const (
	one, two = "fd00::1000", "fd00::1001"
	foreign  = "fd01::7"
)

func TestWhatBecomesOfAMessage(t *testing.T) {
	solicit, request, renew, rebind := dhcpv6.MessageTypeSolicit, dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRebind
	confirm, release, decline, inform := dhcpv6.MessageTypeConfirm, dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeDecline, dhcpv6.MessageTypeInformationRequest
	reservations := func(s *inventory.Subnet) { s.Mode = inventory.ModeReservations }
	for _, c := range []struct {
		name   string
		change func(*inventory.Subnet)
		play   func(k *talk) string
		want   string
	}{
		{"an offer is what it asks for", nil, func(k *talk) string { return k.says(k.message(1, solicit, two)) }, "answered advertise " + two},
		{"rapid commit", nil, func(k *talk) string {
			m := k.message(1, solicit, one)
			m.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionRapidCommit})
			return k.says(m)
		}, "answered reply " + one},
		{"rapid commit gives another address than it hopes for, without a word on that", nil, func(k *talk) string {
			k.says(k.message(2, request, one))
			m := k.message(1, solicit, one)
			m.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionRapidCommit})
			return k.says(m)
		}, "answered reply " + two},
		{"asked without an association nobody answers", nil, func(k *talk) string {
			m := k.message(1, solicit)
			m.Options.Del(dhcpv6.OptionIANA)
			return k.says(m)
		}, "ignored"},
		{"but a prefix that is asked for is refused", nil, func(k *talk) string {
			m := k.message(1, solicit)
			m.Options.Del(dhcpv6.OptionIANA)
			m.AddOption(&dhcpv6.OptIAPD{IaId: [4]byte{1}})
			return k.says(m)
		}, "refused advertise status 2"},
		{"others may know it", reservations, func(k *talk) string { return k.says(k.message(1, solicit)) }, "ignored"},
		{"full", nil, func(k *talk) string {
			k.says(k.message(1, request, one))
			k.says(k.message(2, request, two))
			return k.says(k.message(3, solicit)) + ", " + strings.Join(k.engine.told, " ")
		}, "refused advertise status 2, full six"},
		{"a request when it is full", nil, func(k *talk) string {
			k.says(k.message(1, request, one))
			k.says(k.message(2, request, two))
			return k.says(k.message(3, request)) + ", " + strings.Join(k.engine.told, " ")
		}, "refused reply none 2, full six"},
		{"a request for what was offered", nil, func(k *talk) string { return k.says(k.message(1, request, two)) }, "answered reply " + two},
		{"a request for two, one of which it has", nil, func(k *talk) string { return k.says(k.message(1, request, two, one)) }, "answered reply " + two},
		{"a request for another network's", nil, func(k *talk) string { return k.says(k.message(1, request, foreign)) }, "refused reply none 4"},
		{"a request that others may know", reservations, func(k *talk) string { return k.says(k.message(1, request)) }, "ignored"},
		{"a request without an association", nil, func(k *talk) string {
			m := k.message(1, request)
			m.Options.Del(dhcpv6.OptionIANA)
			return k.says(m)
		}, "ignored"},
		{"renewed", nil, func(k *talk) string {
			k.says(k.message(1, request, two))
			return k.says(k.message(1, renew, two))
		}, "answered reply " + two},
		{"renewed with one that it has no more", nil, func(k *talk) string {
			k.says(k.message(1, request, two))
			return k.says(k.message(1, renew, two, one))
		}, "answered reply " + two + " not " + one},
		{"renewed from another network", nil, func(k *talk) string { return k.says(k.message(1, renew, foreign)) }, "answered reply " + one + " not " + foreign},
		{"renewed when it is full", nil, func(k *talk) string {
			k.says(k.message(1, request, one))
			k.says(k.message(2, request, two))
			return k.says(k.message(3, renew, one))
		}, "refused reply not " + one},
		{"renewed when it is full, naming none", nil, func(k *talk) string {
			k.says(k.message(1, request, one))
			k.says(k.message(2, request, two))
			return k.says(k.message(3, renew))
		}, "refused reply none 3"},
		{"rebound when it is full, naming none", nil, func(k *talk) string {
			k.says(k.message(1, request, one))
			k.says(k.message(2, request, two))
			return k.says(k.message(3, rebind))
		}, "refused reply none 3"},
		{"confirmed", nil, func(k *talk) string { return k.says(k.message(1, confirm, one)) }, "answered reply status 0"},
		{"confirmed elsewhere", nil, func(k *talk) string { return k.says(k.message(1, confirm, one, foreign)) }, "refused reply status 4"},
		{"nothing to confirm", nil, func(k *talk) string { return k.says(k.message(1, confirm)) }, "ignored"},
		{"released by a system: it is in its timeline", nil, func(k *talk) string {
			k.says(k.message(1, request, one))
			k.engine.kinds = nil
			return k.says(k.message(1, release, one)) + ", " + strings.Join(k.engine.kinds, " ")
		}, "answered reply status 0, " + inventory.EventDHCPRelease},
		{"what it has not is not released", nil, func(k *talk) string { return k.says(k.message(1, release, one)) }, "refused reply status 0 none 3"},
		{"declined", nil, func(k *talk) string {
			k.says(k.message(1, request, one))
			return k.says(k.message(1, decline, one)) + ", " + strings.Join(k.engine.told, " ")
		}, "answered reply status 0, conflict " + one},
		{"informed", nil, func(k *talk) string { return k.says(k.message(1, inform)) }, "answered reply"},
		{"firmware with an address of its own", nil, func(k *talk) string {
			k.source = netip.MustParseAddr("fd00::77")
			return k.boots(inform)
		}, "answered reply, boot of fd00::77"},
		{"firmware that has none yet", nil, func(k *talk) string { return k.boots(inform) }, "answered reply, boot of invalid IP"},
		{"firmware behind a relay, whose address is not its own", nil, func(k *talk) string {
			k.source, k.relay = netip.MustParseAddr("fd00::9"), netip.MustParseAddr("fd00::9")
			return k.boots(inform)
		}, "answered reply, boot of invalid IP"},
		{"nobody is looked for behind a relay", nil, func(k *talk) string {
			k.relay, k.s.cfg.ProbeFor = netip.MustParseAddr("fd00::9"), time.Hour
			return k.boots(solicit)
		}, "answered advertise " + one + ", boot of " + one},
		{"released by firmware: its timeline is about the boot", nil, func(k *talk) string {
			k.boots(request)
			k.engine.kinds = nil
			return k.boots(release, one) + ", " + strings.Join(k.engine.kinds, " ")
		}, "answered reply status 0, boot of " + one + ", "},
		{"informed where only reservations are served", reservations, func(k *talk) string { return k.says(k.message(1, inform)) }, "ignored"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.play(newTalk(t, c.change)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
