package lease

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// big is a subnet with 5.9 million addresses to give away.
func big() inventory.Subnet {
	s := rack()
	s.CIDR = netip.MustParsePrefix("10.0.0.0/8")
	s.Gateway = netip.Addr{}
	s.Ranges = []inventory.Range{{First: addr("10.1.0.0"), Last: addr("10.90.255.255")}}
	return s
}

func fill(n int) *Book {
	b := New(Network{Subnets: []inventory.Subnet{big()}}, nil)
	for i := range n {
		c := client(i)
		o, _ := b.Offer(c, netip.Addr{}, t0)
		b.Commit(b.Confirm(c, Selecting, o.Address, t0).Lease)
	}
	return b
}

// BenchmarkExchange is a DISCOVER and a REQUEST of a machine, new or known, with that many leases in the book.
func BenchmarkExchange(b *testing.B) {
	for _, n := range []int{0, 10_000, 500_000} {
		for _, kind := range []string{"new", "known"} {
			if n == 0 && kind == "known" {
				continue
			}
			b.Run(fmt.Sprintf("%s-of-%d", kind, n), func(b *testing.B) {
				book := fill(n)
				clients := make([]Client, 1<<16)
				for i := range clients {
					clients[i] = client(i%max(n, 1) + n)
					if kind == "known" {
						clients[i] = client(i * 7919 % n)
					}
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					now := t0.Add(time.Duration(i) * time.Microsecond)
					c := clients[i&(len(clients)-1)]
					o, why := book.Offer(c, netip.Addr{}, now)
					if why != "" {
						b.Fatal(why)
					}
					book.Commit(book.Confirm(c, Selecting, o.Address, now).Lease)
				}
			})
		}
	}
}

// TestMemoryPerLease holds the goal of 10 MB per 10,000 leases (boot.md goal 8), a tenth of it at most.
func TestMemoryPerLease(t *testing.T) {
	const n = 100_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b := fill(n)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if per := float64(after.HeapAlloc-before.HeapAlloc) / n; per > 400 {
		t.Errorf("a lease takes %.0f bytes", per)
	} else {
		t.Logf("a lease takes %.0f bytes", per)
	}
	runtime.KeepAlive(b)
}

// TestExhaustionIsQuick fails if a full range is searched for every request.
func TestExhaustionIsQuick(t *testing.T) {
	s := big()
	s.Ranges = []inventory.Range{{First: addr("10.1.0.0"), Last: addr("10.1.255.255")}}
	b := New(Network{Subnets: []inventory.Subnet{s}}, nil)
	const full = 1 << 16
	for i := range full {
		o, _ := b.Offer(client(i), netip.Addr{}, t0)
		b.Commit(b.Confirm(client(i), Selecting, o.Address, t0).Lease)
	}
	if _, why := b.Offer(client(full), netip.Addr{}, t0); why != Exhausted {
		t.Fatalf("got %q", why)
	}
	allocs := testing.AllocsPerRun(1000, func() { b.Offer(client(full), netip.Addr{}, t0) })
	r := testing.Benchmark(func(tb *testing.B) {
		c := client(full)
		for tb.Loop() {
			b.Offer(c, netip.Addr{}, t0)
		}
	})
	if r.NsPerOp() > 20_000 {
		t.Errorf("refusing a machine takes %d ns (%.0f allocations)", r.NsPerOp(), allocs)
	}
}
