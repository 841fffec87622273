package provision

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// TestAThousandMachinesWantedOneByOneAreClaimedSoon is what controllers do to the engine when somebody scales up.
func TestAThousandMachinesWantedOneByOneAreClaimedSoon(t *testing.T) {
	hosts, machines := 300, 200
	if os.Getenv("SLIPWAY_LONG") != "" {
		hosts, machines = 10_000, 1000
	} else if testing.Short() {
		t.Skip("takes seconds")
	}
	l := newLife(t)
	for first := 0; first < hosts; first += 1000 {
		l.write(func(tx inventory.Tx) error {
			for n := first; n < min(first+1000, hosts); n++ {
				h := inventory.Host{
					ID: inventory.HostID(fmt.Sprintf("h%05d", n)), Name: fmt.Sprintf("h%05d", n), State: inventory.Available, Arch: inventory.X8664,
					NICs: []inventory.NIC{{MAC: inventory.MAC(fmt.Sprintf("52:54:00:%02x:%02x:%02x", n>>16, n>>8&255, n&255))}},
				}
				if err := tx.CreateHost(&h, l.clock); err != nil {
					return err
				}
				s := server{machine: &machine{n: 1}, name: h.Name}
				if err := tx.SaveInspection(&inventory.Inspection{HostID: h.ID, At: l.clock, Hardware: s.hardware()}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var mu sync.Mutex
	ids := 0
	l.engine.cfg.Now = time.Now
	l.engine.outfit()
	l.engine.cfg.NewULID = func() string {
		mu.Lock()
		defer mu.Unlock()
		ids++
		return fmt.Sprintf("01K%023d", ids)
	}
	l.engine.outfit()
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() { _ = l.engine.Serve(ctx) })
	defer served.Wait()
	defer cancel()
	began := time.Now()
	var g sync.WaitGroup
	todo := make(chan int)
	for range 8 {
		g.Go(func() {
			for n := range todo {
				if _, err := l.engine.CreateMachine(ctx, inventory.Machine{Name: fmt.Sprintf("m%04d", n), Profile: "debian12", Owner: fmt.Sprintf("c/n/K/m%d/u", n)}, ledger.By("a test")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for n := range machines {
		todo <- n
	}
	close(todo)
	g.Wait()
	created := time.Since(began)
	for claimed := 0; claimed < machines; {
		l.must(l.store.Read(ctx, func(tx inventory.Tx) error {
			pending, err := tx.ListMachines(inventory.MachineFilter{Phase: inventory.MachinePending}, inventory.Page{Limit: 1})
			if len(pending) == 0 {
				claimed = machines
			}
			return err
		}))
		if time.Since(began) > 5*time.Minute {
			t.Fatal("not all are claimed")
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("%d machines on %d hosts: created in %s, all claimed after %s", machines, hosts, created, time.Since(began))
}
