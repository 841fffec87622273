package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
)

// running is a server that serves a port without sockets, in a bubble of its own time.
type running struct {
	*desk
	stop func() error // stops it and returns what Serve returned
}

func run(t *testing.T, options ...deskOption) *running {
	return start(t, wired(t, options...))
}

// wired is a server that has not started, without a socket for pings.
func wired(t *testing.T, options ...deskOption) *desk {
	d := newDesk(t, options...)
	d.cfg.Now = time.Now
	d.Server.open = func(context.Context, string) (*port, error) { return d.port, nil }
	d.Server.state = func(string) (link, error) { return d.port.link, nil }
	d.Server.ping = func(context.Context) (pings, error) { return nil, errors.New("no permission") }
	return d
}

func start(t *testing.T, d *desk) *running {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx) }()
	t.Cleanup(cancel)
	return &running{d, func() error { cancel(); return <-done }}
}

// send puts packets on the wire and waits until the server has nothing left to do.
func (r *running) send(packets ...[]byte) {
	for _, p := range packets {
		r.wire.in <- datagram{b: p, peer: netip.AddrPortFrom(netip.IPv4Unspecified(), clientPort)}
	}
	synctest.Wait()
}

func (r *running) sent() []reply {
	r.wire.mu.Lock()
	defer r.wire.mu.Unlock()
	return slices.Clone(r.wire.sent)
}

func requests(from, to byte) (packets [][]byte) {
	for mac := from; mac <= to; mac++ {
		packets = append(packets, build(request, mac, nil, opt(50, 10, 98, 0, 84+mac), opt(54, 10, 98, 0, 1)))
	}
	return packets
}

func TestLeasesAreWrittenInGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		for mac := byte(1); mac <= 9; mac++ {
			r.send(build(discover, mac, nil))
		}
		disk := make(chan struct{})
		r.store.before = func() { <-disk }
		r.send(requests(1, 1)...)
		r.send(requests(2, 9)...) // while the first is being written
		if n := len(r.sent()); n != 9 {
			t.Errorf("%d acknowledgements before anything is on disk", n-9)
		}
		close(disk)
		synctest.Wait()
		if diff := cmp.Diff([]int{1, 8}, r.store.groups); diff != "" {
			t.Error("what comes while the disk is busy shares a write:", diff)
		}
		if n := len(r.sent()); n != 18 {
			t.Errorf("%d replies, want 9 offers and 9 acknowledgements", n)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestUnderLoadAGroupGathersAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		const gatherFor = 2 * gatherEach // after a group of two
		for mac := byte(1); mac <= 6; mac++ {
			r.send(build(discover, mac, nil))
		}
		disk := make(chan struct{})
		r.store.before = func() { <-disk }
		r.send(requests(1, 1)...)
		r.send(requests(2, 3)...)
		close(disk)
		synctest.Wait()
		time.Sleep(gatherFor) // the group of two is gathered, too
		synctest.Wait()
		r.send(requests(4, 4)...)
		time.Sleep(gatherFor / 2)
		r.send(requests(5, 5)...)
		time.Sleep(gatherFor)
		r.send(requests(6, 6)...) // the load is over after the next group
		time.Sleep(gatherFor)
		synctest.Wait()
		if diff := cmp.Diff([]int{1, 2, 2, 1}, r.store.groups); diff != "" {
			t.Error(diff)
		}
		_ = r.stop()
	})
}

func TestWhileRequestsComeThickAGroupGathersLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		const thickFor = 8 * gatherEach // after a group of eight
		for mac := byte(1); mac <= 12; mac++ {
			r.send(build(discover, mac, nil))
		}
		disk := make(chan struct{})
		r.store.before = func() { <-disk }
		r.send(requests(1, 1)...)
		r.send(requests(2, 9)...)
		close(disk)
		synctest.Wait()
		time.Sleep(thickFor)
		synctest.Wait()
		r.send(requests(10, 10)...)
		time.Sleep(thickFor - time.Microsecond)
		r.send(requests(11, 11)...)
		time.Sleep(thickFor)
		r.send(requests(12, 12)...)
		time.Sleep(thickFor)
		synctest.Wait()
		if diff := cmp.Diff([]int{1, 8, 2, 1}, r.store.groups); diff != "" {
			t.Error(diff)
		}
		_ = r.stop()
	})
}

