package ignition

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/machineconfig"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	onFCOS    = machineconfig.Target{OS: "fedora-coreos", Release: "44", Tool: "3.6.0", InitrdPath: "/config.ign"}
	onFlatcar = machineconfig.Target{OS: "flatcar", Release: "stable", Tool: "3.4.0"}
	onDebian  = machineconfig.Target{OS: "debian", Release: "12", Tool: "3.3.0"}
	onRHCOS   = machineconfig.Target{OS: "rhcos", Release: "4.19", Tool: "3.5.0"}
)

// render renders and fails the test on any finding.
func render(t *testing.T, on machineconfig.Target, c *machineconfig.Config) *machineconfig.Rendered {
	t.Helper()
	got, report := New().Render(on, c)
	for _, f := range report {
		if f.Code != "overridden" { // said of a document that this host's words win over
			t.Errorf("%s: %s", f.Code, f)
		}
	}
	if got == nil {
		t.Fatal("nothing was rendered")
	}
	if found := Validate(got.Documents[0].Data); len(found) > 0 {
		t.Fatalf("Ignition refuses what was rendered: %v", found)
	}
	return got
}

var dataRE = regexp.MustCompile(`"data:,[^"]*"`)

// readable indents a document and decodes its data: URLs, for people who read a golden file.
func readable(t *testing.T, doc []byte) string {
	t.Helper()
	var buf bytes.Buffer
	if err := json.Indent(&buf, doc, "", "  "); err != nil {
		t.Fatal(err)
	}
	return dataRE.ReplaceAllStringFunc(buf.String(), func(s string) string {
		text, err := url.PathUnescape(strings.Trim(s, `"`))
		if err != nil {
			t.Fatal(err)
		}
		return "<<" + strings.ReplaceAll(text, "\n", "\n        | ") + ">>"
	})
}

