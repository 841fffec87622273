package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func claim(n int, machine inventory.Machine, host inventory.Host) inventory.Claim {
	return inventory.Claim{ID: inventory.ClaimID(fmt.Sprintf("01CLAIM%05d", n)), MachineUID: machine.UID, HostID: host.ID}
}

func createClaim(t *testing.T, s inventory.Store, c inventory.Claim) {
	t.Helper()
	write(t, s, func(tx inventory.Tx) error { return tx.CreateClaim(&c, Now) })
}

// bound expects host and machine to name each other, or neither when claim is empty, and no update to change that.
func bound(t *testing.T, s inventory.Store, host inventory.HostID, machine string, id inventory.ClaimID) {
	t.Helper()
	write(t, s, func(tx inventory.Tx) error {
		h, err := tx.FindHost(host)
		if err != nil {
			return err
		}
		m, err := tx.FindMachine(machine)
		if err != nil {
			return err
		}
		wantHost, wantMachine := host, machine
		if id == "" {
			wantHost, wantMachine = "", ""
		}
		same(t, "claim of the host", id, h.ClaimID)
		same(t, "machine of the host", wantMachine, h.Machine)
		same(t, "claim of the machine", id, m.ClaimID)
		same(t, "host of the machine", wantHost, m.HostID)
		h.ClaimID, h.Machine, m.ClaimID, m.HostID = "forged", "forged", "forged", "forged"
		if err := tx.UpdateHost(&h, Now); err != nil {
			return err
		}
		if err := tx.UpdateMachine(&m, Now); err != nil {
			return err
		}
		h, err = tx.FindHost(host)
		same(t, "what an update wrote of the claim", [2]string{string(id), wantMachine}, [2]string{string(h.ClaimID), h.Machine})
		if err != nil {
			return err
		}
		m, err = tx.FindMachine(machine)
		same(t, "what an update wrote of the host", [2]string{string(id), string(wantHost)}, [2]string{string(m.ClaimID), string(m.HostID)})
		return err
	})
}

func claims(t *testing.T, s inventory.Store) {
	createProfile(t, s)
	createHosts(t, s, Host(1), Host(2))
	createMachines(t, s, Machine(1), Machine(2))
	bound(t, s, Host(1).ID, "web-00001", "")
	c := claim(1, Machine(1), Host(1))
	write(t, s, func(tx inventory.Tx) error { return tx.CreateClaim(&c, Now) })
	same(t, "claim", inventory.Claim{
		ID: "01CLAIM00001", MachineUID: Machine(1).UID, Machine: "web-00001", HostID: Host(1).ID, CreatedAt: Now.Truncate(time.Millisecond),
	}, c)
	bound(t, s, Host(1).ID, "web-00001", c.ID)
	read(t, s, func(tx inventory.Tx) error {
		for _, find := range []func() (inventory.Claim, error){
			func() (inventory.Claim, error) { return tx.FindClaim(c.ID) },
			func() (inventory.Claim, error) { return tx.FindClaimOfHost(c.HostID) },
			func() (inventory.Claim, error) { return tx.FindClaimOfMachine(c.MachineUID) },
		} {
			got, err := find()
			same(t, "claim", c, got)
			if err != nil {
				return err
			}
		}
		for _, find := range []func() (inventory.Claim, error){
			func() (inventory.Claim, error) { return tx.FindClaim("nothing") },
			func() (inventory.Claim, error) { return tx.FindClaimOfHost(Host(2).ID) },
			func() (inventory.Claim, error) { return tx.FindClaimOfMachine(Machine(2).UID) },
		} {
			_, err := find()
			expect(t, err, inventory.NotFound, "claim")
		}
		return nil
	})
	for _, r := range []struct {
		claim inventory.Claim
		kind  inventory.Kind
		words string
	}{
		{claim(2, Machine(2), Host(1)), inventory.Conflict, "host-00001 web-00001"},
		{claim(2, Machine(1), Host(2)), inventory.Conflict, "web-00001 host-00001"},
		{claim(2, Machine(1), Host(1)), inventory.Conflict, "web-00001 host-00001"},
		{claim(1, Machine(2), Host(2)), inventory.Conflict, "01CLAIM00001"},
		{claim(2, Machine(9), Host(2)), inventory.NotFound, "machine"},
		{claim(2, Machine(2), Host(9)), inventory.NotFound, "host"},
	} {
		refuses(t, s, r.kind, r.words, func(tx inventory.Tx) error { return tx.CreateClaim(&r.claim, Now) })
	}
	refuses(t, s, inventory.Conflict, "web-00001 host-00001", func(tx inventory.Tx) error { return tx.DeleteMachine("web-00001") })
	refuses(t, s, inventory.Conflict, "host-00001 web-00001", func(tx inventory.Tx) error { return tx.DeleteHost(Host(1).ID) })
	write(t, s, func(tx inventory.Tx) error { // a caller may go on with the next host after a Conflict
		next := claim(2, Machine(2), Host(1))
		expect(t, tx.CreateClaim(&next, Now), inventory.Conflict, "")
		next.HostID = Host(2).ID
		return tx.CreateClaim(&next, Now)
	})
	bound(t, s, Host(2).ID, "web-00002", "01CLAIM00002")
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteClaim(c.ID) })
	bound(t, s, Host(1).ID, "web-00001", "")
	bound(t, s, Host(2).ID, "web-00002", "01CLAIM00002")
	refuses(t, s, inventory.NotFound, "claim", func(tx inventory.Tx) error { return tx.DeleteClaim(c.ID) })
	createClaim(t, s, claim(3, Machine(1), Host(1))) // the same two again are another claim
	bound(t, s, Host(1).ID, "web-00001", "01CLAIM00003")
	write(t, s, func(tx inventory.Tx) error {
		if err := tx.DeleteClaim("01CLAIM00003"); err != nil {
			return err
		}
		if err := tx.DeleteMachine("web-00001"); err != nil {
			return err
		}
		return tx.DeleteHost(Host(1).ID)
	})
}

