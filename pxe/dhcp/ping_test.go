package dhcp

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// pingWire is the ICMP socket: it keeps what is asked and returns what arrives.
type pingWire struct {
	mu    sync.Mutex
	asked []string
	echo  []byte // the last question
	in    chan []byte
	gone  chan struct{}
	once  sync.Once
}

func (w *pingWire) ReadBatch(ms []ipv4.Message, _ int) (int, error) {
	select {
	case <-w.gone:
		return 0, net.ErrClosed
	case b := <-w.in:
		ms[0].N = copy(ms[0].Buffers[0], b)
		return 1, nil
	}
}

func (w *pingWire) WriteBatch(ms []ipv4.Message, flags int) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if flags != unix.MSG_DONTWAIT {
		panic("a question that may wait")
	}
	for _, m := range ms {
		w.asked, w.echo = append(w.asked, m.Addr.String()), m.Buffers[0]
	}
	return len(ms), nil
}

func (w *pingWire) Close() error {
	w.once.Do(func() { close(w.gone) })
	return nil
}

// answer lets a host answer the last question.
func (w *pingWire) answer(from string) {
	w.mu.Lock()
	token := [tokenSize]byte(w.echo[echoHeader:])
	w.mu.Unlock()
	w.in <- echoFrom(from, token)
	synctest.Wait()
}

// echoFrom is an IPv4 packet with an echo reply.
func echoFrom(from string, token [tokenSize]byte) []byte {
	b := []byte{0x45, 0, 0, 44, 0, 0, 0, 0, 63, 1, 0, 0}
	b = append(append(b, addr4(from)...), 10, 98, 0, 1)
	return appendEcho(b, echoReply, token)
}

// runWithPing is a server whose pings go to a wire of ours.
func runWithPing(t *testing.T, options ...deskOption) (*running, *pingWire) {
	w := &pingWire{in: make(chan []byte, 16), gone: make(chan struct{})}
	d := wired(t, append(options, withProbe(100*time.Millisecond))...)
	d.Server.ping = func(context.Context) (pings, error) { return w, nil }
	return start(t, d), w
}

func TestARelayedFirstUseIsPinged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := runWithPing(t)
		r.send(build(discover, 1, giaddr("10.5.0.1")))
		time.Sleep(450 * time.Millisecond)
		synctest.Wait()
		if n := len(r.sent()); n != 0 {
			t.Fatal("offered before the probe was over")
		}
		r.send(build(discover, 1, giaddr("10.5.0.1"))) // the machine repeats itself meanwhile
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := r.sent(); len(got) != 1 || yours(got[0]) != ip("10.5.0.100") {
			t.Fatalf("after the probe: %s", kinds(got))
		}
		if diff := cmp.Diff([]string{"10.5.0.100", "10.5.0.100"}, w.asked); diff != "" || len(r.wire.arps) != 0 {
			t.Error("asked twice by ping, never by ARP:", diff, r.wire.arps)
		}
		r.send(build(request, 1, giaddr("10.5.0.1"), opt(50, 10, 5, 0, 100), opt(54, 10, 98, 0, 1)))
		r.send(build(discover, 1, giaddr("10.5.0.1")))
		if got := r.sent(); len(got) != 3 || len(w.asked) != 2 {
			t.Errorf("an address that the machine had is asked for again: %s, asked %v", kinds(got), w.asked)
		}
		_ = r.stop()
		select {
		case <-w.gone:
		default:
			t.Error("the socket stays open")
		}
	})
}

func TestSilenceBehindARelayCountsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := runWithPing(t)
		r.send(build(discover, 1, giaddr("10.5.0.1")))
		time.Sleep(2 * time.Minute) // the offer is over, and the address is offered to the next one
		r.send(build(discover, 2, giaddr("10.5.0.1")))
		if got := r.sent(); len(got) != 2 || yours(got[1]) != ip("10.5.0.100") {
			t.Errorf("got %s, asked %v", kinds(got), w.asked)
		}
		time.Sleep(freeFor)
		r.send(build(discover, 3, giaddr("10.5.0.1")))
		if got := r.sent(); len(got) != 2 {
			t.Errorf("the silence of ten minutes ago still counts: %s", kinds(got))
		}
		_ = r.stop()
	})
}

func TestAnAddressThatAnswersPingsIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := runWithPing(t)
		r.send(build(discover, 1, giaddr("10.5.0.1")))
		w.in <- echoFrom("10.5.0.100", [tokenSize]byte{1}) // the answer to another program's question
		w.answer("10.5.0.101")                             // another address
		if len(w.asked) != 1 {
			t.Fatalf("asked %v", w.asked)
		}
		w.answer("10.5.0.100")
		if n := len(r.sent()); n != 0 {
			t.Fatalf("offered %s", yours(r.sent()[0]))
		}
		time.Sleep(550 * time.Millisecond)
		synctest.Wait()
		if got := r.sent(); len(got) != 1 || yours(got[0]) != ip("10.5.0.101") || got[0].to != "10.5.0.1:67" {
			t.Fatalf("the next address is offered after its own probe: %s", kinds(got))
		}
		if got := r.store.leases[ip("10.5.0.100")].State; got != inventory.LeaseDeclined {
			t.Errorf("the address is stored as %q", got)
		}
		want := "conflict 10.5.0.100 far : 10.5.0.100 answers pings from behind relay 10.5.0.1, and nobody has it from us"
		if !slices.Contains(r.boots.lines, want) {
			t.Errorf("told: %q", r.boots.lines)
		}
		_ = r.stop()
	})
}

func TestWhoMayUseItsAddressAlreadyIsNotPinged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := runWithPing(t)
		r.send(build(request, 1, func(b []byte) { ciaddr(ip("10.5.0.120"))(b); giaddr("10.5.0.1")(b) })) // rebinds
		r.send(build(request, 2, giaddr("10.5.0.1"), opt(50, 10, 5, 0, 121)))                            // restarts
		if got := r.sent(); len(got) != 2 || kinds(got) != "ack, ack" || len(w.asked) != 0 {
			t.Errorf("got %s at once, asked %v", kinds(got), w.asked)
		}
		_ = r.stop()
	})
}

func TestRelayedMachinesAreServedWithoutPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := runWithPing(t)
		_ = w.Close() // the socket fails
		synctest.Wait()
		r.send(build(discover, 1, giaddr("10.5.0.1")))
		if got := r.sent(); len(got) != 1 {
			t.Errorf("got %s, want an offer at once", kinds(got))
		}
		_ = r.stop()
	})
	synctest.Test(t, func(t *testing.T) {
		r := run(t, withProbe(time.Second)) // no permission for one
		r.send(build(discover, 1, giaddr("10.5.0.1")))
		if got := r.sent(); len(got) != 1 {
			t.Errorf("got %s, want an offer at once", kinds(got))
		}
		_ = r.stop()
	})
}

func TestEcho(t *testing.T) {
	token := [tokenSize]byte{1, 2, 3}
	whole := echoFrom("10.5.0.100", token)
	long := append([]byte{0x46}, whole[1:20]...) // with an IP option
	long = append(append(long, 1, 1, 1, 1), whole[20:]...)
	edit := func(i int, v byte) []byte {
		b := slices.Clone(whole)
		b[i] = v
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		ok   bool
	}{
		{"a reply", whole, true},
		{"a reply with IP options", long, true},
		{"a question", appendEcho(slices.Clone(whole[:20]), echoAsk, token), false},
		{"another code", edit(21, 1), false},
		{"a wrong checksum", edit(23, whole[23]^1), false},
		{"another program's", echoFrom("10.5.0.100", [tokenSize]byte{9}), false},
		{"cut short", whole[:len(whole)-1], false},
		{"no IP header", whole[:10], false},
		{"a header length that is none", edit(0, 0x41), false},
		{"a header that is longer than the packet", edit(0, 0x4f), false},
		{"IPv6", edit(0, 0x65), false},
		{"nothing", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, ok := parseEchoReply(c.b, token)
			if ok != c.ok || ok && from != ip("10.5.0.100") {
				t.Errorf("got %s, %t", from, ok)
			}
		})
	}
}

func FuzzEchoReply(f *testing.F) {
	f.Add(echoFrom("10.5.0.100", [tokenSize]byte{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if from, ok := parseEchoReply(b, [tokenSize]byte{}); ok && from != netip.AddrFrom4([4]byte(b[12:16])) {
			t.Error(from)
		}
	})
}
