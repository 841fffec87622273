package pxe

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"slipway.dev/slipway/inventory"
)

var testNow = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func allLoaders(string) bool { return true }

// The clients that ask in the tests below.
func uefi() Client {
	return Client{Stage: StageFirmware, MAC: "52:54:00:aa:00:01", Arch: inventory.X8664, Firmware: inventory.UEFI, ArchCode: Arch93(7), Class: "PXEClient:Arch:00007"}
}

func uefiHTTP() Client {
	c := uefi()
	c.Firmware, c.ArchCode, c.Class = inventory.UEFIHTTP, Arch93(16), "HTTPClient:Arch:00016"
	return c
}

func bios() Client {
	c := uefi()
	c.Firmware, c.ArchCode, c.Class = inventory.BIOS, Arch93(0), "PXEClient:Arch:00000"
	return c
}

func ipxe(c Client) Client { c.Stage = StageIPXE; return c }

func asking(c Client) Client { c = ipxe(c); c.Identity = &Identity{}; return c }

func host(edit ...func(*inventory.Host)) *inventory.Host {
	h := &inventory.Host{
		ID: "1", Name: "web1", State: inventory.Available, IdentifiedAt: testNow.Add(-time.Hour),
		NICs: []inventory.NIC{{MAC: "52:54:00:aa:00:01"}},
	}
	for _, e := range edit {
		e(h)
	}
	return h
}

func state(s inventory.State) func(*inventory.Host) {
	return func(h *inventory.Host) { h.State = s }
}
func isNew(h *inventory.Host)         { h.IdentifiedAt = time.Time{} }
func armed(h *inventory.Host)         { h.IsArmed = true }
func protected(h *inventory.Host)     { h.IsProtected = true }
func inMaintenance(h *inventory.Host) { h.InMaintenance = true }
func adopted(h *inventory.Host)       { h.IsAdopted = true }

func plan(edit ...func(*Plan)) Plan {
	p := Plan{Policy: inventory.UnknownDisk, Loaders: allLoaders, Quirks: BuiltinQuirks()}
	for _, e := range edit {
		e(&p)
	}
	return p
}

func testImage() *inventory.Image {
	digest := func(c string) inventory.Digest { return inventory.Digest("sha256:" + strings.Repeat(c, 64)) }
	return &inventory.Image{
		Name: "debian-12", OS: "debian", Release: "12", Arch: inventory.X8664, MemoryMiB: 1024,
		KernelArgs: []string{"console=ttyS0"},
		Files: []inventory.ImageArtefact{
			{Role: inventory.RoleKernel, Name: "linux", Digest: digest("a")},
			{Role: inventory.RoleInitrd, Name: "initrd.gz", Digest: digest("b")},
		},
	}
}

func live(p *Plan) {
	p.Profile, p.Image = &inventory.Profile{Name: "base", Image: "debian-12"}, testImage()
}

func installer(p *Plan) {
	live(p)
	p.Image.IsInstaller = true
}

func policy(u inventory.UnknownPolicy) func(*Plan) { return func(p *Plan) { p.Policy = u } }

func inSubnet(c Client) Client {
	c.Subnet = "rack1"
	return c
}