// claimVersions checks that who has read a host or a machine before a claim cannot decide on it after.
func claimVersions(t *testing.T, s inventory.Store) {
	createProfile(t, s)
	createHosts(t, s, Host(1))
	createMachines(t, s, Machine(1))
	h, m := Host(1), Machine(1)
	h.Version, m.Version = 1, 1
	stale := func(version string) {
		t.Helper()
		refuses(t, s, inventory.Conflict, "host "+version, func(tx inventory.Tx) error { return tx.UpdateHost(&h, Now) })
		refuses(t, s, inventory.Conflict, "machine "+version, func(tx inventory.Tx) error { return tx.UpdateMachine(&m, Now) })
	}
	createClaim(t, s, claim(1, m, h))
	stale("2 1")
	h.Version, m.Version = 2, 2
	write(t, s, func(tx inventory.Tx) error { return tx.DeleteClaim("01CLAIM00001") })
	stale("3 2")
}

// claimStorm lets 500 machines want 100 hosts at once, five each host, and then one machine 50 hosts.
func claimStorm(t *testing.T, s inventory.Store) {
	const machines, hosts = 500, 100
	createProfile(t, s)
	var all []inventory.Host
	for n := range hosts {
		all = append(all, Host(n))
	}
	createHosts(t, s, all...)
	var wanting []inventory.Machine
	for n := range machines {
		wanting = append(wanting, Machine(n))
	}
	createMachines(t, s, wanting...)
	same(t, "claims won", hosts, race(t, s, machines, func(n int) inventory.Claim { return claim(n, wanting[n], all[n%hosts]) }))
	read(t, s, func(tx inventory.Tx) error {
		free, err := tx.ListClaimable(nil)
		same(t, "hosts left", 0, len(free))
		if err != nil {
			return err
		}
		owners := map[string]bool{}
		for _, h := range all {
			h, err := tx.FindHost(h.ID)
			if err != nil {
				return err
			}
			m, err := tx.FindMachine(h.Machine)
			if err != nil {
				return err
			}
			c, err := tx.FindClaimOfHost(h.ID)
			if err != nil {
				return err
			}
			if m.HostID != h.ID || m.ClaimID != h.ClaimID || c.ID != h.ClaimID || c.MachineUID != m.UID {
				t.Errorf("%s, %s and claim %s do not name each other: %+v", h.Name, m.Name, c.ID, c)
			}
			owners[h.Machine] = true
		}
		same(t, "machines with a host", hosts, len(owners))
		return nil
	})
	greedy := Machine(machines)
	createMachines(t, s, greedy)
	for n := range 50 {
		createHosts(t, s, Host(hosts+n))
	}
	same(t, "claims of one machine", 1, race(t, s, 50, func(n int) inventory.Claim { return claim(machines+n, greedy, Host(hosts+n)) }))
	read(t, s, func(tx inventory.Tx) error {
		free, err := tx.ListClaimable(nil)
		same(t, "hosts left by one machine", 49, len(free))
		return err
	})
}

// race makes n claims at once and returns how many were won; the others must be a Conflict.
func race(t *testing.T, s inventory.Store, n int, claim func(n int) inventory.Claim) int {
	t.Helper()
	var won atomic.Int32
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			c := claim(i)
			err := s.Write(t.Context(), func(tx inventory.Tx) error { return tx.CreateClaim(&c, Now) })
			if err == nil {
				won.Add(1)
				return
			}
			var e *inventory.Error
			if !errors.As(err, &e) || e.Kind != inventory.Conflict {
				t.Errorf("a loser got %v", err)
			}
		})
	}
	all.Wait()
	return int(won.Load())
}

