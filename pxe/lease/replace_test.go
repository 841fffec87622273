package lease

import (
	"net/netip"
	"testing"

	"slipway.dev/slipway/inventory"
)

// TestATakeoverKeepsEachLeaseAndGivesNoAddressTwice has two instances with a book each, and one store. They take the network from each
// other while machines ask.
func TestATakeoverKeepsEachLeaseAndGivesNoAddressTwice(t *testing.T) {
	s := rack()
	s.Ranges = []inventory.Range{{First: addr("10.0.0.10"), Last: addr("10.0.0.90")}}
	x := newTable(t, s)
	books := [2]*Book{x.book, New(x.net, nil)}
	owner := map[netip.Addr]inventory.MAC{}
	for n := range 60 {
		x.book = books[n/7%2]
		if n%7 == 0 {
			x.takeOver()
		}
		c := client(n)
		a := addr(x.join(c))
		if was, isTaken := owner[a]; isTaken {
			t.Errorf("%s was given to %s and to %s", a, was, c.MAC)
		}
		owner[a] = c.MAC
		if got := x.ask(client(n/2), Renewing, x.addressOf(client(n/2)).String()); got != x.addressOf(client(n/2)).String() {
			t.Errorf("machine %d cannot renew its lease: %s", n/2, got)
		}
	}
	for a, m := range owner {
		if l, ok := x.book.Find("rack", a); !ok || l.MAC != m || l.State != inventory.LeaseBound || l.Epoch != x.epoch {
			t.Errorf("the lease of %s on %s is %+v in epoch %d", m, a, l, x.epoch)
		}
	}
}

// addressOf is the address that the store has for a machine.
func (x *table) addressOf(c Client) (a netip.Addr) {
	for _, l := range x.rows {
		if l.MAC == c.MAC {
			a = l.Address
		}
	}
	return a
}

func TestWhatWasDecidedBeforeATakeoverIsNotAcknowledged(t *testing.T) {
	x := newTable(t, rack())
	x.takeOver()
	x.offer(client(1), "")
	x.offer(client(2), "")
	before := x.book.Confirm(client(1), Selecting, addr("10.0.0.10"), x.now)
	if before.Verdict != Ack || before.Lease.Epoch != 1 {
		t.Fatalf("the first machine gets %+v", before)
	}
	// Another instance has the network for a while, and gives the address to another machine.
	given := before.Lease
	given.MAC = client(3).MAC
	x.store(given)
	x.takeOver()
	if x.book.Commit(before.Lease) {
		t.Error("a lease of before the takeover counts")
	}
	x.want("the address of the third", x.offer(client(3), ""), "10.0.0.10")
	x.want("the offer to the second is forgotten", x.offer(client(4), "10.0.0.11"), "10.0.0.11")
	x.want("the first gets another", x.offer(client(1), "10.0.0.10"), "10.0.0.13")
	for _, l := range []func() (inventory.Lease, bool){
		func() (inventory.Lease, bool) {
			return x.book.Confirm(client(4), Selecting, addr("10.0.0.11"), x.now).Lease, true
		},
		func() (inventory.Lease, bool) { return x.book.Release(client(3), addr("10.0.0.10"), x.now) },
		func() (inventory.Lease, bool) { return x.book.Decline(client(4), addr("10.0.0.11"), x.now) },
		func() (inventory.Lease, bool) { return x.book.Conflict(client(5), addr("10.0.0.14"), x.now) },
	} {
		if l, ok := l(); !ok || l.Epoch != 2 {
			t.Errorf("a lease that was decided in epoch 2 is %+v", l)
		}
	}
	x.net.Subnets[0].Domain = "example.org"
	x.book.Reconfigure(x.net)
	if l, ok := x.book.Find("rack", addr("10.0.0.10")); !ok || l.Epoch != 2 {
		t.Errorf("after a change of the subnet the lease is %+v", l)
	}
	other := New(x.net, nil)
	other.Replace("nowhere", nil, 7) // a subnet that was deleted meanwhile
	if r := other.Confirm(client(1), InitReboot, addr("10.0.0.10"), x.now); r.Lease.Epoch != 0 {
		t.Errorf("a book without the duty decides in epoch %d", r.Lease.Epoch)
	}
}

func TestALeaseThatWasRenewedAfterItsDeletionStays(t *testing.T) {
	x := newTable(t, rack())
	a := x.join(client(1))
	l, _ := x.book.At(addr(a))
	x.now = x.now.Add(1e9)
	x.want("renewed", x.ask(client(1), Renewing, a), a)
	x.book.Drop(l)
	if now, ok := x.book.At(addr(a)); !ok || now.MAC != client(1).MAC {
		t.Errorf("the renewed lease is gone: %+v", now)
	}
}
