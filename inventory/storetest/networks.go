package storetest

import (
	"net/netip"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/option"
)

func createSubnets(t *testing.T, s inventory.Store, subnets ...inventory.Subnet) {
	t.Helper()
	write(t, s, func(tx inventory.Tx) error {
		for _, n := range subnets {
			if err := tx.Subnets().Create(&n, Now); err != nil {
				return err
			}
		}
		return nil
	})
}

func subnets(t *testing.T, s inventory.Store) {
	n := Subnet("rack1", 1)
	n.Ranges = append(n.Ranges, inventory.Range{First: netip.MustParseAddr("10.1.250.1"), Last: netip.MustParseAddr("10.1.250.9")})
	write(t, s, func(tx inventory.Tx) error { return tx.Subnets().Create(&n, Now) })
	bare := inventory.Subnet{
		Name: "bare", CIDR: netip.MustParsePrefix("10.2.0.0/24"), Mode: inventory.ModeOff, Unknown: inventory.UnknownWait,
		LeaseFor: inventory.Duration(time.Hour), BootLeaseFor: inventory.Duration(time.Minute),
	}
	write(t, s, func(tx inventory.Tx) error { return tx.Subnets().Create(&bare, Now) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.Subnets().Find("rack1")
		same(t, "subnet", n, got)
		if err != nil {
			return err
		}
		all, err := tx.Subnets().List(inventory.Page{})
		same(t, "subnets", []inventory.Subnet{bare, n}, all)
		_, gone := tx.Subnets().Find("nowhere")
		expect(t, gone, inventory.NotFound, "subnet nowhere")
		return err
	})
	for _, overlap := range []string{"10.1.0.0/16", "10.1.7.0/24", "10.0.0.0/15", "10.1.255.252/30"} {
		o := Subnet("rack2", 1)
		o.CIDR = netip.MustParsePrefix(overlap)
		refuses(t, s, inventory.Conflict, "rack1 10.1.0.0/16", func(tx inventory.Tx) error { return tx.Subnets().Create(&o, Now) })
	}
	for _, beside := range []string{"10.0.0.0/16", "10.3.0.0/16", "0.0.0.0/8", "255.255.255.252/30"} {
		o := Subnet("beside", 1)
		o.CIDR = netip.MustParsePrefix(beside)
		write(t, s, func(tx inventory.Tx) error {
			if err := tx.Subnets().Create(&o, Now); err != nil {
				return err
			}
			return tx.Subnets().Delete("beside")
		})
	}
	same1 := Subnet("rack1", 9)
	refuses(t, s, inventory.Conflict, "subnet rack1", func(tx inventory.Tx) error { return tx.Subnets().Create(&same1, Now) })

	n.MTU, n.Ranges, n.DNS = 1500, n.Ranges[1:], nil
	write(t, s, func(tx inventory.Tx) error { return tx.Subnets().Update(&n, Now.Add(time.Minute)) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.Subnets().Find("rack1")
		same(t, "updated subnet", n, got)
		return err
	})
	stale := n
	stale.Version = 1
	refuses(t, s, inventory.Conflict, "subnet rack1", func(tx inventory.Tx) error { return tx.Subnets().Update(&stale, Now) })
	bare.CIDR = netip.MustParsePrefix("10.1.2.0/24")
	refuses(t, s, inventory.Conflict, "bare rack1", func(tx inventory.Tx) error { return tx.Subnets().Update(&bare, Now) })
}

