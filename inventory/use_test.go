package inventory

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEveryAddressOfASubnetIsCountedOnce(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	a := func(s string) netip.Addr { return netip.MustParseAddr("10.0." + s) }
	later, earlier := now.Add(time.Minute), now.Add(-time.Minute)
	s := Subnet{Ranges: []Range{{a("0.10"), a("0.19")}, {a("0.250"), a("1.5")}}}
	got := s.Use([]Lease{
		{Address: a("0.10"), State: LeaseBound, ExpiresAt: later},
		{Address: a("0.11"), State: LeaseBound, ExpiresAt: earlier},
		{Address: a("0.12"), State: LeaseReleased, ExpiresAt: later},
		{Address: a("0.13"), State: LeaseDeclined, ExpiresAt: later},
		{Address: a("0.14"), State: LeaseDeclined, ExpiresAt: earlier}, // the time it is set aside for has passed
		{Address: a("0.15"), State: LeaseBound, ExpiresAt: later},      // reserved, and in use
		{Address: a("0.16"), State: LeaseReleased, ExpiresAt: later},   // reserved, and given back
		{Address: a("0.200"), State: LeaseBound, ExpiresAt: later},
	}, []Reservation{{Address: a("0.15")}, {Address: a("0.16")}, {Address: a("0.17")}, {Address: a("0.201")}}, now)
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
