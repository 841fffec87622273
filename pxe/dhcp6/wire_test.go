package dhcp6

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

var duid = []byte{0, 3, 0, 1, 2, 0, 0, 0, 0, 1}

// discover is a SOLICIT as another codec writes it.
func discover(t testing.TB, more ...dhcpv6.Modifier) *dhcpv6.Message {
	t.Helper()
	m, err := dhcpv6.NewSolicit(net.HardwareAddr{0x52, 0x54, 0, 1, 2, 3}, append([]dhcpv6.Modifier{dhcpv6.WithArchType(iana.EFI_X86_64)}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestParseAndAnswerAsAnotherCodecDoes(t *testing.T) {
	sent := discover(t)
	m, err := parse(sent.ToBytes())
	if err != nil || m.kind != solicit || m.xid != sent.TransactionID {
		t.Fatalf("%+v, %v", m, err)
	}
	ias := m.associations()
	if len(ias) != 1 {
		t.Fatalf("associations: %+v", ias)
	}
	s := inventory.Subnet{DNS: []netip.Addr{netip.MustParseAddr("fd00::53")}, Domain: "lab.example"}
	a := answer{
		kind: advertise, pref: true, subnet: &s,
		bindings: []binding{{iaid: ias[0].iaid, addr: netip.MustParseAddr("fd00::77"), valid: time.Hour, stale: []netip.Addr{netip.MustParseAddr("fd00::66")}}},
		refused:  []option{{optIATA, []byte{0, 0, 0, 5}}, {optIAPD, []byte{0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0}}},
		boot:     pxe.Reply{File: "http://[fd00::1]/boot/x.efi", Class: "HTTPClient"},
	}
	m.options = append(m.options, option{optORO, []byte{0, optDNS, 0, optDomains, 0, optBootURL}})
	got, err := dhcpv6.MessageFromBytes(a.encode(&message{kind: m.kind, xid: m.xid, options: m.options[:len(m.options)-1]}, duid))
	if err != nil {
		t.Fatal(err)
	}
	if got.MessageType != dhcpv6.MessageTypeAdvertise || got.TransactionID != sent.TransactionID || !got.Options.ClientID().Equal(sent.Options.ClientID()) {
		t.Errorf("header: %s", got.Summary())
	}
	ia := got.Options.OneIANA()
	if ia == nil || ia.IaId != sent.Options.OneIANA().IaId || ia.T1 != 30*time.Minute || ia.T2 != 48*time.Minute {
		t.Fatalf("IA_NA: %+v", ia)
	}
	addrs := ia.Options.Addresses()
	if len(addrs) != 2 || addrs[0].IPv6Addr.String() != "fd00::77" || addrs[0].ValidLifetime != time.Hour || addrs[1].ValidLifetime != 0 {
		t.Errorf("addresses: %+v", addrs)
	}
	if u := got.Options.BootFileURL(); u != "http://[fd00::1]/boot/x.efi" {
		t.Errorf("boot file: %q", u)
	}
	if c := got.Options.VendorClass(enterprisePX); len(c) != 1 || string(c[0]) != "HTTPClient" {
		t.Errorf("vendor class: %q", c)
	}
	if ta := got.GetOneOption(dhcpv6.OptionIATA); ta == nil {
		t.Error("nothing is said of the temporary address")
	}
	if pd := got.Options.IAPD(); len(pd) != 1 || pd[0].Options.Status() == nil || pd[0].Options.Status().StatusCode != iana.StatusNoPrefixAvail {
		t.Errorf("prefix: %+v", pd)
	}
}

// TestThroughRelays holds what comes back to each relay against another codec's.
func TestThroughRelays(t *testing.T) {
	inner := discover(t)
	one, err := dhcpv6.EncapsulateRelay(inner, dhcpv6.MessageTypeRelayForward, net.ParseIP("fd00:1::1"), net.ParseIP("fe80::5054:ff:fe01:203"))
	if err != nil {
		t.Fatal(err)
	}
	one.AddOption(dhcpv6.OptInterfaceID([]byte("eth7")))
	one.AddOption(&dhcpv6.OptRemoteID{EnterpriseNumber: 9, RemoteID: []byte("rack-3")})
	two, err := dhcpv6.EncapsulateRelay(one, dhcpv6.MessageTypeRelayForward, net.ParseIP("::"), net.ParseIP("fe80::1"))
	if err != nil {
		t.Fatal(err)
	}
	two.AddOption(dhcpv6.OptRelayPort(0))
	m, err := parse(two.ToBytes())
	if err != nil || len(m.hops) != 2 || m.hops[1].link != netip.MustParseAddr("fd00:1::1") || m.kind != solicit {
		t.Fatalf("%+v, %v", m, err)
	}
	if who := pxe.MAC6(pxe.Packet6{Peer: m.hops[1].peer}); who != "52:54:00:01:02:03" {
		t.Errorf("the client is %q", who)
	}
	if device := relayName(&m.hops[1]); device != "rack-3" {
		t.Errorf("the device is %q", device)
	}
	a := answer{kind: advertise}
	back, err := dhcpv6.FromBytes(envelope(a.encode(&m, duid), m.hops))
	if err != nil {
		t.Fatal(err)
	}
	outer := back.(*dhcpv6.RelayMessage)
	if outer.MessageType != dhcpv6.MessageTypeRelayReply || outer.HopCount != 1 || !outer.PeerAddr.Equal(net.ParseIP("fe80::1")) || outer.GetOneOption(dhcpv6.OptionRelayPort) == nil {
		t.Errorf("outer: %s", outer.Summary())
	}
	next := outer.Options.RelayMessage().(*dhcpv6.RelayMessage)
	if string(next.Options.InterfaceID()) != "eth7" || next.Options.RemoteID() == nil || !next.LinkAddr.Equal(net.ParseIP("fd00:1::1")) {
		t.Errorf("inner: %s", next.Summary())
	}
	if got, err := back.GetInnerMessage(); err != nil || got.TransactionID != inner.TransactionID {
		t.Errorf("message: %v, %v", got, err)
	}
	if k := sourceKey(two.ToBytes(), netip.MustParseAddr("fd00::9")); k != netip.MustParseAddr("fe80::5054:ff:fe01:203") {
		t.Errorf("it counts against %s", k)
	}
}

func TestWhatIsNoMessage(t *testing.T) {
	good := discover(t).ToBytes()
	deep := good
	for range hopsAtMost + 2 {
		deep = append(append(append([]byte{byte(relayForw), 0}, make([]byte, 32)...), 0, optRelayMsg, byte(len(deep)>>8), byte(len(deep))), deep...)
	}
	for name, b := range map[string][]byte{
		"empty": {}, "a header's half": {1, 2}, "an option longer than the packet": {1, 0, 0, 0, 0, 1, 0, 9, 1}, "half an option": {1, 0, 0, 0, 0, 1},
		"half an envelope": {12, 0, 1}, "an empty envelope": append([]byte{12, 0}, make([]byte, 32)...), "relays without end": deep,
		"a hop count beyond": append([]byte{12, 8}, make([]byte, 32)...), "options without end": append([]byte{1, 0, 0, 0}, make([]byte, 4*(optionsMost+1))...),
	} {
		if m, err := parse(b); err == nil {
			t.Errorf("%s is read as %+v", name, m)
		}
	}
}

func TestCheck(t *testing.T) {
	id, server, ia := option{optClientID, []byte{0, 3, 0, 1, 1, 2, 3, 4, 5, 6}}, option{optServerID, duid}, option{optIANA, make([]byte, 12)}
	unicast, group := netip.MustParseAddr("fd00::1"), netip.MustParseAddr("ff02::1:2")
	for _, c := range []struct {
		name  string
		kind  kind
		local netip.Addr
		o     options
		want  dropReason
	}{
		{"solicit", solicit, group, options{id, ia}, ""},
		{"solicit without a client", solicit, group, options{ia}, dropBroken},
		{"solicit of a server", solicit, group, options{id, server}, dropBroken},
		{"solicit to us alone", solicit, unicast, options{id}, dropUnicast},
		{"request", request, group, options{id, server}, ""},
		{"request of nobody", request, group, options{id}, dropBroken},
		{"rebind", rebind, group, options{id}, ""},
		{"inform with an association", inform, group, options{ia}, dropBroken},
		{"inform without a client", inform, group, nil, ""},
		{"a DUID of one byte", solicit, group, options{{optClientID, []byte{1}}}, dropBroken},
		{"a DUID without end", solicit, group, options{{optClientID, make([]byte, 200)}}, dropBroken},
	} {
		x := &exchange{arrival: arrival{local: c.local}, message: message{kind: c.kind, options: c.o}}
		if got := x.check(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTexts(t *testing.T) {
	for in, want := range map[string]string{"\x00\x04iPXE": "iPXE", "iPXE": "iPXE", "\x00\x01a\x00\x01b": "a b", "": "", "\x00\x09ab": "\x00\x09ab"} {
		if got := strings.Join(texts([]byte(in)), " "); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(discover(f).ToBytes())
	one, _ := dhcpv6.EncapsulateRelay(discover(f), dhcpv6.MessageTypeRelayForward, net.ParseIP("fd00:1::1"), net.ParseIP("fe80::1"))
	f.Add(one.ToBytes())
	s := inventory.Subnet{Name: "six"}
	f.Fuzz(func(t *testing.T, b []byte) {
		sourceKey(b, netip.IPv6Unspecified())
		m, err := parse(b)
		if err != nil {
			return
		}
		x := &exchange{message: m}
		x.check()
		ias := m.associations()
		if len(ias) > iasAtMost || len(m.hops) > hopsAtMost+1 {
			t.Fatalf("%d associations through %d relays", len(ias), len(m.hops))
		}
		c := pxe.Classify6(x.packet6(netip.IPv6Unspecified(), nil))
		if len(c.ClientID) > 2*maxClientID {
			t.Fatalf("a DUID of %d digits", len(c.ClientID))
		}
		hostname(m.options.get(optFQDN))
		a := answer{kind: reply, subnet: &s}
		for _, ia := range ias {
			a.bindings = append(a.bindings, binding{iaid: ia.iaid, stale: ia.addrs, status: noBinding})
		}
		out := a.encode(&m, duid)
		again, err := parse(out)
		if err != nil || again.xid != m.xid {
			t.Fatalf("our own answer is not read: %v", err)
		}
		if _, err := dhcpv6.FromBytes(b); err == nil && len(m.hops) == 0 { // it is stricter with what we echo
			if _, err := dhcpv6.FromBytes(out); err != nil {
				t.Fatalf("another codec does not read our answer: %v", err)
			}
		}
		envelope(out, m.hops)
	})
}