func TestRenderGolden(t *testing.T) {
	for _, tt := range []struct {
		name string
		on   machineconfig.Target
		c    machineconfig.Config
	}{
		{"an empty config is an empty document", onFCOS, machineconfig.Config{}},
		{"identity of a machine on Debian", onDebian, machineconfig.Config{Host: sampleHost}},
		{"files of all kinds", onFCOS, machineconfig.Config{Files: sampleFiles, Dirs: sampleDirs, Links: sampleLinks}},
		{"users with passwords and sudo", onFlatcar, machineconfig.Config{Users: sampleUsers, Groups: sampleGroups}},
		{"units and drop-ins", onFlatcar, machineconfig.Config{Units: sampleUnits}},
		{"a network on NetworkManager", onFCOS, machineconfig.Config{Network: sampleNetwork}},
		{"a network on systemd-networkd", onFlatcar, machineconfig.Config{Network: sampleNetwork}},
		{"disks with RAID and encryption", onFCOS, machineconfig.Config{Storage: sampleStorage, Boot: machineconfig.Boot{RootDevice: machineconfig.DeviceSelector{WWN: "0x5000c500a1b2c3d4"}}}},
		{"a bootstrap with everything around it", onFlatcar, sampleBootstrap},
		{"kernel, time and trust on Fedora CoreOS", onFCOS, machineconfig.Config{Kernel: sampleKernel, Time: sampleTime, Trust: sampleTrust}},
		{"kernel, time and trust on Flatcar", onFlatcar, machineconfig.Config{Kernel: sampleKernel, Time: sampleTime, Trust: sampleTrust}},
		{"extensions and layers", onFCOS, machineconfig.Config{Extensions: sampleExtensions}},
		{"RHCOS takes folders and links by tmpfiles", onRHCOS, machineconfig.Config{Dirs: sampleDirs, Links: sampleLinks[:1]}},
		{"a Butane document is the base", onFCOS, machineconfig.Config{
			Files:    []machineconfig.File{{Path: "/etc/motd", Content: machineconfig.Content{Text: "ours\n"}}},
			Document: &machineconfig.Passthrough{Format: "butane", Data: []byte(sampleButane)},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := render(t, tt.on, &tt.c)
			got := readable(t, out.Documents[0].Data)
			for _, a := range out.Args {
				got += "argument " + a + "\n"
			}
			file := filepath.Join("testdata", strings.ReplaceAll(strings.ReplaceAll(tt.name, " ", "-"), ",", "")+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
			again, _ := New().Render(tt.on, &tt.c)
			if diff := cmp.Diff(out, again); diff != "" {
				t.Errorf("a second rendering differs: %s", diff)
			}
		})
	}
}

func TestRenderNamesItsDocument(t *testing.T) {
	d := render(t, onFCOS, &machineconfig.Config{}).Documents[0]
	if d.Name != "config.ign" || d.Path != "/config.ign" || d.ContentType != "application/vnd.coreos.ignition+json" {
		t.Errorf("got %+v", d)
	}
}

func TestSpecIsTheLowestThatCarriesWhatIsUsed(t *testing.T) {
	for _, tt := range []struct{ name, os, tool, want string }{
		{"nothing known", "flatcar", "", "3.3.0"},
		{"nothing known, but the variant starts later", "fiot", "", "3.4.0"},
		{"a newer tool still gets the default", "fedora-coreos", "3.6.0", "3.3.0"},
		{"an experimental tool too", "fedora-coreos", "3.7.0-experimental", "3.3.0"},
		{"an older tool gets what it reads", "fedora-coreos", "3.2.0", "3.2.0"},
		{"the oldest tool", "debian", "3.0.0", "3.0.0"},
		{"RHCOS skips 3.3", "rhcos", "3.3.0", "3.2.0"},
		{"RHCOS of today", "rhcos", "3.5.0", "3.4.0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := render(t, machineconfig.Target{OS: tt.os, Tool: tt.tool}, &machineconfig.Config{})
			if got := SpecOf(out.Documents[0].Data); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	for _, tt := range []struct{ name, os, tool string }{
		{"Flatcar has nothing below 3.3", "flatcar", "3.2.0"},
		{"Ignition 2 is another language", "flatcar", "2.3.0"},
		{"a tool that is no version", "debian", "newest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if out, report := New().Render(machineconfig.Target{OS: tt.os, Tool: tt.tool}, &machineconfig.Config{}); out != nil || !report.HasErrors() {
				t.Errorf("got %v, %v", out, report)
			}
		})
	}
}

func TestRenderRefuses(t *testing.T) {
	text := machineconfig.Content{Text: "x"}
	for _, tt := range []struct {
		name           string
		on             machineconfig.Target
		c              machineconfig.Config
		path, msg, who string
	}{
		{
			"a file twice", onFCOS,
			machineconfig.Config{Files: []machineconfig.File{{Path: "/etc/a", Content: text}, {Path: "/etc/./a", Content: text}}},
			"/files/~1etc~1.~1a", "also written", "",
		},
		{
			"a file that another field writes", onFCOS,
			machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "n1"}, Files: []machineconfig.File{{Path: "/etc/hostname", Content: text}}},
			"/files/~1etc~1hostname", "also written for /host/hostname", "",
		},
		{
			"a relative path, in Butane's words", onFCOS,
			machineconfig.Config{Files: []machineconfig.File{{Path: "etc/a", Content: text}}},
			"/files/etc~1a", "path not absolute", "",
		},
		{
			"an enabled unit without [Install]", onFCOS,
			machineconfig.Config{Units: []machineconfig.Unit{{Name: "a.service", Contents: "[Service]\nExecStart=/bin/true\n", Enabled: ref(true)}}},
			"/units/a.service", "[Install]", "",
		},
		{
			"a unit with an unknown ending", onFCOS,
			machineconfig.Config{Units: []machineconfig.Unit{{Name: "a.exe", Contents: "x"}}},
			"/units/a.exe", "extension", "",
		},
		{
			"clevis on Flatcar", onFlatcar,
			machineconfig.Config{Storage: machineconfig.Storage{LUKS: []machineconfig.LUKS{{Name: "data", Device: "/dev/sda1", TPM2: true}}}},
			"/storage/luks/data", "not expressible", "clevis",
		},
		{
			"a disk by its serial number", onFCOS,
			machineconfig.Config{Storage: machineconfig.Storage{Disks: []machineconfig.Disk{{Name: "a", Device: machineconfig.DeviceSelector{Serial: "S1"}}}}},
			"/storage/disks/a", "not expressible", "/dev/disk/by-id/",
		},
		{
			"kernel arguments before 3.3",
			machineconfig.Target{OS: "fedora-coreos", Tool: "3.2.0"},
			machineconfig.Config{Kernel: machineconfig.Kernel{Args: []string{"quiet"}}},
			"/kernel/args", "not expressible", "needs 3.3",
		},
		{
			"packages", onFCOS,
			machineconfig.Config{Packages: machineconfig.Packages{Install: []string{"vim"}}},
			"/packages/install", "not expressible", "extensions",
		},
		{
			"a file in /proc", onFCOS,
			machineconfig.Config{Files: []machineconfig.File{{Path: "/proc/sys/x", Content: text}}},
			"/files/~1proc~1sys~1x", "not expressible", "sysctl",
		},
		{
			"an unverified file over http", onFCOS,
			machineconfig.Config{Files: []machineconfig.File{{Path: "/a", Content: machineconfig.Content{Remote: &machineconfig.Remote{URL: "http://x/y"}}}}},
			"/files/~1a", "without a checksum", "sha256",
		},
		{
			"a line break in a host name", onFCOS,
			machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "a\nb"}},
			"/host/hostname", "line break", "",
		},
		{
			"a boot port that nobody knows", onFCOS,
			machineconfig.Config{Network: machineconfig.Network{Interfaces: []machineconfig.Interface{{Name: "lan", MAC: "boot"}}}},
			"/network/interfaces/lan", "not known", "boot the machine once",
		},
		{
			"base64 that is none", onFCOS,
			machineconfig.Config{Files: []machineconfig.File{{Path: "/a", Content: machineconfig.Content{Base64: "%%"}}}},
			"/files/~1a", "base64", "",
		},
		{
			"a certificate that is none", onFCOS, machineconfig.Config{Trust: machineconfig.Trust{CAs: []string{"x"}}}, "/trust/cas", "not in PEM", "",
		},
		{
			"a user on RHCOS", onRHCOS, machineconfig.Config{Users: []machineconfig.User{{Name: "ops"}}}, "/users/ops", "not expressible", "core",
		},
		{
			"a Talos document", onFCOS,
			machineconfig.Config{Activation: &machineconfig.Activation{Native: &machineconfig.Passthrough{Format: "talos"}}},
			"/bootstrap/native", "not expressible", "Talos",
		},
		{
			"a prelude in cloud-config", onFCOS,
			machineconfig.Config{Activation: &machineconfig.Activation{Prelude: &machineconfig.Passthrough{Format: "cloud-config"}}},
			"/bootstrap/prelude", "not expressible", "Ignition document",
		},
		{
			"layers on an OS that has none", onFlatcar,
			machineconfig.Config{Extensions: []machineconfig.Extension{{Name: "vim", Remote: machineconfig.Remote{URL: "vim"}, Format: machineconfig.RPMOSTree}}},
			"/extensions/vim", "not expressible", "sysext",
		},
		{
			"a partition that is kept, without its number", onFlatcar,
			machineconfig.Config{Storage: machineconfig.Storage{Disks: []machineconfig.Disk{{
				Name: "a", Device: machineconfig.DeviceSelector{Path: "/dev/vda"}, Partitions: []machineconfig.Partition{{Label: "home", Keep: true}},
			}}}},
			"/storage/disks/a/partitions/home/keep", "finds partitions by their numbers", "PARTN",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, report := New().Render(tt.on, &tt.c)
			if out != nil {
				t.Error("something was rendered")
			}
			for _, f := range report {
				if f.Path == tt.path && strings.Contains(f.Message, tt.msg) && strings.Contains(f.Hint, tt.who) {
					return
				}
			}
			t.Errorf("no finding at %s about %q (%s) in %v", tt.path, tt.msg, tt.who, report)
		})
	}
}

