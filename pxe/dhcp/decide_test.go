package dhcp

import (
	"bytes"
	"flag"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestALeaseIsStoredBeforeItIsAcknowledged(t *testing.T) {
	d := newDesk(t)
	o := d.one(build(discover, 1, nil), "", offer)
	if len(d.store.leases) != 0 {
		t.Error("an offer promises nothing, and is not stored")
	}
	if o.to != "frame 52:54:00:aa:00:01 10.98.0.85:68" {
		t.Errorf("the offer goes to %s", o.to)
	}
	d.store.before = func() {
		if n := len(d.wire.sent); n != 1 {
			t.Errorf("%d replies went out before the lease was stored", n-1)
		}
	}
	a := d.one(build(request, 1, nil, opt(50, addr4("10.98.0.85")...), opt(54, 10, 98, 0, 1), opt(12, []byte("db7")...)), "", ack)
	want := inventory.Lease{
		Address: ip("10.98.0.85"), Subnet: "rack1", MAC: "52:54:00:aa:00:01", Hostname: "db7",
		State: inventory.LeaseBound, StartsAt: d.now, ExpiresAt: d.now.Add(24 * time.Hour),
	}
	if diff := cmp.Diff(want, d.store.leases[ip("10.98.0.85")], cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if got := a.m.IPAddressLeaseTime(0); got != 24*time.Hour {
		t.Errorf("leased for %s", got)
	}
	if len(d.boots.asked) != 0 {
		t.Error("an operating system is no boot")
	}
}

func TestNoAcknowledgementWhenTheStoreFails(t *testing.T) {
	d := newDesk(t)
	a := yours(d.one(build(discover, 1, nil), "", offer))
	ask := build(request, 1, nil, opt(50, a.AsSlice()...), opt(54, 10, 98, 0, 1))
	d.store.fail = func([]inventory.Lease) error { return errDisk }
	for range 3 {
		d.none(ask, "")
		d.now = d.now.Add(time.Second)
	}
	if l, ok := d.cfg.Book.Find("rack1", a); ok {
		t.Errorf("the book counts a lease that is not on disk: %v", l)
	}
	d.now = d.now.Add(reportEvery)
	d.none(ask, "")
	d.store.fail = nil
	d.one(ask, "", ack)
	if diff := cmp.Diff([]string{"store: disk full", "store: disk full", "store: <nil>"}, d.boots.lines); diff != "" {
		t.Error("reported once per interval, and the end once:", diff)
	}
}

func TestAnAddressThatCouldNotBeStoredIsFreeAgain(t *testing.T) {
	d := newDesk(t, withRange("10.98.0.85", "10.98.0.85"))
	d.one(build(discover, 1, nil), "", offer)
	d.store.fail = func([]inventory.Lease) error { return errDisk }
	d.none(build(request, 1, nil, opt(50, 10, 98, 0, 85), opt(54, 10, 98, 0, 1)), "")
	d.store.fail = nil
	d.now = d.now.Add(lease.OfferFor)
	d.one(build(discover, 2, nil), "", offer)
}

func TestOneBadLeaseCostsOnlyItself(t *testing.T) {
	d := newDesk(t)
	bad := yours(d.one(build(discover, 1, nil), "", offer))
	d.store.fail = func(ls []inventory.Lease) error {
		if slices.ContainsFunc(ls, func(l inventory.Lease) bool { return l.Address == bad }) {
			return inventory.Errorf(inventory.NotFound, "no subnet rack1")
		}
		return nil
	}
	good := yours(d.one(build(discover, 2, nil), "", offer))
	for mac, a := range map[byte]netip.Addr{1: bad, 2: good} {
		e := entry{kind: request}
		buf := new([bufferSize]byte)
		e.port = d.port
		_, e.packet, _ = normalise(buf[:copy(buf[:], build(request, mac, nil, opt(50, a.AsSlice()...), opt(54, 10, 98, 0, 1)))])
		d.handle(t.Context(), &e, d.out)
	}
	before := len(d.wire.sent)
	d.settle()
	if got := d.wire.sent[before:]; len(got) != 1 || yours(got[0]) != good {
		t.Errorf("got %s", kinds(got))
	}
	d.none(build(request, 1, nil, opt(50, bad.AsSlice()...), opt(54, 10, 98, 0, 1)), "")
	if len(d.boots.lines) != 0 {
		t.Errorf("a store that refuses one lease is not one that fails; told: %q", d.boots.lines)
	}
}

func TestRequest(t *testing.T) {
	t.Run("another server's offer was taken: silence, and the address is free again", func(t *testing.T) {
		d := newDesk(t, withRange("10.98.0.85", "10.98.0.85"))
		d.one(build(discover, 1, nil), "", offer)
		d.none(build(request, 1, nil, opt(50, 10, 98, 0, 85), opt(54, 10, 98, 0, 2)), "")
		d.one(build(discover, 2, nil), "", offer)
	})
	t.Run("after a reboot a machine goes on with its address", func(t *testing.T) {
		d := newDesk(t)
		a := d.bind(1)
		r := d.one(build(request, 1, nil, opt(50, a.AsSlice()...)), "", ack)
		if yours(r) != a {
			t.Errorf("got %s", yours(r))
		}
	})
	t.Run("after a move to another network a machine is told NAK, by broadcast", func(t *testing.T) {
		d := newDesk(t)
		r := d.one(build(request, 1, nil, opt(50, 192, 168, 1, 7)), "", nak)
		if r.to != "255.255.255.255:68" {
			t.Errorf("sent to %s", r.to)
		}
		if got := r.m.Message(); got != string(lease.WrongNetwork) {
			t.Errorf("reason %q", got)
		}
		if !slices.ContainsFunc(d.boots.lines, func(l string) bool { return strings.HasPrefix(l, "dhcp.nak 52:54:00:aa:00:01") }) {
			t.Errorf("not noted: %q", d.boots.lines)
		}
	})
	t.Run("a machine that another server may know is left alone in mode reservations", func(t *testing.T) {
		d := newDesk(t, withMode(inventory.ModeReservations))
		d.none(build(request, 1, nil, opt(50, 192, 168, 1, 7)), "")
		d.none(build(discover, 1, nil), "")
		d.none(build(inform, 1, ciaddr(ip("10.98.0.50"))), "")
	})
	t.Run("somebody else's address is refused", func(t *testing.T) {
		d := newDesk(t)
		a := d.bind(1)
		d.one(build(request, 2, nil, opt(50, a.AsSlice()...)), "", nak)
	})
	t.Run("renewing is answered to the address itself", func(t *testing.T) {
		d := newDesk(t)
		a := d.bind(1)
		d.now = d.now.Add(12 * time.Hour)
		r := d.one(build(request, 1, ciaddr(a)), "10.98.0.1", ack)
		if r.to != a.String()+":68" || !d.store.leases[a].ExpiresAt.Equal(d.now.Add(24*time.Hour)) {
			t.Errorf("sent to %s, lease until %s", r.to, d.store.leases[a].ExpiresAt)
		}
	})
	t.Run("rebinding is answered as renewing is", func(t *testing.T) {
		d := newDesk(t)
		a := d.bind(1)
		d.now = d.now.Add(23 * time.Hour)
		if r := d.one(build(request, 1, ciaddr(a)), "", ack); r.to != a.String()+":68" {
			t.Errorf("sent to %s", r.to)
		}
	})
	t.Run("an address of no subnet of ours cannot be renewed", func(t *testing.T) {
		d := newDesk(t)
		d.one(build(request, 1, ciaddr(ip("192.168.7.7"))), "", nak)
	})
	t.Run("a boot ROM that names neither server nor address gets what it was offered", func(t *testing.T) {
		d := newDesk(t)
		a := yours(d.one(build(discover, 1, nil), "", offer))
		if r := d.one(build(request, 1, nil), "", ack); yours(r) != a {
			t.Errorf("got %s", yours(r))
		}
	})
	t.Run("without an offer it gets nothing", func(t *testing.T) {
		newDesk(t).none(build(request, 1, nil), "")
	})
}

func TestModeOffIsSilent(t *testing.T) {
	d := newDesk(t, withMode(inventory.ModeOff))
	d.none(build(discover, 1, nil), "")
	d.none(build(request, 1, nil, opt(50, 192, 168, 1, 7)), "")
	d.none(build(inform, 1, ciaddr(ip("10.98.0.50"))), "")
	d.none(captured(t, "ovmf-4011-request"), "pxe")
}

func TestReservations(t *testing.T) {
	uuid := append([]byte{0}, 0x44, 0x45, 0x4c, 0x4c, 0x42, 0, 0x10, 0x35, 0x80, 0x54, 0xb7, 0xc0, 0x4f, 0x33, 0x32, 0x32)
	boots := [][]byte{opt(60, []byte("PXEClient:Arch:00007:UNDI:003000")...), opt(93, 0, 7), opt(97, append(uuid, 0x32)[:17]...)}
	for _, c := range []struct {
		name    string
		who     inventory.Reservation
		options [][]byte
	}{
		{"by MAC", inventory.Reservation{MAC: "52:54:00:aa:00:01"}, nil},
		{"by client id", inventory.Reservation{ClientID: "ff010203"}, [][]byte{opt(61, 0xff, 1, 2, 3)}},
		{"by UUID, at boot", inventory.Reservation{UUID: "4c4c4544-0042-3510-8054-b7c04f333232"}, boots},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.who
			r.Address, r.Subnet, r.Hostname = ip("10.98.0.20"), "rack1", "db7"
			d := newDesk(t, withMode(inventory.ModeReservations), withReservation(r))
			o := d.one(build(discover, 1, nil, c.options...), "", offer)
			if yours(o) != r.Address || o.m.HostName() != "db7" {
				t.Errorf("got %s, name %q", yours(o), o.m.HostName())
			}
			d.bind(1, c.options...)
			d.none(build(discover, 2, nil), "")
		})
	}
}

