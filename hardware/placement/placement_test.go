package placement

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

type (
	im = inventory.Machine
	hc = Candidate
)

func TestWhatKeepsAHostOut(t *testing.T) {
	for name, c := range map[string]struct {
		machine func(m *im)
		host    func(c *hc)
		want    string // why the only host is refused; "" for chosen
	}{
		"nothing":                       {nil, nil, ""},
		"nobody has accepted it":        {nil, func(c *hc) { c.Host.State = inventory.Discovered }, "1 is not accepted"},
		"it is installed already":       {nil, func(c *hc) { c.Host.State = inventory.Active }, "1 is in use"},
		"it is in quarantine":           {nil, func(c *hc) { c.Host.State = inventory.Failed }, "1 has failed and is in quarantine"},
		"a claim":                       {nil, func(c *hc) { c.Host.ClaimID = "01X" }, "1 is claimed by another machine"},
		"maintenance":                   {nil, func(c *hc) { c.Host.InMaintenance = true }, "1 is in maintenance"},
		"protection":                    {nil, func(c *hc) { c.Host.IsProtected = true }, "1 is protected"},
		"adoption":                      {nil, func(c *hc) { c.Host.IsAdopted = true }, "1 is adopted with an operating system of its own"},
		"its last machine's data":       {nil, func(c *hc) { c.Host.IsDirty = true }, "1 is not wiped yet"},
		"faults against golden":         {nil, func(c *hc) { c.Faults = []string{"has 3 disks and not 4"} }, "1 lacks what its golden hardware has"},
		"a selector":                    {func(m *im) { m.Placement.Selector = "zone=b" }, nil, "1 does not match the selector zone=b"},
		"requirements":                  {func(m *im) { m.Placement.Requirements.MemoryBytes = 96 * gib }, nil, "1 has less than 96 GiB of memory"},
		"an expression":                 {func(m *im) { m.Placement.Requirements.Expression = "host.cpu.threads > 16" }, nil, "1 does not meet the expression host.cpu.threads > 16"},
		"an expression on what is not":  {func(m *im) { m.Placement.Requirements.Expression = `host.labels["x"] == "y"` }, nil, `1 does not meet the expression host.labels["x"] == "y": no such key: x`},
		"a taint":                       {nil, func(c *hc) { c.Host.Taints = []inventory.Taint{{Key: "gpu", Value: "a"}} }, "1 has the taint gpu=a, which the machine does not tolerate"},
		"a taint of another value":      {func(m *im) { m.Placement.Tolerations = []inventory.Toleration{{Key: "gpu", Value: "b"}} }, func(c *hc) { c.Host.Taints = []inventory.Taint{{Key: "gpu", Value: "a"}} }, "1 has the taint gpu=a, which the machine does not tolerate"},
		"a taint that is tolerated":     {func(m *im) { m.Placement.Tolerations = []inventory.Toleration{{Key: "gpu"}} }, func(c *hc) { c.Host.Taints = []inventory.Taint{{Key: "gpu", Value: "a"}} }, ""},
		"another architecture":          {nil, func(c *hc) { c.Hardware.CPU.Arch = inventory.ARM64 }, "1 is not of the image's architecture x86_64"},
		"an unknown architecture":       {nil, func(c *hc) { c.Host.Arch, c.Hardware = "", nil }, ""},
		"too little memory for it":      {nil, func(c *hc) { c.Hardware.MemoryBytes = gib / 2 }, "1 has less than the 1024 MiB of memory that the image needs"},
		"no disk":                       {nil, func(c *hc) { c.Hardware.Disks = nil }, "1 has no disk to install to"},
		"a disk that is too small":      {nil, func(c *hc) { c.Hardware.Disks[0].SizeBytes = 8e9 }, "1 has no disk of at least 10 GB for the image"},
		"a hint that no disk fits":      {func(m *im) { m.RootDisk.Serial = "S9" }, nil, "1 has no disk that fits the hint for the root disk"},
		"a hint that two disks fit":     {func(m *im) { m.RootDisk.Transport = "sata" }, twins, "1 has several disks that fit the hint for the root disk"},
		"a host's hint":                 {nil, func(c *hc) { c.Host.RootDisk.Serial = "S9" }, "1 has no disk that fits the hint for the root disk"},
		"the machine's hint comes over": {func(m *im) { m.RootDisk.Serial = "S1" }, func(c *hc) { c.Host.RootDisk.Serial = "S9" }, ""},
		"a disk that is kept":           {func(m *im) { m.KeepDisks = []inventory.DiskHint{{Serial: "S1"}} }, nil, "1 has no disk to install to"},
		"a disk that the host keeps":    {nil, func(c *hc) { c.Host.KeepDisks = []inventory.DiskHint{{Name: "sda"}} }, "1 has no disk to install to"},
		"an earlier failure":            {func(m *im) { m.Avoid = []inventory.HostID{"id-one"} }, nil, "1 has failed this machine before"},
		"the failure domain":            {func(m *im) { m.Placement.FailureDomain = "r2" }, nil, "1 is in another failure domain"},
		"a domain that is a wish":       {func(m *im) { m.Placement.FailureDomain, m.Placement.IsDomainPreferred = "r2", true }, nil, ""},
		"the right row":                 {func(m *im) { m.Placement.FailureDomain = "a" }, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Choose(machine("web-1", c.machine), []Candidate{host("one", c.host)})
			want := c.want
			if want != "" {
				want = "no host: " + want
			}
			if got.Reason != want || (got.Host == nil) != (want != "") || want != "" && got.Hint == "" {
				t.Errorf("got host %v, reason %q, hint %q; want %q", got.Host, got.Reason, got.Hint, want)
			}
		})
	}
}

