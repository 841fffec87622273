package ignition_test

import (
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/test/corpus"
)

func ownCases() []corpus.Case {
	yes, no := true, false
	uid := 1500
	secret := late.Marker("secret://db")
	text := func(s string) machineconfig.Content { return machineconfig.Content{Text: s} }
	boot := &machineconfig.Activation{
		Kind: "kubeadm",
		Files: []machineconfig.File{
			{Path: "/run/kubeadm/join.yaml", Mode: 0o640, Content: text("token: \"" + late.Marker("join://prod/token") + "\"\n")},
			{Path: "/run/cluster-api/placeholder", Content: text("x\n")},
			{Path: "/etc/kubernetes/patches/x.json", Mode: 0o600, Content: text("{}\n")},
		},
		Exec:      []string{"kubeadm", "join", "--config", "/run/kubeadm/join.yaml", "--note", "it's " + secret},
		ReadyPath: "/etc/kubernetes/kubelet.conf", Sentinel: "/run/cluster-api/bootstrap-success.complete",
		After: []string{"containerd.service"}, Cleanup: []string{"/run/kubeadm/join.yaml"},
	}
	return []corpus.Case{
		{Name: "own: files", Config: &machineconfig.Config{
			Files: []machineconfig.File{
				{Path: "/etc/motd", Content: text("Grüße, 100% \"quoted\" & <more> 'x' \\n\n")},
				{Path: "/etc/control", Content: text("a\x01b\x7f\u0085\u2028c\ttab\r\n")},
				{Path: "/etc/token", Mode: 0o600, Content: machineconfig.Content{Secret: "secret://token"}},
				{Path: "/etc/mixed", Mode: 0o640, Owner: "app", Group: "app", Content: text("password=" + secret + "\n")},
				{Path: "/etc/blob", Content: machineconfig.Content{Base64: "AAEC/w=="}},
				{Path: "/etc/decimal", Mode: 0o674, Content: text("its mode is 444 in decimal")},
				{Path: "/opt/tool", Mode: 0o4755, Content: machineconfig.Content{Remote: &machineconfig.Remote{URL: "http://mirror/tool"}}},
				{Path: "/etc/profile", Append: true, Content: text("export EDITOR=vi\n")},
				{Path: "/run/app/conf", Mode: 0o600, Owner: "app", Content: text("volatile\n")},
				{Path: "/var/run/with space/100%", Content: text("odd\n")},
				{Path: "/etc/empty"},
				{Path: "/etc/large", Content: text(string(make2k()))},
			},
			Dirs:   []machineconfig.Directory{{Path: "/srv/data", Mode: 0o750, Owner: "app"}, {Path: "/srv/shared", Mode: 0o1777}, {Path: "/run/sockets"}},
			Links:  []machineconfig.Link{{Path: "/usr/local/bin/vi", Target: "/usr/bin/vim"}, {Path: "/etc/twin", Target: "/etc/motd", Hard: true}},
			Users:  []machineconfig.User{{Name: "app", UID: &uid, System: true}},
			Groups: []machineconfig.Group{{Name: "crew"}},
		}},
		{Name: "own: users", Config: &machineconfig.Config{Users: []machineconfig.User{
			{
				Name: "ops", Gecos: "Operations", Shell: "/bin/bash", UID: &uid, Groups: []string{"sudo", "docker"}, PasswordHash: "secret://ops-hash",
				LockPassword: &no, Sudo: "ALL=(ALL) NOPASSWD:ALL", SSHKeys: []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ ops@example.org"},
			},
			{Name: "j.doe", PasswordHash: "$6$salt$hash", LockPassword: &yes, Sudo: "ALL=(ALL) ALL"},
		}}},
		{Name: "own: units", Config: &machineconfig.Config{Units: []machineconfig.Unit{
			{Name: "hello.service", Enabled: &yes, Contents: "[Service]\nType=oneshot\nExecStart=/bin/echo \"100%% " + late.Marker("session://base") + "\"\n\n[Install]\nWantedBy=multi-user.target\n"},
			{Name: "masked.service", Masked: true},
			{Name: "off.service", Enabled: &no, DropIns: []machineconfig.DropIn{{Name: "10-x.conf", Contents: "[Service]\nNice=5\n"}}},
			{Name: "tick.timer", Enabled: &yes},
		}}},
		{Name: "own: bootstrap", Config: &machineconfig.Config{
			Host:  machineconfig.HostIdentity{Hostname: "node-1", Domain: "example.org", Timezone: "Europe/Berlin", Locale: "C.UTF-8", Keymap: "de"},
			Files: []machineconfig.File{{Path: "/run/mine", Content: text("mine\n")}},
			Commands: []machineconfig.Command{
				{Name: "greet", Shell: "echo 'first boot' > /var/tmp/first\n"},
				{Argv: []string{"touch", "/var/tmp/it's", secret}},
				{Phase: machineconfig.PostBootstrap, Shell: "echo done > /var/tmp/post"},
				{Phase: machineconfig.EveryBoot, Shell: "echo boot >> /var/tmp/boots"},
			},
			Activation: boot,
			PhoneHome:  machineconfig.PhoneHome{URL: late.Marker("session://report")},
			Extensions: []machineconfig.Extension{{Name: "kubernetes", Remote: machineconfig.Remote{URL: "http://mirror/k8s.raw"}}},
			Kernel:     machineconfig.Kernel{Modules: []string{"overlay"}, Sysctl: map[string]string{"net.ipv4.ip_forward": "1"}, Args: []string{"nosmt"}},
			Time:       machineconfig.Time{NTPServers: []string{"ntp.example"}},
		}},
		{Name: "own: network", Config: &machineconfig.Config{Network: ownNetwork()}},
		{Name: "own: storage", Config: &machineconfig.Config{Storage: machineconfig.Storage{
			Disks: []machineconfig.Disk{{Name: "b", Device: machineconfig.DeviceSelector{Path: "/dev/vdb"}, WipeTable: true, Partitions: []machineconfig.Partition{
				{Label: "swap0", Number: 1, SizeMiB: 64}, {Label: "data", Number: 2},
			}}},
			LUKS:        []machineconfig.LUKS{{Name: "crypt", Device: "data", Key: "secret://disk", Wipe: true}},
			Filesystems: []machineconfig.Filesystem{{Device: "crypt", Format: "ext4", MountPoint: "/var/lib/data", Wipe: true}, {Device: "swap0", Format: "swap"}},
		}}},
		{Name: "own: butane", Config: &machineconfig.Config{
			Host:     machineconfig.HostIdentity{Hostname: "node-1"},
			Document: &machineconfig.Passthrough{Format: "butane", Data: []byte("variant: fcos\nversion: 1.4.0\nstorage:\n  files:\n    - path: /etc/theirs\n      contents:\n        inline: \"password=" + secret + "\\n\"\n    - path: /etc/hostname\n      contents:\n        inline: theirs\n")},
		}},
		{Name: "own: prelude", Config: &machineconfig.Config{Activation: &machineconfig.Activation{Prelude: &machineconfig.Passthrough{
			Format: "ignition", Data: []byte(`{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/etc/prelude","contents":{"source":"data:,it%20came"},"mode":384}]}}`),
		}}}},
	}
}

