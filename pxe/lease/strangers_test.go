package lease

import (
	"net/netip"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// wide is a subnet of 16 addresses, of which strangers get at most 14.
func wide(t *testing.T) *table {
	s := rack()
	s.Gateway, s.Ranges = netip.Addr{}, []inventory.Range{{First: addr("10.0.0.16"), Last: addr("10.0.0.31")}}
	x := newTable(t, s)
	x.net.Limits = Limits{KeptPart: 8, PerPort: 3, OfferFor: 15 * time.Second}
	x.restart()
	return x
}

func (x *table) known(n int) Client {
	c := client(n)
	c.IsKnown = true
	return c
}

func TestStrangersLeaveAddressesToKnownMachines(t *testing.T) {
	x := wide(t)
	take := func(c Client) Reason {
		t.Helper()
		o, why := x.book.Offer(c, netip.Addr{}, x.now)
		if why != "" {
			return why
		}
		r := x.book.Confirm(c, Selecting, o.Address, x.now)
		if r.Verdict != Ack {
			return r.Reason
		}
		x.store(r.Lease)
		x.book.Commit(r.Lease)
		x.book.check(t)
		return ""
	}
	for n := range 14 {
		if why := take(client(n)); why != "" {
			t.Fatalf("stranger %d: %s", n, why)
		}
	}
	for n := 14; n < 100; n++ {
		if why := take(client(n)); why != KeptForKnown {
			t.Fatalf("stranger %d: %q", n, why)
		}
	}
	if r := x.book.Confirm(client(50), InitReboot, addr("10.0.0.31"), x.now); r.Verdict != Silent || r.Reason != KeptForKnown {
		t.Errorf("a stranger that asks for a free address at once: %v", r)
	}
	if why := take(client(3)); why != "" {
		t.Error("a stranger may not keep what it has:", why)
	}
	for n := 100; n < 102; n++ {
		if why := take(x.known(n)); why != "" {
			t.Errorf("known machine %d: %s", n, why)
		}
	}
	x.restart() // the count survives: it is in the leases
	if why := take(client(200)); why != KeptForKnown && why != Exhausted {
		t.Errorf("after a restart a stranger gets %q", why)
	}
	x.now = x.now.Add(25 * time.Hour) // all leases have ended
	if why := take(client(201)); why != "" {
		t.Error("strangers are locked out for ever:", why)
	}
}

func TestOffersToStrangersAreShortAndGiveWay(t *testing.T) {
	x := wide(t)
	for n := range 14 {
		if _, why := x.book.Offer(client(n), netip.Addr{}, x.now); why != "" {
			t.Fatal(n, why)
		}
	}
	known, _ := x.book.Offer(x.known(100), netip.Addr{}, x.now)
	if _, why := x.book.Offer(client(20), netip.Addr{}, x.now); why != KeptForKnown {
		t.Errorf("got %q", why)
	}
	x.now = x.now.Add(unclaimedFor)
	for n := 20; n < 80; n++ { // more than there are strangers' offers
		if o, why := x.book.Offer(client(n), netip.Addr{}, x.now); why == "" && o.Address == known.Address {
			t.Fatal("the offer of a known machine gave way to a stranger")
		}
	}
	x.now = x.now.Add(15 * time.Second)
	if c := x.book.Counts("rack", x.now); c.OfferedN != 1 {
		t.Errorf("%d offers are left, want that of the known machine", c.OfferedN)
	}
	x.book.check(t)
	if r := x.book.Confirm(x.known(100), Selecting, known.Address, x.now); r.Verdict != Ack {
		t.Error(r.Reason)
	}
}

func TestStrangersPerSwitchPort(t *testing.T) {
	x := wide(t)
	on := func(n int, port string) Client {
		c := client(n)
		c.Port = port
		return c
	}
	for n := range 3 {
		if _, why := x.book.Offer(on(n, "1@a"), netip.Addr{}, x.now); why != "" {
			t.Fatal(n, why)
		}
	}
	if _, why := x.book.Offer(on(4, "1@a"), netip.Addr{}, x.now); why != PortFull {
		t.Errorf("a fourth machine on the port gets %q", why)
	}
	if _, why := x.book.Offer(on(0, "1@a"), netip.Addr{}, x.now); why != "" {
		t.Errorf("the first asks again and gets %q", why)
	}
	if _, why := x.book.Offer(on(5, "2@a"), netip.Addr{}, x.now); why != "" {
		t.Errorf("on another port: %q", why)
	}
	c := on(6, "1@a")
	c.IsKnown = true
	if _, why := x.book.Offer(c, netip.Addr{}, x.now); why != "" {
		t.Errorf("a known machine on the port: %q", why)
	}
	x.now = x.now.Add(16 * time.Second)
	if _, why := x.book.Offer(on(4, "1@a"), netip.Addr{}, x.now); why != "" {
		t.Errorf("when the offers have ended: %q", why)
	}
}

// TestStrangersAskWithinTheMillisecondInWhichAnOfferEnds asks just before an offer ends: times of offers are finer than
// the milliseconds in which holders are swept.
func TestStrangersAskWithinTheMillisecondInWhichAnOfferEnds(t *testing.T) {
	x := wide(t)
	for n := range 2 {
		if _, why := x.book.Offer(client(n), netip.Addr{}, x.now.Add(700*time.Microsecond)); why != "" {
			t.Fatal(n, why)
		}
	}
	answered := make(chan Reason, 1)
	go func() {
		_, why := x.book.Offer(client(2), netip.Addr{}, x.now.Add(15*time.Second+200*time.Microsecond))
		answered <- why
	}()
	select {
	case why := <-answered:
		if why != "" {
			t.Error(why)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no answer: the holders are swept for ever")
	}
}
