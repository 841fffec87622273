package storetest

import (
	"net/netip"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// networks6 holds the families apart and together: subnets, reservations and leases of IPv6 in addition to those of IPv4.
func networks6(t *testing.T, s inventory.Store) {
	at := netip.MustParseAddr
	n := inventory.Subnet{
		Name: "six", CIDR: netip.MustParsePrefix("2001:db8:0:1::/64"), Interface: "eth0", Mode: inventory.ModeFull, Unknown: inventory.UnknownWait,
		DNS: []netip.Addr{at("2001:db8::53")}, LeaseFor: inventory.Duration(time.Hour), BootLeaseFor: inventory.Duration(time.Minute),
		Ranges:    []inventory.Range{{First: at("2001:db8:0:1::100"), Last: at("2001:db8:0:1::1ff")}, {First: at("2001:db8:0:1:ffff::"), Last: at("2001:db8:0:1:ffff:ffff:ffff:ffff")}},
		Advertise: inventory.AdvertiseManaged, IsRouter: true,
	}
	createSubnets(t, s, Subnet("rack1", 1))
	write(t, s, func(tx inventory.Tx) error { return tx.Subnets().Create(&n, Now) })
	o := n
	o.Name, o.CIDR, o.Ranges = "other", netip.MustParsePrefix("2001:db8::/48"), nil
	refuses(t, s, inventory.Conflict, "six 2001:db8:0:1::/64", func(tx inventory.Tx) error { return tx.Subnets().Create(&o, Now) })
	o.CIDR = netip.MustParsePrefix("2001:db8:0:2::/64")
	write(t, s, func(tx inventory.Tx) error { return tx.Subnets().Create(&o, Now) })
	n.Ranges, n.IsRouter, n.Advertise = n.Ranges[:1], false, inventory.AdvertiseSLAAC
	write(t, s, func(tx inventory.Tx) error { return tx.Subnets().Update(&n, Now.Add(time.Second)) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.Subnets().Find("six")
		same(t, "IPv6 subnet", n, got)
		if err != nil {
			return err
		}
		all, err := tx.Subnets().List(inventory.Page{})
		same(t, "subnets of both families", 3, len(all))
		return err
	})
	reserve6(t, s)
	lease6(t, s)
	write(t, s, func(tx inventory.Tx) error { return tx.Subnets().Delete("six") })
	read(t, s, func(tx inventory.Tx) error {
		ls, err := tx.ListLeases("", inventory.Page{})
		same(t, "leases that outlived their IPv6 subnet", 1, len(ls))
		return err
	})
}

func reserve6(t *testing.T, s inventory.Store) {
	at := netip.MustParseAddr
	r4 := inventory.Reservation{Address: at("10.1.0.10"), Subnet: "rack1", MAC: MAC(1)}
	r6 := inventory.Reservation{Address: at("2001:db8:0:1::10"), Subnet: "six", MAC: MAC(1), Hostname: "one"}
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.CreateReservation(&r6, Now); err != nil {
			return err
		}
		return tx.CreateReservation(&r4, Now)
	})
	for _, r := range []inventory.Reservation{
		{Address: at("2001:db8:0:1::11"), Subnet: "six", MAC: MAC(1)}, {Address: r6.Address, Subnet: "six", ClientID: "0001"},
	} {
		refuses(t, s, inventory.Conflict, r6.Address.String(), func(tx inventory.Tx) error { return tx.CreateReservation(&r, Now) })
	}
	r6.Hostname = "two"
	write(t, s, func(tx inventory.Tx) error { return tx.UpdateReservation(&r6, Now.Add(time.Second)) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindReservation(r6.Address)
		same(t, "IPv6 reservation", r6, got)
		if err != nil {
			return err
		}
		all, err := tx.ListReservations("", inventory.Page{})
		same(t, "reservations, IPv4 first", []inventory.Reservation{r4, r6}, all)
		if err != nil {
			return err
		}
		page, err := tx.ListReservations("", inventory.Page{After: r4.Address.String(), Limit: 1})
		same(t, "a page that goes on in the other family", []inventory.Reservation{r6}, page)
		return err
	})
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteReservation(r6.Address) })
	refuses(t, s, inventory.NotFound, "reservation 2001:db8:0:1::10", func(tx inventory.Tx) error { return tx.DeleteReservation(r6.Address) })
}

func lease6(t *testing.T, s inventory.Store) {
	at := netip.MustParseAddr
	l4 := Lease("rack1", 1, 9)
	first := l4
	first.Address, first.Subnet, first.ClientID, first.IAID = at("2001:db8:0:1::100"), "six", "00030001aabb", 4_000_000_000
	first.StartsAt = first.StartsAt.Add(time.Minute)
	second := first
	second.Address, second.MAC, second.IAID = at("2001:db8:0:1:ff00::1"), "", 2
	write(t, s, func(tx inventory.Tx) error {
		for _, l := range []inventory.Lease{second, l4, first} {
			if err := tx.SaveLease(l); err != nil {
				return err
			}
		}
		return nil
	})
	first.State = inventory.LeaseReleased
	write(t, s, func(tx inventory.Tx) error { return tx.SaveLease(first) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindLease(first.Address)
		same(t, "IPv6 lease", first, got)
		if err != nil {
			return err
		}
		all, err := tx.ListLeases("", inventory.Page{})
		same(t, "leases, IPv4 first", []inventory.Lease{l4, first, second}, all)
		if err != nil {
			return err
		}
		page, err := tx.ListLeases("six", inventory.Page{After: first.Address.String(), Limit: 9})
		same(t, "a page of IPv6 leases", []inventory.Lease{second}, page)
		if err != nil {
			return err
		}
		of, err := tx.ListLeasesOf(l4.MAC)
		same(t, "leases of a card in both families, the latest first", []inventory.Lease{first, l4}, of)
		return err
	})
	nowhere := first
	nowhere.Subnet, nowhere.Address = "nowhere", at("2001:db8:9::1")
	refuses(t, s, inventory.NotFound, "subnet nowhere", func(tx inventory.Tx) error { return tx.SaveLease(nowhere) })
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteLease(second.Address) })
	refuses(t, s, inventory.NotFound, "lease", func(tx inventory.Tx) error { return tx.DeleteLease(second.Address) })
}
