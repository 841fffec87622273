package lease

import (
	"net/netip"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func TestADroppedLeaseIsFreeForTheNextMachine(t *testing.T) {
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	only := netip.MustParseAddr("10.0.0.10")
	b := New(Network{Subnets: []inventory.Subnet{{
		Name: "s", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Mode: inventory.ModeFull, Unknown: inventory.UnknownDisk,
		LeaseFor: inventory.Duration(time.Hour), BootLeaseFor: inventory.Duration(time.Minute), Ranges: []inventory.Range{{First: only, Last: only}},
	}}}, nil)
	first, second := Client{Subnet: "s", MAC: "52:54:00:00:00:01"}, Client{Subnet: "s", MAC: "52:54:00:00:00:02"}
	if _, why := b.Offer(first, netip.Addr{}, now); why != "" {
		t.Fatal(why)
	}
	r := b.Confirm(first, Selecting, only, now)
	if r.Verdict != Ack || !b.Commit(r.Lease) {
		t.Fatalf("lease not bound: %+v", r)
	}
	if _, why := b.Offer(second, netip.Addr{}, now); why == "" {
		t.Fatal("the only address was offered twice")
	}
	l, ok := b.At(only)
	if !ok || l.MAC != first.MAC {
		t.Fatalf("the book has %+v", l)
	}
	b.Drop(l)
	if o, why := b.Offer(second, netip.Addr{}, now); why != "" || o.Address != only {
		t.Errorf("after the drop: %+v %s", o, why)
	}
	if r := b.Confirm(first, Renewing, only, now); r.Verdict != Nak {
		t.Errorf("the old client renews: %+v", r)
	}
}
