package lease6

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// TestATakeoverKeepsEachLeaseAndGivesNoAddressTwice has two instances with a book each, and one store.
func TestATakeoverKeepsEachLeaseAndGivesNoAddressTwice(t *testing.T) {
	s := subnet(span("fd00:1::10", "fd00:1::2f"))
	books := [2]*Book{book(s), book(s)}
	rows, owner := map[netip.Addr]inventory.Lease{}, map[netip.Addr]string{}
	epoch := int64(0)
	for n := range 30 {
		b := books[n/5%2]
		if n%5 == 0 {
			epoch++
			b.Replace("six", slices.Collect(maps.Values(rows)), epoch)
		}
		c := client(n)
		_, l, why := b.Assign(c, netip.Addr{}, now)
		if why != "" || l.Epoch != epoch {
			t.Fatalf("%s gets %+v: %s", c.DUID, l, why)
		}
		rows[l.Address] = l
		if !b.Commit(l) {
			t.Errorf("%s: not committed", c.DUID)
		}
		if was, isTaken := owner[l.Address]; isTaken {
			t.Errorf("%s was given to %s and to %s", l.Address, was, c.DUID)
		}
		owner[l.Address] = c.DUID
	}
	b := books[1]
	for a, duid := range owner {
		if l, ok := b.At(a); !ok || l.ClientID != duid || l.Epoch != epoch {
			t.Errorf("the lease of %s on %s is %+v in epoch %d", duid, a, l, epoch)
		}
	}
}

func TestWhatWasDecidedBeforeATakeoverIsNotAcknowledged(t *testing.T) {
	b := book(subnet(span("fd00:1::10", "fd00:1::11")))
	b.Replace("six", nil, 1)
	_, before, _ := b.Assign(client(1), netip.Addr{}, now)
	if _, why := b.Offer(client(2), netip.Addr{}, now); why != "" {
		t.Fatal(why)
	}
	given := before
	given.MAC, given.ClientID = client(3).MAC, client(3).DUID
	b.Replace("six", []inventory.Lease{given}, 2)
	if b.Commit(before) {
		t.Error("an address of before the takeover counts")
	}
	if _, l, why := b.Assign(client(4), netip.Addr{}, now); why != "" || l.Epoch != 2 {
		t.Errorf("the address that was offered before the takeover is not free: %+v, %s", l, why)
	}
	if l, ok := b.Release(client(3), given.Address, now); !ok || l.Epoch != 2 {
		t.Errorf("released in epoch 2: %+v", l)
	}
	b.Replace("nowhere", nil, 3)
}

func TestALeaseThatWasRenewedAfterItsDeletionStays(t *testing.T) {
	b := book(subnet(span("fd00:1::10", "fd00:1::1f")))
	a := take(t, b, client(1), now)
	l, _ := b.At(a)
	take(t, b, client(1), now.Add(time.Minute))
	b.Drop(l)
	l, ok := b.At(a)
	if !ok {
		t.Fatal("the renewed lease is gone")
	}
	b.Drop(l)
	if _, ok := b.At(a); ok {
		t.Error("a deleted lease stays")
	}
}
