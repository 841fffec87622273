package sqlstore

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/storetest"
)

// BenchmarkSaveLease measures durable leases with that many callers at once; ns/op is the time per lease.
func BenchmarkSaveLease(b *testing.B) {
	benchmarkSaveLease(b, func(b *testing.B) *Store { return openTest(b, filepath.Join(b.TempDir(), "slipway.db")) })
}

// BenchmarkPostgresSaveLease needs SLIPWAY_POSTGRES=1.
func BenchmarkPostgresSaveLease(b *testing.B) {
	benchmarkSaveLease(b, func(b *testing.B) *Store { return openOnPostgres(b) })
}

func benchmarkSaveLease(b *testing.B, open func(*testing.B) *Store) {
	for _, n := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("callers=%d", n), func(b *testing.B) {
			s := open(b)
			subnet := storetest.Subnet("rack1", 1)
			if err := s.Write(b.Context(), func(tx inventory.Tx) error { return tx.Subnets().Create(&subnet, storetest.Now) }); err != nil {
				b.Fatal(err)
			}
			var next atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			for range n {
				all.Go(func() {
					for {
						i := next.Add(1)
						if i > int64(b.N) {
							return
						}
						l := storetest.Lease("rack1", 1, int(i)%50000)
						if err := s.Write(context.Background(), func(tx inventory.Tx) error { return tx.SaveLease(l) }); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

func open10000(b *testing.B) *Store {
	s := openTest(b, filepath.Join(b.TempDir(), "slipway.db"))
	err := s.Write(b.Context(), func(tx inventory.Tx) error {
		for n := range 10_000 {
			h := storetest.Host(n)
			if err := tx.CreateHost(&h, storetest.Now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func benchmarkRead(b *testing.B, fn func(tx inventory.Tx, i int) error) {
	s := open10000(b)
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		if err := s.Read(context.Background(), func(tx inventory.Tx) error { return fn(tx, i) }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFindHostByMAC(b *testing.B) {
	benchmarkRead(b, func(tx inventory.Tx, i int) error {
		_, err := tx.FindHostByMAC(storetest.MAC(i * 7919 % 20_000))
		return err
	})
}

func BenchmarkListHosts(b *testing.B) {
	for name, f := range map[string]inventory.HostFilter{
		"all": {}, "label": {Label: "slot=3"}, "search": {Search: "SN009"}, "searchWithoutHit": {Search: "nothing"},
	} {
		b.Run(name, func(b *testing.B) {
			benchmarkRead(b, func(tx inventory.Tx, i int) error {
				_, err := tx.ListHosts(f, inventory.Page{After: fmt.Sprintf("host-%05d", i*100%9000), Limit: 100})
				return err
			})
		})
	}
}

func BenchmarkUpdateHost(b *testing.B) {
	s := open10000(b)
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		err := s.Write(context.Background(), func(tx inventory.Tx) error {
			h, err := tx.FindHostByMAC(storetest.MAC(i * 7919 % 20_000))
			if err != nil {
				return err
			}
			h.LastSeenAt = h.LastSeenAt.Add(1)
			return tx.UpdateHost(&h, storetest.Now)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