// v2 are the flags of a processor of level x86-64-v2.
var v2 = strings.Fields("cmov cx8 fpu fxsr mmx sse sse2 cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3")

func TestAnOlderProcessorKeepsAHostOut(t *testing.T) {
	for _, c := range []struct {
		needs string
		flags []string
		want  string
	}{
		{inventory.CPULevel3, v2, "no host: 1 has a processor below the level x86-64-v3 that the image needs"},
		{inventory.CPULevel2, v2, ""},
		{inventory.CPULevel3, nil, ""}, // nobody knows
		{"", v2, ""},
	} {
		d := machine("web-1", nil)
		d.Image.CPULevel = c.needs
		got := Choose(d, []Candidate{host("one", func(h *hc) { h.Hardware.CPU.Flags = c.flags })})
		if got.Reason != c.want || (got.Host == nil) != (c.want != "") || c.want != "" && got.Hint == "" {
			t.Errorf("%s on %v: %q (%s)", c.needs, c.flags, got.Reason, got.Hint)
		}
	}
}

func twins(c *hc) {
	c.Hardware.Disks = []inventory.Disk{{Name: "sda", Transport: "sata", SizeBytes: 1e12}, {Name: "sdb", Transport: "sata", SizeBytes: 1e12}}
}

func TestAReasonCountsWhatKeepsHostsOut(t *testing.T) {
	hosts := rack(20, func(i int, c *hc) {
		switch {
		case i < 12:
			c.Hardware.MemoryBytes = 32 * gib
		case i < 15:
			c.Host.Place.Rack = "r2"
		case i < 16:
			c.Host.InMaintenance = true
		default:
			c.Host.Labels["pool"] = "other"
		}
	})
	d := machine("db-1", func(m *im) {
		m.Placement.Requirements.MemoryBytes, m.Placement.FailureDomain = 64*gib, "r1"
	})
	d.Pool = inventory.Pool{Name: "db", Selector: "label:pool!=other"}
	got := Choose(d, hosts)
	if want := "no host: 12 have less than 64 GiB of memory, 3 are in another failure domain, 1 is in maintenance, 4 are not in pool db"; got.Reason != want {
		t.Errorf("got  %s\nwant %s", got.Reason, want)
	}
	if got.Code != NoMatchInFailureDomain || got.Hint != "compare with: slipway host hardware h00000" {
		t.Errorf("code %s, hint %q", got.Code, got.Hint)
	}
	var counts []Rejection
	for _, r := range got.Rejected {
		r.cause = nil
		counts = append(counts, r)
	}
	want := []Rejection{
		{Cause: "has less than 64 GiB of memory", N: 12, Example: "h00000"},
		{Cause: "is in another failure domain", N: 3, Example: "h00012"},
		{Cause: "is in maintenance", N: 1, Example: "h00015"},
		{Cause: "is not in pool db", N: 4, Example: "h00016"},
	}
	if diff := cmp.Diff(want, counts, cmp.AllowUnexported(Rejection{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheBestHostIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		machine func(m *im)
		good    func(c *hc)
		other   func(c *hc)
	}{
		"the one that the machine had, before all wishes": {
			func(m *im) {
				m.Placement.Reuse, m.Placement.Preferred = inventory.ReusePrefer, []inventory.Preference{{Weight: 100, Selector: "fast"}}
			},
			func(c *hc) { c.Host.ReuseKey, c.Host.FreedAt = "web-1", now; c.Hardware.CPU.Threads = 512 },
			func(c *hc) { c.Host.Labels["fast"] = "yes" },
		},
		"of two that it had, the last": {
			func(m *im) { m.Placement.Reuse = inventory.ReusePrefer },
			func(c *hc) { c.Host.ReuseKey, c.Host.FreedAt = "web-1", now },
			func(c *hc) { c.Host.ReuseKey, c.Host.FreedAt = "web-1", now.Add(-time.Minute) },
		},
		"wishes by weight, before fit": {
			func(m *im) {
				m.Placement.Preferred = []inventory.Preference{{Weight: 60, Selector: "fast"}, {Weight: 50, Selector: "new"}}
			},
			func(c *hc) { c.Host.Labels["fast"] = "yes"; c.Hardware.CPU.Threads = 512 },
			func(c *hc) { c.Host.Labels["new"] = "yes" },
		},
		"a failure domain that is a wish": {
			func(m *im) { m.Placement.FailureDomain, m.Placement.IsDomainPreferred = "r1", true },
			func(c *hc) { c.Hardware.CPU.Threads = 512 },
			func(c *hc) { c.Host.Place.Rack = "r2" },
		},
		"one that switches itself on": {nil, func(c *hc) { c.Hardware.CPU.Threads = 512 }, func(c *hc) { c.HasPower = false }},
		"the fit in memory":           {nil, nil, func(c *hc) { c.Hardware.MemoryBytes = 96 * gib }},
		"the fit in threads":          {nil, nil, func(c *hc) { c.Hardware.CPU.Threads = 24 }},
		"no accelerator that is not asked for": {
			nil,
			func(c *hc) { c.Hardware.MemoryBytes = 256 * gib },
			func(c *hc) { c.Hardware.Accelerators = []inventory.PCIDevice{{ID: "10de:2330"}} },
		},
		"what is known before what is not":          {nil, nil, func(c *hc) { c.Hardware = nil }},
		"fit before failures":                       {nil, func(c *hc) { c.Host.FailureN = 2 }, func(c *hc) { c.Hardware.CPU.Threads = 24 }},
		"fewest failures":                           {nil, nil, func(c *hc) { c.Host.FailureN = 1 }},
		"a host freed long ago is free for anybody": {nil, func(c *hc) { c.Host.ReuseKey, c.Host.FreedAt = "x", now.Add(-HoldFor) }, func(c *hc) { c.Host.FailureN = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			// Under both names: which one comes first must not matter.
			for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
				hosts := []Candidate{host(names[0], c.good), host(names[1], c.other)}
				if got := Choose(machine("web-1", c.machine), hosts); nameOf(got) != names[0] {
					t.Errorf("chose %q, want %q (%s)", nameOf(got), names[0], got.Reason)
				}
			}
		})
	}
}

func TestEqualHostsAreSpreadOverMachines(t *testing.T) {
	hosts, taken := rack(50, nil), map[string]int{}
	for _, m := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		taken[nameOf(Choose(machine(m, nil), hosts))]++
	}
	if len(taken) < 5 {
		t.Errorf("eight machines that ask alone took only %v", taken)
	}
}