func reservations(t *testing.T, s inventory.Store) {
	createSubnets(t, s, Subnet("rack1", 1), Subnet("rack2", 2))
	at := netip.MustParseAddr
	r := inventory.Reservation{Address: at("10.1.0.10"), Subnet: "rack1", MAC: MAC(1), Hostname: "one"}
	others := []inventory.Reservation{
		{Address: at("10.1.0.9"), Subnet: "rack1", ClientID: "01aa"},
		{Address: at("10.1.0.100"), Subnet: "rack1", UUID: "4c4c4544-0000-0000-0000-000000000001"},
		{Address: at("10.2.0.1"), Subnet: "rack2", MAC: MAC(1)}, // the same machine elsewhere
	}
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.CreateReservation(&r, Now); err != nil {
			return err
		}
		for i := range others {
			if err := tx.CreateReservation(&others[i], Now); err != nil {
				return err
			}
		}
		return nil
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindReservation(r.Address)
		same(t, "reservation", r, got)
		if err != nil {
			return err
		}
		all, err := tx.ListReservations("", inventory.Page{})
		same(t, "reservations in order of address", []inventory.Reservation{others[0], r, others[1], others[2]}, all)
		if err != nil {
			return err
		}
		page, err := tx.ListReservations("rack1", inventory.Page{After: "10.1.0.9", Limit: 1})
		same(t, "a page of reservations", []inventory.Reservation{r}, page)
		_, bad := tx.ListReservations("rack1", inventory.Page{After: "x"})
		expect(t, bad, inventory.Invalid, "x")
		return err
	})
	create := func(r inventory.Reservation) func(inventory.Tx) error {
		return func(tx inventory.Tx) error { return tx.CreateReservation(&r, Now) }
	}
	refuses(t, s, inventory.Conflict, "10.1.0.10 "+string(MAC(1)), create(inventory.Reservation{Address: r.Address, Subnet: "rack1", MAC: MAC(2)}))
	refuses(t, s, inventory.Conflict, "10.1.0.10 "+string(MAC(1)), create(inventory.Reservation{Address: at("10.1.0.11"), Subnet: "rack1", MAC: MAC(1)}))
	refuses(t, s, inventory.Conflict, "10.1.0.9 01aa", create(inventory.Reservation{Address: at("10.1.0.11"), Subnet: "rack1", ClientID: "01aa"}))
	refuses(t, s, inventory.Conflict, "10.1.0.100", create(inventory.Reservation{Address: at("10.1.0.11"), Subnet: "rack1", UUID: others[1].UUID}))
	refuses(t, s, inventory.NotFound, "subnet nowhere", create(inventory.Reservation{Address: at("10.9.0.1"), Subnet: "nowhere", MAC: MAC(3)}))

	r.Hostname = "renamed"
	r.Options = []option.Option{{Name: "tftp-server-name", Code: 66, Type: option.Text, Value: "boot 1", IsAlways: true}}
	write(t, s, func(tx inventory.Tx) error { return tx.UpdateReservation(&r, Now.Add(time.Second)) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindReservation(r.Address)
		same(t, "reservation with options", r, got)
		return err
	})
	stale := r
	stale.Version = 1
	refuses(t, s, inventory.Conflict, "reservation 10.1.0.10", func(tx inventory.Tx) error { return tx.UpdateReservation(&stale, Now) })
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteReservation(r.Address) })
	refuses(t, s, inventory.NotFound, "reservation 10.1.0.10", func(tx inventory.Tx) error { return tx.DeleteReservation(r.Address) })
}

func leases(t *testing.T, s inventory.Store) {
	createSubnets(t, s, Subnet("rack1", 1), Subnet("rack2", 2))
	first, second, far := Lease("rack1", 1, 9), Lease("rack1", 1, 10), Lease("rack2", 2, 1)
	write(t, s, func(tx inventory.Tx) error {
		for _, l := range []inventory.Lease{second, far, first} {
			if err := tx.SaveLease(l); err != nil {
				return err
			}
		}
		return nil
	})
	over := first
	over.MAC, over.State, over.IsBoot, over.ClientID, over.Hostname = MAC(77), inventory.LeaseDeclined, false, "", ""
	over.ExpiresAt = over.ExpiresAt.Add(time.Hour)
	write(t, s, func(tx inventory.Tx) error { return tx.SaveLease(over) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindLease(first.Address)
		same(t, "overwritten lease", over, got)
		if err != nil {
			return err
		}
		all, err := tx.ListLeases("", inventory.Page{})
		same(t, "leases in order of address", []inventory.Lease{over, second, far}, all)
		if err != nil {
			return err
		}
		of, err := tx.ListLeasesOf(second.MAC)
		same(t, "leases of a network card", []inventory.Lease{second}, of)
		if err != nil {
			return err
		}
		of, err = tx.ListLeasesOf(first.MAC)
		same(t, "leases of a card whose address another has now", 0, len(of))
		if err != nil {
			return err
		}
		page, err := tx.ListLeases("rack1", inventory.Page{After: first.Address.String(), Limit: 5})
		same(t, "a page of leases", []inventory.Lease{second}, page)
		return err
	})
	nowhere := Lease("nowhere", 9, 1)
	refuses(t, s, inventory.NotFound, "subnet nowhere", func(tx inventory.Tx) error { return tx.SaveLease(nowhere) })
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteLease(first.Address) })
	refuses(t, s, inventory.NotFound, "lease", func(tx inventory.Tx) error { return tx.DeleteLease(first.Address) })
}