func TestRootDeviceWithoutADiskIsAWarning(t *testing.T) {
	out, report := New().Render(onFCOS, &machineconfig.Config{Boot: machineconfig.Boot{RootDevice: machineconfig.DeviceSelector{Path: "/dev/sda"}}})
	if out == nil || len(report) != 1 || report[0].Severity != machineconfig.SeverityWarning || report[0].Path != "/boot/rootDevice" {
		t.Errorf("got %v, %v", out, report)
	}
}

// FuzzRender looks for panics and for documents that Ignition refuses though nothing was reported.
func FuzzRender(f *testing.F) {
	for _, c := range []machineconfig.Config{
		{Files: sampleFiles, Users: sampleUsers, Units: sampleUnits, Host: sampleHost}, {Network: sampleNetwork}, {Storage: sampleStorage}, sampleBootstrap,
	} {
		b, err := json.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c machineconfig.Config
		if json.Unmarshal(data, &c) != nil {
			return
		}
		for _, on := range []machineconfig.Target{onFCOS, onFlatcar, onDebian, onRHCOS} {
			out, report := New().Render(on, &c)
			if (out == nil) != report.HasErrors() {
				t.Fatalf("%s: nothing rendered is %t, but findings are %v", on, out == nil, report)
			}
			if out == nil {
				continue
			}
			if found := Validate(out.Documents[0].Data); len(found) > 0 && c.Document == nil {
				t.Fatalf("%s: Ignition refuses what was rendered: %v\n%s", on, found, out.Documents[0].Data)
			}
		}
	})
}