func TestAFreedHostIsHeldForItsMachine(t *testing.T) {
	freed := host("a", func(c *hc) { c.Host.ReuseKey, c.Host.FreedAt = "db", now.Add(-10*time.Minute) })
	other := machine("web-1", nil)
	got := Choose(other, []Candidate{freed})
	if got.Host != nil || got.Reason != "no host: 1 is held for the machine that had it" || !got.AgainAt.Equal(now.Add(20*time.Minute)) {
		t.Errorf("got %q, again at %s", got.Reason, got.AgainAt)
	}
	other.Now = now.Add(20 * time.Minute)
	if got := Choose(other, []Candidate{freed}); nameOf(got) != "a" {
		t.Errorf("after the hold: %s", got.Reason)
	}
	its := machine("db-7", func(m *im) { m.Placement.ReuseKey, m.Placement.Reuse = "db", inventory.ReusePrefer })
	if got := Choose(its, []Candidate{freed, host("b", nil)}); nameOf(got) != "a" || !got.Score.IsReused {
		t.Errorf("its own machine took %q", nameOf(got))
	}
}

func TestRequireSameWaitsForTheHostThatTheMachineHad(t *testing.T) {
	d := machine("db-1", func(m *im) { m.Placement.Reuse = inventory.ReuseRequire })
	if got := Choose(d, []Candidate{host("b", nil)}); nameOf(got) != "b" {
		t.Errorf("the first of its key got no host: %s", got.Reason)
	}
	dirty := host("a", func(c *hc) { c.Host.ReuseKey, c.Host.State = "db-1", inventory.Cleaning })
	got := Choose(d, []Candidate{dirty, host("b", nil)})
	if want := "no host: 1 is being wiped, 1 is not the host that the machine had"; got.Reason != want {
		t.Errorf("got %q, want %q", got.Reason, want)
	}
}

