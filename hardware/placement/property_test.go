package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"slipway.dev/slipway/inventory"
)

// anyHost draws a host of a small world, in which hosts differ and collide often.
func anyHost(t *rapid.T, i int) Candidate {
	return host(fmt.Sprintf("h%02d", i), func(c *hc) {
		h := &c.Host
		h.State = rapid.SampledFrom([]inventory.State{inventory.Available, inventory.Available, inventory.Available, inventory.Active, inventory.Discovered}).Draw(t, "state")
		h.InMaintenance = rapid.IntRange(0, 9).Draw(t, "maintenance") == 0
		h.Place.Rack = rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "rack")
		h.Labels["tier"] = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tier")
		h.FailureN = rapid.IntRange(0, 2).Draw(t, "failures")
		c.HasPower = rapid.Bool().Draw(t, "power")
		c.Hardware.MemoryBytes = rapid.Int64Range(1, 4).Draw(t, "memory") * 32 * gib
		if rapid.IntRange(0, 4).Draw(t, "taint") == 0 {
			h.Taints = []inventory.Taint{{Key: "gpu"}}
		}
		if rapid.IntRange(0, 3).Draw(t, "freed") == 0 {
			h.ReuseKey = rapid.SampledFrom([]string{"m00", "m01", "gone"}).Draw(t, "key")
			h.FreedAt = now.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "ago")) * time.Minute)
		}
	})
}

func anyDemand(t *rapid.T, i int) Demand {
	d := machine(fmt.Sprintf("m%02d", i), func(m *im) {
		m.CreatedAt = now.Add(-time.Duration(rapid.IntRange(0, 5).Draw(t, "age")) * time.Hour)
		p := &m.Placement
		if rapid.IntRange(0, 5).Draw(t, "pin") == 0 {
			p.Host = fmt.Sprintf("h%02d", rapid.IntRange(0, 12).Draw(t, "host"))
			return
		}
		p.Selector = rapid.SampledFrom([]string{"", "tier=a", "tier=b"}).Draw(t, "selector")
		p.FailureDomain = rapid.SampledFrom([]string{"", "", "r1"}).Draw(t, "domain")
		p.IsDomainPreferred = rapid.Bool().Draw(t, "wish")
		p.Requirements.MemoryBytes = rapid.Int64Range(0, 3).Draw(t, "memory") * 32 * gib
		p.Requirements.Expression = rapid.SampledFrom([]string{"", "host.memoryBytes > 0", `host.labels.tier == "a"`}).Draw(t, "expression")
		p.Reuse = rapid.SampledFrom([]inventory.Reuse{"", inventory.ReusePrefer, inventory.ReuseRequire}).Draw(t, "reuse")
		if rapid.Bool().Draw(t, "tolerant") {
			p.Tolerations = []inventory.Toleration{{}}
		}
		if rapid.IntRange(0, 4).Draw(t, "avoids") == 0 {
			m.Avoid = []inventory.HostID{"id-h00"}
		}
	})
	d.Pool = rapid.SampledFrom([]inventory.Pool{{}, {Name: "a", Selector: "tier=a", MinSpare: 2}, {Name: "all", MinSpare: 1}}).Draw(t, "pool")
	return d
}

func world(t *rapid.T) (demands []Demand, hosts []Candidate) {
	for i := range rapid.IntRange(0, 12).Draw(t, "hosts") {
		hosts = append(hosts, anyHost(t, i))
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "machines") {
		demands = append(demands, anyDemand(t, i))
	}
	return demands, hosts
}

func TestNoHostIsGivenTwiceAndNoneThatCannotServe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demands, hosts := world(t)
		seen := map[inventory.HostID]string{}
		for i, c := range Allocate(demands, hosts) {
			m := demands[i].Machine
			if c.Host == nil {
				if c.Reason == "" || c.Hint == "" || c.Code == "" {
					t.Fatalf("%s has no host, and code %q, reason %q, hint %q", m.Name, c.Code, c.Reason, c.Hint)
				}
				continue
			}
			if other, ok := seen[c.Host.ID]; ok {
				t.Fatalf("%s is given to %s and to %s", c.Host.Name, other, m.Name)
			}
			seen[c.Host.ID] = m.Name
			h := c.Host
			if h.State != inventory.Available || h.InMaintenance || h.ClaimID != "" {
				t.Fatalf("%s was given %s, which is %s", m.Name, h.Name, h.State)
			}
			if p := m.Placement; p.Host != "" && p.Host != h.Name || p.FailureDomain != "" && !p.IsDomainPreferred && h.Place.Rack != "r1" {
				t.Fatalf("%s was given %s against its placement %+v", m.Name, h.Name, p)
			}
		}
	})
}

func TestTheOrderOfHostsAndMachinesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demands, hosts := world(t)
		want := map[string]Choice{}
		for i, c := range Allocate(demands, hosts) {
			want[demands[i].Machine.Name] = c
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		r.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
		r.Shuffle(len(demands), func(i, j int) { demands[i], demands[j] = demands[j], demands[i] })
		for i, c := range Allocate(demands, hosts) {
			if d := cmp.Diff(want[demands[i].Machine.Name], c, cmpopts.IgnoreUnexported(Rejection{})); d != "" {
				t.Fatalf("%s (-first +shuffled):\n%s", demands[i].Machine.Name, d)
			}
		}
	})
}

func TestAPinnedHostGoesToItsMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demands, hosts := world(t)
		all := Allocate(demands, hosts)
		for i, d := range demands {
			if d.Machine.Placement.Host == "" || all[i].Host != nil || Choose(d, hosts).Host == nil {
				continue
			}
			// It could have had it: then another machine that names it as well has it.
			for j, c := range all {
				if nameOf(c) == d.Machine.Placement.Host && demands[j].Machine.Placement.Host != d.Machine.Placement.Host {
					t.Fatalf("%s names %s, which went to %s", d.Machine.Name, nameOf(c), demands[j].Machine.Name)
				}
			}
		}
	})
}

func TestOneHostMoreTakesNoneAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demands, hosts := world(t)
		for i := range demands {
			demands[i].Pool.MinSpare = 0 // with enough spares an older machine is served, maybe with another host
		}
		before := Allocate(demands, hosts)
		extra := anyHost(t, len(hosts))
		extra.Host.ReuseKey = "" // one that a machine must have again would be waited for
		after := Allocate(demands, append(hosts, extra))
		for i := range demands {
			if before[i].Host != nil && after[i].Host == nil {
				t.Fatalf("%s had %s, and with %s more it has none: %s", demands[i].Machine.Name, before[i].Host.Name, extra.Host.Name, after[i].Reason)
			}
		}
	})
}
