package cloudinit_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/test/corpus"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var _ machineconfig.Provisioner = cloudinit.New()

var targets = []machineconfig.Target{
	{OS: "debian", Release: "12", Tool: "22.4.2"},
	{OS: "debian", Release: "13", Tool: "25.1.4"},
	{OS: "ubuntu", Release: "24.04", Tool: "24.1"},
	{OS: "debian", Release: "12", Tool: "22.4.2", InitrdPath: "/var/lib/cloud/seed/nocloud/"},
	{OS: "rocky", Release: "9", Tool: "23.4"},
	{OS: "photon", Release: "5", Tool: "23.1"},
	{OS: "custom", Tool: ""},
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := "testdata/" + name + ".golden"
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (rewrite with -update):\n%s", path, diff)
	}
}

func show(r *machineconfig.Rendered) []byte {
	var b strings.Builder
	for _, d := range r.Documents {
		fmt.Fprintf(&b, "=== %s (%s) %s\n%s\n", d.Name, d.ContentType, d.Path, late.Redact(d.Data))
	}
	fmt.Fprintf(&b, "=== arguments: %q\n", r.Args)
	return []byte(strings.ReplaceAll(b.String(), script(), "            (the script of the first boot)\n"))
}

// script is scripts/first-boot.sh as it stands in a block.
func script() string {
	text, err := os.ReadFile("scripts/first-boot.sh")
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if line != "\n" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// full is a configuration that uses every row of the capability table that can be used together.
func full() *machineconfig.Config {
	yes, uid := true, 1234
	return &machineconfig.Config{
		Host: machineconfig.HostIdentity{
			InstanceID: "i-1", Hostname: "node-1", Domain: "example.org", MachineID: "0123456789abcdef0123456789abcdef",
			Locale: "de_DE.UTF-8", Keymap: "de", Timezone: "Europe/Berlin",
		},
		Network: machineconfig.Network{
			Interfaces: []machineconfig.Interface{
				{Name: "eno1", MAC: "52:54:00:12:34:56", L3: machineconfig.L3{Addresses: []string{"192.0.2.2/24"}, Routes: []machineconfig.Route{{To: "default", Via: "192.0.2.1"}}}},
			},
			Bonds:   []machineconfig.Bond{{Name: "bond0", Mode: "802.3ad", Members: []string{"eno2", "eno3"}, MIIMonMS: 100}},
			VLANs:   []machineconfig.VLAN{{Name: "bond0.7", Parent: "bond0", ID: 7, L3: machineconfig.L3{DHCP4: true}}},
			Bridges: []machineconfig.Bridge{{Name: "br0", Members: []string{"eno4"}}},
			DNS:     []string{"192.0.2.53"},
		},
		Storage: machineconfig.Storage{
			Disks:       []machineconfig.Disk{{Name: "b", Device: machineconfig.DeviceSelector{Path: "/dev/vdb"}, Partitions: []machineconfig.Partition{{Label: "data", SizeMiB: 100}}}},
			Filesystems: []machineconfig.Filesystem{{Device: "data", Format: "ext4", MountPoint: "/data"}},
		},
		Users: []machineconfig.User{{
			Name: "alice", UID: &uid, Groups: []string{"adm"}, PasswordHash: "secret://hash", Sudo: "ALL=(ALL) NOPASSWD:ALL",
			SSHKeys: []string{"ssh-ed25519 AAAA alice"},
		}},
		Groups: []machineconfig.Group{{Name: "plain"}, {Name: "numbered", GID: &uid}},
		Files: []machineconfig.File{
			{Path: "/etc/a", Content: machineconfig.Content{Text: "a: " + late.Marker("secret://db") + "\n"}},
			{Path: "/etc/b", Append: true, Content: machineconfig.Content{Text: "b\n"}},
			{Path: "/etc/c", Content: machineconfig.Content{Remote: &machineconfig.Remote{URL: "https://example.org/c", SHA256: strings.Repeat("0", 64)}}},
			{Path: "/run/d", Owner: "alice", Content: machineconfig.Content{Secret: "secret://db"}},
		},
		Dirs:  []machineconfig.Directory{{Path: "/srv/e", Mode: 0o700}},
		Links: []machineconfig.Link{{Path: "/etc/f", Target: "a"}},
		Units: []machineconfig.Unit{{Name: "g.service", Contents: "[Service]\nExecStart=/bin/true\n", Enabled: &yes}},
		Kernel: machineconfig.Kernel{
			Args: []string{"nosmt"}, RemoveArgs: []string{"quiet"}, Modules: []string{"overlay"}, Sysctl: map[string]string{"b": "2", "a": "1"},
		},
		Time: machineconfig.Time{NTPServers: []string{"ntp.example.org"}},
		Packages: machineconfig.Packages{
			Repos:   []machineconfig.Repo{{ID: "r", URL: "https://example.org/r", Suite: "/", Key: "https://example.org/key"}},
			Install: []string{"curl"}, Hold: []string{"curl"}, Update: true,
		},
		Extensions: []machineconfig.Extension{{Name: "x", Remote: machineconfig.Remote{URL: "https://example.org/x.raw"}}},
		Trust:      machineconfig.Trust{CAs: []string{"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}},
		Commands: []machineconfig.Command{
			{Name: "one", Shell: "echo first"}, {Argv: []string{"echo", "post"}, Phase: machineconfig.PostBootstrap}, {Shell: "echo every", Phase: machineconfig.EveryBoot},
		},
		Activation: &machineconfig.Activation{
			Kind: "kubeadm", Exec: []string{"kubeadm", "join"}, ReadyPath: "/etc/kubernetes/kubelet.conf", Sentinel: "/run/sentinel", After: []string{"containerd.service"},
			Files: []machineconfig.File{{Path: "/run/join.yaml", Content: machineconfig.Content{Text: late.Marker("join://prod/token")}}}, Cleanup: []string{"/run/join.yaml"},
		},
		PhoneHome: machineconfig.PhoneHome{URL: late.Marker("session://report")},
	}
}

func TestFullConfigurationIsSaidInEveryVersion(t *testing.T) {
	for _, target := range targets[:4] {
		t.Run(target.String()+" "+target.Tool+target.InitrdPath, func(t *testing.T) {
			r, report := cloudinit.New().Render(target, full())
			if len(report) > 0 {
				t.Fatal(report)
			}
			name := "full-" + target.OS + "-" + target.Tool
			if target.InitrdPath != "" {
				name += "-initrd"
			}
			golden(t, name, show(r))
		})
	}
}

func TestNothingIsSaidOfAnEmptyConfiguration(t *testing.T) {
	r, report := cloudinit.New().Render(targets[0], &machineconfig.Config{})
	if len(report) > 0 {
		t.Fatal(report)
	}
	golden(t, "empty", show(r))
}

func TestABootstrapSecretStandsBetweenOurParts(t *testing.T) {
	c := &machineconfig.Config{
		Host:     machineconfig.HostIdentity{InstanceID: "i", Hostname: "n"},
		Document: &machineconfig.Passthrough{Format: "cloud-config", Data: []byte("#cloud-config\n# größe\npackages: [jq]\n")},
		Commands: []machineconfig.Command{{Shell: "echo größe"}, {Shell: "echo post", Phase: machineconfig.PostBootstrap}},
		Activation: &machineconfig.Activation{
			Sentinel: "/run/s",
			Prelude:  &machineconfig.Passthrough{Format: "cloud-config", Jinja: true, Data: []byte(late.Marker("secret://capi"))},
		},
	}
	r, report := cloudinit.New().Render(targets[0], c)
	if len(report) > 0 {
		t.Fatal(report)
	}
	golden(t, "prelude", show(r))
}

func TestEveryCellOfTheCapabilityTableIsTrue(t *testing.T) {
	p := cloudinit.New()
	for _, target := range targets {
		cells := p.Capabilities(target)
		for _, f := range machineconfig.Fields() {
			t.Run(target.String()+" "+target.Tool+target.InitrdPath+f.Path, func(t *testing.T) {
				cell, ok := cells[f.Path]
				if !ok {
					t.Fatal("there is no cell")
				}
				c, trace := sample(f.Path)
				if c == nil {
					t.Fatal("no sample uses this row")
				}
				found := machineconfig.Check(p, target, c, nil)
				switch cell.Support {
				case machineconfig.Unsupported, machineconfig.Lossy:
					if cell.Note == "" || !found.HasErrors() {
						t.Errorf("it is %v with note %q, and Check finds %v", cell.Support, cell.Note, found)
					}
					return
				}
				if found.HasErrors() {
					t.Fatalf("it is %v, and Check finds %v", cell.Support, found)
				}
				r, report := p.Render(target, c)
				if report.HasErrors() || r == nil {
					t.Fatal(report)
				}
				if cell.Support == machineconfig.Emulated && cell.Note == "" {
					t.Error("it does not say how it is emulated")
				}
				for _, d := range r.Documents {
					if strings.Contains(string(d.Data), trace) {
						return
					}
				}
				t.Errorf("%q is in no document:\n%s", trace, show(r))
			})
		}
		if len(cells) != len(machineconfig.Fields()) {
			t.Errorf("%d cells for %d fields", len(cells), len(machineconfig.Fields()))
		}
	}
}

// sample returns a configuration that uses one row, and text by which a rendering can be told to say it.
func sample(row string) (*machineconfig.Config, string) {
	yes, no := true, false
	f := full()
	c := &machineconfig.Config{}
	traces := map[string]string{}
	take := func(path, trace string, set func()) {
		traces[path] = trace
		if path == row {
			set()
		}
	}
	take("/host/hostname", "hostname: node-1", func() { c.Host.Hostname = "node-1" })
	take("/host/domain", "fqdn: node-1.example.org", func() { c.Host.Hostname, c.Host.Domain = "node-1", "example.org" })
	take("/host/machineID", f.Host.MachineID, func() { c.Host.MachineID = f.Host.MachineID })
	take("/host/locale", "locale: de_DE.UTF-8", func() { c.Host.Locale = f.Host.Locale })
	take("/host/keymap", "layout: de", func() { c.Host.Keymap = "de" })
	take("/host/timezone", "timezone: Europe/Berlin", func() { c.Host.Timezone = "Europe/Berlin" })
	take("/boot/rootDevice", "", func() { c.Boot.RootDevice.Path = "/dev/vda" })
	of := func(name string) func() {
		return func() { c = corpus.Config(name) }
	}
	script := func(stage machineconfig.Stage) func() {
		return func() { c.Scripts = []machineconfig.Script{{Name: "x", Stage: stage, Text: "true"}} }
	}
	pkg := func(set func(p *machineconfig.Packages)) func() { return func() { set(&c.Packages) } }
	take("/host/metaData", "bmh_name: node-1", of("metadata"))
	take("/boot/choose", "", of("root-device-choose"))
	take("/network/match", "driver: \"ixgbe\"", of("network-match"))
	take("/network/dhcp", "route-metric: 50", of("network-dhcp-overrides"))
	take("/network/rules", "routing-policy:", of("network-rules"))
	take("/network/wakeOnLAN", "wakeonlan: true", of("network-wake"))
	take("/network/wireguards", "/etc/wireguard/wg0.conf", of("network-wireguard"))
	take("/storage/keep", `["/dev/disk/by-partlabel/data", "/srv", "xfs", "noatime,`, of("storage-keep-data"))
	take("/storage/percent", "", of("storage-lvm-percent"))
	take("/storage/thin", "", of("storage-lvm-thin"))
	take("/storage/subvolumes", `"subvol=@home,compress=zstd,nofail,`, of("storage-subvolumes"))
	take("/storage/mounts", "//files/scan /srv/scan cifs credentials=/etc/slipway/mounts/srv-scan.credentials,uid=1000 0 0", of("mounts"))
	take("/defaultUser", "- default\n", of("default-user"))
	take("/sshd", "PermitRootLogin prohibit-password", of("sshd"))
	take("/firewall", "port:30000-32767/udp", of("firewall"))
	take("/selinux", `"selinux", "permissive"`, of("selinux"))
	take("/packages/groups", `"groups", "standard"`, pkg(func(p *machineconfig.Packages) { p.Groups = []string{"standard"} }))
	take("/packages/remove", `"remove", "ed"`, pkg(func(p *machineconfig.Packages) { p.Remove = []string{"ed"} }))
	take("/packages/pins", "1.2-3", pkg(func(p *machineconfig.Packages) { p.Pins = []machineconfig.Pin{{Name: "ed", Version: "1.2-3"}} }))
	take("/packages/snaps", `"snaps", "lxd", "5.21/stable", "strict", "kubectl", "", "classic"`, of("packages-snaps"))
	take("/packages/proxy", "http://proxy.example.com:3128", pkg(func(p *machineconfig.Packages) { p.Proxy = "http://proxy.example.com:3128" }))
	take("/scripts/early", "", script(machineconfig.Early))
	take("/scripts/partitioning", "", script(machineconfig.Partitioning))
	take("/scripts/chroot", "", script(machineconfig.Chroot))
	take("/scripts/late", "", script(machineconfig.LateStage))
	take("/scripts/error", "", script(machineconfig.OnError))
	take("/boot/powerAfter", "", func() { c.Boot.PowerAfter = machineconfig.PowerOff })
	take("/network/interfaces", `"192.0.2.2/24"`, func() { c.Network.Interfaces = f.Network.Interfaces })
	take("/network/bonds", "mii-monitor-interval: \"100\"", func() { c.Network.Bonds = f.Network.Bonds })
	take("/network/vlans", "id: 7", func() { c.Network.VLANs = f.Network.VLANs })
	take("/network/bridges", "br0:", func() { c.Network.Bridges = f.Network.Bridges })
	take("/network/dns", "192.0.2.53", func() { c.Network.Interfaces, c.Network.DNS = f.Network.Interfaces, f.Network.DNS })
	take("/storage/layout", "", func() { c.Storage.Layout = "lvm" })
	take("/storage/disks", `size=100MiB, name=\"data\"`, func() { c.Storage.Disks = f.Storage.Disks })
	take("/storage/raids", "", func() { c.Storage.RAIDs = []machineconfig.RAID{{Name: "md0"}} })
	take("/storage/luks", "", func() { c.Storage.LUKS = []machineconfig.LUKS{{Name: "c"}} })
	take("/storage/lvm", "", func() { c.Storage.LVM = []machineconfig.VolumeGroup{{Name: "vg"}} })
	take("/storage/filesystems", `["/dev/disk/by-partlabel/data", "/data", "ext4"`, func() { c.Storage.Disks, c.Storage.Filesystems = f.Storage.Disks, f.Storage.Filesystems })
	take("/users", "name: bob", func() { c.Users = []machineconfig.User{{Name: "bob"}} })
	take("/users/passwordHash", "hashed_passwd: \"SLIPWAYLATEj", func() {
		c.Users = []machineconfig.User{{Name: "bob", PasswordHash: "secret://hash", LockPassword: &no}}
	})
	take("/users/sudo", "sudo: \"ALL=(ALL) NOPASSWD:ALL\"", func() { c.Users = f.Users })
	take("/users/sshKeys", "ssh-ed25519 AAAA alice", func() { c.Users = f.Users })
	take("/groups", `"--gid`, func() {})
	take("/groups", "groupadd --gid", func() { c.Groups = f.Groups })
	take("/files", "path: /etc/a", func() { c.Files = f.Files[:1] })
	take("/files/append", "append: true", func() { c.Files = f.Files[1:2] })
	take("/files/remote", `"https://example.org/c", "00000`, func() { c.Files = f.Files[2:3] })
	take("/files/volatile", `C \"/run/d\"`, func() {})
	take("/files/volatile", `/run/d" 0644 alice root - /etc/slipway/stage/run/d`, func() { c.Files = f.Files[3:] })
	take("/directories", `"install", "-d", "-m", "0700"`, func() { c.Dirs = f.Dirs })
	take("/links", `"ln", "-sfnT", "--", "a", "/etc/f"`, func() { c.Links = f.Links })
	take("/units", `"enable", "g.service"`, func() { c.Units = f.Units })
	take("/kernel/args", `"kernel-args", "nosmt", "--"`, func() { c.Kernel.Args = f.Kernel.Args })
	take("/kernel/removeArgs", `"kernel-args", "--", "quiet"`, func() { c.Kernel.RemoveArgs = f.Kernel.RemoveArgs })
	take("/kernel/modules", `"modprobe", "--all", "--", "overlay"`, func() { c.Kernel.Modules = f.Kernel.Modules })
	take("/kernel/sysctl", "a = 1\n    b = 2\n", func() { c.Kernel.Sysctl = f.Kernel.Sysctl })
	take("/time", "ntp.example.org", func() { c.Time = machineconfig.Time{NTPServers: f.Time.NTPServers, Enabled: &yes} })
	take("/packages/repos", "https://example.org/key", func() { c.Packages.Repos = f.Packages.Repos })
	take("/packages/install", "packages:\n- curl", func() { c.Packages.Install = f.Packages.Install })
	take("/packages/hold", `"hold", "curl"`, func() { c.Packages.Hold = f.Packages.Hold })
	take("/packages/update", "package_upgrade: true", func() { c.Packages.Update = true })
	take("/extensions", "/var/lib/extensions/x.raw", func() { c.Extensions = f.Extensions })
	take("/trust/cas", "BEGIN CERTIFICATE", func() { c.Trust = f.Trust })
	take("/commands/first-boot", `"command one", "run", "sh", "-c", "echo first"`, func() { c.Commands = f.Commands[:1] })
	take("/commands/post-bootstrap", `"run", "echo", "post"`, func() { c.Commands = f.Commands[1:2] })
	take("/commands/every-boot", "bootcmd:\n- [\"sh\", \"-c\", \"echo every\"]", func() { c.Commands = f.Commands[2:] })
	take("/bootstrap", `"activate", "/etc/kubernetes/kubelet.conf", "kubeadm", "join"`, func() { c.Activation = f.Activation })
	take("/bootstrap/native", "", func() { c.Activation = &machineconfig.Activation{Native: &machineconfig.Passthrough{Format: "talos"}} })
	take("/bootstrap/prelude", "SLIPWAYLATEb", func() {
		c.Activation = &machineconfig.Activation{Prelude: &machineconfig.Passthrough{Format: "cloud-config", Data: []byte(late.Marker("secret://x"))}}
	})
	take("/phoneHome", `"report", "finish"`, func() { c.PhoneHome = f.PhoneHome })
	if _, ok := traces[row]; !ok {
		return nil, ""
	}
	return c, traces[row]
}

func TestNoSecretCanBeReadInARendering(t *testing.T) {
	r, report := cloudinit.New().Render(targets[0], full())
	if r == nil {
		t.Fatal(report)
	}
	for _, d := range r.Documents {
		if strings.Contains(string(d.Data), "secret://") || strings.Contains(string(d.Data), "join://") {
			t.Errorf("%s names a secret where its value should come:\n%s", d.Name, d.Data)
		}
	}
	refs := late.References(r.Documents[0].Data)
	if diff := cmp.Diff([]string{"join://prod/token", "secret://db", "secret://hash", "session://report"}, refs); diff != "" {
		t.Error(diff)
	}
}

func TestEveryValueSurvivesItsPlace(t *testing.T) {
	const canary = "it's \"quoted\": \\ $HOME `id` # {{ x }}\n\tüber\x01\n"
	c := full()
	c.Commands = append(c.Commands, machineconfig.Command{Name: "late", Argv: []string{"echo", late.Marker("secret://db")}})
	r, report := cloudinit.New().Render(targets[0], c)
	if r == nil {
		t.Fatal(report)
	}
	data, err := late.Inject(r.Documents[0].Data, func(string) ([]byte, error) { return []byte(canary), nil })
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Runcmd []([]string) `yaml:"runcmd"`
		Files  []struct {
			Path, Content string
		} `yaml:"write_files"`
		Users []struct {
			Hash string `yaml:"hashed_passwd"`
		} `yaml:"users"`
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, args := range doc.Runcmd {
		if args[2] == "command late" {
			n++
			if diff := cmp.Diff(canary, args[5]); diff != "" {
				t.Error(diff)
			}
		}
	}
	for _, f := range doc.Files {
		if f.Path == "/etc/a" {
			n++
			if diff := cmp.Diff("a: "+canary+"\n", f.Content); diff != "" {
				t.Error(diff)
			}
		}
	}
	if n != 2 || doc.Users[0].Hash != canary {
		t.Errorf("%d places found, password %q", n, doc.Users[0].Hash)
	}
}

func TestCorpusRendersTheSameEveryTime(t *testing.T) {
	cases, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	p := cloudinit.New()
	for _, c := range cases {
		for _, target := range targets {
			first, _ := p.Render(target, c.Config)
			for range 1 {
				again, _ := p.Render(target, c.Config)
				if diff := cmp.Diff(first, again); diff != "" {
					t.Errorf("%s for %s: %s", c.Name, target, diff)
				}
			}
		}
	}
}

func TestEC2PathsNameDocuments(t *testing.T) {
	r, _ := cloudinit.New().Render(targets[0], full())
	names := map[string]bool{}
	for _, d := range r.Documents {
		names[d.Name] = true
	}
	for path, want := range map[string]string{
		"latest/user-data": "user-data", "/2009-04-04/meta-data/": "ec2/latest/meta-data/index", "latest/meta-data": "ec2/latest/meta-data/index",
		"2021-03-23/meta-data/hostname": "ec2/latest/meta-data/hostname", "latest/meta-data/public-keys/": "", "latest/dynamic/x": "", "": "",
		"latest/meta-data/index": "", "latest/meta-data/instance-id": "ec2/latest/meta-data/instance-id",
	} {
		got := cloudinit.EC2Path(path)
		if got != want || got != "" && !names[got] {
			t.Errorf("%q is answered by %q, want %q", path, got, want)
		}
	}
}

func TestDocumentsIsCloudConfig(t *testing.T) {
	p := cloudinit.New()
	if p.Kind() != "cloud-init" || len(p.Documents()) != 1 || p.Documents()[0] != inventory.DocCloudConfig {
		t.Errorf("%s takes %v", p.Kind(), p.Documents())
	}
}

func TestAMemberOfABondGetsNoNameServers(t *testing.T) {
	data, report := cloudinit.NetworkConfig(targets[1], &machineconfig.Config{Network: machineconfig.Network{
		Interfaces: []machineconfig.Interface{{Name: "eno1", MAC: "52:54:00:AB:00:01", L3: machineconfig.L3{DHCP4: true}}, {Name: "eno9", L3: machineconfig.L3{DHCP6: true, DNS: []string{"192.0.2.54", "192.0.2.53"}}}},
		Bonds:      []machineconfig.Bond{{Name: "bond0", Mode: "active-backup", Members: []string{"eno1", "eno2"}}},
		DNS:        []string{"192.0.2.53"},
	}})
	if len(report) > 0 {
		t.Fatal(report)
	}
	var doc struct {
		Network struct {
			Ethernets map[string]struct {
				Match struct{ Macaddress string }
				Name  string                       `yaml:"set-name"`
				NS    struct{ Addresses []string } `yaml:"nameservers"`
			}
		}
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	e := doc.Network.Ethernets
	if len(e) != 3 || e["eno1"].NS.Addresses != nil || e["eno1"].Name != "eno1" || e["eno1"].Match.Macaddress != "52:54:00:ab:00:01" {
		t.Errorf("ethernets are %+v", e)
	}
	if diff := cmp.Diff([]string{"192.0.2.53", "192.0.2.54"}, e["eno9"].NS.Addresses); diff != "" {
		t.Error(diff)
	}
}

func TestFilesBelowAMountPointWaitForTheMount(t *testing.T) {
	data, report := cloudinit.UserData(targets[0], &machineconfig.Config{
		Storage: machineconfig.Storage{Filesystems: []machineconfig.Filesystem{{Device: "/dev/vdb", Format: "ext4", MountPoint: "/srv"}}},
		Files: []machineconfig.File{
			{Path: "/srv/a"}, {Path: "/srvx/b"}, {Path: "/tmp/c"}, {Path: "/etc/d"}, {Path: "/etc/e", Group: "staff"},
		},
	})
	if len(report) > 0 {
		t.Fatal(report)
	}
	var doc struct {
		Files []struct {
			Path  string
			Defer bool
		} `yaml:"write_files"`
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, f := range doc.Files {
		got[f.Path] = f.Defer
	}
	for path, want := range map[string]bool{"/srv/a": true, "/srvx/b": false, "/tmp/c": true, "/etc/d": false, "/etc/e": true} {
		if got[path] != want {
			t.Errorf("%s waits: %v, want %v", path, got[path], want)
		}
	}
}

func TestNetworkManagerIsWhatNewReleasesHave(t *testing.T) {
	c, err := corpus.Build("vlan", "network: {interfaces: [{name: eno1, dhcp4: true}], vlans: [{name: storage, parent: eno1, id: 20, dhcp4: true}]}\npackages: {install: [vim], groups: [base]}")
	if err != nil {
		t.Fatal(err)
	}
	for on, isRefused := range map[machineconfig.Target]bool{
		{OS: "rocky", Release: "9.6", Tool: "24.4"}: true, {OS: "rocky", Release: "10.1", Tool: "24.4"}: false, {OS: "centos", Release: "10", Tool: "24.4"}: false,
		{OS: "leap", Release: "16.0", Tool: "25.1"}: false, {OS: "opensuse", Release: "15.6", Tool: "23.3"}: true,
	} {
		_, report := cloudinit.New().Render(on, c)
		if report.HasErrors() != isRefused {
			t.Errorf("%s: %v", on, report)
		}
	}
}