func TestAPinnedHostIsTakenOrNone(t *testing.T) {
	pin := func(m *im) { m.Placement.Host = "b" }
	hosts := []Candidate{host("a", nil), host("b", func(c *hc) { c.Hardware.CPU.Threads = 512 })}
	d := machine("web-1", pin)
	d.Pool = inventory.Pool{Name: "x", Selector: "name=a"} // a pin is stronger than a pool
	if got := Choose(d, hosts); nameOf(got) != "b" {
		t.Errorf("got %q: %s", nameOf(got), got.Reason)
	}
	hosts[1].Host.InMaintenance = true
	got := Choose(d, hosts)
	if got.Code != PinnedHostUnavailable || got.Reason != "no host: b, which the machine names, is in maintenance" || !strings.HasSuffix(got.Hint, "maintain b --off") {
		t.Errorf("%s: %s (%s)", got.Code, got.Reason, got.Hint)
	}
	if got := Choose(d, hosts[:1]); got.Code != PinnedHostUnavailable || got.Reason != "no host: there is no host b" {
		t.Errorf("%s: %s", got.Code, got.Reason)
	}
	old := machine("old", func(m *im) { m.CreatedAt = now.Add(-100 * time.Hour) })
	all := Allocate([]Demand{old, machine("web-1", func(m *im) { m.Placement.Host = "a" })}, hosts)
	if nameOf(all[0]) != "" || nameOf(all[1]) != "a" {
		t.Errorf("the pinned host went to %q and %q", nameOf(all[0]), nameOf(all[1]))
	}
}