func TestDeclineQuarantinesTheAddress(t *testing.T) {
	d := newDesk(t)
	a := d.bind(1)
	d.none(build(decline, 2, nil, opt(50, a.AsSlice()...), opt(54, 10, 98, 0, 1)), "") // not its own
	d.none(build(decline, 1, nil, opt(50, a.AsSlice()...), opt(54, 10, 98, 0, 9)), "") // another server's
	if d.store.leases[a].State != inventory.LeaseBound {
		t.Fatal("a stranger closed the address")
	}
	d.none(build(decline, 1, nil, opt(50, a.AsSlice()...), opt(54, 10, 98, 0, 1)), "")
	if got := d.store.leases[a].State; got != inventory.LeaseDeclined {
		t.Errorf("stored as %s", got)
	}
	if b := d.bind(1); b == a {
		t.Error("the declined address is given again")
	}
	want := []string{
		"dhcp.decline 52:54:00:aa:00:01 52:54:00:aa:00:01 found 10.98.0.85 in use by another machine",
		"conflict 10.98.0.85 rack1 : 52:54:00:aa:00:01 found 10.98.0.85 in use by another machine",
	}
	if diff := cmp.Diff(want, d.boots.lines); diff != "" {
		t.Error(diff)
	}
}

// The declined address is not the client's any more when its lease is on disk: an ACK would give it all the same.
func TestADeclineDuringTheWriteKeepsTheAcknowledgementBack(t *testing.T) {
	d := newDesk(t)
	o := d.one(build(discover, 1, nil), "", offer)
	d.store.before = func() {
		d.store.before = nil
		client := lease.Client{Subnet: "rack1", MAC: inventory.MAC("52:54:00:aa:00:01")}
		if _, ok := d.cfg.Book.Decline(client, yours(o), d.now); !ok {
			t.Error("the client may not decline what it asks for")
		}
	}
	d.none(build(request, 1, nil, opt(50, yours(o).AsSlice()...), opt(54, 10, 98, 0, 1)), "")
	if b := d.bind(1); b == yours(o) {
		t.Error("the declined address is given again")
	}
}

