package storetest

import (
	"net/netip"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// twoMachines stores two machines, of which the first has a host, and a subnet of each family.
func twoMachines(t *testing.T, s inventory.Store) (one, two inventory.Machine, h inventory.Host) {
	t.Helper()
	createProfile(t, s)
	one, two, h = Machine(1), Machine(2), Host(1)
	createMachines(t, s, one, two)
	createHosts(t, s, h)
	six := inventory.Subnet{
		Name: "six", CIDR: netip.MustParsePrefix("fd00:1::/64"), Mode: inventory.ModeFull, Unknown: inventory.UnknownDisk, Advertise: inventory.AdvertiseManaged,
		LeaseFor: inventory.Duration(time.Hour), BootLeaseFor: inventory.Duration(time.Hour),
		StaticRanges: []inventory.Range{{First: netip.MustParseAddr("fd00:1::10"), Last: netip.MustParseAddr("fd00:1::20")}},
	}
	createSubnets(t, s, Subnet("rack1", 1), six)
	write(t, s, func(tx inventory.Tx) error {
		return tx.CreateClaim(&inventory.Claim{ID: "c1", MachineUID: one.UID, Machine: one.Name, HostID: h.ID}, Now)
	})
	return one, two, h
}

func allocations(t *testing.T, s inventory.Store) {
	one, two, h := twoMachines(t, s)
	at := netip.MustParseAddr
	kept := func(address, subnet string, holder inventory.Holder) inventory.Allocation {
		return inventory.Allocation{Address: at(address), Subnet: subnet, Holder: holder}
	}
	first := kept("10.1.201.9", "rack1", inventory.Holder{MachineUID: one.UID})
	first.IsFixed = true
	sixth := kept("fd00:1::10", "six", inventory.Holder{MachineUID: one.UID})
	other := kept("10.1.201.1", "rack1", inventory.Holder{MachineUID: two.UID})
	write(t, s, func(tx inventory.Tx) error {
		for _, a := range []*inventory.Allocation{&sixth, &first, &other} {
			if err := tx.CreateAllocation(a, Now); err != nil {
				return err
			}
		}
		return nil
	})
	first.Machine, first.HostID, first.Host = one.Name, h.ID, h.Name
	sixth.Machine, sixth.HostID, sixth.Host = one.Name, h.ID, h.Name
	other.Machine = two.Name
	read(t, s, func(tx inventory.Tx) error {
		for _, tc := range []struct {
			f    inventory.AddressFilter
			want []inventory.Allocation
		}{
			{inventory.AddressFilter{}, []inventory.Allocation{other, first, sixth}},
			{inventory.AddressFilter{Subnet: "rack1"}, []inventory.Allocation{other, first}},
			{inventory.AddressFilter{Owner: first.Key()}, []inventory.Allocation{first, sixth}},
			{inventory.AddressFilter{Owner: first.Key(), Subnet: "six"}, []inventory.Allocation{sixth}},
			{inventory.AddressFilter{Owner: "host/" + string(h.ID)}, nil},
		} {
			got, err := tx.ListAllocations(tc.f)
			if err != nil {
				return err
			}
			same(t, "allocations", tc.want, got)
		}
		got, err := tx.FindAllocation(first.Address)
		same(t, "allocation", first, got)
		return err
	})
	for _, tc := range []struct {
		words string
		a     inventory.Allocation
	}{
		{"10.1.201.9 is kept for machine " + one.Name, kept("10.1.201.9", "rack1", inventory.Holder{MachineUID: two.UID})},
		{"machine " + two.Name + " has the address 10.1.201.1 of subnet rack1 already", kept("10.1.201.2", "rack1", inventory.Holder{MachineUID: two.UID})},
	} {
		refuses(t, s, inventory.Conflict, tc.words, func(tx inventory.Tx) error { return tx.CreateAllocation(&tc.a, Now) })
	}
	reserved := inventory.Reservation{Address: first.Address, Subnet: "rack1", MAC: MAC(7)}
	refuses(t, s, inventory.Conflict, "is kept for machine "+one.Name, func(tx inventory.Tx) error { return tx.CreateReservation(&reserved, Now) })
	reserved.Address = at("10.1.201.77")
	write(t, s, func(tx inventory.Tx) error { return tx.CreateReservation(&reserved, Now) })
	onHost := kept("10.1.201.77", "rack1", inventory.Holder{HostID: h.ID})
	refuses(t, s, inventory.Conflict, "10.1.201.77 is reserved for "+string(MAC(7)), func(tx inventory.Tx) error { return tx.CreateAllocation(&onHost, Now) })
	refuses(t, s, inventory.Conflict, "3 addresses", func(tx inventory.Tx) error { return deleteAfter(tx, &first, "rack1") })
	refuses(t, s, inventory.Conflict, "would be leased by DHCP", func(tx inventory.Tx) error {
		n, err := tx.Subnets().Find("rack1")
		if err != nil {
			return err
		}
		n.StaticRanges, n.Ranges = nil, []inventory.Range{{First: at("10.1.201.0"), Last: at("10.1.201.255")}}
		return tx.Subnets().Update(&n, Now)
	})
	// A host keeps what its machine leaves behind; what a machine has goes with it.
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.LeaveAllocations(one.UID, h.ID, "its old system may run"); err != nil {
			return err
		}
		return tx.DeleteMachine(two.Name)
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.ListAllocations(inventory.AddressFilter{})
		if len(got) != 2 || got[0].Key() != "host/"+string(h.ID) || got[0].Note != "its old system may run" || got[0].String() != "host "+h.Name {
			t.Errorf("kept: %+v", got)
		}
		return err
	})
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteAllocation(first.Address) })
	refuses(t, s, inventory.NotFound, "10.1.201.9", func(tx inventory.Tx) error { return tx.DeleteAllocation(first.Address) })
}