func TestSparesAreKeptForReplacements(t *testing.T) {
	pool := inventory.Pool{Name: "web", Selector: "rack=r1", MinSpare: 2}
	hosts := rack(5, func(i int, c *hc) {
		if i == 4 {
			c.Host.InMaintenance = true // no spare at all
		}
	})
	var demands []Demand
	for _, name := range []string{"a", "b", "c", "d"} {
		d := machine(name, nil)
		d.Pool = pool
		demands = append(demands, d)
	}
	demands[3].Machine.Avoid = []inventory.HostID{"id-broken"}
	got := Allocate(demands, hosts)
	if nameOf(got[0]) == "" || nameOf(got[1]) == "" || nameOf(got[3]) == "" {
		t.Errorf("a: %s, b: %s, d: %s", got[0].Reason, got[1].Reason, got[3].Reason)
	}
	if want := "no host: 2 are given to another machine, 2 are kept as a spare of the pool, 1 is in maintenance"; got[2].Reason != want {
		t.Errorf("got  %s\nwant %s", got[2].Reason, want)
	}
}

func TestTheOldestMachineChoosesFirst(t *testing.T) {
	young, old := machine("a", nil), machine("b", func(m *im) { m.CreatedAt = now.Add(-2 * time.Hour) })
	got := Allocate([]Demand{young, old}, rack(1, nil))
	if got[0].Host != nil || nameOf(got[1]) == "" {
		t.Errorf("the young one got %q, the old one %q", nameOf(got[0]), nameOf(got[1]))
	}
	if want := "no host: 1 is given to another machine"; got[0].Reason != want {
		t.Errorf("got %q, want %q", got[0].Reason, want)
	}
}

func TestWhatCannotBeReadIsSaidAndStopsNobodyElse(t *testing.T) {
	bad := machine("a", func(m *im) { m.Placement.Requirements.Expression = "host.cpu.treads > 1" })
	wrong := machine("b", func(m *im) { m.Placement.Selector = "x==y" })
	got := Allocate([]Demand{bad, wrong, machine("c", nil)}, rack(3, nil))
	if got[0].Code != InvalidConfiguration || !strings.Contains(got[0].Reason, "undefined field 'treads'") || got[0].Hint == "" {
		t.Errorf("%s: %s (%s)", got[0].Code, got[0].Reason, got[0].Hint)
	}
	if got[1].Code != InvalidConfiguration || nameOf(got[2]) == "" {
		t.Errorf("%s; the third got %q", got[1].Code, nameOf(got[2]))
	}
}

func TestInspectionIsNeededOnlyWhereItIs(t *testing.T) {
	d := machine("a", nil)
	hosts := []Candidate{host("x", func(c *hc) { c.Hardware = nil })}
	if got := Choose(d, hosts); nameOf(got) != "x" {
		t.Errorf("without: %s", got.Reason)
	}
	d.IsInspectionNeeded = true
	if got := Choose(d, hosts); got.Reason != "no host: 1 was never inspected" || got.Hint != "inspect it with: slipway host inspect x" {
		t.Errorf("%s (%s)", got.Reason, got.Hint)
	}
}

func TestAnExpressionThatCostsTooMuchIsGivenUp(t *testing.T) {
	d := machine("a", func(m *im) {
		m.Placement.Requirements.Expression = `host.pci.exists(a, host.pci.exists(b, a.id == "x" && b.id == "y"))`
	})
	pci := make([]inventory.PCIDevice, 1024)
	got := Choose(d, rack(2000, func(_ int, c *hc) { c.Hardware.PCI = pci }))
	if want := "no host: 2000 have too many parts for the expression: its cost is over the limit"; got.Reason != want {
		t.Errorf("got  %s\nwant %s", got.Reason, want)
	}
}

func TestNoHostsAtAll(t *testing.T) {
	got := Choose(machine("a", nil), nil)
	if got.Reason != "no host: there are none" || got.Code != InsufficientResources {
		t.Errorf("%s: %s", got.Code, got.Reason)
	}
}