func TestReleaseKeepsTheBinding(t *testing.T) {
	d := newDesk(t)
	a := d.bind(1)
	d.none(build(release, 2, ciaddr(a)), "10.98.0.1") // not its own
	d.none(build(release, 1, ciaddr(a)), "10.98.0.1") // without option 54, as some clients do
	if got := d.store.leases[a].State; got != inventory.LeaseReleased {
		t.Errorf("stored as %s", got)
	}
	if b := d.bind(2); b == a {
		t.Error("the released address went to another machine although others were free")
	}
	if b := d.bind(1); b != a {
		t.Errorf("the machine came back and got %s instead of %s", b, a)
	}
}

func TestInformGetsNoLease(t *testing.T) {
	d := newDesk(t)
	r := d.one(build(inform, 1, ciaddr(ip("10.98.0.50"))), "", ack)
	if r.to != "10.98.0.50:68" || !r.m.YourIPAddr.IsUnspecified() || r.m.Options[51] != nil || len(r.m.DNS()) != 2 {
		t.Errorf("%s\n%s", r.to, r.m.Summary())
	}
	if len(d.store.groups) != 0 {
		t.Error("something was stored")
	}
	d.none(build(inform, 1, nil), "")
}

func TestInformWhereReservationsOnlyAreServed(t *testing.T) {
	d := newDesk(t, withMode(inventory.ModeReservations),
		withReservation(inventory.Reservation{Address: ip("10.98.0.20"), Subnet: "rack1", MAC: "52:54:00:aa:00:01"}))
	boots := [][]byte{opt(60, []byte("PXEClient:Arch:00007:UNDI:003000")...), opt(93, 0, 7)}
	// A machine that has set its reserved address itself never had a lease.
	d.one(build(inform, 1, ciaddr(ip("10.98.0.20"))), "", ack)
	d.one(build(request, 1, ciaddr(ip("10.98.0.20")), boots...), "pxe", ack)
	// Another server's machines are not ours, whatever address they name.
	d.none(build(inform, 2, ciaddr(ip("10.98.0.20"))), "")
	d.none(build(request, 2, ciaddr(ip("10.98.0.20")), boots...), "pxe")
}

