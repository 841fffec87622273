package dhcp

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
)

// The options of network boot clients.
var (
	asUEFI = [][]byte{opt(60, []byte("PXEClient:Arch:00007:UNDI:003000")...), opt(93, 0, 7), opt(97, make([]byte, 17)...)}
	asHTTP = [][]byte{opt(60, []byte("HTTPClient:Arch:00016:UNDI:003000")...), opt(93, 0, 16)}
	asIPXE = [][]byte{opt(60, []byte("PXEClient:Arch:00007:UNDI:003010")...), opt(93, 0, 7), opt(77, []byte("iPXE")...), opt(175, 0x13, 1, 1, 0xeb, 3, 1, 21, 1)}
)

func TestAProxyOffersABootFileAndNoAddress(t *testing.T) {
	for _, c := range []struct {
		name        string
		options     [][]byte
		class, file string
		pxe         []byte
		hasNext     bool
	}{
		{"UEFI", asUEFI, "PXEClient", "snponly.efi", []byte{6, 1, 8, 0xff}, true},
		{"UEFI HTTP", asHTTP, "HTTPClient", "http://10.98.0.1/boot/00112233445566778899aabbccddeeff/snponly.efi", nil, false},
		{"iPXE", asIPXE, "PXEClient", "http://10.98.0.1/boot/00112233445566778899aabbccddeeff/ask", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, withMode(inventory.ModeProxy))
			o := d.one(build(discover, 1, nil, c.options...), "", offer)
			if o.to != "255.255.255.255:68" {
				t.Errorf("the offer goes to %s", o.to)
			}
			if !o.m.YourIPAddr.IsUnspecified() || o.m.IPAddressLeaseTime(0) != 0 || len(o.m.Router()) != 0 || o.m.SubnetMask() != nil {
				t.Errorf("a proxy gave an address or what belongs to it: %s", o.m.Summary())
			}
			file := strings.TrimRight(o.m.BootFileName, "\x00")
			if file == "" {
				file = strings.TrimRight(string(o.m.Options[67]), "\x00")
			}
			if o.m.ClassIdentifier() != c.class || file != c.file || !bytes.Equal(o.m.Options[43], c.pxe) || o.m.Options[optEtherboot] != nil {
				t.Errorf("60 %q file %q 43 %x 175 %x", o.m.ClassIdentifier(), file, o.m.Options[43], o.m.Options[optEtherboot])
			}
			if got := o.m.ServerIPAddr.String() == "10.98.0.1"; got != c.hasNext {
				t.Errorf("next-server is %s", o.m.ServerIPAddr)
			}
			if !slices.Equal(o.m.Options[97], opt97(c.options)) {
				t.Errorf("97 is %x", o.m.Options[97])
			}
		})
	}
}

func opt97(options [][]byte) []byte {
	for _, o := range options {
		if o[0] == 97 {
			return o[2:]
		}
	}
	return nil
}

func TestAProxyNeverGivesAnAddress(t *testing.T) {
	d := newDesk(t, withMode(inventory.ModeProxy), withReservation(inventory.Reservation{Address: ip("10.98.0.20"), Subnet: "rack1", MAC: "52:54:00:aa:00:01"}))
	for _, packet := range [][]byte{
		build(discover, 1, nil),
		build(request, 1, nil, opt(50, 10, 98, 0, 85), opt(54, 10, 98, 0, 1)),
		build(request, 1, nil, append(asUEFI, opt(50, 10, 98, 0, 85), opt(54, 10, 98, 0, 2))...),
		build(request, 1, ciaddr(ip("10.98.0.20"))),
		build(request, 1, nil, opt(50, 172, 31, 0, 9)),
		build(inform, 1, ciaddr(ip("10.98.0.20"))),
		build(release, 1, ciaddr(ip("10.98.0.20"))),
		build(decline, 1, nil, opt(50, 10, 98, 0, 20)),
	} {
		d.none(packet, "")
	}
	if len(d.store.leases) != 0 {
		t.Error("leases were stored:", d.store.leases)
	}
	// What a machine says of its address is passed on; the server it names is hearsay.
	if !slices.Contains(d.boots.lines, "beside 52:54:00:aa:00:01 10.98.0.85 heard=false") ||
		!slices.Contains(d.boots.lines, "foreign rack1 10.98.0.2  heard=false proxy=false") {
		t.Errorf("told: %q", d.boots.lines)
	}
}

func TestAProxyIsSilentToWhomItHasNothingToSay(t *testing.T) {
	d := newDesk(t, withMode(inventory.ModeProxy))
	d.boots.silent = true
	d.none(build(discover, 1, nil, asUEFI...), "")
	d.none(build(request, 1, ciaddr(ip("10.98.0.85")), asUEFI...), "pxe")
}

