package ignition

import (
	"net/url"
	"strings"
	"testing"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/test/corpus"
)

// proofs say for each field a configuration that uses it and what must then stand in the document or the arguments.
func proofs() map[string]struct {
	c    machineconfig.Config
	want []string
} {
	type proof = struct {
		c    machineconfig.Config
		want []string
	}
	file := func(f machineconfig.File) machineconfig.Config {
		return machineconfig.Config{Files: []machineconfig.File{f}}
	}
	user := func(u machineconfig.User) machineconfig.Config {
		u.Name = "core"
		return machineconfig.Config{Users: []machineconfig.User{u}}
	}
	command := func(p machineconfig.Phase) machineconfig.Config {
		return machineconfig.Config{Commands: []machineconfig.Command{{Phase: p, Shell: "run-proof"}}}
	}
	of := func(name string) machineconfig.Config {
		c := *corpus.Config(name)
		c.Host.Hostname = ""
		return c
	}
	script := func(s machineconfig.Stage) machineconfig.Config {
		return machineconfig.Config{Scripts: []machineconfig.Script{{Name: "x", Stage: s, Text: "true"}}}
	}
	net := func(n machineconfig.Network) machineconfig.Config { return machineconfig.Config{Network: n} }
	storage := func(s machineconfig.Storage) machineconfig.Config { return machineconfig.Config{Storage: s} }
	sda := machineconfig.DeviceSelector{Path: "/dev/proof"}
	return map[string]proof{
		"/host/hostname":  {machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "proof-1"}}, []string{"/etc/hostname", "proof-1\n"}},
		"/host/domain":    {machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: "n", Domain: "proof.example"}}, []string{"127.0.1.1 n.proof.example n"}},
		"/host/machineID": {machineconfig.Config{Host: machineconfig.HostIdentity{MachineID: "0123456789abcdef0123456789abcdef"}}, []string{"systemd.machine_id=0123456789abcdef0123456789abcdef"}},
		"/host/locale":    {machineconfig.Config{Host: machineconfig.HostIdentity{Locale: "de_DE.UTF-8"}}, []string{"LANG=de_DE.UTF-8"}},
		"/host/keymap":    {machineconfig.Config{Host: machineconfig.HostIdentity{Keymap: "proof"}}, []string{"=proof\n"}},
		"/host/timezone":  {machineconfig.Config{Host: machineconfig.HostIdentity{Timezone: "Europe/Berlin"}}, []string{"/etc/localtime", "../usr/share/zoneinfo/Europe/Berlin"}},
		"/boot/rootDevice": {
			machineconfig.Config{Boot: machineconfig.Boot{RootDevice: sda}, Storage: machineconfig.Storage{Disks: []machineconfig.Disk{{Name: "r", WipeTable: true}}}},
			[]string{`"device":"/dev/proof"`},
		},
		"/host/metaData":        {of("metadata"), nil}, // filled in by package capisecret
		"/boot/choose":          {of("root-device-choose"), nil},
		"/network/match":        {of("network-match"), []string{"en*", "ixgbe"}},
		"/network/dhcp":         {of("network-dhcp-overrides"), []string{"50\n", "mac\n"}},
		"/network/rules":        {of("network-rules"), []string{"192.0.2.10/32", "2001:db8:1::/48", "100", "200"}},
		"/network/wakeOnLAN":    {of("network-wake"), []string{"WakeOnLan=magic\n", "WakeOnLan=off\n"}},
		"/network/wireguards":   {of("network-wireguard"), []string{"RlBLZ0RZNNyXMTlGnRCo1Bnn0LhFcWCrCnHbUTJgQlE=", late.MarkerIn("secret://wg0", late.Percent), "vpn.example.com:51820"}},
		"/storage/keep":         {of("storage-keep-data"), []string{`"label":"data"`, "Where=/srv", "noatime"}},
		"/storage/percent":      {of("storage-lvm-percent"), nil},
		"/storage/thin":         {of("storage-lvm-thin"), nil},
		"/storage/subvolumes":   {of("storage-subvolumes"), []string{"slipway-subvolumes-data.service", "'@home' 'snapshots'", "subvol=@home,compress=zstd", "srv-home.mount", `dev-disk-by\\x2dpartlabel-data.device`}},
		"/storage/mounts":       {of("mounts"), []string{"nas.example.com:/export/home /srv/home nfs vers=4.2,nofail,x-systemd.automount 0 0", "credentials=/etc/slipway/mounts/srv-scan.credentials", late.MarkerIn("secret://scan", late.Percent), "tmpfs /var/cache/build tmpfs size=4G,mode=1777 0 0"}},
		"/defaultUser":          {machineconfig.Config{DefaultUser: &machineconfig.DefaultUser{SSHKeys: []string{"ssh-ed25519 proof"}}}, []string{`"name":"core"`, "ssh-ed25519 proof"}},
		"/sshd":                 {of("sshd"), []string{"/etc/ssh/sshd_config.d/05-slipway.conf", "Port 2222\n", "PermitRootLogin prohibit-password\n", "X11Forwarding no\n"}},
		"/firewall":             {of("firewall"), []string{"slipway-firewall.service", "tcp dport 443 accept", "udp dport 30000-32767 accept", "policy drop"}},
		"/selinux":              {of("selinux"), []string{"'permissive'"}},
		"/packages/groups":      {machineconfig.Config{Packages: machineconfig.Packages{Groups: []string{"x"}}}, nil},
		"/packages/remove":      {machineconfig.Config{Packages: machineconfig.Packages{Remove: []string{"x"}}}, nil},
		"/packages/pins":        {machineconfig.Config{Packages: machineconfig.Packages{Pins: []machineconfig.Pin{{Name: "x", Version: "1"}}}}, nil},
		"/packages/snaps":       {of("packages-snaps"), nil},
		"/packages/proxy":       {machineconfig.Config{Packages: machineconfig.Packages{Proxy: "http://x"}}, nil},
		"/scripts/early":        {script(machineconfig.Early), nil},
		"/scripts/partitioning": {script(machineconfig.Partitioning), nil},
		"/scripts/chroot":       {script(machineconfig.Chroot), nil},
		"/scripts/late":         {script(machineconfig.LateStage), nil},
		"/scripts/error":        {script(machineconfig.OnError), nil},
		"/boot/powerAfter":      {machineconfig.Config{Boot: machineconfig.Boot{PowerAfter: machineconfig.PowerOff}}, nil},
		"/network/interfaces":   {net(machineconfig.Network{Interfaces: []machineconfig.Interface{{Name: "lan", MAC: "52:54:00:00:00:01", L3: machineconfig.L3{Addresses: []string{"192.0.2.7/24"}}}}}), []string{"192.0.2.7/24", "PermanentMACAddress=52:54:00:00:00:01\n\n[Link]\nName=lan"}},
		"/network/bonds":        {net(machineconfig.Network{Bonds: []machineconfig.Bond{{Name: "bond7", Mode: "802.3ad", Members: []string{"a"}, HashPolicy: "layer3+4"}}}), []string{"802.3ad", "layer3+4", "bond7"}},
		"/network/vlans":        {net(machineconfig.Network{VLANs: []machineconfig.VLAN{{Name: "v7", Parent: "lan", ID: 77}}}), []string{"d=77\n", "v7"}},
		"/network/bridges":      {net(machineconfig.Network{Bridges: []machineconfig.Bridge{{Name: "br7", Members: []string{"a"}}}}), []string{"bridge", "br7"}},
		"/network/dns":          {net(machineconfig.Network{DNS: []string{"192.0.2.53"}, Search: []string{"proof.example"}}), []string{"192.0.2.53", "proof.example"}},
		"/storage/layout":       {storage(machineconfig.Storage{Layout: "lvm"}), nil},
		"/storage/disks":        {storage(machineconfig.Storage{Disks: []machineconfig.Disk{{Name: "a", Device: sda, Partitions: []machineconfig.Partition{{Label: "proof", SizeMiB: 77}}}}}), []string{`"/dev/proof"`, `"label":"proof"`, `"sizeMiB":77`}},
		"/storage/raids":        {storage(machineconfig.Storage{RAIDs: []machineconfig.RAID{{Name: "md7", Level: "raid1", Devices: []string{"/dev/x", "p"}}}}), []string{`"raid1"`, `"md7"`, "/dev/disk/by-partlabel/p"}},
		"/storage/luks":         {storage(machineconfig.Storage{LUKS: []machineconfig.LUKS{{Name: "c7", Device: "/dev/x", Key: "secret://k"}}}), []string{`"c7"`, late.MarkerIn("secret://k", late.Percent)}},
		"/storage/lvm":          {storage(machineconfig.Storage{LVM: []machineconfig.VolumeGroup{{Name: "vg"}}}), nil},
		"/storage/filesystems": {
			storage(machineconfig.Storage{Filesystems: []machineconfig.Filesystem{{Device: "/dev/x", Format: "xfs", MountPoint: "/var/proof", Label: "l7"}}}),
			[]string{`"xfs"`, `"l7"`, "Where=/var/proof"},
		},
		"/users":              {user(machineconfig.User{}), []string{`"name":"core"`}},
		"/users/passwordHash": {user(machineconfig.User{PasswordHash: "secret://h", LockPassword: &no}), []string{late.MarkerIn("secret://h", late.JSONString), "PasswordAuthentication yes"}},
		"/users/sudo":         {user(machineconfig.User{Sudo: "ALL=(ALL) NOPASSWD:ALL"}), []string{"/etc/sudoers.d/core", "core ALL=(ALL) NOPASSWD:ALL\n"}},
		"/users/sshKeys":      {user(machineconfig.User{SSHKeys: []string{"ssh-ed25519 proof"}}), []string{"ssh-ed25519 proof"}},
		"/groups":             {machineconfig.Config{Groups: []machineconfig.Group{{Name: "proof", GID: &sampleGID}}}, []string{`"gid":4242`, `"proof"`}},
		"/files":              {file(machineconfig.File{Path: "/etc/proof", Mode: 0o604, Owner: "core", Content: machineconfig.Content{Text: "it holds"}}), []string{"/etc/proof", "it holds", `"mode":388`, `"name":"core"`, `"overwrite":true`}},
		"/files/append":       {file(machineconfig.File{Path: "/etc/proof", Append: true, Content: machineconfig.Content{Text: "it holds"}}), []string{`"append":[{"source":"data:,it holds`}},
		"/files/remote":       {file(machineconfig.File{Path: "/etc/proof", Content: machineconfig.Content{Remote: &machineconfig.Remote{URL: "https://proof.example/x"}}}), []string{"https://proof.example/x"}},
		"/files/volatile":     {file(machineconfig.File{Path: "/run/proof", Content: machineconfig.Content{Text: "it holds"}}), []string{"C /run/proof 0644 root root - /etc/slipway/stage/run/proof", "it holds"}},
		"/directories":        {machineconfig.Config{Dirs: []machineconfig.Directory{{Path: "/srv/proof"}}}, []string{"/srv/proof"}},
		"/links":              {machineconfig.Config{Links: []machineconfig.Link{{Path: "/srv/proof", Target: "there"}}}, []string{"/srv/proof", "there"}},
		"/units":              {machineconfig.Config{Units: []machineconfig.Unit{{Name: "proof.service", Masked: true}}}, []string{`"mask":true`, "proof.service"}},
		"/kernel/args":        {machineconfig.Config{Kernel: machineconfig.Kernel{Args: []string{"proof=1"}}}, []string{`"shouldExist":["proof=1"]`}},
		"/kernel/removeArgs":  {machineconfig.Config{Kernel: machineconfig.Kernel{RemoveArgs: []string{"proof=1"}}}, []string{`"shouldNotExist":["proof=1"]`}},
		"/kernel/modules":     {machineconfig.Config{Kernel: machineconfig.Kernel{Modules: []string{"proof"}}}, []string{"/etc/modules-load.d/slipway.conf", "proof\n"}},
		"/kernel/sysctl":      {machineconfig.Config{Kernel: machineconfig.Kernel{Sysctl: map[string]string{"proof.x": "1"}}}, []string{"proof.x = 1\n"}},
		"/time":               {machineconfig.Config{Time: machineconfig.Time{NTPServers: []string{"ntp.proof.example"}}}, []string{"ntp.proof.example", `"enabled":true`}},
		"/packages/repos":     {machineconfig.Config{Packages: machineconfig.Packages{Repos: []machineconfig.Repo{{ID: "x"}}}}, nil},
		"/packages/install":   {machineconfig.Config{Packages: machineconfig.Packages{Install: []string{"x"}}}, nil},
		"/packages/hold":      {machineconfig.Config{Packages: machineconfig.Packages{Hold: []string{"x"}}}, nil},
		"/packages/update":    {machineconfig.Config{Packages: machineconfig.Packages{Update: true}}, nil},
		"/extensions":         {machineconfig.Config{}, nil}, // by OS, below
		"/trust/cas":          {machineconfig.Config{Trust: sampleTrust}, []string{"certificateAuthorities", "slipway-trust.service", "BEGIN CERTIFICATE"}},

		"/commands/first-boot":     {command(machineconfig.FirstBoot), []string{"run-proof\n", "ConditionPathExists=!/var/lib/slipway/first-boot.done"}},
		"/commands/post-bootstrap": {command(machineconfig.PostBootstrap), []string{"run-proof\n", "slipway-finish.service"}},
		"/commands/every-boot":     {command(machineconfig.EveryBoot), []string{"run-proof\n", "slipway-every-boot.service"}},
		"/bootstrap":               {machineconfig.Config{Activation: &machineconfig.Activation{Exec: []string{"join"}, ReadyPath: "/proof"}}, []string{"'join'\n", "ConditionPathExists=!/proof"}},
		"/bootstrap/native":        {machineconfig.Config{Activation: &machineconfig.Activation{Native: &machineconfig.Passthrough{}}}, nil},
		"/bootstrap/prelude": {
			machineconfig.Config{Activation: &machineconfig.Activation{Prelude: &machineconfig.Passthrough{Format: "ignition", Data: []byte(late.Marker("secret://capi"))}}},
			[]string{`"merge":[{"source":"data:,` + late.MarkerIn("secret://capi", late.Percent) + `"}]`},
		},
		"/phoneHome": {machineconfig.Config{PhoneHome: machineconfig.PhoneHome{URL: late.Marker("session://report")}}, []string{"/etc/slipway/report-url", late.MarkerIn("session://report", late.Percent)}},
	}
}