func TestRelayedClients(t *testing.T) {
	info := append(opt(1, []byte("port 7")...), opt(2, []byte("switch")...)...)
	t.Run("the subnet is the one of the relay", func(t *testing.T) {
		d := newDesk(t)
		r := d.one(build(discover, 1, giaddr("10.5.0.1"), opt(82, info...)), "10.98.0.1", offer)
		if r.to != "10.5.0.1:67" || yours(r) != ip("10.5.0.100") || !bytes.Equal(r.m.Options[82], info) {
			t.Error(r.text())
		}
	})
	t.Run("link selection goes before it", func(t *testing.T) {
		d := newDesk(t)
		r := d.one(build(discover, 1, giaddr("10.98.0.3"), opt(82, opt(5, 10, 5, 0, 0)...)), "10.98.0.1", offer)
		if r.to != "10.98.0.3:67" || yours(r) != ip("10.5.0.100") {
			t.Error(r.text())
		}
	})
	t.Run("subnet selection goes before it too", func(t *testing.T) {
		d := newDesk(t)
		r := d.one(build(discover, 1, giaddr("10.98.0.3"), opt(118, 10, 5, 0, 0)), "10.98.0.1", offer)
		if yours(r) != ip("10.5.0.100") {
			t.Error(r.text())
		}
	})
	t.Run("the relay may take our place as server", func(t *testing.T) {
		d := newDesk(t)
		override := opt(82, opt(11, 10, 5, 0, 1)...)
		r := d.one(build(discover, 1, giaddr("10.5.0.1"), override), "10.98.0.1", offer)
		if got := r.m.ServerIdentifier().String(); got != "10.5.0.1" {
			t.Errorf("server identifier %s", got)
		}
		d.one(build(request, 1, giaddr("10.5.0.1"), override, opt(50, yours(r).AsSlice()...), opt(54, 10, 5, 0, 1)), "10.98.0.1", ack)
	})
	t.Run("a relay of no subnet of ours gets silence", func(t *testing.T) {
		newDesk(t).none(build(discover, 1, giaddr("172.20.0.1")), "10.98.0.1")
	})
}

func TestAFullSubnetIsReportedNowAndThen(t *testing.T) {
	d := newDesk(t, withRange("10.98.0.85", "10.98.0.85"))
	d.bind(1)
	d.none(build(discover, 2, nil), "")
	d.none(build(discover, 3, nil), "")
	d.now = d.now.Add(reportEvery)
	d.none(build(discover, 3, nil), "")
	if diff := cmp.Diff([]string{"exhausted rack1", "exhausted rack1"}, d.boots.lines); diff != "" {
		t.Error(diff)
	}
}

