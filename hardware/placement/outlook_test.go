package placement

import (
	"fmt"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

// foreseen is the outlook of one machine over the whole inventory.
func foreseen(m func(*im), pool inventory.Pool, all []Candidate) Outlook {
	d := machine("web-1", m)
	d.Pool = pool
	return NewForecast(all).Outlook(d)
}

func TestARequestThatNoHostMeetsIsToldFromOneThatWaits(t *testing.T) {
	memory := func(m *im) { m.Placement.Requirements.MemoryBytes = 96 * gib }
	for name, c := range map[string]struct {
		machine func(m *im)
		pool    inventory.Pool
		host    func(c *hc)
		want    string // what the only host fails; "" when waiting may help
		code    Code
	}{
		"a free host":                                      {nil, inventory.Pool{}, nil, "", ""},
		"a host in use":                                    {nil, inventory.Pool{}, func(c *hc) { c.Host.State, c.Host.ClaimID = inventory.Active, "01X" }, "", ""},
		"a host that is being wiped":                       {nil, inventory.Pool{}, func(c *hc) { c.Host.State, c.Host.IsDirty = inventory.Cleaning, true }, "", ""},
		"a host in quarantine":                             {nil, inventory.Pool{}, func(c *hc) { c.Host.State = inventory.Failed }, "", ""},
		"a host in maintenance":                            {nil, inventory.Pool{}, func(c *hc) { c.Host.InMaintenance = true }, "", ""},
		"a protected host":                                 {nil, inventory.Pool{}, func(c *hc) { c.Host.IsProtected = true }, "", ""},
		"an adopted host":                                  {nil, inventory.Pool{}, func(c *hc) { c.Host.IsAdopted = true }, "", ""},
		"a host that nobody accepted":                      {memory, inventory.Pool{}, func(c *hc) { c.Host.State, c.Hardware = inventory.Discovered, nil }, "", ""},
		"a host that nobody looked into":                   {memory, inventory.Pool{}, func(c *hc) { c.Hardware = nil }, "", ""},
		"a host held for another machine":                  {nil, inventory.Pool{}, func(c *hc) { c.Host.ReuseKey, c.Host.FreedAt = "db", now }, "", ""},
		"golden hardware that is missing":                  {nil, inventory.Pool{}, func(c *hc) { c.Faults = []string{"x"} }, "", ""},
		"an expression about the state":                    {func(m *im) { m.Placement.Requirements.Expression = `host.state == "available"` }, inventory.Pool{}, func(c *hc) { c.Host.State = inventory.Active }, "", ""},
		"an expression about what nobody has looked into":  {func(m *im) { m.Placement.Requirements.Expression = "host.cpu.threads > 64" }, inventory.Pool{}, func(c *hc) { c.Hardware = nil }, "", ""},
		"a pool whose requirements nobody has looked into": {nil, inventory.Pool{Name: "big", Requirements: inventory.HardwareRequirements{CPUThreads: 128}}, func(c *hc) { c.Hardware = nil }, "", ""},
		"a port that had no link":                          {func(m *im) { m.Placement.Requirements.PortMbps = 100_000 }, inventory.Pool{}, func(c *hc) { c.Hardware.Ports = []inventory.Port{{Name: "eno1"}} }, "", ""},

		"memory of a host in use":      {memory, inventory.Pool{}, func(c *hc) { c.Host.State = inventory.Active }, "1 host fails only memory: 96 GiB asked, 64 GiB there", NoMatchingHost},
		"memory that a host said":      {memory, inventory.Pool{}, func(c *hc) { c.Hardware, c.Host.MemoryMiB = nil, 32<<10 }, "1 host fails only memory: 96 GiB asked, 32 GiB there", NoMatchingHost},
		"threads":                      {func(m *im) { m.Placement.Requirements.CPUThreads = 64 }, inventory.Pool{}, nil, "1 host fails only CPU threads: 64 asked, 16 there", NoMatchingHost},
		"ports":                        {func(m *im) { m.Placement.Requirements.PortMbps = 100_000 }, inventory.Pool{}, func(c *hc) { c.Hardware.Ports = []inventory.Port{{Name: "eno1", SpeedMbps: 25_000}} }, "1 host fails only port speed: 100 Gb/s asked, 25 Gb/s there", NoMatchingHost},
		"accelerators":                 {func(m *im) { m.Placement.Requirements.AcceleratorID, m.Placement.Requirements.Accelerators = "10de", 2 }, inventory.Pool{}, nil, "1 host fails only 10de accelerators: 2 asked, 0 there", NoMatchingHost},
		"disks":                        {func(m *im) { m.Placement.Requirements.Disks = 9 }, inventory.Pool{}, nil, "1 host fails only disks: 9 asked, 1 there", NoMatchingHost},
		"size of a disk":               {func(m *im) { m.Placement.Requirements.DiskBytes = 4e12 }, inventory.Pool{}, nil, "1 host fails only size of a disk: 4 TB asked, 1 TB there", NoMatchingHost},
		"architecture":                 {func(m *im) { m.Placement.Requirements.Arch = inventory.ARM64 }, inventory.Pool{}, nil, "1 host fails only architecture: arm64 asked", NoMatchingHost},
		"firmware":                     {func(m *im) { m.Placement.Requirements.Firmware = "bios" }, inventory.Pool{}, func(c *hc) { c.Hardware.Firmware.Kind = inventory.UEFI }, "1 host fails only firmware: bios asked", NoMatchingHost},
		"an expression":                {func(m *im) { m.Placement.Requirements.Expression = "host.cpu.threads > 64" }, inventory.Pool{}, nil, "1 host fails only the expression host.cpu.threads > 64", NoMatchingHost},
		"a selector":                   {func(m *im) { m.Placement.Selector = "zone=b" }, inventory.Pool{}, nil, "1 host fails only the selector zone=b", NoMatchingHost},
		"a taint":                      {nil, inventory.Pool{}, func(c *hc) { c.Host.Taints = []inventory.Taint{{Key: "gpu", Value: "a"}} }, "1 host fails only the tolerations: it has the taint gpu=a", NoMatchingHost},
		"the architecture of an image": {nil, inventory.Pool{}, func(c *hc) { c.Hardware.CPU.Arch = inventory.ARM64 }, "1 host fails only the architecture of the image: x86_64 asked", NoMatchingHost},
		"the memory of an image":       {nil, inventory.Pool{}, func(c *hc) { c.Hardware.MemoryBytes = gib / 2 }, "1 host fails only the memory that the image needs: 1 GiB asked, 512 MiB there", NoMatchingHost},
		"a root disk":                  {func(m *im) { m.RootDisk.Serial = "S9" }, inventory.Pool{}, nil, "1 host fails only the root disk: it has no disk that fits the hint for the root disk", NoMatchingHost},
		"a failure domain":             {func(m *im) { m.Placement.FailureDomain = "r9" }, inventory.Pool{}, nil, "1 host fails only the failure domain r9", NoMatchInFailureDomain},
		"an earlier failure":           {func(m *im) { m.Avoid = []inventory.HostID{"id-one"} }, inventory.Pool{}, nil, "1 host fails only its record: this machine failed on it before", NoMatchingHost},
		"two things":                   {func(m *im) { memory(m); m.Placement.Selector = "zone=b" }, inventory.Pool{}, nil, "1 host fails memory (96 GiB asked, 64 GiB there) and the selector zone=b", NoMatchingHost},
		"a pool without hosts":         {nil, inventory.Pool{Name: "db", Selector: "zone=b"}, nil, "1 host is not in pool db", NoMatchingHost},
		"a pool of bigger hosts":       {memory, inventory.Pool{Name: "db", Requirements: inventory.HardwareRequirements{CPUThreads: 128}}, nil, "1 host has less than 128 CPU threads", NoMatchingHost},
	} {
		t.Run(name, func(t *testing.T) {
			got := foreseen(c.machine, c.pool, []Candidate{host("one", c.host)})
			want := c.want
			if want != "" {
				want = hopeless + ": " + want
			}
			if stored := CodeOf(got.Reason); stored != got.Code {
				t.Errorf("the code of the stored reason is %q, want %q", stored, got.Code)
			}
			if got.Reason != want || got.IsHopeless != (want != "") || got.Code != c.code || got.IsHopeless == (got.Fit == 1) || !got.IsKnown || want != "" && got.Hint == "" {
				t.Errorf("got %+v\nwant %q, %q", got, want, c.code)
			}
		})
	}
}

func TestTheNearestMissesComeFirst(t *testing.T) {
	all := rack(20, func(i int, c *hc) {
		c.Host.State, c.Host.Labels["zone"] = inventory.Active, "a"
		switch {
		case i < 3:
			c.Hardware.MemoryBytes = int64(8*(i+2)) * gib // at most 32 GiB
		case i < 8:
			c.Hardware.MemoryBytes, c.Host.Labels["zone"] = 8*gib, "b"
		case i < 9:
			c.Hardware.CPU.Arch = inventory.ARM64
		case i < 11:
			c.Host.Taints, c.Hardware.MemoryBytes = []inventory.Taint{{Key: "gpu"}}, 8*gib
		default:
			c.Host.Labels["pool"] = "other"
		}
	})
	got := foreseen(func(m *im) {
		m.Placement.Requirements.MemoryBytes, m.Placement.Selector = 64*gib, "zone=a"
	}, inventory.Pool{Name: "db", Selector: "label:pool!=other"}, all)
	want := hopeless + ": 3 hosts fail only memory: 64 GiB asked, 32 GiB at most; 1 host fails only the architecture of the image: x86_64 asked; " +
		"5 hosts fail memory (64 GiB asked, 8 GiB at most) and the selector zone=a; 2 hosts fail as much or more; 9 hosts are not in pool db"
	if got.Reason != want {
		t.Errorf("got  %s\nwant %s", got.Reason, want)
	}
}

func TestAMachineThatNamesItsHostIsToldThatTheHostWillNeverDo(t *testing.T) {
	pin := func(name string) func(*im) {
		return func(m *im) { m.Placement.Host = name }
	}
	arm := host("one", func(c *hc) { c.Host.State, c.Hardware.CPU.Arch = inventory.Active, inventory.ARM64 })
	got := foreseen(pin("one"), inventory.Pool{}, []Candidate{arm})
	if want := "host one, which the machine names, never meets it: it fails only the architecture of the image: x86_64 asked"; got.Reason != want || got.Code != PinnedHostUnavailable {
		t.Errorf("got %+v", got)
	}
	if got := foreseen(pin("one"), inventory.Pool{}, []Candidate{host("one", func(c *hc) { c.Host.State = inventory.Active })}); got.IsHopeless {
		t.Errorf("a host in use: %+v", got)
	}
	if got := foreseen(pin("two"), inventory.Pool{}, []Candidate{arm}); got.IsHopeless {
		t.Errorf("a host that does not exist is told by the choice: %+v", got)
	}
}

func TestAPoolThatKeepsAllItsHostsAsSparesServesNobody(t *testing.T) {
	two := []Candidate{host("one", nil), host("two", nil)}
	got := foreseen(nil, inventory.Pool{Name: "db", MinSpare: 2}, two)
	if want := hopeless + ": pool db keeps 2 spare and has 2 hosts"; got.Reason != want {
		t.Errorf("got %+v", got)
	}
	if got := foreseen(nil, inventory.Pool{Name: "db", MinSpare: 1}, two); got.IsHopeless || got.Fit != 2 {
		t.Errorf("one may be taken: %+v", got)
	}
}

func TestWhatIsSaidOfHostsOfOthersIsACount(t *testing.T) {
	secret := host("payroll-7", func(c *hc) { c.Host.Labels["team"], c.Hardware.MemoryBytes = "red", 7*gib })
	mine := host("mine", nil)
	for name, d := range map[string]Demand{
		"a pool that the machine may not use": {Barred: []inventory.Pool{{Name: "red", Selector: "team=red"}}},
		"a cluster that is kept to pools":     {IsWalled: true, Walls: []inventory.Pool{{Name: "blue", Selector: "team!=red"}}},
		"a pool of its own":                   {Pool: inventory.Pool{Name: "blue", Selector: "team!=red"}},
	} {
		whole := machine("web-1", func(m *im) { m.Placement.Requirements.MemoryBytes = 512 * gib })
		whole.Barred, whole.Walls, whole.IsWalled, whole.Pool = d.Barred, d.Walls, d.IsWalled, d.Pool
		got := NewForecast([]Candidate{secret, mine}).Outlook(whole)
		if !got.IsHopeless || !strings.Contains(got.Reason, "1 host fails only memory: 512 GiB asked, 64 GiB there; 1 host is ") ||
			strings.Contains(got.Reason+got.Hint, "payroll") || strings.Contains(got.Reason, "7 GiB") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAnOutlookIsBounded(t *testing.T) {
	all := rack(500, func(i int, c *hc) {
		c.Host.Taints = []inventory.Taint{{Key: fmt.Sprintf("%s-%d", strings.Repeat("k", 100), i)}}
	})
	got := foreseen(nil, inventory.Pool{}, all)
	if !strings.Contains(got.Reason, "497 hosts fail as much or more") || len(got.Reason) > 1000 {
		t.Errorf("%d bytes: %s", len(got.Reason), got.Reason)
	}
}

func TestAnInventoryWithoutHostsHasNoneForAnybody(t *testing.T) {
	if got := foreseen(nil, inventory.Pool{}, nil); !got.IsHopeless || got.Code != NoMatchingHost || got.Reason != "no host: there are none" || CodeOf(got.Reason) != got.Code || got.Hint == "" {
		t.Errorf("got %+v", got)
	}
}

// TestMachinesThatAskForTheSameShareAnOutlook: a thousand machines of a set that wait cost one look at each host.
func TestMachinesThatAskForTheSameShareAnOutlook(t *testing.T) {
	f := NewForecast(rack(3, nil))
	ask := func(name string, change func(*im)) Outlook {
		return f.Outlook(machine(name, func(m *im) { m.Placement.Selector = "zone=b"; change(m) }))
	}
	a, b := ask("a", func(*im) {}), ask("b", func(*im) {})
	if len(f.known) != 1 || a.Reason != b.Reason || !strings.HasSuffix(a.Hint, "machine show a") || !strings.HasSuffix(b.Hint, "machine show b") {
		t.Errorf("%d answers: %+v and %+v", len(f.known), a, b)
	}
	if c := ask("c", func(m *im) { m.Placement.FailureDomain = "r9" }); c.Reason == a.Reason {
		t.Errorf("another request has the same answer: %s", c.Reason)
	}
	if c := ask("c", func(m *im) { m.Avoid = []inventory.HostID{"id-h00001"} }); c.Reason == a.Reason {
		t.Errorf("another past has the same answer: %s", c.Reason)
	}
}

func BenchmarkOutlook(b *testing.B) {
	all := rack(10_000, nil)
	f := NewForecast(all)
	for i := 0; b.Loop(); i++ {
		f.Outlook(machine("web", func(m *im) {
			m.Placement.Requirements.MemoryBytes, m.Placement.Selector = int64(100+i)*gib, "zone=b"
		}))
	}
}