func TestCapabilitiesAreTrue(t *testing.T) {
	all := proofs()
	var targets []machineconfig.Target
	for _, os := range []string{"fedora-coreos", "flatcar", "rhcos", "r4e", "fiot", "leap-micro", "debian", "custom"} {
		for _, tool := range []string{"", "3.2.0", "3.3.0", "3.4.0", "3.6.0"} {
			targets = append(targets, machineconfig.Target{OS: os, Tool: tool})
		}
	}
	proved, refused := 0, 0
	for _, on := range targets {
		cells := New().Capabilities(on)
		for _, f := range machineconfig.Fields() {
			cell, ok := cells[f.Path]
			proof, known := all[f.Path]
			if !ok || !known {
				t.Fatalf("%s %s: the field has no cell (%t) or no proof (%t)", on, f.Path, ok, known)
			}
			if f.Path == "/extensions" {
				e := machineconfig.Extension{Name: "proof", Remote: machineconfig.Remote{URL: "https://proof.example/e.raw"}}
				proof.want = []string{"https://proof.example/e.raw", "/etc/extensions/proof.raw", "systemd-sysext.service"}
				if familyOf(on.OS).variant == variantOpenShift {
					e.Format, e.URL, proof.want = machineconfig.RPMOSTree, "proof", []string{"rpm-ostree install", "'proof'"}
				}
				proof.c.Extensions = []machineconfig.Extension{e}
			}
			switch cell.Support {
			case machineconfig.Lossless, machineconfig.Emulated:
				prove(t, on, f.Path, proof.c, proof.want)
				proved++
			case machineconfig.Unsupported, machineconfig.Lossy:
				if cell.Note == "" {
					t.Errorf("%s %s: says no, but not what to do", on, f.Path)
				}
				if !machineconfig.Check(New(), on, &proof.c, nil).HasErrors() {
					t.Errorf("%s %s: Check does not report it", on, f.Path)
				}
				refused++
			default:
				t.Errorf("%s %s: level %d", on, f.Path, cell.Support)
			}
		}
		if n := len(machineconfig.Fields()); len(cells) != n {
			t.Errorf("%s: %d cells for %d fields", on, len(cells), n)
		}
	}
	t.Logf("%d cells proved, %d refused on %d targets", proved, refused, len(targets))
}

func prove(t *testing.T, on machineconfig.Target, path string, c machineconfig.Config, want []string) {
	t.Helper()
	out, report := New().Render(on, &c)
	if out == nil || len(report) > 0 {
		t.Errorf("%s %s %s: findings %v", on, on.Tool, path, report)
		return
	}
	text, err := url.PathUnescape(string(out.Documents[0].Data))
	if err != nil {
		text = string(out.Documents[0].Data)
	}
	text += strings.Join(out.Args, "\n")
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s %s: %q is not in %s", on, path, w, text)
		}
	}
}
