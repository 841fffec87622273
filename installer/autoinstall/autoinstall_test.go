package autoinstall

import (
	"flag"
	"os"
	"strings"
	"testing"

	"slipway.dev/slipway/machineconfig/layer"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/test/corpus"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var noble = machineconfig.Target{OS: "ubuntu", Release: "24.04", Arch: inventory.X8664}

func render(t *testing.T, c *machineconfig.Config) string {
	t.Helper()
	r, report := New().Render(noble, c)
	if report.HasErrors() {
		t.Fatal(report)
	}
	var b strings.Builder
	for _, d := range r.Documents {
		b.WriteString("-- " + d.Name + " --\n" + string(late.Redact(d.Data)))
	}
	return b.String()
}

// outline leaves out what package cloudinit has written: that is its own tests' business.
func outline(text string) string {
	var b strings.Builder
	skips := false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "    ") && line != "\n" {
			skips = false
		}
		if !skips {
			b.WriteString(line)
		}
		if line == "  user-data:\n" || line == "  network:\n" {
			skips = true
			b.WriteString("    [by package cloudinit]\n")
		}
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	p := "testdata/" + name + ".golden"
	if *update {
		if err := os.WriteFile(p, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got):\n%s", p, d)
	}
}

func full() *machineconfig.Config {
	return &machineconfig.Config{
		Host: machineconfig.HostIdentity{InstanceID: "i-1", Hostname: "node-1", Domain: "lab.example", Locale: "de_DE.UTF-8", Keymap: "de", Timezone: "Europe/Berlin"},
		Boot: machineconfig.Boot{RootDevice: machineconfig.DeviceSelector{Serial: "it's 1"}, PowerAfter: machineconfig.PowerOff},
		Network: machineconfig.Network{Interfaces: []machineconfig.Interface{{Name: "eno1", MAC: "52:54:00:12:34:56", L3: machineconfig.L3{
			Addresses: []string{"192.0.2.7/26"}, Routes: []machineconfig.Route{{To: "0.0.0.0/0", Via: "192.0.2.1"}},
		}}}},
		Storage:   machineconfig.Storage{Layout: "direct"},
		Users:     []machineconfig.User{{Name: "ada", PasswordHash: "secret://ada", SSHKeys: []string{"ssh-ed25519 AAAA ada"}}},
		Kernel:    machineconfig.Kernel{Args: []string{"panic=30", "a='b c'"}, RemoveArgs: []string{"quiet"}},
		Packages:  machineconfig.Packages{Install: []string{"curl"}, Repos: []machineconfig.Repo{{ID: "ubuntu", URL: "http://mirror.example/ubuntu"}}},
		Commands:  []machineconfig.Command{{Phase: machineconfig.EveryBoot, Shell: "echo every"}},
		PhoneHome: machineconfig.PhoneHome{URL: late.Marker("session://report")},
	}
}

func disks() *machineconfig.Config {
	return &machineconfig.Config{Storage: machineconfig.Storage{
		Disks: []machineconfig.Disk{
			{Name: "a", Device: machineconfig.DeviceSelector{Path: "/dev/sda"}, WipeTable: true, Partitions: []machineconfig.Partition{{Label: "m1", SizeMiB: 1000, Number: 2, GUID: "AB"}, {Label: "pv1", StartMiB: 5000}}},
			{Name: "b", Device: machineconfig.DeviceSelector{WWN: "0x5"}, Partitions: []machineconfig.Partition{{Label: "m2", SizeMiB: 1000}, {Label: "pv2"}}},
		},
		RAIDs: []machineconfig.RAID{{Name: "boot", Level: "raid1", Devices: []string{"m1", "m2"}}},
		LUKS:  []machineconfig.LUKS{{Name: "crypt", Device: "pv1", Key: "secret://disk"}},
		LVM:   []machineconfig.VolumeGroup{{Name: "vg0", Devices: []string{"crypt", "pv2"}, LVs: []machineconfig.LogicalVolume{{Name: "root", SizeMiB: 4000}, {Name: "swap"}}}},
		Filesystems: []machineconfig.Filesystem{
			{Device: "boot", Format: "ext4", MountPoint: "/boot"},
			{Device: "vg0/root", Format: "xfs", MountPoint: "/", MountOptions: []string{"noatime", "x"}, Options: []string{"-m", "reflink=1"}},
			{Device: "vg0/swap", Format: "swap"},
		},
	}}
}