func subnetDelete(t *testing.T, s inventory.Store) {
	createSubnets(t, s, Subnet("rack1", 1), Subnet("rack2", 2))
	write(t, s, func(tx inventory.Tx) error {
		for _, l := range []inventory.Lease{Lease("rack1", 1, 1), Lease("rack2", 2, 1)} {
			if err := tx.SaveLease(l); err != nil {
				return err
			}
		}
		r := inventory.Reservation{Address: netip.MustParseAddr("10.1.0.10"), Subnet: "rack1", MAC: MAC(1)}
		if err := tx.CreateReservation(&r, Now); err != nil {
			return err
		}
		return tx.Subnets().Delete("rack1")
	})
	refuses(t, s, inventory.NotFound, "subnet rack1", func(tx inventory.Tx) error { return tx.Subnets().Delete("rack1") })
	read(t, s, func(tx inventory.Tx) error {
		leases, err := tx.ListLeases("", inventory.Page{})
		if err != nil {
			return err
		}
		same(t, "leases that are left", []inventory.Lease{Lease("rack2", 2, 1)}, leases)
		rs, err := tx.ListReservations("", inventory.Page{})
		if len(rs) != 0 {
			t.Errorf("%d reservations outlived their subnet", len(rs))
		}
		return err
	})
	createSubnets(t, s, Subnet("rack1", 1))
}

func classes(t *testing.T, s inventory.Store) {
	c := inventory.Class{
		Name: "phones", VendorClasses: []string{"Polycom-*"}, UserClasses: []string{"a b"}, Archs: []int{7}, MACPrefixes: []string{"00:04:f2"}, Priority: -3,
		Options:  []option.Option{{Name: "tftp-server-name", Code: 66, Type: option.Text, Value: "boot, or not", IsAlways: true}},
		Options6: []option.Option{{Code: 1, Space: "vendor-9", Type: option.Hex, Value: "01"}},
	}
	other := inventory.Class{Name: "arrays", Archs: []int{11}}
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.Classes().Create(&c, Now); err != nil {
			return err
		}
		return tx.Classes().Create(&other, Now)
	})
	refuses(t, s, inventory.Conflict, "phones", func(tx inventory.Tx) error { return tx.Classes().Create(&inventory.Class{Name: "phones"}, Now) })
	c.Priority, c.UserClasses = 5, nil
	write(t, s, func(tx inventory.Tx) error { return tx.Classes().Update(&c, Now.Add(time.Second)) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.Classes().Find("phones")
		same(t, "class", c, got)
		if err != nil {
			return err
		}
		all, err := tx.Classes().List(inventory.Page{})
		same(t, "classes by name", []inventory.Class{other, c}, all)
		return err
	})
	stale := c
	stale.Version = 1
	refuses(t, s, inventory.Conflict, "phones", func(tx inventory.Tx) error { return tx.Classes().Update(&stale, Now) })
	write(t, s, func(tx inventory.Tx) error { return tx.Classes().Delete("phones") })
	refuses(t, s, inventory.NotFound, "phones", func(tx inventory.Tx) error { return tx.Classes().Delete("phones") })
	read(t, s, func(tx inventory.Tx) error {
		all, err := tx.Classes().List(inventory.Page{})
		same(t, "classes that are left", []inventory.Class{other}, all)
		return err
	})
}
