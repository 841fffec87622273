package ignition

import (
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

const samplePEM = `-----BEGIN CERTIFICATE-----
MIIBezCCASGgAwIBAgIUQm9ndXMgY2VydGlmaWNhdGUgZm9yIHRlc3RzMAoGCCqG
SM49BAMCMBQxEjAQBgNVBAMMCXNsaXB3YXkgQ0E=
-----END CERTIFICATE-----
`

const sampleButane = `variant: fcos
version: 1.4.0
storage:
  files:
    - path: /etc/motd
      contents:
        inline: theirs
        compression: ""
        verification:
          hash: sha256-0000000000000000000000000000000000000000000000000000000000000000
    - path: /etc/theirs
      mode: 0600
      contents:
        inline: |
          password=SLIPWAYLATEr7365637265743a2f2f6462Z
systemd:
  units:
    - name: theirs.service
      enabled: true
      contents: |
        [Service]
        ExecStart=/bin/true
        [Install]
        WantedBy=multi-user.target
`

var sampleHost = machineconfig.HostIdentity{
	Hostname: "node-1", Domain: "example.org", MachineID: "0123456789abcdef0123456789abcdef",
	Locale: "de_DE.UTF-8", Keymap: "de", Timezone: "Europe/Berlin",
}

var sampleFiles = []machineconfig.File{
	{Path: "/etc/motd", Content: machineconfig.Content{Text: "Grüße, 100% \"quoted\" & <more>\n"}},
	{Path: "/etc/token", Mode: 0o600, Owner: "etcd", Group: "123", Content: machineconfig.Content{Secret: "secret://token"}},
	{Path: "/etc/mixed", Mode: 0o640, Content: machineconfig.Content{Text: "user=a\npassword=" + late.Marker("secret://db") + "\n"}},
	{Path: "/etc/blob", Content: machineconfig.Content{Base64: "AAEC\n/w=="}},
	{Path: "/opt/tool", Mode: 0o4755, Content: machineconfig.Content{Remote: &machineconfig.Remote{
		URL: "http://mirror.example/tool", SHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	}}},
	{Path: "/opt/here", Content: machineconfig.Content{Remote: &machineconfig.Remote{
		URL: late.Marker("session://base") + "/artefact/x", SHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	}}},
	{Path: "/etc/profile", Append: true, Content: machineconfig.Content{Text: "export EDITOR=vi\n"}},
	{Path: "/run/app/conf", Mode: 0o600, Owner: "app", Content: machineconfig.Content{Text: "volatile\n"}},
	{Path: "/var/run/with space/100%", Content: machineconfig.Content{Text: "odd\n"}},
	{Path: "/etc/empty"},
}

var sampleDirs = []machineconfig.Directory{
	{Path: "/srv/data", Mode: 0o750, Owner: "app", Group: "app"},
	{Path: "/srv/shared", Mode: 0o1777},
	{Path: "/run/sockets"},
}

var sampleLinks = []machineconfig.Link{
	{Path: "/usr/local/bin/vi", Target: "/usr/bin/vim"},
	{Path: "/etc/twin", Target: "/etc/motd", Hard: true},
}

var (
	yes, no     = true, false
	sampleGID   = 4242
	sampleUID   = 1500
	sampleUsers = []machineconfig.User{
		{
			Name: "ops", Gecos: "Operations", Home: "/home/ops", Shell: "/bin/bash", PrimaryGroup: "staff", UID: &sampleUID,
			Groups: []string{"wheel", "docker"}, PasswordHash: "secret://ops-hash", LockPassword: &no, Sudo: "ALL=(ALL) NOPASSWD:ALL",
			SSHKeys: []string{"ssh-ed25519 AAAAC3Nz ops@example.org"},
		},
		{Name: "j.doe", PasswordHash: "$6$salt$hash", LockPassword: &yes, Sudo: "ALL=(ALL) ALL"},
		{Name: "daemon-x", System: true, LockPassword: &yes},
	}
	sampleGroups = []machineconfig.Group{{Name: "app", GID: &sampleGID}, {Name: "sys-x", System: true}}
)

var sampleUnits = []machineconfig.Unit{
	{Name: "hello.service", Enabled: &yes, Contents: "[Service]\nType=oneshot\nExecStart=/bin/echo \"hello " + late.Marker("secret://greeting") + "\"\n\n[Install]\nWantedBy=multi-user.target\n"},
	{Name: "locksmithd.service", Masked: true},
	{Name: "update-engine.service", Enabled: &no, DropIns: []machineconfig.DropIn{{Name: "10-x.conf", Contents: "[Service]\nNice=5\n"}}},
}

var sampleNetwork = machineconfig.Network{
	Interfaces: []machineconfig.Interface{
		{Name: "lan0", MAC: "52:54:00:AA:BB:01", L3: machineconfig.L3{
			MTU: 9000, Addresses: []string{"192.0.2.10/24", "2001:db8::10/64"}, DNS: []string{"192.0.2.53", "2001:db8::53"}, Search: []string{"example.org"},
			AcceptRA: &no,
			Routes: []machineconfig.Route{
				{To: "0.0.0.0/0", Via: "192.0.2.1", Metric: 100},
				{To: "::/0", Via: "2001:db8::1"},
				{To: "198.51.100.0/24", Via: "203.0.113.1", OnLink: true},
				{To: "203.0.113.0/24", Metric: 5},
			},
		}},
		{Name: "eth9", L3: machineconfig.L3{DHCP4: true, DHCP6: true, Optional: true}},
		{Name: "p1", MAC: "52:54:00:aa:bb:02"},
	},
	Bonds: []machineconfig.Bond{
		{Name: "bond0", Mode: "802.3ad", Members: []string{"p1", "p2"}, MIIMonMS: 100, LACPRate: "fast", HashPolicy: "layer3+4"},
		{Name: "bond1", Mode: "active-backup", Members: []string{"p3", "p4"}, Primary: "p3", L3: machineconfig.L3{DHCP4: true}},
	},
	Bridges: []machineconfig.Bridge{{Name: "br0", Members: []string{"p5"}, STP: &no, L3: machineconfig.L3{Addresses: []string{"10.9.0.1/24"}}}},
	VLANs:   []machineconfig.VLAN{{Name: "vlan7", Parent: "bond0", ID: 7, L3: machineconfig.L3{Addresses: []string{"10.7.0.2/24"}}}},
	DNS:     []string{"9.9.9.9"}, Search: []string{"corp.example"},
}

var sampleStorage = machineconfig.Storage{
	Disks: []machineconfig.Disk{
		{Name: "root", WipeTable: true, Partitions: []machineconfig.Partition{
			{Label: "swap0", Number: 1, SizeMiB: 1024, StartMiB: 1},
			{Label: "raid-a", SizeMiB: 4096, TypeGUID: "A19D880F-05FC-4D3B-A006-743F0F84911E", GUID: "11111111-2222-3333-4444-555555555555", WipeEntry: true},
		}},
		{Name: "b", Device: machineconfig.DeviceSelector{Path: "/dev/sdb"}, Partitions: []machineconfig.Partition{{Label: "raid-b"}}},
	},
	RAIDs: []machineconfig.RAID{{Name: "md-data", Level: "raid1", Devices: []string{"raid-a", "raid-b"}}},
	LUKS: []machineconfig.LUKS{{
		Name: "crypt", Device: "md-data", Key: "secret://disk-key", TPM2: true, Wipe: true,
		Tang: []machineconfig.Tang{{URL: "http://tang.example", Thumbprint: "abcdefghijklmnopqrstuvwxyz0"}},
	}},
	Filesystems: []machineconfig.Filesystem{
		{Device: "crypt", Format: "xfs", Label: "data", MountPoint: "/var/lib/data", MountOptions: []string{"noatime"}, Options: []string{"-K"}, Wipe: true},
		{Device: "swap0", Format: "swap"},
		{Device: "/dev/sdc", Format: "ext4", UUID: "99999999-2222-3333-4444-555555555555"},
	},
}

var sampleKernel = machineconfig.Kernel{
	Args: []string{"console=ttyS0", "nosmt"}, RemoveArgs: []string{"quiet"}, Modules: []string{"br_netfilter", "overlay"},
	Sysctl: map[string]string{"net.ipv4.ip_forward": "1", "kernel.panic": "10"},
}

var (
	sampleTime  = machineconfig.Time{NTPServers: []string{"ntp1.example", "ntp2.example"}}
	sampleTrust = machineconfig.Trust{CAs: []string{samplePEM}}
)

var sampleExtensions = []machineconfig.Extension{
	{Name: "kubernetes", Remote: machineconfig.Remote{URL: "http://mirror.example/k8s.raw", SHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}},
	{Name: "vim", Remote: machineconfig.Remote{URL: "vim-enhanced"}, Format: machineconfig.RPMOSTree},
	{Name: "os", Remote: machineconfig.Remote{URL: "quay.io/example/os:44"}, Format: machineconfig.Bootc},
}

var sampleBootstrap = machineconfig.Config{
	Host:  machineconfig.HostIdentity{Hostname: "node-1"},
	Files: []machineconfig.File{{Path: "/run/mine", Content: machineconfig.Content{Text: "mine\n"}}},
	Commands: []machineconfig.Command{
		{Name: "greet", Shell: "echo 'first boot' > /var/tmp/first\n"},
		{Argv: []string{"touch", "/var/tmp/it's"}},
		{Phase: machineconfig.PostBootstrap, Shell: "echo done > /var/tmp/post"},
		{Phase: machineconfig.EveryBoot, Shell: "echo boot >> /var/tmp/boots"},
	},
	Activation: &machineconfig.Activation{
		Kind: "kubeadm",
		Files: []machineconfig.File{
			{Path: "/run/kubeadm/join.yaml", Mode: 0o640, Content: machineconfig.Content{Text: "token: \"" + late.Marker("join://prod/token") + "\"\n"}},
			{Path: "/etc/kubernetes/patches/x.json", Content: machineconfig.Content{Text: "{}\n"}},
		},
		Exec:      []string{"kubeadm", "join", "--config", "/run/kubeadm/join.yaml", "--note", "it's " + late.Marker("secret://note")},
		ReadyPath: "/etc/kubernetes/kubelet.conf", Sentinel: "/run/cluster-api/bootstrap-success.complete",
		After: []string{"containerd.service"}, Cleanup: []string{"/run/kubeadm/join.yaml"},
	},
	PhoneHome: machineconfig.PhoneHome{URL: late.Marker("session://report")},
}