func TestGolden(t *testing.T) {
	golden(t, "full", outline(render(t, full())))
	golden(t, "storage", outline(render(t, disks())))
	golden(t, "empty", outline(render(t, &machineconfig.Config{})))
	c := &machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "n"}, Activation: &machineconfig.Activation{Prelude: &machineconfig.Passthrough{
		Format: "cloud-config", Jinja: true, Data: []byte("## template: jinja\n#cloud-config\nruncmd: [kubeadm join]\n"),
	}}}
	before, _, _ := strings.Cut(render(t, c), "-- seed-")
	golden(t, "prelude", outline(before))
}

func TestRefusals(t *testing.T) {
	for path, change := range map[string]func(*machineconfig.Config){
		"/storage/layout":              func(c *machineconfig.Config) { c.Storage.Layout = "lvm" },
		"/storage/raids/boot/level":    func(c *machineconfig.Config) { c.Storage.RAIDs[0].Level = "raid4" },
		"/storage/raids/boot":          func(c *machineconfig.Config) { c.Storage.RAIDs[0].Devices[0] = "nowhere" },
		"/storage/luks/crypt":          func(c *machineconfig.Config) { c.Storage.LUKS[0].TPM2 = true },
		"/storage/luks/crypt/key":      func(c *machineconfig.Config) { c.Storage.LUKS[0].Key = "" },
		"/storage/lvm/vg0":             func(c *machineconfig.Config) { c.Storage.LVM[0].Devices[1] = "nowhere" },
		"/storage/filesystems/nowhere": func(c *machineconfig.Config) { c.Storage.Filesystems[0].Device = "nowhere" },
	} {
		c := disks()
		change(c)
		r, report := New().Render(noble, c)
		found := false
		for _, f := range report {
			found = found || f.Path == path && f.Severity == machineconfig.SeverityError && f.Hint != ""
		}
		if !found || r != nil {
			t.Errorf("no finding at %s: %v", path, report)
		}
	}
}

func TestWhatTheInstallerLeavesOfSecretsIsRemoved(t *testing.T) {
	c := full()
	if !strings.Contains(render(t, c), "rm -f /etc/cloud/cloud.cfg.d/99-installer.cfg") {
		t.Error("the installer's copy of a secret stays")
	}
	c.Users = nil
	if strings.Contains(render(t, c), "rm -f /etc/cloud/cloud.cfg.d/99-installer.cfg") {
		t.Error("removes what holds no secret")
	}
}

func TestTheInstalledSystemGetsWhatTheInstallerCannotDo(t *testing.T) {
	r, report := New().Render(noble, full())
	if report.HasErrors() {
		t.Fatal(report)
	}
	auto := check(t, r.Documents[0].Data)["autoinstall"].(map[string]any)
	user, err := yaml.Marshal(auto["user-data"])
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"slipway-every-boot.service": true, "bootcmd": false, "panic=30": false, "192.0.2.7": false, "name: ada": true, "curl\n": false, "Europe/Berlin": false,
	} {
		if strings.Contains(string(user), text) != want {
			t.Errorf("%q in user-data: %v, want %v", text, !want, want)
		}
	}
}