func TestAStopLosesNothingThatWasPromised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		for mac := byte(1); mac <= 3; mac++ {
			r.send(build(discover, mac, nil))
		}
		disk := make(chan struct{})
		r.store.before = func() { <-disk }
		r.send(requests(1, 1)...)
		r.send(requests(2, 3)...) // they wait for the first
		go func() {
			time.Sleep(time.Second)
			close(disk)
		}()
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		if n := len(r.store.leases); n != 3 {
			t.Errorf("%d of 3 leases are stored", n)
		}
	})
}

func TestABusyDiskBoundsWhatWaits(t *testing.T) {
	t.Run("of known machines", func(t *testing.T) { busyDisk(t, 3, withKnown(1, 2, 3, 4, 5, 6, 7, 8)) })
	t.Run("of strangers, which leave room", func(t *testing.T) { busyDisk(t, 4) })
}

func busyDisk(t *testing.T, dropped int, more ...deskOption) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, append(more, withQueue(4))...)
		for mac := byte(1); mac <= 8; mac++ {
			r.send(build(discover, mac, nil))
		}
		disk := make(chan struct{})
		r.store.before = func() { <-disk }
		for mac := byte(1); mac <= 8; mac++ {
			a := yours(r.sent()[mac-1])
			r.send(build(request, mac, nil, opt(50, a.AsSlice()...), opt(54, 10, 98, 0, 1)))
		}
		if got := count(r.Metrics.Drops.WithLabelValues(string(dropCommits))); got != float64(dropped) {
			t.Errorf("%v requests dropped, want %d: one is being written, the others wait", got, dropped)
		}
		close(disk)
		synctest.Wait()
		if n := len(r.store.leases); n != 8-dropped {
			t.Errorf("%d leases stored, want %d", n, 8-dropped)
		}
		_ = r.stop()
	})
}

func TestAFirstUseIsProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, withProbe(100*time.Millisecond))
		r.send(build(discover, 1, nil))
		time.Sleep(60 * time.Millisecond)
		synctest.Wait()
		if n := len(r.sent()); n != 0 {
			t.Fatal("offered before the probe was over")
		}
		r.send(build(discover, 1, nil)) // the machine repeats itself meanwhile
		time.Sleep(60 * time.Millisecond)
		synctest.Wait()
		if got := r.sent(); len(got) != 1 || yours(got[0]) != ip("10.98.0.85") {
			t.Fatalf("after the probe: %s", kinds(got))
		}
		if diff := cmp.Diff([]string{"10.98.0.85", "10.98.0.85"}, texts(r.wire.arps)); diff != "" {
			t.Error("asked twice:", diff)
		}
		r.send(build(request, 1, nil, opt(50, 10, 98, 0, 85), opt(54, 10, 98, 0, 1)))
		r.send(build(discover, 1, nil))
		if got := r.sent(); len(got) != 3 || len(r.wire.arps) != 2 {
			t.Errorf("an address that the machine had is asked for again: %s, %d probes", kinds(got), len(r.wire.arps))
		}
		_ = r.stop()
	})
}

// count reads a counter.
func count(c prometheus.Counter) float64 {
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		panic(err)
	}
	return m.GetCounter().GetValue()
}

func texts(addrs []netip.Addr) (out []string) {
	for _, a := range addrs {
		out = append(out, a.String())
	}
	return out
}

// claims is an ARP reply in which a machine says that it has an address.
func claims(mac byte, addr string) []byte {
	b := append([]byte{2, 0, 0, 0, 0, 1, 0x52, 0x54, 0, 0xaa, 0, mac, 8, 6}, 0, 1, 8, 0, 6, 4, 0, 2, 0x52, 0x54, 0, 0xaa, 0, mac)
	b = append(b, addr4(addr)...)
	return append(b, 2, 0, 0, 0, 0, 1, 10, 98, 0, 1)
}

func TestAnAddressInUseIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, withProbe(100*time.Millisecond))
		r.send(build(discover, 1, nil))
		r.wire.arp <- claims(1, "10.98.0.85") // the asking machine's own word does not count
		r.wire.arp <- claims(9, "10.98.0.86") // nor does a word about another address
		synctest.Wait()
		r.wire.arp <- claims(9, "10.98.0.85")
		synctest.Wait()
		if n := len(r.sent()); n != 0 {
			t.Fatalf("offered %s", yours(r.sent()[0]))
		}
		time.Sleep(120 * time.Millisecond)
		synctest.Wait()
		if got := r.sent(); len(got) != 1 || yours(got[0]) != ip("10.98.0.86") {
			t.Fatalf("the next address is offered after its own probe: %s", kinds(got))
		}
		if got := r.store.leases[ip("10.98.0.85")].State; got != inventory.LeaseDeclined {
			t.Errorf("the address is stored as %q", got)
		}
		want := "conflict 10.98.0.85 rack1 52:54:00:aa:00:09: 10.98.0.85 is used by 52:54:00:aa:00:09, which does not have it from us"
		if !slices.Contains(r.boots.lines, want) {
			t.Errorf("told: %q", r.boots.lines)
		}
		_ = r.stop()
	})
}

func TestAMachineThatWantsAnAddressInUseIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, withProbe(100*time.Millisecond))
		r.send(build(request, 1, nil, opt(50, 10, 98, 0, 90))) // it remembers a lease that we do not
		r.wire.arp <- claims(9, "10.98.0.90")
		synctest.Wait()
		if got := r.sent(); len(got) != 1 || kind(got[0].m.MessageType()) != nak {
			t.Errorf("got %s, want a nak", kinds(got))
		}
		_ = r.stop()
	})
}

func TestReservedAddressesAreNotProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, pings := runWithPing(t, withReservation(inventory.Reservation{Address: ip("10.98.0.20"), Subnet: "rack1", MAC: "52:54:00:aa:00:01"}),
			withReservation(inventory.Reservation{Address: ip("10.5.0.20"), Subnet: "far", MAC: "52:54:00:aa:00:02"}))
		r.send(build(discover, 1, nil), build(discover, 2, giaddr("10.5.0.1")))
		if got := r.sent(); len(got) != 2 || len(r.wire.arps) != 0 || len(pings.asked) != 0 {
			t.Errorf("got %s at once, %d probes, pings %v", kinds(got), len(r.wire.arps), pings.asked)
		}
		_ = r.stop()
	})
}

func TestAFloodIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, withRange("10.98.0.2", "10.98.0.250"))
		junk := make([]byte, 300)
		for range 50 {
			r.send(build(discover, 1, nil), junk)
		}
		r.send(build(discover, 2, nil))
		drops := func(why dropReason) float64 { return count(r.Metrics.Drops.WithLabelValues(string(why))) }
		if drops(dropOp) != 50 || drops(dropSource) != 30 {
			t.Errorf("dropped: %v malformed, %v over the limit; want 50 and 30", drops(dropOp), drops(dropSource))
		}
		if got := r.sent(); yours(got[len(got)-1]) != ip("10.98.0.3") {
			t.Error("a quiet machine was not served beside the loud one")
		}
		_ = r.stop()
	})
}