// deleteAfter adds an address to a subnet and deletes that.
func deleteAfter(tx inventory.Tx, a *inventory.Allocation, subnet string) error {
	more := inventory.Allocation{Address: a.Address.Next(), Subnet: subnet, Holder: inventory.Holder{HostID: a.HostID}}
	if err := tx.CreateAllocation(&more, Now); err != nil {
		return err
	}
	return tx.Subnets().Delete(subnet)
}

func holdings(t *testing.T, s inventory.Store) {
	one, two, h := twoMachines(t, s)
	holds := func(kind inventory.HoldingKind, value string) inventory.Holding {
		return inventory.Holding{Kind: kind, Value: value, Path: "/p", Source: "profile web:3"}
	}
	address, name := holds(inventory.HoldsAddress, "10.1.0.9"), holds(inventory.HoldsName, "web")
	name.Domain = "example.com"
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.SaveHoldings(inventory.Holder{MachineUID: one.UID}, []inventory.Holding{name, address}); err != nil {
			return err
		}
		if err := tx.SaveHoldings(inventory.Holder{HostID: h.ID}, []inventory.Holding{holds(inventory.HoldsName, "rack")}); err != nil {
			return err
		}
		return tx.SaveHoldings(inventory.Holder{MachineUID: two.UID}, []inventory.Holding{address, address})
	})
	read(t, s, func(tx inventory.Tx) error {
		all, err := tx.ListHoldings(inventory.AddressFilter{})
		if err != nil || len(all) != 4 {
			t.Errorf("all: %v, %+v", err, all)
		}
		mine, err := tx.ListHoldings(inventory.AddressFilter{Owner: "machine/" + one.UID})
		if err != nil || len(mine) != 2 || mine[0].Value != "10.1.0.9" || mine[0].Host != h.Name || mine[1].Domain != "example.com" || mine[1].Source != "profile web:3" {
			t.Errorf("of a machine: %v, %+v", err, mine)
		}
		twice, err := tx.ListHeldTwice()
		if err != nil || len(twice) != 2 || twice[0].Machine != one.Name || twice[1].Machine != two.Name {
			t.Errorf("twice: %v, %+v", err, twice)
		}
		found, err := tx.FindHoldings(inventory.HoldsName, "rack")
		if err != nil || len(found) != 1 || found[0].Key() != "host/"+string(h.ID) {
			t.Errorf("found: %v, %+v", err, found)
		}
		return nil
	})
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.SaveHoldings(inventory.Holder{HostID: h.ID}, nil); err != nil {
			return err
		}
		return tx.DeleteMachine(two.Name)
	})
	read(t, s, func(tx inventory.Tx) error {
		all, err := tx.ListHoldings(inventory.AddressFilter{})
		if len(all) != 2 {
			t.Errorf("left: %+v", all)
		}
		return err
	})
}