func TestOwnDocument(t *testing.T) {
	c := &machineconfig.Config{
		Host: machineconfig.HostIdentity{Hostname: "node-1"}, PhoneHome: full().PhoneHome, Kernel: machineconfig.Kernel{Args: []string{"x"}},
		Document: &machineconfig.Passthrough{Format: "autoinstall", Data: []byte("#cloud-config\nautoinstall:\n  version: 1\n  # kept\n  late-commands: [\"a\"]\n  user-data: {password: " + late.Marker("secret://p") + "}\n")},
	}
	r, report := New().Render(noble, c)
	if r == nil || len(report) != 1 || report[0].Path != "/kernel/args" {
		t.Fatal(report)
	}
	golden(t, "document", string(late.Redact(r.Documents[0].Data)))
	if !strings.Contains(string(r.Documents[0].Data), `"`+late.MarkerIn("secret://p", late.JSONString)+`"`) {
		t.Error("a marker does not stand in quotes")
	}
	for bad, want := range map[string]string{
		"autoinstall:\n  version: 1\n  late-command: []":            "document:3:3 did you mean late-commands?",
		"autoinstall:\n  version: 1\n  late-commands: x":            "document:3:18 see the reference of autoinstall",
		"autoinstall:\n  version: 1\n  locale: a\n  locale: b":      "document:4:3 leave one of them out",
		"autoinstall:\n  locale: a":                                 "document:2:3 add it",
		"autoinstall: 1":                                            "document:1:1 start with autoinstall:",
		"autoinstall:\n\tx":                                         "document:2:1 check the indentation around that line",
		"a: &a [*a]":                                                "document:1:8 write it out, with fewer levels",
		"autoinstall:\n  version: 1\n  interactive-sections: ['*']": "document:3:3 take interactive-sections out",
		"#cloud-config\nautoinstall:\n  version: 1\n  identity: {hostname: x, username: u, password: \"$6$a$b\"}\n  storage:\n    layout: {name: lvm}\n  interactive-sections: [network]\n": "document:7:3 take interactive-sections out",
		"autoinstall:\n  version: 1\n  late-commands:\n    - echo note: done > /target/etc/x\n":                                                                                             "document:4:7 put the command in quotes",
		"autoinstall:\n  version: 1\n  early-commands: [[a, {b: c}]]\n":                                                                                                                     "document:3:24 put the word in quotes",
		"autoinstall:\n  version: 1\n  identity: {hostname: x, username: u}\n":                                                                                                              "document:3:13 add it, or leave identity out and write user-data",
		"autoinstall:\n  version: 1\n---\nautoinstall: {}\n":                                                                                                                                "document:3:1 put both into one document, without ---",
		"": "document:1:1 start with autoinstall:",
		"autoinstall:\n  version: 1\n  keyboard: {layuot: de}\n":                                 "document:3:14 did you mean layout?",
		"autoinstall:\n  version: 1\n  keyboard: {}\n":                                           "document:3:13 add it",
		"autoinstall:\n  version: \"1\"\n":                                                       "document:2:12 take the quotes off, or write an integer",
		"autoinstall:\n  version: 1\n  updates: some\n":                                          "document:3:12 write security or all",
		"autoinstall:\n  version: 1\n  packages: [7zip, 7]\n":                                    "document:3:20 put it in quotes",
		"autoinstall:\n  version: 1\n  snaps:\n    - name: x\n      clasic: true\n":              "document:5:7 did you mean classic?",
		"autoinstall:\n  version: 1\n  user-data:\n    runcmd:\n      - echo one: two\n":         "document:5:9 the colon in it makes it a mapping: put the text in quotes",
		"autoinstall:\n  version: 1\n  user-data:\n    packges: []\n":                            "document:4:5 did you mean packages?",
		"autoinstall:\n  version: 1\n  storage: {layout: {name: lvm}, layout: {name: direct}}\n": "document:3:34 leave one of them out, or put both under one",
		"autoinstall:\n  version: 1\n  apt: {fallback: abrot}\n":                                 "document:3:19 write abort or continue-anyway or offline-install",
		"x: &k {layuot: de}\nautoinstall:\n  version: 1\n  keyboard: *k\n":                       "document:1:8 did you mean layout?",
		"x: &k [a]\nautoinstall:\n  version: 1\n  keyboard: *k\n":                                "document:4:13 see the reference of autoinstall",
		"x: &c {a: b}\nautoinstall:\n  version: 1\n  late-commands: [*c]\n":                      "document:4:19 put the command in quotes",
		"autoinstall:\n  version: 1\n  ? [a]\n  : b\n":                                           "document:3:5 write a word as the key",
		"autoinstall:\n  version: 1\n  network: {version: 1}\n":                                  "document:3:22 write an integer of 2",
		"autoinstall:\n  version: 1\n  ubuntu-pro: {token: C123}\n":                              "document:3:23 write a token of Ubuntu Pro, 24 to 30 letters that begin with C",
		"autoinstall:\n  version: 1\n  kernel: {package: a, flavor: b}\n":                        "document:3:24 leave one of them out",
		"autoinstall:\n  version: 1\n  oem: {install: yess}\n":                                   "document:3:18 write true or false or auto",
		"late-commands: []\nautoinstall:\n  version: 1\n":                                        "document:1:1 put it under autoinstall",
		"autoinstall:\n  version: 1\nruncmd:\n- a: b\n":                                          "document:4:3 the colon in it makes it a mapping: put the text in quotes",
		"autoinstall: " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "":               "document:1:77 write it out, with fewer levels",
	} {
		c.Document.Data = []byte(bad)
		r, report := New().Render(noble, c)
		if r != nil || !report.HasErrors() || report[0].Source+" "+report[0].Hint != want {
			t.Errorf("%q: %+v", bad, report)
		}
	}
}

