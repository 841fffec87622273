package sqlstore

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/hint"
	"slipway.dev/slipway/inventory/storetest"
)

// addressesOf lists where a network card has leases.
func addressesOf(t *testing.T, s *Store, mac inventory.MAC) string {
	t.Helper()
	var all []netip.Addr
	err := s.Read(t.Context(), func(tx inventory.Tx) error {
		leases, err := tx.ListLeasesOf(mac)
		for _, l := range leases {
			all = append(all, l.Address)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(all)
}

func leaseOf(mac inventory.MAC, a string, at time.Time) inventory.Lease {
	return inventory.Lease{
		Address: netip.MustParseAddr(a), Subnet: "rack1", MAC: mac, State: inventory.LeaseBound, StartsAt: at, ExpiresAt: at.Add(time.Hour),
	}
}

func save(fail error, leases ...inventory.Lease) func(inventory.Tx) error {
	return func(tx inventory.Tx) error {
		for _, l := range leases {
			if err := tx.SaveLease(l); err != nil {
				return err
			}
		}
		return fail
	}
}

func TestLeasesOfACardAreFoundWithoutAnIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slipway.db")
	s := openTest(t, path)
	rack := storetest.Subnet("rack1", 1)
	a, b := storetest.MAC(1), storetest.MAC(2)
	now := storetest.Now
	write := func(s *Store, fn func(inventory.Tx) error) {
		t.Helper()
		if err := s.Write(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	write(s, func(tx inventory.Tx) error { return tx.Subnets().Create(&rack, now) })
	write(s, save(nil, leaseOf(a, "10.1.0.20", now), leaseOf(a, "10.1.0.21", now.Add(time.Minute)), leaseOf(b, "10.1.0.22", now)))
	want := func(s *Store, when, ofA, ofB string) {
		t.Helper()
		if got := addressesOf(t, s, a); got != ofA {
			t.Errorf("%s: the first card has %s, want %s", when, got, ofA)
		}
		if got := addressesOf(t, s, b); got != ofB {
			t.Errorf("%s: the second card has %s, want %s", when, got, ofB)
		}
	}
	want(s, "after they were saved", "[10.1.0.21 10.1.0.20]", "[10.1.0.22]")

	// The hints are read anew right before a write that is undone: what it did must not count, and what it hid must.
	s.hints = hint.New()
	undone := errors.New("undone")
	if err := s.Write(t.Context(), save(undone, leaseOf(b, "10.1.0.20", now.Add(time.Hour)))); !errors.Is(err, undone) {
		t.Fatal(err)
	}
	want(s, "after a write that was undone", "[10.1.0.21 10.1.0.20]", "[10.1.0.22]")
	if s.hints.IsFull() {
		t.Error("the hints have no room after they were read anew")
	}

	write(s, save(nil, leaseOf(b, "10.1.0.20", now.Add(time.Hour))))
	want(s, "after an address has moved", "[10.1.0.21]", "[10.1.0.20 10.1.0.22]")
	write(s, save(nil, leaseOf(a, "10.1.0.20", now.Add(2*time.Hour))))
	want(s, "after it has come back", "[10.1.0.20 10.1.0.21]", "[10.1.0.22]")

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want(openTest(t, path), "after a restart", "[10.1.0.20 10.1.0.21]", "[10.1.0.22]")
}