func BenchmarkRender(b *testing.B) {
	c := sampleBootstrap
	c.Users, c.Network, c.Kernel = sampleUsers, sampleNetwork, sampleKernel
	for b.Loop() {
		if out, report := New().Render(onFlatcar, &c); out == nil {
			b.Fatal(report)
		}
	}
}

func TestAFileSystemOfAnOldDocumentNeedsNoPlace(t *testing.T) {
	out, err := Upgrade([]byte(`{"ignition":{"version":"2.3.0"},"storage":{"filesystems":[{"name":"etcd","mount":{"device":"/dev/vdb","format":"ext4","label":"etcd"}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := Validate(out).Err(); err != nil || !strings.Contains(string(out), `"label":"etcd"`) || strings.Contains(string(out), "nowhere") {
		t.Errorf("%s: %v", out, err)
	}
}

func TestADocumentWithinAnotherHasNamesOfItsOwn(t *testing.T) {
	c := &machineconfig.Config{
		Activation: &machineconfig.Activation{Kind: "x", Exec: []string{"/bin/true"}, Sentinel: "/run/done", Cleanup: []string{"/etc/x"}},
		Commands:   []machineconfig.Command{{Shell: "true"}, {Phase: machineconfig.EveryBoot, Shell: "true"}},
		Kernel:     machineconfig.Kernel{Modules: []string{"x"}, Sysctl: map[string]string{"a.b": "1"}},
		Time:       machineconfig.Time{NTPServers: []string{"ntp.example"}},
		Files:      []machineconfig.File{{Path: "/run/x", Content: machineconfig.Content{Text: "x"}}},
	}
	target := machineconfig.Target{OS: "flatcar", Tool: "3.3.0"}
	names := func(p *Provisioner) map[string]bool {
		out, report := p.Render(target, c)
		if report.HasErrors() {
			t.Fatal(report)
		}
		found := map[string]bool{}
		for _, m := range regexp.MustCompile(`"(?:path|name)":"([^"]*)"`).FindAllStringSubmatch(string(out.Documents[0].Data), -1) {
			found[m[1]] = true
		}
		return found
	}
	outer := names(New())
	for name := range names(Within("capi")) {
		if outer[name] && strings.Contains(name, "slipway") {
			t.Errorf("%s is in both", name)
		}
	}
	if len(outer) < 8 {
		t.Errorf("only %d names: %v", len(outer), outer)
	}
}