func TestWhatStandsBesideAutoinstallIsOfTheLiveSystem(t *testing.T) {
	for doc, want := range map[string]string{
		"autoinstall: {version: 1}\nssh_authorized_keys: [a]\nruncmd: [ls]\n":                 "",
		"autoinstall: {version: 1}\ntimezone: Etc/UTC\n":                                      "document:2:1 misplaced",
		"autoinstall: {version: 1}\nsome_anchor: &a [b]\n":                                    "document:2:1 unknown-key",
		"version: 1\nlocale: C\n":                                                             "",
		"autoinstall: {version: 1, ubuntu-pro: {token: " + late.Marker("secret://p") + "}}\n": "",
	} {
		r, report := New().Render(noble, &machineconfig.Config{Document: &machineconfig.Passthrough{Format: "autoinstall", Data: []byte(doc)}})
		got := ""
		if len(report) > 0 {
			got = report[0].Source + " " + report[0].Code
		}
		if r == nil || got != want || len(report) > 1 {
			t.Errorf("%s: %v", doc, report)
		}
	}
}

func TestTheHostsNameWinsOverTheAutoinstallDocument(t *testing.T) {
	const secret = `password: "$6$a$b"`
	for name, c := range map[string]struct{ doc, want, source string }{
		"identity":             {"identity: {hostname: doc, username: u, " + secret + "}", "hostname: node-1", "document:3:24"},
		"identity without one": {"identity: {username: u, " + secret + "}", "hostname: node-1", ""},
		"user-data":            {"user-data: {fqdn: a.b, hostname: doc}", "hostname: node-1", "document:3:36"},
		"neither":              {"interactive-sections: []", "hostname: node-1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, report := New().Render(noble, &machineconfig.Config{
				Host:     machineconfig.HostIdentity{Hostname: "node-1"},
				Document: &machineconfig.Passthrough{Format: "autoinstall", Data: []byte("autoinstall:\n  version: 1\n  " + c.doc + "\n")},
			})
			if r == nil {
				t.Fatal(report)
			}
			text := string(r.Documents[0].Data)
			if strings.Count(text, "hostname:") != 1 || !strings.Contains(text, c.want) {
				t.Error(text)
			}
			if (len(report) > 0) != (c.source != "") || len(report) > 0 && (report[0].Source != c.source || report[0].Code != "overridden") {
				t.Errorf("found %v", report)
			}
		})
	}
}

func FuzzDocument(f *testing.F) {
	f.Add("autoinstall:\n  version: 1\n  user-data: {a: [b]}\n")
	f.Fuzz(func(t *testing.T, doc string) {
		c := &machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "h"}, PhoneHome: full().PhoneHome, Document: &machineconfig.Passthrough{Format: "autoinstall", Data: []byte(doc)}}
		r, report := New().Render(noble, c)
		if (r == nil) != report.HasErrors() {
			t.Fatal("neither a rendering nor an error, or both")
		}
		if r != nil {
			check(t, r.Documents[0].Data)
		}
	})
}

// check reads a document as the installer would, with the values of a secret that is hard to quote.
func check(t *testing.T, doc []byte) map[string]any {
	t.Helper()
	full, err := late.Inject(doc, func(string) ([]byte, error) { return []byte("a\n: \"b' #"), nil })
	if err != nil {
		t.Fatal(err)
	}
	var top map[string]any
	if err := yaml.Unmarshal(full, &top); err != nil {
		t.Fatalf("%v\n%s", err, full)
	}
	if _, ok := top["autoinstall"].(map[string]any); !ok {
		t.Errorf("no autoinstall in %s", full)
	}
	return top
}

func FuzzRender(f *testing.F) {
	cases, err := corpus.All()
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		f.Add(strings.Join(c.Layers, "\n---\n"), "x'\n%: \"")
	}
	f.Fuzz(func(t *testing.T, text, odd string) {
		l, report := layer.Parse(text, "fuzz")
		if report.HasErrors() {
			return
		}
		c, report := layer.Merge(l)
		if report.HasErrors() {
			return
		}
		c.Boot.RootDevice.Serial, c.Host.Keymap = odd, odd
		r, report := New().Render(noble, c)
		if (r == nil) != report.HasErrors() {
			t.Fatal("neither a rendering nor an error, or both")
		}
		if r != nil {
			check(t, r.Documents[0].Data)
		}
	})
}