// TestFirmware replays what real firmware sent; the golden files are our answers to it.
func TestFirmware(t *testing.T) {
	for _, c := range []struct {
		name  string
		asks  []string
		kinds []kind
		to    string
	}{
		{"ovmf-pxe", []string{"ovmf-pxe-discover", "ovmf-pxe-request"}, []kind{offer, ack}, ""},
		{"ovmf-http", []string{"ovmf-http-discover", "ovmf-http-request"}, []kind{offer, ack}, ""},
		{"ipxe-efi", []string{"ipxe-efi-discover", "ipxe-efi-request"}, []kind{offer, ack}, ""},
		{"ipxe-rom", []string{"ipxe-rom-discover", "ipxe-rom-request"}, []kind{offer, ack}, ""},
		{"ipxe-rom-again", []string{"ipxe-rom-again-discover"}, []kind{offer}, ""},
		{"ovmf-4011", []string{"ovmf-4011-request"}, []kind{ack}, "pxe"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			var got strings.Builder
			for i, name := range c.asks {
				got.WriteString(name + " is answered " + c.kinds[i].String() + "\n" + d.one(captured(t, name), c.to, c.kinds[i]).text() + "\n")
			}
			got.WriteString(strings.Join(d.boots.lines, "\n") + "\n")
			for _, l := range d.store.leases {
				if !l.IsBoot || l.ExpiresAt.Sub(l.StartsAt) != 10*time.Minute {
					t.Error("a booting machine's lease is short:", l)
				}
			}
			golden := "testdata/" + c.name + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTraps(t *testing.T) {
	t.Run("PXE firmware gets no option 60, or it would ask port 4011", func(t *testing.T) {
		r := newDesk(t).one(captured(t, "ovmf-pxe-discover"), "", offer)
		if r.m.Options[60] != nil || r.m.Options[43] != nil || r.m.BootFileName != "snponly.efi" {
			t.Error(r.text())
		}
	})
	t.Run("HTTP firmware gets 60=HTTPClient and a URL with our address", func(t *testing.T) {
		r := newDesk(t).one(captured(t, "ovmf-http-discover"), "", offer)
		if string(r.m.Options[60]) != "HTTPClient" || !strings.HasPrefix(string(r.m.Options[67]), "http://10.98.0.1/boot/") {
			t.Error(r.text())
		}
	})
	t.Run("iPXE gets a script, never a loader, and is told not to wait for a proxy", func(t *testing.T) {
		for _, name := range []string{"ipxe-efi-discover", "ipxe-rom-discover"} {
			r := newDesk(t).one(captured(t, name), "", offer)
			if !bytes.Equal(r.m.Options[optEtherboot], []byte{0xb0, 1, 1}) || !strings.HasPrefix(r.m.BootFileName, "http://") || r.m.Options[60] != nil {
				t.Error(r.text())
			}
		}
	})
	t.Run("a machine whose decision is its own disk gets no boot option at all", func(t *testing.T) {
		d := newDesk(t)
		d.boots.silent = true
		r := d.one(captured(t, "ovmf-pxe-discover"), "", offer)
		if r.m.BootFileName != "" || r.m.Options[67] != nil || r.m.Options[66] != nil || r.m.Options[60] != nil || !r.m.ServerIPAddr.IsUnspecified() {
			t.Error(r.text())
		}
		d.none(captured(t, "ovmf-4011-request"), "pxe")
	})
	t.Run("two boots with the same xid are two boots", func(t *testing.T) {
		d := newDesk(t)
		first := d.one(captured(t, "ipxe-efi-discover"), "", offer)
		d.now = d.now.Add(time.Hour)
		if again := d.one(captured(t, "ipxe-efi-discover"), "", offer); yours(again) != yours(first) || len(d.boots.asked) != 2 {
			t.Error("the second boot was not asked for anew")
		}
	})
	t.Run("names end in NUL in options, and the header keeps room for it", func(t *testing.T) {
		r := newDesk(t).one(captured(t, "ovmf-pxe-discover"), "", offer)
		if string(r.m.Options[67]) != "snponly.efi\x00" || string(r.m.Options[66]) != "10.98.0.1\x00" {
			t.Errorf("%q %q", r.m.Options[67], r.m.Options[66])
		}
	})
	t.Run("a client without option 94 or 97 is served like any other", func(t *testing.T) {
		d := newDesk(t)
		r := d.one(build(discover, 1, nil, opt(93, 0, 7)), "", offer)
		if r.m.BootFileName != "snponly.efi" || d.boots.asked[0].Stage != pxe.StageFirmware {
			t.Error(r.text())
		}
	})
}