// While more DISCOVERs of strangers wait than there is room for, one more of them is dropped as it is read. What known
// machines send, and what ends an exchange, waits as before.
func TestWhatIsTooMuchOfAFloodIsDroppedAsItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []pxe.Unanswered
		d := wired(t, withQueue(4), withKnown(9), func(_ *lease.Network, c *Config) {
			c.Unanswered = func(u pxe.Unanswered) { told = append(told, u) }
		})
		r := &running{d, nil}
		go func() { _ = d.readPackets(d.port, d.wire, false) }() // and nobody decides
		for _, step := range []struct {
			about          string
			packet         []byte
			waiting, drops int
		}{
			{"there is room for four", build(discover, 1, nil), 1, 0},
			{"", build(discover, 2, nil), 2, 0},
			{"", build(discover, 3, nil), 3, 0},
			{"", build(discover, 4, nil), 4, 0},
			{"one more stranger", build(discover, 5, nil), 4, 1},
			{"one that waits already", build(discover, 1, nil), 4, 2},
			{"a REQUEST", build(request, 5, nil), 5, 2},
			{"a known machine", build(discover, 9, nil), 6, 2},
		} {
			r.send(step.packet)
			if drops := count(d.Metrics.Drops.WithLabelValues(string(dropFull))); d.queue.len() != step.waiting || int(drops) != step.drops {
				t.Errorf("%s: %d wait and %v were dropped, want %d and %d", step.about, d.queue.len(), drops, step.waiting, step.drops)
			}
		}
		if len(told) != 2 || told[0].Reason != string(dropFull) || told[0].Client.MAC != "52:54:00:aa:00:05" {
			t.Errorf("told %+v, want the two that were dropped", told)
		}
		_ = d.wire.Close()
	})
}

func TestAnInterfaceThatComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.cfg.Now = time.Now
		wires := []*wire{newWire(), newWire()}
		opened := 0
		var up atomic.Pointer[link]
		up.Store(&d.port.link)
		d.Server.state = func(string) (link, error) { return *up.Load(), nil }
		d.Server.open = func(context.Context, string) (*port, error) {
			if opened++; opened == 1 || opened == 3 {
				return nil, notReady("eno2", "is down", "ip link set eno2 up")
			}
			p := testPort(wires[opened/2-1])
			p.link = *up.Load()
			return p, nil
		}
		r := start(t, d)
		synctest.Wait()
		if r.ServingN() != 0 {
			t.Error("an interface that is down is served")
		}
		time.Sleep(1100 * time.Millisecond)
		r.wire = wires[0]
		r.send(build(discover, 1, nil))
		if r.ServingN() != 1 || len(r.sent()) != 1 {
			t.Fatal("the interface came up and is not served")
		}
		other := d.port.link
		other.prefixes = []netip.Prefix{netip.MustParsePrefix("10.98.0.1/23")}
		up.Store(&other)
		time.Sleep(lookEvery + 3*time.Second)
		r.wire = wires[1]
		r.send(build(discover, 1, nil))
		if len(r.sent()) != 1 || opened != 4 {
			t.Errorf("after its address changed: opened %d times, %s", opened, kinds(r.sent()))
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestServeFailsAtOnce(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
	}{
		{"when the port is taken", portTaken(serverPort)},
		{"when the interface does not exist", func() error { _, err := readLink("no-such-if0"); return err }()},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			d.Server.open = func(context.Context, string) (*port, error) { return nil, c.err }
			err := d.Serve(t.Context())
			var e *inventory.Error
			if !errors.As(err, &e) || e.Hint == "" {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSendErrorsCostOnlyTheirOwnReply(t *testing.T) {
	d := newDesk(t)
	d.wire.fail = errors.New("network is unreachable")
	d.none(build(discover, 1, func(b []byte) { b[offFlags] = 0x80 }), "")
	if got := count(d.Metrics.SendErrors); got != 1 {
		t.Errorf("%v errors counted", got)
	}
	d.wire.fail = nil
	d.one(build(discover, 1, func(b []byte) { b[offFlags] = 0x80 }), "", offer)
}

func TestOwnersOfAPortAreNamed(t *testing.T) {
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	number := conn.LocalAddr().(*net.UDPAddr).Port
	owners := ownersOf(number)
	if len(owners) != 1 || !strings.Contains(owners[0], "dhcp.test") {
		t.Errorf("owners %q", owners)
	}
	if msg := portTaken(number).Error(); !strings.Contains(msg, fmt.Sprintf("UDP port %d is taken by dhcp.test", number)) {
		t.Error(msg)
	}
}
