package inventory

import (
	"strings"
	"testing"
	"time"
)

func validMachine() *Machine {
	yes := true
	return &Machine{
		Name: "web-1", UID: "01M", Profile: "debian12", Pool: "default", Hostname: "web-1.example", Parameters: map[string]string{"url": "http://x"},
		Placement: Placement{
			Selector: "rack=r1", FailureDomain: "fra/a/r1", Reuse: ReusePrefer, Tolerations: []Toleration{{Key: "gpu"}},
			Preferred:    []Preference{{Weight: 1, Selector: "role=db"}, {Weight: 100, Selector: "rack"}},
			Requirements: HardwareRequirements{Arch: ARM64, CPUThreads: 4, IsRotational: &yes, Expression: "host.cpu.threads > 1"},
		},
		Clean: CleanQuick, ReleaseAfter: ReleaseFenced, Hooks: []Hook{{Step: PreBoot, Owner: "storage"}, {Step: PreBoot, Owner: "network"}},
	}
}

func TestMachineValidate(t *testing.T) {
	testValidate(t, validMachine, (*Machine).Validate, []invalid[Machine]{
		{"no name", func(m *Machine) { m.Name = "" }, "not a name for a machine"},
		{"a hostname that is none", func(m *Machine) { m.Hostname = "-a.example" }, "-a"},
		{"no profile", func(m *Machine) { m.Profile = "" }, "web-1 names no profile"},
		{"a way to clean that is none", func(m *Machine) { m.Clean = "soap" }, "soap"},
		{"a moment that is none", func(m *Machine) { m.ReleaseAfter = "never" }, "fenced or cleaned"},
		{"a step that no hook blocks", func(m *Machine) { m.Hooks[0].Step = "pre-lunch" }, "pre-lunch"},
		{"a hook of nobody", func(m *Machine) { m.Hooks[0].Owner = "" }, "hook"},
		{"a hook twice", func(m *Machine) { m.Hooks[1].Owner = "storage" }, "pre-boot/storage stands twice"},
		{"a parameter that is none", func(m *Machine) { m.Parameters["A-b"] = "" }, "A-b"},
		{"a line end in a parameter", func(m *Machine) { m.Parameters["url"] = "a\nb" }, "control character"},
		{"a host and a selector", func(m *Machine) { m.Placement = Placement{Host: "h", Selector: "a=b"} }, "names its host"},
		{"a host and requirements", func(m *Machine) { m.Placement = Placement{Host: "h", Requirements: HardwareRequirements{Disks: 1}} }, "names its host"},
		{"a host and a failure domain", func(m *Machine) { m.Placement = Placement{Host: "h", FailureDomain: "r1"} }, "names its host"},
		{"a selector that is none", func(m *Machine) { m.Placement.Selector = "=" }, "not a term"},
		{"a failure domain that is none", func(m *Machine) { m.Placement.FailureDomain = "a\nb" }, "failure domain"},
		{"too many preferences", func(m *Machine) { m.Placement.Preferred = make([]Preference, 9) }, "8 preferences"},
		{"too many tolerations", func(m *Machine) { m.Placement.Tolerations = make([]Toleration, 17) }, "16 tolerations"},
		{"a preference without weight", func(m *Machine) { m.Placement.Preferred[0].Weight = 0 }, "not 0"},
		{"a preference of too much weight", func(m *Machine) { m.Placement.Preferred[0].Weight = 101 }, "not 101"},
		{"a preference of nothing", func(m *Machine) { m.Placement.Preferred[0].Selector = "==" }, "selector"},
		{"a way of reuse that is none", func(m *Machine) { m.Placement.Reuse = "maybe" }, "maybe"},
		{"an architecture that is none", func(m *Machine) { m.Placement.Requirements.Arch = "vax" }, "vax"},
		{"fewer than no disks", func(m *Machine) { m.Placement.Requirements.Disks = -1 }, "disks is negative"},
		{"a long expression", func(m *Machine) { m.Placement.Requirements.Expression = strings.Repeat("x", 2049) }, "expression"},
	})
	if err := (&Placement{Host: "h"}).Validate(); err != nil {
		t.Errorf("a host alone is refused: %v", err)
	}
}

func TestPoolValidate(t *testing.T) {
	valid := func() *Pool {
		return &Pool{
			Name: "gpu", Selector: "role=gpu", Budget: Budget{Provision: 5, Destroy: 1, DestroyInterval: Duration(time.Minute)}, Clean: CleanSecure,
			MinSpare: 2, BurnInFor: Duration(7 * 24 * time.Hour),
		}
	}
	testValidate(t, valid, (*Pool).Validate, []invalid[Pool]{
		{"no name", func(p *Pool) { p.Name = "" }, "not a name for a pool"},
		{"a selector that is none", func(p *Pool) { p.Selector = "=" }, "not a term"},
		{"a way to clean that is none", func(p *Pool) { p.Clean = "soap" }, "soap"},
		{"fewer than no spares", func(p *Pool) { p.MinSpare = -1 }, "negative"},
		{"a negative budget", func(p *Pool) { p.Budget.Provision = -1 }, "negative"},
		{"a negative budget of wipes", func(p *Pool) { p.Budget.Destroy = -1 }, "negative"},
		{"a negative interval", func(p *Pool) { p.Budget.DestroyInterval = -1 }, "negative"},
		{"a long burn-in", func(p *Pool) { p.BurnInFor++ }, "longer than a week"},
		{"requirements that are none", func(p *Pool) { p.Requirements.PortMbps = -1 }, "portMbps"},
	})
}