// make2k is text that Butane compresses.
func make2k() []byte {
	var out []byte
	for range 400 {
		out = append(out, "all work and no play "...)
	}
	return append(out, '\n')
}

func ownNetwork() machineconfig.Network {
	no := false
	return machineconfig.Network{
		Interfaces: []machineconfig.Interface{
			{Name: "lan0", MAC: "52:54:00:AA:BB:01", L3: machineconfig.L3{
				MTU: 1400, Addresses: []string{"192.0.2.10/24", "2001:db8::10/64"}, DNS: []string{"192.0.2.53"}, Search: []string{"example.org"}, AcceptRA: &no,
				Routes: []machineconfig.Route{{To: "0.0.0.0/0", Via: "192.0.2.1", Metric: 100}, {To: "::/0", Via: "2001:db8::1"}, {To: "198.51.100.0/24", Via: "203.0.113.1", OnLink: true}},
			}},
			{Name: "p1", MAC: "52:54:00:aa:bb:02"},
		},
		Bonds:   []machineconfig.Bond{{Name: "bond7", Mode: "active-backup", Members: []string{"p1", "p2"}, MIIMonMS: 100, Primary: "p2"}},
		Bridges: []machineconfig.Bridge{{Name: "br7", Members: []string{"p3"}, STP: &no, L3: machineconfig.L3{Addresses: []string{"10.9.0.1/24"}}}},
		VLANs:   []machineconfig.VLAN{{Name: "vlan7", Parent: "bond7", ID: 7, L3: machineconfig.L3{Addresses: []string{"10.7.0.2/24"}}}},
		DNS:     []string{"9.9.9.9"}, Search: []string{"corp.example"},
	}
}