func TestAProxyAnswersPort4011(t *testing.T) {
	d := newDesk(t, withMode(inventory.ModeProxy))
	a := d.one(build(request, 1, ciaddr(ip("10.98.0.85")), asUEFI...), "pxe", ack)
	if a.to != "10.98.0.85:4011" || a.m.ClassIdentifier() != "PXEClient" || a.m.BootFileName != "snponly.efi" || a.m.ServerIPAddr.String() != "10.98.0.1" {
		t.Error(a.to, a.m.Summary())
	}
	if c := d.boots.asked[0]; c.Address != ip("10.98.0.85") || !c.IsProxy {
		t.Errorf("the boot engine was asked for %+v", c)
	}
}

// hears puts an answer of another server on the wire.
func (d *desk) hears(k kind, mac byte, mod func([]byte), options ...[]byte) {
	b := build(k, mac, func(b []byte) {
		b[0] = 2
		if mod != nil {
			mod(b)
		}
	}, options...)
	d.overhear(d.port, appendFrame(nil, hardwareAddr{2, 0, 0, 0, 0, 9}, hardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, ip("10.98.0.2"), limitedBroadcast(), b))
}

func yiaddr(a netip.Addr) func([]byte) {
	return func(b []byte) { copy(b[offCiaddr+4:], a.AsSlice()) }
}

func TestOtherServersAreHeard(t *testing.T) {
	for _, c := range []struct {
		name string
		mode inventory.SubnetMode
		hear func(*desk)
		want []string
	}{
		{
			"an offer", inventory.ModeFull, func(d *desk) { d.hears(offer, 1, yiaddr(ip("10.98.0.85")), opt(54, 10, 98, 0, 2)) },
			[]string{"foreign rack1 10.98.0.2 02:00:00:00:00:09 heard=true proxy=false"},
		},
		{"once in a while", inventory.ModeFull, func(d *desk) {
			for mac := byte(1); mac < 9; mac++ {
				d.hears(offer, mac, yiaddr(ip("10.98.0.85")), opt(54, 10, 98, 0, 2))
			}
			d.now = d.now.Add(pxe.ForeignTellEvery)
			d.hears(offer, 1, yiaddr(ip("10.98.0.85")), opt(54, 10, 98, 0, 2))
		}, []string{"foreign rack1 10.98.0.2 02:00:00:00:00:09 heard=true proxy=false", "foreign rack1 10.98.0.2 02:00:00:00:00:09 heard=true proxy=false"}},
		{
			"a proxy's offer", inventory.ModeFull, func(d *desk) { d.hears(offer, 1, nil, opt(54, 10, 98, 0, 2), opt(60, []byte("PXEClient")...)) },
			[]string{"foreign rack1 10.98.0.2 02:00:00:00:00:09 heard=true proxy=true"},
		},
		{"our own answer", inventory.ModeFull, func(d *desk) { d.hears(offer, 1, yiaddr(ip("10.98.0.85")), opt(54, 10, 98, 0, 1)) }, nil},
		{"a refusal", inventory.ModeFull, func(d *desk) { d.hears(nak, 1, nil, opt(54, 10, 98, 0, 2)) }, nil},
		{"what a machine says", inventory.ModeFull, func(d *desk) { d.hears(discover, 1, nil, opt(54, 10, 98, 0, 2)) }, nil},
		{"a named server", inventory.ModeFull, func(d *desk) {
			d.none(build(request, 1, nil, opt(50, 10, 98, 0, 85), opt(54, 10, 98, 0, 2)), "")
		}, []string{"foreign rack1 10.98.0.2  heard=false proxy=false"}},
		{
			"an acknowledgement beside us", inventory.ModeProxy, func(d *desk) { d.hears(ack, 1, yiaddr(ip("10.98.0.85")), opt(54, 10, 98, 0, 2)) },
			[]string{"beside 52:54:00:aa:00:01 10.98.0.85 heard=true", "foreign rack1 10.98.0.2 02:00:00:00:00:09 heard=true proxy=false"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, withMode(c.mode))
			c.hear(d)
			if !slices.Equal(d.boots.lines, c.want) {
				t.Errorf("told %q, want %q", d.boots.lines, c.want)
			}
		})
	}
}

func TestTheTableOfOtherServersIsBounded(t *testing.T) {
	d := newDesk(t)
	for i := range 300 { // as many servers as somebody cares to make up
		d.none(build(request, 1, nil, opt(50, 10, 98, 0, 85), opt(54, 10, 99, byte(i>>8), byte(i))), "")
		d.now = d.now.Add(1)
	}
	d.hears(offer, 1, yiaddr(ip("10.98.0.85")), opt(54, 10, 98, 0, 2))
	all := d.Foreigners()
	if len(all) != pxe.ForeignersAtMost {
		t.Errorf("%d servers are remembered", len(all))
	}
	if !all[0].IsHeard || all[0].Server != ip("10.98.0.2") || all[0].SinceAt != d.now {
		t.Errorf("one that was heard found no room among those that were named: %+v", all[0])
	}
	d.now = d.now.Add(2 * pxe.ForeignForgotten)
	if all := d.Foreigners(); len(all) != 0 {
		t.Errorf("%d servers are never forgotten", len(all))
	}
}