func TestDecide(t *testing.T) {
	none := func(p *Plan) { p.Loaders = func(string) bool { return false } }
	only := func(names ...string) func(*Plan) {
		return func(p *Plan) {
			p.Loaders = func(n string) bool { return strings.Contains(strings.Join(names, " "), n) }
		}
	}
	problem := func(k inventory.Kind, msg string) func(*Plan) {
		return func(p *Plan) { p.Problem = inventory.Errorf(k, "%s", msg).WithHint("do this") }
	}
	arm64 := uefi()
	arm64.Arch, arm64.ArchCode = inventory.ARM64, Arch93(11)
	small := asking(uefi())
	small.Identity = &Identity{MemoryMiB: 512}
	almost := asking(uefi())
	almost.Identity = &Identity{MemoryMiB: 990}
	for _, tt := range []struct {
		name string
		c    Client
		h    *inventory.Host
		p    Plan
		want string // boot, disk way, loader, T for a trap
		why  string // part of reason or hint
	}{
		{"an operating system is left alone", Client{Stage: StageOS}, host(), plan(live), "ignore", "operating system"},

		{"a machine nobody knows is identified once, then boots from disk", uefi(), nil, plan(), "disk exit snponly.efi", "host accept 52:54:00:aa:00:01"},
		{"a discovered host that has told what it is boots from disk at once", uefi(), host(state(inventory.Discovered)), plan(), "disk exit snponly.efi", "host accept web1"},
		{"a discovered host that has not is identified first", uefi(), host(state(inventory.Discovered), isNew), plan(), "disk exit snponly.efi", "not accepted"},
		{"what was told long ago is asked again", uefi(), host(state(inventory.Discovered), func(h *inventory.Host) { h.IdentifiedAt = testNow.Add(-40 * 24 * time.Hour) }), plan(), "disk exit snponly.efi", ""},
		{"under BIOS the way back is the first disk", bios(), nil, plan(), "disk sanboot undionly.kpxe", ""},
		{"iPXE that has not told gets its script", ipxe(uefi()), nil, plan(), "disk exit", ""},
		{"iPXE that has told gets nothing", ipxe(bios()), host(state(inventory.Discovered)), plan(), "disk no-offer", ""},
		{"in its script a machine is sent to disk, however often it has told", asking(uefi()), host(state(inventory.Discovered)), plan(), "disk exit", ""},
		{"in its script under BIOS too", asking(bios()), host(state(inventory.Discovered)), plan(), "disk sanboot", ""},
		{"without a loader an unknown machine is just left alone", uefi(), nil, plan(none), "disk no-offer", ""},
		{"policy wait holds a machine until it is accepted", uefi(), nil, plan(policy(inventory.UnknownWait)), "wait snponly.efi", "not accepted"},
		{"policy ignore gives it an address only", uefi(), host(state(inventory.Discovered)), plan(policy(inventory.UnknownIgnore)), "ignore", "host accept web1"},
		{"of a machine that was heard in no subnet no subnet is blamed", uefi(), host(state(inventory.Discovered)), plan(policy(inventory.UnknownIgnore)), "ignore", "not heard in any subnet"},
		{"policy ignore is the subnet's", inSubnet(uefi()), host(state(inventory.Discovered)), plan(policy(inventory.UnknownIgnore)), "ignore", "the subnet ignores such machines"},
		{"policy ignore holds in a script", asking(uefi()), host(state(inventory.Discovered)), plan(policy(inventory.UnknownIgnore)), "ignore", ""},
		{"no policy means disk", uefi(), nil, plan(policy("")), "disk exit snponly.efi", ""},
		{"an unaccepted host never boots a profile's image", asking(uefi()), host(state(inventory.Discovered), armed), plan(live), "disk exit", "not accepted"},

		{"maintenance sends an accepted host to disk", uefi(), host(inMaintenance), plan(live), "disk exit snponly.efi", "maintenance"},
		{"maintenance counts for a host that has not told what it is", uefi(), host(inMaintenance, isNew), plan(live), "disk exit snponly.efi", "maintenance"},
		{"maintenance does not run anything on BIOS to identify a host", bios(), host(inMaintenance, isNew), plan(live), "disk no-offer", "maintenance"},
		{"maintenance counts before quarantine", uefi(), host(inMaintenance, state(inventory.Failed)), plan(live), "disk exit snponly.efi", "maintenance"},
		{"maintenance counts before waiting to be accepted", uefi(), host(inMaintenance, state(inventory.Discovered)), plan(policy(inventory.UnknownWait)), "disk exit snponly.efi", "maintenance"},
		{"an adopted host keeps its own system", uefi(), host(adopted, armed), plan(installer), "disk exit snponly.efi", "adopted"},
		{"a host that should get no offer gets none", uefi(), host(adopted, func(h *inventory.Host) { h.DiskBoot = inventory.DiskNoOffer }), plan(installer), "disk no-offer", "adopted"},
		{"an adopted host that is in a script leaves it", asking(uefi()), host(adopted), plan(live), "disk exit", "adopted"},

		{"a failed host is parked with its reason", uefi(), host(state(inventory.Failed), func(h *inventory.Host) { h.StateReason = "five boots in vain" }), plan(live), "park snponly.efi", "five boots in vain"},
		{"a failed host without a reason still says something", asking(uefi()), host(state(inventory.Failed)), plan(live), "park", "host release web1"},
		{"a state from a newer version is not booted", asking(uefi()), host(state("melting")), plan(live), "wait T", "newer"},

		{"no profile makes an accepted host wait", asking(uefi()), host(), plan(), "wait", "--profile"},
		{"no matching profile is no fault", asking(uefi()), host(), plan(problem(inventory.NotFound, "no profile matches this host")), "wait", "no profile matches"},
		{"a pinned profile that does not exist is one", asking(uefi()), host(func(h *inventory.Host) { h.Profile = "x" }), plan(problem(inventory.NotFound, "profile x does not exist")), "wait T", "do this"},
		{"a tie of profiles is a fault", asking(uefi()), host(), plan(problem(inventory.Conflict, "a and b tie")), "wait T", "a and b tie"},
		{"a problem counts before an image", asking(uefi()), host(), plan(live, problem(inventory.Unavailable, "database locked")), "wait T", "database locked"},

		{"a live image boots an available host", uefi(), host(), plan(live), "image snponly.efi", "profile base"},
		{"a live image boots an installing host", asking(uefi()), host(state(inventory.Installing)), plan(live), "image", ""},
		{"a live image boots an active host again", asking(uefi()), host(state(inventory.Active)), plan(live), "image", ""},
		{"a live image boots a protected host: it writes nothing", asking(uefi()), host(protected), plan(live), "image", ""},
		{"an installer needs an armed host", uefi(), host(), plan(installer), "disk exit snponly.efi", "host install web1"},
		{"an installed host boots from disk", uefi(), host(state(inventory.Active)), plan(installer), "disk exit snponly.efi", "installed"},
		{"an installed BIOS host boots from disk without a script", bios(), host(state(inventory.Active)), plan(installer), "disk no-offer", "installed"},
		{"an armed host gets its installer", uefi(), host(armed), plan(installer), "image snponly.efi", ""},
		{"an armed host gets it again until it reports installed", asking(uefi()), host(armed, state(inventory.Installing)), plan(installer), "image", ""},
		{"a protected host never gets an installer", asking(uefi()), host(armed, protected), plan(installer), "disk exit", "protected"},

		{"an image for another processor is refused", arm64, host(), plan(live), "wait T snponly-arm64.efi", "x86_64, and this machine is arm64"},
		{"not being armed counts before the wrong processor", arm64, host(), plan(installer), "disk exit snponly-arm64.efi", "not armed"},
		{"a 32-bit image boots under BIOS", asking(bios()), host(), plan(live, func(p *Plan) { p.Image.Arch = inventory.I386 }), "image", ""},
		{"a 32-bit image does not boot under 64-bit UEFI", asking(uefi()), host(), plan(live, func(p *Plan) { p.Image.Arch = inventory.I386 }), "wait T", "i386"},
		{"too little memory is refused", small, host(), plan(live), "wait T", "needs 1024 MiB"},
		{"memory as known from before counts in DHCP", uefi(), host(func(h *inventory.Host) { h.MemoryMiB = 512 }), plan(live), "wait T snponly.efi", "has 512"},
		{"what firmware keeps of the memory is forgiven", almost, host(), plan(live), "image", ""},
		{"unknown memory is no reason", asking(uefi()), host(), plan(live), "image", ""},

		{"HTTP Boot gets the same loaders", uefiHTTP(), host(), plan(live), "image snponly.efi", ""},
		{"without snponly.efi it is ipxe.efi", uefi(), host(), plan(live, only("ipxe.efi ")), "image ipxe.efi", ""},
		{"without any loader an image is refused", uefi(), host(), plan(live, none), "ignore T", "package ipxe"},
		{"without an arm64 loader the hint names the file", arm64, host(), plan(live, only("undionly.kpxe")), "ignore T", "snponly-arm64.efi"},
		{"firmware we cannot boot is refused", Client{Stage: StageFirmware, ArchCode: Arch93(12), Arch: inventory.ARM64}, host(), plan(live, func(p *Plan) { p.Image.Arch = inventory.ARM64 }), "ignore T", "PowerPC"},
		{"U-Boot gets no file, and asks for its own", Client{Stage: StageFirmware, ArchCode: Arch93(22), Arch: inventory.ARM64}, host(), plan(live, func(p *Plan) { p.Image.Arch = inventory.ARM64 }), "image", ""},
		{"a plan without loaders has none", uefi(), host(), plan(live, func(p *Plan) { p.Loaders = nil }), "ignore T", "no boot file"},

		{"a host's own way to disk counts before the quirk table", asking(bios()), host(adopted, func(h *inventory.Host) { h.DiskBoot = inventory.DiskExit }), plan(), "disk exit", ""},
		{"a way through a script needs a loader", uefi(), host(adopted, func(h *inventory.Host) { h.DiskBoot = inventory.DiskExit }), plan(), "disk exit snponly.efi", ""},
		{"such a host without a loader gets no offer", uefi(), host(adopted, func(h *inventory.Host) { h.DiskBoot = inventory.DiskExit }), plan(none), "disk no-offer", ""},
		{
			"an admin's quirk changes the way to disk", uefi(), host(adopted, func(h *inventory.Host) { h.Manufacturer, h.Product = "ACME", "R640" }),
			plan(func(p *Plan) {
				p.Quirks = append(p.Quirks, Quirk{Vendor: "acme", Product: "R6*", DiskBoot: inventory.DiskExit})
			}), "disk exit snponly.efi", "",
		},
		{
			"a quirk gives no unsigned loader to a host with Secure Boot on", uefi(), host(func(h *inventory.Host) {
				h.Product, h.Facts = "R640", map[string]string{inventory.FactSecureBoot: SecureBootOn}
			}), plan(live, func(p *Plan) {
				l := loadedWith("snponly.efi ipxe.efi shimx64.efi* grubx64.efi*")
				p.Loaders, p.Signatures = l.Has, Signatures{IsSigned: l.IsSigned}
				p.Quirks = append(p.Quirks, Quirk{Product: "R6*", Loader: "ipxe.efi"})
			}), "image shimx64.efi", "",
		},
		{
			"an admin's quirk changes the loader", uefi(), host(func(h *inventory.Host) { h.Product = "R640" }),
			plan(live, func(p *Plan) { p.Quirks = append(p.Quirks, Quirk{Product: "R6*", Loader: "ipxe.efi"}) }), "image ipxe.efi", "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := Decide(tt.c, tt.h, tt.p, testNow)
			if got, want := summary(d), sortedWords(tt.want); got != want {
				t.Errorf("got %q, want %q (%s)", got, want, d.Reason)
			}
			if d.Reason == "" || !strings.Contains(d.Reason+" | "+d.Hint, tt.why) {
				t.Errorf("reason %q, hint %q: want %q in it", d.Reason, d.Hint, tt.why)
			}
			if (d.Boot == BootWait || d.Boot == BootPark) != (d.Again > 0) {
				t.Errorf("%s with Again %s", d.Boot, d.Again)
			}
		})
	}
}

