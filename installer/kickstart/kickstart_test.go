package kickstart

import (
	"flag"
	"os"
	"strings"
	"testing"

	"slipway.dev/slipway/machineconfig/layer"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/test/corpus"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var rocky9 = machineconfig.Target{OS: "rocky", Release: "9", Arch: inventory.X8664}

func render(t *testing.T, target machineconfig.Target, c *machineconfig.Config) string {
	t.Helper()
	r, report := New().Render(target, c)
	if report.HasErrors() {
		t.Fatal(report)
	}
	return string(late.Redact(r.Documents[0].Data))
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
	gid, yes, no := 3000, true, false
	return &machineconfig.Config{
		Host: machineconfig.HostIdentity{Hostname: "node-1", Domain: "lab.example", Locale: "de_DE.UTF-8", Keymap: "de", Timezone: "Europe/Berlin"},
		Boot: machineconfig.Boot{RootDevice: machineconfig.DeviceSelector{WWN: "0x5000"}, PowerAfter: machineconfig.PowerOff},
		Network: machineconfig.Network{DNS: []string{"192.0.2.53"}, Interfaces: []machineconfig.Interface{{Name: "eno1", MAC: "52:54:00:12:34:56", L3: machineconfig.L3{
			MTU: 9000, Addresses: []string{"192.0.2.7/26", "2001:db8::7/64"}, Routes: []machineconfig.Route{{To: "0.0.0.0/0", Via: "192.0.2.1"}},
		}}}},
		Groups: []machineconfig.Group{{Name: "ops", GID: &gid}, {Name: "svc", System: true}, {Name: "ada", GID: &gid}},
		Users: []machineconfig.User{
			{Name: "ada", Gecos: "Ada L", Groups: []string{"ops", "svc"}, PasswordHash: "secret://ada", SSHKeys: []string{"ssh-ed25519 AAAA ada"}, Sudo: "ALL=(ALL) NOPASSWD:ALL"},
			{Name: "bob", SSHKeys: []string{"one", "two"}},
			{Name: "daemon1", System: true, Home: "/var/lib/d"},
		},
		Files: []machineconfig.File{
			{Path: "/etc/one", Content: machineconfig.Content{Text: "line\n"}},
			{Path: "/etc/two", Mode: 0o600, Owner: "ada", Content: machineconfig.Content{Text: "a=" + late.Marker("secret://a") + "\nb"}},
			{Path: "/etc/three", Content: machineconfig.Content{Text: " %end\n"}},
			{Path: "/etc/four", Append: true, Content: machineconfig.Content{Secret: "secret://four"}},
			{Path: "/run/five", Content: machineconfig.Content{Text: "five"}},
			{Path: "/opt/six", Content: machineconfig.Content{Remote: &machineconfig.Remote{URL: "https://x.example/six", SHA256: strings.Repeat("a", 64)}}},
		},
		Units:    []machineconfig.Unit{{Name: "a.service", Contents: "[Service]\nExecStart=/bin/true\n", Enabled: &yes}, {Name: "b.timer", Enabled: &no}, {Name: "c.service", Masked: true}},
		Kernel:   machineconfig.Kernel{Args: []string{"panic=30"}, RemoveArgs: []string{"quiet"}, Modules: []string{"overlay"}, Sysctl: map[string]string{"b.c": "2", "a.b": "1"}},
		Time:     machineconfig.Time{NTPServers: []string{"ntp.example"}},
		Packages: machineconfig.Packages{Install: []string{"tmux"}, Hold: []string{"kernel"}, Update: true, Repos: []machineconfig.Repo{{ID: "rocky", URL: "http://m.example/os"}, {ID: "k8s", URL: "https://k.example/rpm", Key: "-----BEGIN-----"}}},
		Trust:    machineconfig.Trust{CAs: []string{"-----BEGIN CERTIFICATE-----"}},
		Commands: []machineconfig.Command{{Shell: "echo one"}, {Phase: machineconfig.PostBootstrap, Argv: []string{"echo", "it's"}}, {Phase: machineconfig.EveryBoot, Shell: "echo every"}},
		Activation: &machineconfig.Activation{
			Files: []machineconfig.File{{Path: "/run/kubeadm/join.yaml", Mode: 0o640, Content: machineconfig.Content{Text: "token: " + late.Marker("join://a/token") + "\n"}}},
			Exec:  []string{"kubeadm", "join"}, ReadyPath: "/etc/kubernetes/kubelet.conf", Sentinel: "/run/cluster-api/done", After: []string{"containerd.service"}, Cleanup: []string{"/run/kubeadm/join.yaml"},
		},
		PhoneHome: machineconfig.PhoneHome{URL: late.Marker("session://report")},
	}
}

func disks() *machineconfig.Config {
	return &machineconfig.Config{Storage: machineconfig.Storage{
		Disks: []machineconfig.Disk{
			{Name: "a", Device: machineconfig.DeviceSelector{Path: "/dev/sda"}, WipeTable: true, Partitions: []machineconfig.Partition{
				{Label: "esp", SizeMiB: 512, TypeGUID: espGUID}, {Label: "m1", SizeMiB: 1000}, {Label: "pv1"},
			}},
			{Name: "b", Device: machineconfig.DeviceSelector{Serial: "S2"}, Partitions: []machineconfig.Partition{{Label: "m2", SizeMiB: 1000}, {Label: "pv2"}}},
		},
		RAIDs: []machineconfig.RAID{{Name: "boot", Level: "raid1", Devices: []string{"m1", "m2"}}},
		LUKS:  []machineconfig.LUKS{{Name: "crypt", Device: "pv1", Key: "secret://disk"}},
		LVM:   []machineconfig.VolumeGroup{{Name: "vg0", Devices: []string{"crypt", "pv2"}, LVs: []machineconfig.LogicalVolume{{Name: "root", SizeMiB: 4000}, {Name: "swap", SizeMiB: 512}}}},
		Filesystems: []machineconfig.Filesystem{
			{Device: "esp", Format: "vfat", MountPoint: "/boot/efi"},
			{Device: "boot", Format: "xfs", MountPoint: "/boot"},
			{Device: "vg0/root", Format: "xfs", MountPoint: "/", MountOptions: []string{"noatime", "x"}, Options: []string{"-m", "reflink=1"}},
			{Device: "vg0/swap", Format: "swap"},
		},
	}}
}

func net() *machineconfig.Config {
	no, yes := false, true
	return &machineconfig.Config{Network: machineconfig.Network{
		Search: []string{"lab.example"},
		Interfaces: []machineconfig.Interface{
			{Name: "eno1", MAC: "52:54:00:12:34:56"},
			{Name: "eno2", L3: machineconfig.L3{Optional: true, DHCP6: true, AcceptRA: &no}},
			{Name: "eno4", L3: machineconfig.L3{Addresses: []string{"192.0.2.9/24", "2001:db8::9/64"}, AcceptRA: &no}},
			{Name: "eno5", L3: machineconfig.L3{DHCP4: true, Addresses: []string{"192.0.2.10/24", "2001:db8::10/64"}}},
		},
		Bonds:   []machineconfig.Bond{{Name: "bond0", Mode: "802.3ad", Members: []string{"eno1", "eno3"}, MIIMonMS: 100, LACPRate: "fast", HashPolicy: "layer3+4"}},
		VLANs:   []machineconfig.VLAN{{Name: "v10", Parent: "bond0", ID: 10, L3: machineconfig.L3{Addresses: []string{"10.0.0.2/24", "10.0.0.3/24"}, Routes: []machineconfig.Route{{To: "10.1.0.0/16", Via: "10.0.0.1", Metric: 5, OnLink: true}, {To: "::/0", Via: "fe80::1"}}}}},
		Bridges: []machineconfig.Bridge{{Name: "br0", Members: []string{"v10"}, STP: &yes, L3: machineconfig.L3{DHCP4: true, MTU: 1400, DNS: []string{"192.0.2.1", "2001:db8::1"}}}},
	}}
}

func simpleNet() *machineconfig.Config {
	return &machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "n"}, Network: machineconfig.Network{
		Bonds:   []machineconfig.Bond{{Name: "bond0", Mode: "active-backup", Members: []string{"eno1", "eno2"}, Primary: "eno1", L3: machineconfig.L3{DHCP4: true}}},
		VLANs:   []machineconfig.VLAN{{Name: "v10", Parent: "bond0", ID: 10, L3: machineconfig.L3{Addresses: []string{"2001:db8::2/64"}, Routes: []machineconfig.Route{{To: "::/0", Via: "fe80::1"}}}}},
		Bridges: []machineconfig.Bridge{{Name: "br0", Members: []string{"eno3"}}},
	}}
}

