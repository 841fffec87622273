package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

var errRefused = errors.New("the caller changed its mind")

func countHosts(t *testing.T, s inventory.Store) (n int) {
	t.Helper()
	read(t, s, func(tx inventory.Tx) (err error) {
		n, err = tx.CountHosts(inventory.HostFilter{})
		return err
	})
	return n
}

func rollback(t *testing.T, s inventory.Store) {
	err := s.Write(t.Context(), func(tx inventory.Tx) error {
		h := Host(1)
		if err := tx.CreateHost(&h, Now); err != nil {
			return err
		}
		if err := tx.AddEvent(event("host.changed", h.ID, "")); err != nil {
			return err
		}
		return errRefused
	})
	if !errors.Is(err, errRefused) {
		t.Errorf("the caller's own error came back as %v", err)
	}
	same(t, "hosts", 0, countHosts(t, s))
	read(t, s, func(tx inventory.Tx) error {
		id, err := tx.LastEventID()
		same(t, "newest event", int64(0), id)
		return err
	})
}

func panics(t *testing.T, s inventory.Store) {
	refuses(t, s, inventory.Internal, "", func(tx inventory.Tx) error {
		h := Host(1)
		if err := tx.CreateHost(&h, Now); err != nil {
			return err
		}
		panic("a mistake")
	})
	same(t, "hosts", 0, countHosts(t, s))
	createHosts(t, s, Host(1))
}

// rollbackInGroup holds the store back with one write, so that the others share a commit where the store groups them.
func rollbackInGroup(t *testing.T, s inventory.Store) {
	const n = 60
	hold, held := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		err := s.Write(t.Context(), func(inventory.Tx) error {
			close(held)
			<-hold
			return nil
		})
		if err != nil {
			t.Errorf("the write that holds the others back: %v", err)
		}
	})
	<-held
	errs := make([]error, n)
	var queued sync.WaitGroup
	for i := range n {
		queued.Add(1)
		all.Go(func() {
			queued.Done()
			errs[i] = s.Write(t.Context(), func(tx inventory.Tx) error {
				h := Host(i)
				if err := tx.CreateHost(&h, Now); err != nil {
					return err
				}
				if i%3 == 1 {
					return errRefused
				}
				if i%3 == 2 {
					panic("a mistake")
				}
				return nil
			})
		})
	}
	queued.Wait()
	close(hold)
	all.Wait()
	for i, err := range errs {
		switch i % 3 {
		case 0:
			if err != nil {
				t.Errorf("write %d failed with its neighbours: %v", i, err)
			}
		case 1:
			if !errors.Is(err, errRefused) {
				t.Errorf("write %d got %v", i, err)
			}
		case 2:
			expect(t, err, inventory.Internal, "")
		}
	}
	read(t, s, func(tx inventory.Tx) error {
		got, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
		same(t, "hosts", n/3, len(got))
		for i, h := range got {
			same(t, "host", Host(3*i).Name, h.Name)
		}
		return err
	})
}

func givenUp(t *testing.T, s inventory.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.Write(ctx, func(tx inventory.Tx) error {
		h := Host(1)
		return tx.CreateHost(&h, Now)
	})
	if err == nil { // it may have been quicker than the cancellation, but then it must be there
		same(t, "hosts", 1, countHosts(t, s))
		return
	}
	expect(t, err, inventory.Unavailable, "")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is lost: %v", err)
	}
	createHosts(t, s, Host(2)) // comes after it in the queue
	same(t, "hosts", 1, countHosts(t, s))
	expect(t, s.Read(ctx, func(inventory.Tx) error { return nil }), inventory.Unavailable, "")
}

func snapshot(t *testing.T, s inventory.Store) {
	createHosts(t, s, Host(1))
	read(t, s, func(tx inventory.Tx) error {
		before, err := tx.CountHosts(inventory.HostFilter{})
		if err != nil {
			return err
		}
		createHosts(t, s, Host(2)) // a reader never holds a writer back
		after, err := tx.CountHosts(inventory.HostFilter{})
		same(t, "hosts within one read", before, after)
		return err
	})
	same(t, "hosts in the next read", 2, countHosts(t, s))
	h := Host(3)
	for _, do := range []func(inventory.Tx) error{
		func(tx inventory.Tx) error { return tx.CreateHost(&h, Now) },
		func(tx inventory.Tx) error { return tx.AddEvent(event("server", "", "")) },
		func(tx inventory.Tx) error { _, err := tx.OpenIssue(&inventory.Issue{Key: "k"}, Now); return err },
		func(tx inventory.Tx) error { return tx.DeleteHost(Host(1).ID) },
	} {
		expect(t, s.Read(t.Context(), do), inventory.Internal, "")
	}
	same(t, "hosts after writes in a read", 2, countHosts(t, s))
	if err := s.Read(t.Context(), func(inventory.Tx) error { return errRefused }); !errors.Is(err, errRefused) {
		t.Errorf("the reader's own error came back as %v", err)
	}
}

func ended(t *testing.T, s inventory.Store) {
	var kept inventory.Tx
	keep := func(tx inventory.Tx) error { kept = tx; return nil }
	write(t, s, keep)
	_, err := kept.CountHosts(inventory.HostFilter{})
	expect(t, err, inventory.Internal, "")
	read(t, s, keep)
	_, err = kept.ListHosts(inventory.HostFilter{}, inventory.Page{})
	expect(t, err, inventory.Internal, "")
}