func FuzzOverheard(f *testing.F) {
	frame := appendFrame(nil, hardwareAddr{2}, hardwareAddr{}, ip("10.98.0.2"), limitedBroadcast(), build(offer, 1, func(b []byte) { b[0] = 2 }, opt(54, 10, 98, 0, 2)))
	f.Add(frame)
	f.Add(frame[:60])
	f.Add(frame[:14])
	f.Fuzz(func(t *testing.T, b []byte) {
		r, ok := parseOverheard(b)
		if ok && (len(r.raw) < offOptions || !r.server.IsValid() || r.kind != offer && r.kind != ack && r.kind != nak) {
			t.Errorf("%+v", r)
		}
	})
}

func TestWhyAPacketStaysUnanswered(t *testing.T) {
	told := func(t *testing.T, packet []byte, to string, more ...deskOption) (got []string) {
		d := newDesk(t, append(more, withKnown(1), func(_ *lease.Network, c *Config) {
			c.Unanswered = func(u pxe.Unanswered) {
				got = append(got, u.Type+" of "+string(u.Client.MAC)+" in "+u.Client.Subnet+": "+u.Reason)
			}
		})...)
		d.none(packet, to)
		return got
	}
	const of1 = " of 52:54:00:aa:00:01 in "
	for _, c := range []struct {
		name   string
		packet []byte
		want   string
		more   []deskOption
	}{
		{"no subnet", build(discover, 1, giaddr("10.9.0.1")), "discover" + of1 + ": " + string(lease.NoSubnet), nil},
		{"off", build(discover, 1, nil), "discover" + of1 + "rack1: " + string(lease.IsOff), []deskOption{withMode(inventory.ModeOff)}},
		{"no reservation", build(discover, 1, nil), "discover" + of1 + "rack1: " + string(lease.NoReservation), []deskOption{withMode(inventory.ModeReservations)}},
		{"another server", build(request, 1, nil, opt(50, 10, 98, 0, 85), opt(54, 10, 98, 0, 2)), "request" + of1 + "rack1: " + tookAnother, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := told(t, c.packet, "", c.more...)
			if len(got) != 1 || got[0] != c.want {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
	}
	n := 0
	d := newDesk(t, withMode(inventory.ModeOff), withKnown(1), func(_ *lease.Network, c *Config) { c.Unanswered = func(pxe.Unanswered) { n++ } })
	for range 5000 { // a flood of strangers in one second
		d.none(build(discover, 2, nil), "")
		d.now = d.now.Add(1)
	}
	if n > strangersBurst {
		t.Errorf("told of %d packets of a flood", n)
	}
	n = 0
	if d.none(build(discover, 1, nil), ""); n != 1 {
		t.Error("the known machine is lost in the flood")
	}
}

func TestSwitchPorts(t *testing.T) {
	d := newDesk(t, withReservation(inventory.Reservation{Address: ip("10.5.0.20"), Subnet: "far", Port: "ge-0/0/5@sw7"}),
		withReservation(inventory.Reservation{Address: ip("10.5.0.21"), Subnet: "far", Port: "0x00040001"}))
	text := opt(82, append(opt(1, []byte("ge-0/0/5")...), opt(2, []byte("sw7")...)...)...)
	binary := opt(82, opt(1, 0, 4, 0, 1)...)
	o := d.one(build(discover, 1, giaddr("10.5.0.1"), append(slices.Clone(asUEFI), text)...), "", offer)
	if yours(o) != ip("10.5.0.20") {
		t.Errorf("offered %s, want the address of the port", yours(o))
	}
	if raw := o.b[:len(bytes.TrimRight(o.b, "\x00"))-1]; !bytes.HasSuffix(raw, text) { // before END
		t.Errorf("option 82 is not last, or not as it came: %x", raw)
	}
	if c := d.boots.asked[0]; c.Port != "ge-0/0/5@sw7" || !c.HasPort || c.Relay != ip("10.5.0.1") {
		t.Errorf("the boot engine was told %+v", c)
	}
	d.one(build(request, 1, giaddr("10.5.0.1"), text, opt(50, 10, 5, 0, 20), opt(54, 10, 98, 0, 1)), "", ack)
	if l := d.store.leases[ip("10.5.0.20")]; l.Port != "ge-0/0/5@sw7" {
		t.Errorf("stored %+v", l)
	}
	d.one(build(request, 1, ciaddr(ip("10.5.0.20"))), "10.98.0.1", ack) // it renews without its relay
	if l := d.store.leases[ip("10.5.0.20")]; l.Port != "ge-0/0/5@sw7" {
		t.Errorf("a renewal lost the port: %+v", l)
	}
	if o := d.one(build(discover, 2, giaddr("10.5.0.1"), binary), "", offer); yours(o) != ip("10.5.0.21") {
		t.Errorf("offered %s, want the address of the circuit on any switch", yours(o))
	}
	if o := d.one(build(discover, 3, giaddr("10.5.0.1"), opt(82, opt(1, 9)...)), "", offer); yours(o) != ip("10.5.0.100") {
		t.Errorf("a machine on another port is offered %s", yours(o))
	}
}