func TestGolden(t *testing.T) {
	golden(t, "full", render(t, rocky9, full()))
	golden(t, "storage", render(t, rocky9, disks()))
	golden(t, "keyfiles", render(t, rocky9, net()))
	golden(t, "network", render(t, rocky9, simpleNet()))
	golden(t, "empty", render(t, rocky9, &machineconfig.Config{}))
	golden(t, "bootc", render(t, rocky9, &machineconfig.Config{Extensions: []machineconfig.Extension{{Name: "os", Format: machineconfig.Bootc, Remote: machineconfig.Remote{URL: "docker://quay.example/os:1"}}}}))
}

func TestSecretsInFilesAreNeverTextOfTheScript(t *testing.T) {
	c := &machineconfig.Config{Files: []machineconfig.File{{Path: "/a", Content: machineconfig.Content{Text: "a=" + late.Marker("secret://a") + "\n"}}}}
	r, report := New().Render(rocky9, c)
	if report.HasErrors() {
		t.Fatal(report)
	}
	text, err := late.Inject(r.Documents[0].Data, func(string) ([]byte, error) { return []byte("x\n%end\n'"), nil })
	if err != nil || strings.Count(string(text), "%end") != 3 || !strings.Contains(string(text), "base64 -d <<< 'eAolZW5kCic='") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestFirmwarePartitionsAreAddedUnlessGiven(t *testing.T) {
	c := disks()
	if strings.Contains(render(t, rocky9, c), "reqpart") {
		t.Error("adds a second partition for the firmware")
	}
	c.Storage.Disks[0].Partitions = c.Storage.Disks[0].Partitions[1:]
	c.Storage.Filesystems = c.Storage.Filesystems[1:]
	if !strings.Contains(render(t, rocky9, c), "\nreqpart\n") {
		t.Error("adds no partition for the firmware")
	}
}

func TestOldReleasesHaveTheirTimeServersElsewhere(t *testing.T) {
	c := &machineconfig.Config{Time: machineconfig.Time{NTPServers: []string{"a", "b"}}}
	got := render(t, machineconfig.Target{OS: "rocky", Release: "8.10"}, c)
	if !strings.Contains(got, "timezone Etc/UTC --utc --ntpservers=a,b\n") || strings.Contains(got, "timesource") {
		t.Error(got)
	}
	no := false
	c.Time = machineconfig.Time{Enabled: &no}
	if got := render(t, machineconfig.Target{OS: "rocky", Release: "8"}, c); !strings.Contains(got, "--nontp") {
		t.Error(got)
	}
	if got := render(t, rocky9, c); !strings.Contains(got, "timesource --ntp-disable\n") {
		t.Error(got)
	}
}

func TestRefusals(t *testing.T) {
	for path, change := range map[string]func(*machineconfig.Config){
		"/storage/layout":                       func(c *machineconfig.Config) { c.Storage.Layout = "lvm" },
		"/storage/disks/a/partitions/m1/guid":   func(c *machineconfig.Config) { c.Storage.Disks[0].Partitions[1].GUID = "x" },
		"/storage/disks/a/partitions/m1/number": func(c *machineconfig.Config) { c.Storage.Disks[0].Partitions[1].Number = 9 },
		"/storage/disks/a/partitions/m1":        func(c *machineconfig.Config) { c.Storage.RAIDs = nil },
		"/storage/disks/b": func(c *machineconfig.Config) {
			c.Storage.Disks[1].Device.Serial, c.Storage.Disks[1].Device.Path = "", "/dev/sda"
		},
		"/storage/luks/crypt":                  func(c *machineconfig.Config) { c.Storage.LUKS[0].TPM2 = true },
		"/storage/luks/crypt/key":              func(c *machineconfig.Config) { c.Storage.LUKS[0].Key = "" },
		"/storage/filesystems/boot/mountPoint": func(c *machineconfig.Config) { c.Storage.Filesystems[1].MountPoint = "" },
		"/storage/filesystems/boot/uuid":       func(c *machineconfig.Config) { c.Storage.Filesystems[1].UUID = "x" },
		"/storage/filesystems/nowhere":         func(c *machineconfig.Config) { c.Storage.Filesystems[3].Device = "nowhere" },
		"/users/a/gecos":                       func(c *machineconfig.Config) { c.Users = []machineconfig.User{{Name: "a", Gecos: "x\n%post"}} },
		"/packages/install":                    func(c *machineconfig.Config) { c.Packages.Install = []string{"-bash"} },
		"/extensions/e": func(c *machineconfig.Config) {
			c.Extensions = []machineconfig.Extension{{Name: "e", Format: machineconfig.RPMOSTree}}
		},
		"/files/~1run~1a/append": func(c *machineconfig.Config) { c.Files = []machineconfig.File{{Path: "/run/a", Append: true}} },
		"/network/interfaces/e/mac": func(c *machineconfig.Config) {
			c.Network = machineconfig.Network{Search: []string{"x"}, Interfaces: []machineconfig.Interface{{Name: "e", MAC: "boot"}}}
		},
		"/kernel/args": func(c *machineconfig.Config) { c.Kernel.Args = []string{"a\nb"} },
		"/storage/disks/a/partitions/esp/startMiB": func(c *machineconfig.Config) { c.Storage.Disks[0].Partitions[0].StartMiB = 1 },
	} {
		c := disks()
		change(c)
		r, report := New().Render(rocky9, c)
		found := false
		for _, f := range report {
			found = found || f.Path == path && f.Severity == machineconfig.SeverityError && f.Hint != ""
		}
		if !found || r != nil {
			t.Errorf("no finding at %s: %v", path, report)
		}
	}
}

func TestOwnDocument(t *testing.T) {
	c := &machineconfig.Config{
		Host: machineconfig.HostIdentity{Hostname: "node-1"}, PhoneHome: full().PhoneHome, Kernel: machineconfig.Kernel{Args: []string{"x"}},
		Document: &machineconfig.Passthrough{Format: "kickstart", Data: []byte("lang en_US.UTF-8\n%pre\ntouch /x\n%end\n%include /x\n%packages\n%end\n%post\n%foo\nbogus\n%end")},
	}
	r, report := New().Render(rocky9, c)
	if r == nil || len(report) != 1 || report[0].Path != "/kernel/args" {
		t.Fatal(report)
	}
	golden(t, "document", string(late.Redact(r.Documents[0].Data)))
	for bad, want := range map[string]string{
		"lang x\nbootlader --x":    "document:2:1 did you mean bootloader?",
		"%post\necho":              "document:1:1 write %end after its last line",
		"%post\n%packages\n%end\n": "document:1:1 write %end after its last line",
		"\n%end":                   "document:2:1 take it out, or write the section before it",
		"%pots\n":                  "document:1:1 use one of " + strings.Join(names(release{n: 9}, true), " "),
	} {
		c.Document.Data = []byte(bad)
		r, report := New().Render(rocky9, c)
		if r != nil || !report.HasErrors() || report[0].Source+" "+report[0].Hint != want {
			t.Errorf("%q: %+v", bad, report)
		}
	}
}

// TestAFileIsReadAsItsReleaseReadsIt has the commands and options that came and went.
func TestAFileIsReadAsItsReleaseReadsIt(t *testing.T) {
	on := func(os, release string) machineconfig.Target {
		return machineconfig.Target{OS: os, Release: release, Arch: inventory.X8664}
	}
	el7, el8, el9, el10, f41 := on("centos", "7.9"), on("rocky", "8"), on("rhel", "9.4"), on("almalinux", "10"), on("fedora", "41")
	for _, c := range []struct {
		on                       machineconfig.Target
		line, source, code, hint string
	}{
		{el7, "install", "", "", ""},
		{el8, "install", "1:1", "deprecated", "take it out"},
		{el9, "install", "1:1", "other-release", "take it out"},
		{el10, "install", "1:1", "other-release", ""},
		{f41, "install", "1:1", "other-release", ""},
		{el9, "part / --fstype=xfs --sise=1024", "1:21", "unknown-option", "did you mean --size?"},
		{el9, "part / --fstype xfs --siez 1024", "1:21", "unknown-option", "did you mean --size?"},
		{el9, "%packages --nobase\n%end", "1:11", "unknown-option,other-release", ""},
		{el7, "%packages --nobase\n%end", "1:11", "deprecated", ""},
		{el9, "auth --enableshadow", "", "", ""},
		{el10, "auth --enableshadow", "1:1", "other-release", ""},
		{el10, "timezone UTC --isUtc", "1:14", "other-release", ""},
		{el8, "timezone UTC --isUtc --ntpservers=a,b", "", "", ""},
		{f41, "timezone UTC --ntpservers=a", "1:14", "deprecated", ""},
		{el8, "timesource --ntp-server=a", "1:1", "other-release", ""},
		{el9, "timesource --ntp-server=a --nts", "", "", ""},
		{el10, "vnc --host=a", "1:1", "deprecated", ""},
		{el9, "rdp --password=a", "1:1", "other-release", ""},
		{el10, "rdp --password=a", "", "", ""},
		{el9, "btrfs none --data=0 a", "1:1", "deprecated", ""},
		{el9, "rhsm --organization=1 --activation-key=k --flatpak-registry-url=x", "1:42", "other-release", ""},
		{f41, "rhsm --organization=1 --activation-key=k", "1:1", "other-release", ""},
		{el9, "user --groups=wheel", "1:1", "missing", "add --name="},
		{el9, "user --name", "1:6", "bad-value", "--name=VALUE"},
		{el9, "user --name --lock", "1:6", "bad-value", "--name=VALUE"},
		{el9, "rootpw --lock=yes", "1:8", "bad-value", "alone"},
		{el9, "network --bootproto=dhcp --hostn=x", "", "", ""}, // the beginning of one option is that option
		{el9, "part / --p=x", "1:8", "unknown-option", ""},      // of several it is none
		{el9, "repo --name='a b' --baseurl=http://x/ # --bogus", "", "", ""},
		{el9, "lang 'en_US.UTF-8", "1:6", "open-quote", ""},
		{el9, "part / \\\n  --size=1", "1:8", "continued", "one line"},
		{el9, "%post --nochroot --erroronfial\n%end", "1:18", "unknown-option", "--erroronfail"},
		{el9, "%pre --nochroot\n%end", "1:6", "unknown-option", ""},
		{el9, "%addon com_redhat_kdump --enable --reserve-mb=auto\n%end", "", "", ""},
		{el9, "realm join --computer-ou=x example.org", "", "", ""},
		{el9, "  lang  en_US.UTF-8   --addsuport=de", "1:23", "unknown-option", "--addsupport"},
		{el7, "sshkey --username=a k", "1:1", "other-release", ""},
		{on("oraclelinux", "9"), "install", "1:1", "other-release", ""},
		{on("rocky", "11"), "auth x", "1:1", "other-release", ""},
	} {
		r, report := New().Render(c.on, &machineconfig.Config{Document: &machineconfig.Passthrough{Format: "kickstart", Data: []byte(c.line + "\n")}})
		if c.code == "" && c.source == "" {
			if r == nil || len(report) > 0 {
				t.Errorf("%s, %q: %v", c.on, c.line, report)
			}
			continue
		}
		if len(report) == 0 || report[0].Source != "document:"+c.source || !strings.Contains(c.code, report[0].Code) || !strings.Contains(report[0].Hint, c.hint) {
			t.Errorf("%s, %q: %+v", c.on, c.line, report)
		} else if isWarning := c.code == "deprecated"; isWarning != (r != nil) {
			t.Errorf("%s, %q: rendered %v", c.on, c.line, r != nil)
		}
	}
}

func TestTheHostsNameWinsOverTheKickstartFile(t *testing.T) {
	const doc = "network --bootproto=dhcp --hostname=doc.example --activate\nnetwork --hostname \"x\"\n%pre\nnetwork --hostname=script\n%end\n"
	r, report := New().Render(rocky9, &machineconfig.Config{
		Host:     machineconfig.HostIdentity{Hostname: "node-1"},
		Document: &machineconfig.Passthrough{Format: "kickstart", Data: []byte(doc)},
	})
	if r == nil {
		t.Fatal(report)
	}
	const want = "network --bootproto=dhcp --hostname=node-1 --activate\nnetwork --hostname=node-1\n%pre\nnetwork --hostname=script\n%end\n"
	if text := string(r.Documents[0].Data); !strings.HasPrefix(text, want) {
		t.Errorf("got %q", text)
	}
	if len(report) != 2 || report[0].Source != "document:1:26" || report[0].Code != "overridden" || report[1].Source != "document:2:9" {
		t.Errorf("found %v", report)
	}
}

func FuzzDocument(f *testing.F) {
	f.Add("lang x\n%post\n%end\n")
	f.Fuzz(func(t *testing.T, doc string) {
		c := &machineconfig.Config{Document: &machineconfig.Passthrough{Format: "kickstart", Data: []byte(doc)}}
		if r, report := New().Render(rocky9, c); (r == nil) != report.HasErrors() {
			t.Error("neither a rendering nor an error, or both")
		}
	})
}

// FuzzRender checks that nothing in a configuration can end a section or start a command.
func FuzzRender(f *testing.F) {
	cases, err := corpus.All()
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		f.Add(strings.Join(c.Layers, "\n---\n"), "x'\n%end\n%post")
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
		c.Host.Domain = strings.ReplaceAll(odd, "\n", "")
		c.Files = append(c.Files, machineconfig.File{Path: "/odd", Content: machineconfig.Content{Text: odd}})
		c.Commands = append(c.Commands, machineconfig.Command{Argv: []string{odd}}, machineconfig.Command{Shell: odd})
		r, report := New().Render(rocky9, c)
		if (r == nil) != report.HasErrors() {
			t.Fatal("neither a rendering nor an error, or both")
		}
		if r == nil {
			return
		}
		w := &writer{t: rocky9, c: &machineconfig.Config{}}
		w.checkDocument(string(r.Documents[0].Data))
		if w.report.HasErrors() {
			t.Errorf("%v", w.report)
		}
	})
}
