package placement

import (
	"fmt"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// hall is 10,000 hosts of four kinds in 250 racks.
func hall() []Candidate {
	return rack(10_000, func(i int, c *hc) {
		c.Host.Place.Rack = fmt.Sprintf("r%d", i/40)
		c.Host.Labels["tier"] = []string{"a", "b", "c", "d"}[i%4]
		c.Hardware.MemoryBytes = int64(64*(1+i%4)) * gib
		c.Hardware.CPU.Threads = 32 * (1 + i%4)
		for d := range 8 {
			c.Hardware.Disks = append(c.Hardware.Disks, inventory.Disk{Name: fmt.Sprintf("nvme%dn1", d), Serial: fmt.Sprintf("S%d", d), SizeBytes: 4e12})
		}
	})
}

// orders is 500 machines of as many kinds as asked for, each kind with its own selector, requirements and expression.
func orders(kinds int) (all []Demand) {
	for i := range 500 {
		all = append(all, machine(fmt.Sprintf("m%04d", i), func(m *im) {
			k := i % kinds
			m.CreatedAt = now.Add(-time.Duration(i) * time.Second)
			m.Placement = inventory.Placement{
				Selector:  fmt.Sprintf("tier=~[a-c],rack!=r%d", k),
				Preferred: []inventory.Preference{{Weight: 10, Selector: "tier=b"}},
				Requirements: inventory.HardwareRequirements{
					MemoryBytes: 128 * gib, Expression: fmt.Sprintf(`host.cpu.threads > 16 && host.place.rack != "r%d"`, k),
				},
			}
		}))
	}
	return all
}

func BenchmarkAllocate500MachinesOver10000Hosts(b *testing.B) {
	hosts := hall()
	for _, kinds := range []int{1, 20, 500} {
		demands := orders(kinds)
		b.Run(fmt.Sprintf("of %d kinds", kinds), func(b *testing.B) {
			for b.Loop() {
				for i, c := range Allocate(demands, hosts) {
					if c.Host == nil {
						b.Fatal(i, c.Reason)
					}
				}
			}
		})
	}
}

func BenchmarkChooseNone(b *testing.B) {
	hosts, d := hall(), machine("a", func(m *im) { m.Placement.Requirements.MemoryBytes = 1 << 50 })
	for b.Loop() {
		if Choose(d, hosts).Host != nil {
			b.Fatal("a host was found")
		}
	}
}