func claimable(t *testing.T, s inventory.Store) {
	createProfile(t, s)
	createMachines(t, s, Machine(1))
	for n, spoil := range []func(*inventory.Host){
		func(h *inventory.Host) { h.Name = "z-last" },
		func(h *inventory.Host) {
			h.IsDirty, h.IsCordoned, h.Taints = true, true, []inventory.Taint{{Key: "gpu"}}
		}, // placement decides
		func(h *inventory.Host) { h.State = inventory.Discovered },
		func(h *inventory.Host) { h.State = inventory.Failed },
		func(h *inventory.Host) { h.IsAdopted = true },
		func(h *inventory.Host) { h.IsProtected = true },
		func(h *inventory.Host) { h.InMaintenance = true },
		func(*inventory.Host) {}, // 7 is claimed
		func(*inventory.Host) {}, // 8 is being inspected
		func(*inventory.Host) {}, // 9 was inspected
	} {
		h := Host(n)
		spoil(&h)
		createHosts(t, s, h)
	}
	createClaim(t, s, claim(1, Machine(1), Host(7)))
	write(t, s, func(tx inventory.Tx) error {
		for n, state := range map[int]inventory.OperationState{8: inventory.OpWaiting, 9: inventory.OpDone} {
			o := Operation(n)
			o.State = state
			if err := tx.CreateOperation(&o, Now); err != nil {
				return err
			}
			for range n {
				if err := tx.SaveInspection(&inventory.Inspection{HostID: o.HostID, At: Now}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.ListClaimable(nil)
		if err != nil {
			return err
		}
		var have []string
		for _, c := range got {
			have = append(have, fmt.Sprint(c.Name, " ", c.InspectionN))
			h, err := tx.FindHost(c.ID)
			if err != nil {
				return err
			}
			same(t, "host", h, *c.Host)
		}
		same(t, "claimable hosts and their inspections", []string{"host-00001 0", "host-00009 9", "z-last 0"}, have)
		return nil
	})
	knownClaimable(t, s)
}

// knownClaimable gives hosts a controller, changes one, and deletes and makes another one again. Only what has changed is read again.
func knownClaimable(t *testing.T, s inventory.Store) {
	list := func(known map[inventory.HostID]*inventory.Host) (all []inventory.Claimable) {
		read(t, s, func(tx inventory.Tx) (err error) {
			all, err = tx.ListClaimable(known)
			return err
		})
		return all
	}
	known := map[inventory.HostID]*inventory.Host{}
	for _, c := range list(nil) {
		known[c.ID] = c.Host
		same(t, "power of "+c.Name, false, c.HasPower)
	}
	write(t, s, func(tx inventory.Tx) error {
		for n, driver := range map[int]inventory.BMCDriver{1: inventory.WoL, 9: inventory.Manual} {
			if err := tx.SaveBMC(&inventory.BMC{HostID: Host(n).ID, Driver: driver}, Now); err != nil {
				return err
			}
		}
		h, err := tx.FindHost(Host(1).ID)
		if err != nil {
			return err
		}
		h.Labels, h.NICs = map[string]string{"rack": "new"}, h.NICs[:1]
		if err := tx.UpdateHost(&h, Now); err != nil {
			return err
		}
		if err := tx.DeleteHost(Host(0).ID); err != nil {
			return err
		}
		again := Host(0)
		again.Name = "z-again"
		return tx.CreateHost(&again, Now.Add(time.Second))
	})
	var have []string
	for _, c := range list(known) {
		have = append(have, fmt.Sprint(c.Name, " ", c.HasPower, " ", c.Host == known[c.ID]))
		read(t, s, func(tx inventory.Tx) error {
			h, err := tx.FindHost(c.ID)
			same(t, "host", h, *c.Host)
			return err
		})
	}
	want := []string{"host-00001 true false", "host-00009 false true", "z-again false false"}
	same(t, "hosts, whether they have power, and whether they are the known ones", want, have)
}

// hostsOfPool has a machine of no pool, one of the default pool and one of another, each with a host.
func hostsOfPool(t *testing.T, s inventory.Store) {
	createProfile(t, s)
	write(t, s, func(tx inventory.Tx) error { return tx.Pools().Create(&inventory.Pool{Name: "gpu"}, Now) })
	createHosts(t, s, Host(0), Host(1), Host(2), Host(3))
	for n, pool := range []string{"", inventory.DefaultPool, "gpu"} {
		m := Machine(n)
		m.Pool = pool
		createMachines(t, s, m)
		createClaim(t, s, claim(n, m, Host(n)))
	}
	read(t, s, func(tx inventory.Tx) error {
		for pool, want := range map[string][]string{
			"": {"host-00000", "host-00001", "host-00002", "host-00003"}, inventory.DefaultPool: {"host-00000", "host-00001"},
			"gpu": {"host-00002"}, "other": nil,
		} {
			f := inventory.HostFilter{Pool: pool, State: inventory.Available}
			got, err := tx.ListHosts(f, inventory.Page{})
			if err != nil {
				return err
			}
			same(t, "hosts of pool "+pool, want, names(got))
			n, err := tx.CountHosts(f)
			if err != nil {
				return err
			}
			same(t, "count of hosts of pool "+pool, len(want), n)
		}
		return nil
	})
}
