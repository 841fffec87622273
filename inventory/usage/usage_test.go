package usage

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

func TestEveryAddressOfASubnetIsCountedOnce(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	a := func(s string) netip.Addr { return netip.MustParseAddr("10.0." + s) }
	later, earlier := now.Add(time.Minute), now.Add(-time.Minute)
	s := inventory.Subnet{Ranges: []inventory.Range{{First: a("0.10"), Last: a("0.19")}, {First: a("0.250"), Last: a("1.5")}}}
	got := Of(&s, []inventory.Lease{
		{Address: a("0.10"), State: inventory.LeaseBound, ExpiresAt: later},
		{Address: a("0.11"), State: inventory.LeaseBound, ExpiresAt: earlier},
		{Address: a("0.12"), State: inventory.LeaseReleased, ExpiresAt: later},
		{Address: a("0.13"), State: inventory.LeaseDeclined, ExpiresAt: later},
		{Address: a("0.14"), State: inventory.LeaseDeclined, ExpiresAt: earlier}, // the time it is set aside for has passed
		{Address: a("0.15"), State: inventory.LeaseBound, ExpiresAt: later},      // reserved, and in use
		{Address: a("0.16"), State: inventory.LeaseReleased, ExpiresAt: later},   // reserved, and given back
		{Address: a("0.200"), State: inventory.LeaseBound, ExpiresAt: later},
	}, []inventory.Reservation{{Address: a("0.15")}, {Address: a("0.16")}, {Address: a("0.17")}, {Address: a("0.201")}}, now)
	want := SubnetUse{
		Ranges: []RangeUse{
			{First: a("0.10"), Last: a("0.19"), Total: 10, Free: 3, Leased: 2, Kept: 2, Reserved: 2, Conflict: 1},
			{First: a("0.250"), Last: a("1.5"), Total: 12, Free: 12},
		},
		Outside: RangeUse{Total: 2, Leased: 1, Reserved: 1},
	}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestTheAddressesOfARangeAreCounted(t *testing.T) {
	at := netip.MustParseAddr
	if n := sizeOf(inventory.Range{First: at("fd00::"), Last: at("fd00:0:0:1::")}); n != mostAddresses {
		t.Errorf("a range beyond counting has %d addresses", n)
	}
	if n := sizeOf(inventory.Range{First: at("10.0.0.9"), Last: at("10.0.0.10")}); n != 2 {
		t.Errorf("two addresses are %d", n)
	}
}
