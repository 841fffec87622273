package sqlstore

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/storetest"
)

// TestTheEngineReadsOnlyWhatItGets names the index behind each query that the engine asks per event or per turn: what is
// due, what is open and what could be claimed must neither be searched for nor sorted.
func TestTheEngineReadsOnlyWhatItGets(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	all := statements(t)
	filtered := func(f inventory.OperationFilter) string { return fmt.Sprintf("operations by %+v", f) }
	for name, indexes := range map[string]string{
		"listDueOperationsSQL":                            "operations_due",
		"nextOperationSQL":                                "operations_due",
		"listDueMachinesSQL":                              "machines_due",
		"nextMachineSQL":                                  "machines_due",
		"findOpenOperationSQL":                            "operations_open",
		"openOperationSQL":                                "operations_open",
		"claimableSQL":                                    "hosts_by_state",
		"forgetOperationsSQL":                             "operations_ended",
		"forgetInspectionsSQL":                            "inspections_old",
		"listReportsSQL":                                  "reports_by_host",
		"bmcHolderSQL":                                    "bmcs_by_address",
		`grants of pool "x", kind "x"`:                    "operations_granted operations_by_pool_grant",
		`grants of pool "", kind "x"`:                     "operations_by_grant",
		filtered(inventory.OperationFilter{}):             "operations_by_start",
		filtered(inventory.OperationFilter{IsOpen: true}): "operations_open_by_start",
		filtered(inventory.OperationFilter{HostID: "x"}):  "operations_by_host",
		filtered(inventory.OperationFilter{Machine: "x"}): "operations_by_machine",
		filtered(inventory.OperationFilter{Kind: "x"}):    "operations_by_kind",
	} {
		sql := all[name]
		if sql == "" {
			t.Errorf("there is no statement %s", name)
			continue
		}
		plan := planOf(t, s, sql)
		for index := range strings.FieldsSeq(indexes) {
			if !strings.Contains(plan, " "+index) || strings.Contains(plan, "TEMP B-TREE") {
				t.Errorf("%s does not go by %s alone:\n%s\n%s", name, indexes, plan, sql)
			}
		}
	}
}

// busyHost names a host with an open operation: history has no foreign keys, so that it need not be there.
func busyHost(n int) inventory.HostID { return inventory.HostID(fmt.Sprintf("busy-%06d", n)) }

// openLife returns a store with that many hosts, all claimable, as many machines, and that many operations: as many as
// hosts are open, the rest has ended.
func openLife(b *testing.B, hosts, operations int) *Store {
	s := openTest(b, filepath.Join(b.TempDir(), "slipway.db"))
	write := func(n int, fn func(tx inventory.Tx, n int) error) {
		err := s.Write(b.Context(), func(tx inventory.Tx) error {
			for i := range n {
				if err := fn(tx, i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	write(1, func(tx inventory.Tx, _ int) error {
		if err := tx.Images().Create(&inventory.Image{Name: "debian-12"}, storetest.Now); err != nil {
			return err
		}
		return tx.Profiles().Create(&inventory.Profile{Name: "debian", Image: "debian-12"}, storetest.Now)
	})
	write(hosts, func(tx inventory.Tx, n int) error {
		h, m := storetest.Host(n), storetest.Machine(n)
		if err := tx.CreateHost(&h, storetest.Now); err != nil {
			return err
		}
		i := storetest.Inspection(n)
		if err := tx.SaveInspection(&i); err != nil {
			return err
		}
		return tx.CreateMachine(&m, storetest.Now)
	})
	write(operations, func(tx inventory.Tx, n int) error {
		o := storetest.Operation(n)
		o.StartedAt = storetest.Now.Add(time.Duration(n) * time.Second)
		o.NextAt = storetest.Now.Add(time.Duration(n*7919%operations) * time.Second)
		if o.State = inventory.OpDone; n < hosts {
			o.State, o.HostID = inventory.OpRunning, busyHost(n)
		}
		return tx.CreateOperation(&o, storetest.Now)
	})
	return s
}

// benchmarkLife runs fn at a tenth of the size that is asked for and at that size: the two should not differ but where
// the answer grows.
func benchmarkLife(b *testing.B, fn func(b *testing.B, s *Store, hosts, operations int)) {
	for _, size := range []struct{ hosts, operations int }{{1_000, 10_000}, {10_000, 100_000}} {
		b.Run(fmt.Sprintf("hosts=%d", size.hosts), func(b *testing.B) {
			fn(b, openLife(b, size.hosts, size.operations), size.hosts, size.operations)
		})
	}
}

func BenchmarkCreateClaim(b *testing.B) {
	benchmarkLife(b, func(b *testing.B, s *Store, hosts, _ int) {
		for i := 0; b.Loop(); i++ {
			err := s.Write(context.Background(), func(tx inventory.Tx) error {
				n := i * 7919 % hosts
				c := inventory.Claim{ID: "01C", MachineUID: storetest.Machine(n).UID, HostID: storetest.Host(n).ID}
				if err := tx.CreateClaim(&c, storetest.Now); err != nil {
					return err
				}
				return tx.DeleteClaim("01C")
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkListDueOperations(b *testing.B) {
	benchmarkLife(b, func(b *testing.B, s *Store, _, operations int) {
		for b.Loop() {
			err := s.Read(context.Background(), func(tx inventory.Tx) error {
				if _, err := tx.NextDueAt(); err != nil {
					return err
				}
				got, err := tx.ListDueOperations(storetest.Now.Add(time.Duration(operations)*time.Second), 100)
				if len(got) != 100 {
					b.Fatalf("%d are due", len(got))
				}
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkListClaimable(b *testing.B) {
	benchmarkLife(b, func(b *testing.B, s *Store, hosts, _ int) {
		for b.Loop() {
			err := s.Read(context.Background(), func(tx inventory.Tx) error {
				got, err := tx.ListClaimable(nil)
				if len(got) != hosts {
					b.Fatalf("%d are claimable", len(got))
				}
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkUpdateOperation(b *testing.B) {
	benchmarkLife(b, func(b *testing.B, s *Store, hosts, operations int) {
		for i := 0; b.Loop(); i++ {
			err := s.Write(context.Background(), func(tx inventory.Tx) error {
				o, err := tx.FindOpenOperation(busyHost(i * 7919 % hosts))
				if err != nil {
					return err
				}
				o.Step, o.NextAt = inventory.StepWrite, o.NextAt.Add(time.Minute)
				return tx.UpdateOperation(&o, storetest.Now)
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkCountOpenOperations(b *testing.B) {
	benchmarkLife(b, func(b *testing.B, s *Store, _, _ int) {
		for b.Loop() {
			err := s.Read(context.Background(), func(tx inventory.Tx) error {
				_, _, err := tx.CountOpenOperations(inventory.DefaultPool, inventory.OpInstall, inventory.OpReinstall)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkForgetHistory(b *testing.B) {
	benchmarkLife(b, func(b *testing.B, s *Store, _, _ int) {
		for b.Loop() {
			err := s.Write(context.Background(), func(tx inventory.Tx) error {
				_, err := tx.ForgetHistory(storetest.Now.Add(-time.Hour), 1000) // nothing is that old
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