// summary writes a decision as the table above does: boot first, the other words in any order.
func summary(d Decision) string {
	words := string(d.Boot) + " " + string(d.Disk) + " " + d.Loader
	if d.IsTrap {
		words += " T"
	}
	return sortedWords(words)
}

func sortedWords(s string) string {
	var trap bool
	var out []string
	for _, w := range strings.Fields(s) {
		if w == "T" {
			trap = true
			continue
		}
		out = append(out, w)
	}
	if trap {
		out = append(out, "T")
	}
	return strings.Join(out, " ")
}

// TestDecideKeepsItsPromises asks about random machines: what must never happen does not.
func TestDecideKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		c := rapid.SampledFrom([]Client{
			uefi(), uefiHTTP(), bios(), ipxe(uefi()), ipxe(bios()), asking(uefi()), asking(bios()),
			{Stage: StageOS},
			{Stage: StageFirmware, ArchCode: Arch93(22)},
		}).Draw(t, "client")
		h := host(state(rapid.SampledFrom(append(inventory.States(), "other")).Draw(t, "state")), func(h *inventory.Host) {
			h.InMaintenance, h.IsAdopted, h.IsProtected, h.IsArmed = flag("maintenance"), flag("adopted"), flag("protected"), flag("armed")
			h.DiskBoot = rapid.SampledFrom([]inventory.DiskBoot{"", inventory.DiskExit, inventory.DiskNoOffer, inventory.DiskSanboot}).Draw(t, "disk")
			if flag("new") {
				h.IdentifiedAt = time.Time{}
			}
		})
		if flag("unknown") {
			h = nil
		}
		p := plan(policy(rapid.SampledFrom([]inventory.UnknownPolicy{"", inventory.UnknownDisk, inventory.UnknownIgnore, inventory.UnknownWait}).Draw(t, "policy")))
		if flag("profile") {
			live(&p)
			p.Image.IsInstaller = flag("installer")
		}
		if flag("problem") {
			p.Problem = inventory.Errorf(inventory.Conflict, "tie")
		}
		loaders := flag("loaders")
		p.Loaders = func(string) bool { return loaders }

		d := Decide(c, h, p, testNow)
		if d.Reason == "" {
			t.Fatal("no reason")
		}
		if d.Boot == BootImage {
			switch {
			case h == nil || h.State == inventory.Discovered || h.State == inventory.Failed || h.InMaintenance || h.IsAdopted:
				t.Fatalf("an image for %+v", h)
			case p.Image.IsInstaller && (!h.IsArmed || h.IsProtected):
				t.Fatalf("an installer for %+v", h)
			case p.Problem != nil:
				t.Fatal("an image in spite of a problem")
			}
		}
		if h != nil && (h.InMaintenance || h.IsAdopted) && d.Boot != BootDisk && d.Boot != BootIgnore {
			t.Fatalf("%s for a host that is none of our business", d.Boot)
		}
		if d.Loader != "" && c.Stage != StageFirmware {
			t.Fatalf("loader %s for %s", d.Loader, c.Stage)
		}
		r := Answer(c, d, "0123", "http://10.0.0.1")
		if c.Stage == StageFirmware && d.Loader == "" && !isEmpty(r) {
			t.Fatalf("an answer without a loader: %+v", r)
		}
		if c.Identity != nil {
			if d.Disk == inventory.DiskNoOffer {
				t.Fatal("no-offer is no way out of a script")
			}
			if _, err := Script(ScriptInput{Client: c, Host: h, Plan: p, Decision: d, Session: "0123", Base: "http://10.0.0.1"}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func isEmpty(r Reply) bool {
	return !r.Next.IsValid() && r.File == "" && r.Class == "" && r.PXE == nil && r.IPXE == nil
}
