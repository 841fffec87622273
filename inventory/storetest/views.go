package storetest

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func views(t *testing.T, s inventory.Store) {
	mine := inventory.View{Name: "Rack 3, failing", Owner: "anna", Query: "rack=R3 state=failed", Columns: []string{"name", "label:gpu"}, Group: "state", Sort: "-name"}
	all := inventory.View{Name: "Rack 3, failing", Query: "rack=R3", Pools: []string{"web", "db"}}
	his := inventory.View{Name: "his", Owner: "bert"}
	write(t, s, func(tx inventory.Tx) error {
		for _, v := range []*inventory.View{&mine, &all, &his} {
			if err := tx.CreateView(v, Now); err != nil {
				return err
			}
		}
		return nil
	})
	expect(t, s.Write(t.Context(), func(tx inventory.Tx) error {
		v := inventory.View{Name: all.Name}
		return tx.CreateView(&v, Now)
	}), inventory.Conflict, "Rack 3, failing")
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.ListViews("anna")
		same(t, "views of anna", []inventory.View{all, mine}, got)
		return err
	})
	mine.Query = "rack=R4"
	write(t, s, func(tx inventory.Tx) error { return tx.UpdateView(&mine, Now.Add(time.Minute)) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindView("anna", mine.Name)
		same(t, "the view", mine, got)
		return err
	})
	stale := mine
	stale.Version--
	expect(t, s.Write(t.Context(), func(tx inventory.Tx) error { return tx.UpdateView(&stale, Now) }), inventory.Conflict, "view")
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteView("anna", mine.Name) })
	expect(t, s.Write(t.Context(), func(tx inventory.Tx) error { return tx.DeleteView("anna", mine.Name) }), inventory.NotFound, "view")
	all.Pools = nil
	write(t, s, func(tx inventory.Tx) error { return tx.UpdateView(&all, Now.Add(time.Hour)) })
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.FindView("", all.Name)
		same(t, "the view that all share", all, got)
		return err
	})
	write(t, s, func(tx inventory.Tx) error {
		for i := range 199 {
			v := inventory.View{Name: fmt.Sprint("v", i)}
			if err := tx.CreateView(&v, Now); err != nil {
				return err
			}
		}
		return nil
	})
	expect(t, s.Write(t.Context(), func(tx inventory.Tx) error { v := inventory.View{Name: "one more"}; return tx.CreateView(&v, Now) }), inventory.Conflict, "200 views")
}

func hostExtras(t *testing.T, s inventory.Store) {
	var ids []inventory.HostID
	write(t, s, func(tx inventory.Tx) error {
		for i := range 12 {
			h := Host(i)
			ids = append(ids, h.ID)
			if err := tx.CreateHost(&h, Now); err != nil {
				return err
			}
		}
		return nil
	})
	b := inventory.BMC{HostID: ids[3], Driver: inventory.IPMI, Address: "10.0.0.9", Power: inventory.PowerOn, IsReachable: true}
	subnet := inventory.Subnet{Name: "lab", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Mode: inventory.ModeFull}
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.SaveBMC(&b, Now); err != nil {
			return err
		}
		if err := tx.Subnets().Create(&subnet, Now); err != nil {
			return err
		}
		for i, a := range []string{"10.0.0.20", "10.0.0.21", "10.0.0.22"} {
			l := inventory.Lease{
				Address: netip.MustParseAddr(a), Subnet: "lab", MAC: Host(3).NICs[0].MAC, State: inventory.LeaseBound,
				StartsAt: Now.Add(time.Duration(i%2) * time.Hour), ExpiresAt: Now.Add(9 * time.Hour),
			}
			if err := tx.SaveLease(l); err != nil {
				return err
			}
		}
		return nil
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.HostExtras(append(ids, "nobody"))
		if len(got) != 12 {
			t.Errorf("extras of %d hosts, want 12", len(got))
		}
		same(t, "a host with a controller and leases", inventory.HostExtra{Driver: inventory.IPMI, Power: inventory.PowerOn, IsReachable: true, Address: netip.MustParseAddr("10.0.0.21")}, got[ids[3]])
		same(t, "a host without", inventory.HostExtra{}, got[ids[4]])
		return err
	})
}