func concurrentWriters(t *testing.T, s inventory.Store) {
	createSubnets(t, s, Subnet("rack1", 1))
	const writers, each = 32, 20
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				l := Lease("rack1", 1, w*each+i)
				err := s.Write(t.Context(), func(tx inventory.Tx) error {
					if err := tx.SaveLease(l); err != nil {
						return err
					}
					return tx.AddEvent(event("dhcp.ack", "h", "s"))
				})
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
				// The next reader sees an acknowledged write.
				err = s.Read(t.Context(), func(tx inventory.Tx) error { _, err := tx.FindLease(l.Address); return err })
				if err != nil {
					t.Errorf("writer %d does not see its own lease: %v", w, err)
				}
			}
		})
	}
	all.Wait()
	read(t, s, func(tx inventory.Tx) error {
		leases, err := tx.ListLeases("rack1", inventory.Page{})
		if err != nil {
			return err
		}
		same(t, "leases", writers*each, len(leases))
		last, err := tx.LastEventID()
		same(t, "newest event", int64(writers*each), last)
		return err
	})
}

func concurrentMAC(t *testing.T, s inventory.Store) {
	const n = 20
	var won atomic.Int32
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			h := Host(i)
			h.NICs = append(h.NICs, inventory.NIC{MAC: "52:54:ff:00:00:01"})
			err := s.Write(t.Context(), func(tx inventory.Tx) error { return tx.CreateHost(&h, Now) })
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
	same(t, "winners", fmt.Sprint(1), fmt.Sprint(won.Load()))
	same(t, "hosts", 1, countHosts(t, s))
}

// readsItsOwn changes a host and a machine, and reads them in the same transaction: they are as everybody reads them later. Texts that not
// every database keeps byte for byte, times between two milliseconds and empty maps are among them. Nobody shares what others have read.
func readsItsOwn(t *testing.T, s inventory.Store) {
	createProfile(t, s)
	createHosts(t, s, Host(1), Host(2))
	createMachines(t, s, Machine(1))
	for _, text := range []string{"plain", "a\x00b\xffc"} {
		var host inventory.Host
		var machine inventory.Machine
		find := func(tx inventory.Tx) (h inventory.Host, m inventory.Machine) {
			h, err := tx.FindHost(Host(1).ID)
			if err != nil {
				t.Error(err)
			}
			byName, err := tx.FindHostByName(h.Name)
			if err != nil {
				t.Error(err)
			}
			same(t, "host by name", h, byName)
			if m, err = tx.FindMachineByUID(Machine(1).UID); err != nil {
				t.Error(err)
			}
			again, err := tx.FindMachine(m.Name)
			if err != nil {
				t.Error(err)
			}
			same(t, "machine by name", m, again)
			return h, m
		}
		change := func(what string, fn func(tx inventory.Tx, h *inventory.Host, m *inventory.Machine) error) {
			write(t, s, func(tx inventory.Tx) error {
				h, m := find(tx)
				if _, err := tx.FindHost(Host(2).ID); err != nil { // another one comes between
					return err
				}
				if err := fn(tx, &h, &m); err != nil {
					return err
				}
				host, machine = find(tx)
				spoiled, other := find(tx)
				for i := range spoiled.NICs {
					spoiled.NICs[i].Name = "spoiled"
				}
				for key := range spoiled.Labels {
					spoiled.Labels[key] = "spoiled"
				}
				for i := range other.Hooks {
					other.Hooks[i].Owner = "spoiled"
				}
				h, m = find(tx)
				same(t, what+": host after a change of a copy", host, h)
				same(t, what+": machine after a change of a copy", machine, m)
				return nil
			})
			read(t, s, func(tx inventory.Tx) error {
				h, m := find(tx)
				same(t, what+": host", h, host)
				same(t, what+": machine", m, machine)
				return nil
			})
		}
		later := Now.Add(time.Hour + 1234567)
		change("update", func(tx inventory.Tx, h *inventory.Host, m *inventory.Machine) error {
			h.AssetTag, h.FreedAt, h.Facts, h.Labels = text, later, map[string]string{}, map[string]string{"a": text}
			h.Taints, h.NICs[0].Name = []inventory.Taint{{Key: "gpu"}}, text
			m.Reason, m.NextAt, m.Parameters, m.KernelArgs = text, later, map[string]string{}, []string{text}
			m.Hooks = []inventory.Hook{{Step: inventory.PreBoot, Owner: text, AckedAt: later}}
			if err := tx.UpdateHost(h, later); err != nil {
				return err
			}
			return tx.UpdateMachine(m, later)
		})
		change("again", func(tx inventory.Tx, h *inventory.Host, m *inventory.Machine) error {
			for range 2 {
				h.StateReason, m.Hint = h.StateReason+text, m.Hint+text
				if err := tx.UpdateHost(h, later); err != nil {
					return err
				}
				if err := tx.UpdateMachine(m, later); err != nil {
					return err
				}
			}
			return nil
		})
		c := claim(1, Machine(1), Host(1))
		change("claim", func(tx inventory.Tx, _ *inventory.Host, _ *inventory.Machine) error {
			if err := tx.CreateClaim(&c, later); err != nil {
				return err
			}
			h, m := find(tx)
			h.FailureN, m.AttemptN = h.FailureN+1, m.AttemptN+1
			if err := tx.UpdateHost(&h, later); err != nil {
				return err
			}
			return tx.UpdateMachine(&m, later)
		})
		change("end of the claim", func(tx inventory.Tx, _ *inventory.Host, _ *inventory.Machine) error { return tx.DeleteClaim(c.ID) })
		change("a new machine", func(tx inventory.Tx, _ *inventory.Host, m *inventory.Machine) error {
			if err := tx.DeleteMachine(m.Name); err != nil {
				return err
			}
			n := Machine(1)
			n.Reason, n.NextAt, n.Parameters = text, later, map[string]string{"b": "c"}
			return tx.CreateMachine(&n, later)
		})
	}
}