func TestGoldenValidate(t *testing.T) {
	valid := func() *Golden { return &Golden{Name: "r650", Selector: "product=R650", DiskN: 2} }
	testValidate(t, valid, (*Golden).Validate, []invalid[Golden]{
		{"no name", func(g *Golden) { g.Name = "" }, "not a name for a golden"},
		{"no selector", func(g *Golden) { g.Selector = " " }, "r650 has no selector"},
		{"a selector that is none", func(g *Golden) { g.Selector = "=" }, "not a term"},
		{"requirements that are none", func(g *Golden) { g.Requirements.DiskBytes = -1 }, "diskBytes"},
	})
}

func TestTolerations(t *testing.T) {
	gpu := Taint{Key: "gpu", Value: "a100"}
	for _, c := range []struct {
		toleration Toleration
		want       bool
	}{
		{Toleration{}, true},
		{Toleration{Key: "gpu"}, true},
		{Toleration{Key: "gpu", Value: "a100"}, true},
		{Toleration{Value: "a100"}, true},
		{Toleration{Key: "gpu", Value: "h100"}, false},
		{Toleration{Key: "slow"}, false},
	} {
		if got := c.toleration.Tolerates(gpu); got != c.want {
			t.Errorf("%+v tolerates %+v: %v", c.toleration, gpu, got)
		}
	}
}

func TestFailureDomains(t *testing.T) {
	p := Place{Site: "fra", Row: "a", Rack: "r1"}
	for domain, want := range map[string]bool{
		"r1": true, "a": true, "fra": true, "fra/a/r1": true, "fra/r1": true, "r2": false, "fra/r2": false, "a/r2": false,
	} {
		if got := p.InDomain(domain); got != want {
			t.Errorf("%+v in domain %s: %v", p, domain, got)
		}
	}
	for want, p := range map[string]Place{"r1": p, "a": {Site: "fra", Row: "a"}, "fra": {Site: "fra"}, "": {}} {
		if got := p.Domain(); got != want {
			t.Errorf("the domain of %+v is %q, want %q", p, got, want)
		}
	}
}

func TestANewClaimIsANewProviderID(t *testing.T) {
	a, b := Claim{ID: "01A"}, Claim{ID: "01B"}
	if got := a.ProviderID("fra", "n1"); got != "slipway://fra/n1/01A" || got == b.ProviderID("fra", "n1") {
		t.Errorf("got %s", got)
	}
	if got := a.ProviderID("", "n1"); got != "slipway://default/n1/01A" {
		t.Errorf("got %s", got)
	}
}

func validDiskImage() *Image {
	return &Image{
		Name: "debian-12-disk", Arch: X8664, DiskFormat: "raw.zst", DiskBytes: 1 << 31, SeedLabel: "cidata",
		Files: []ImageArtefact{{RoleDisk, "disk.raw.zst", Digest("sha256:" + strings.Repeat("0", 64))}},
	}
}

func TestDiskImageValidate(t *testing.T) {
	remote := "oci://registry.example:5000/images/debian@sha256:" + strings.Repeat("a", 64)
	testValidate(t, validDiskImage, (*Image).Validate, []invalid[Image]{
		{"a format that is none", func(i *Image) { i.DiskFormat = "vmdk" }, "vmdk"},
		{"no format", func(i *Image) { i.DiskFormat = "" }, "format"},
		{"a kernel beside the disk", func(i *Image) {
			i.Files = append(i.Files, ImageArtefact{RoleKernel, "linux", i.Files[0].Digest})
		}, "either booted or written"},
		{"two disks", func(i *Image) {
			i.Files = append(i.Files, ImageArtefact{RoleDisk, "other", i.Files[0].Digest})
		}, "more than one disk"},
		{"a file and a remote", func(i *Image) { i.Remote = remote }, "more than one disk"},
		{"a remote by tag", func(i *Image) { i.Files, i.Remote = nil, "oci://registry/debian:12" }, "by digest"},
		{"a format without a disk", func(i *Image) { i.Files[0].Role = RoleKernel }, "no disk image"},
		{"a negative size", func(i *Image) { i.DiskBytes = -1 }, "negative"},
		{"kernel arguments", func(i *Image) { i.KernelArgs = []string{"quiet"} }, "boot loader"},
		{"a long label", func(i *Image) { i.SeedLabel = strings.Repeat("x", 37) }, "seedLabel"},
	})
	i := validDiskImage()
	if f, ok := i.DiskFile(); !i.IsDisk() || !ok || f.Name != "disk.raw.zst" {
		t.Errorf("the disk file is %+v, %v", f, ok)
	}
	if i.Files, i.Remote = nil, remote; !i.IsDisk() || i.Validate() != nil {
		t.Errorf("a remote disk image is refused: %v", i.Validate())
	}
	if _, ok := i.DiskFile(); ok || validImage().IsDisk() {
		t.Error("an image has a disk file that it has not")
	}
	if AgentImage(ARM64) != "agent-arm64" || AgentImage("") != "agent-x86-64" || AgentImage(X8664) != "agent-x86-64" {
		t.Error("the agent's image is called otherwise")
	}
}
