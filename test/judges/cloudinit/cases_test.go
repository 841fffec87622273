package cloudinit

import (
	"testing"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// ownCases are configurations that the corpus does not have: those that layers cannot make.
func ownCases(t *testing.T) []*seedCase {
	t.Helper()
	yes, no, uid := true, false, 1234
	host := machineconfig.HostIdentity{InstanceID: "i-1", Hostname: "node-1", Domain: "example.org"}
	report := machineconfig.PhoneHome{URL: late.Marker("session://report")}
	return []*seedCase{
		{name: "own-users", config: &machineconfig.Config{
			Host: host,
			Users: []machineconfig.User{
				{
					Name: "alice", Gecos: "Alice: admin, \"chief\"", UID: &uid, Home: "/home/a", Shell: "/bin/bash", Groups: []string{"adm", "wheel"},
					PrimaryGroup: "staff", PasswordHash: "secret://alice-hash", Sudo: "ALL=(ALL) NOPASSWD:ALL", SSHKeys: []string{"ssh-ed25519 AAAA alice@x"},
				},
				{Name: "daemon-x", System: true, LockPassword: &yes},
				{Name: "open", LockPassword: &no, PasswordHash: "$6$a$b"},
				{Name: "root", SSHKeys: []string{"ssh-ed25519 BBBB root@x"}},
			},
			Groups: []machineconfig.Group{{Name: "plain"}, {Name: "numbered", GID: &uid, System: true}},
		}},
		{name: "own-files", config: &machineconfig.Config{
			Host: host,
			Files: []machineconfig.File{
				{Path: "/etc/plain", Content: machineconfig.Content{Text: "a\nb\n"}},
				{Path: "/etc/odd name: yes", Mode: 0o600, Content: machineconfig.Content{Text: "  leading\n\ttab\r\n# {{ no }} \x07 \u2028 end"}},
				{Path: "/etc/binary", Content: machineconfig.Content{Base64: "AAH/gA=="}},
				{Path: "/etc/latin1", Content: machineconfig.Content{Text: "caf\xe9\n"}},
				{Path: "/etc/empty"},
				{Path: "/etc/secret", Mode: 0o400, Owner: "alice", Content: machineconfig.Content{Secret: "secret://db"}},
				{Path: "/etc/with-secret", Content: machineconfig.Content{Text: "password: " + late.Marker("secret://db") + "\n"}},
				{Path: "/etc/issue", Append: true, Content: machineconfig.Content{Text: "more\n"}},
				{Path: "/run/thing/x", Mode: 0o640, Content: machineconfig.Content{Text: "volatile"}},
				{Path: "/etc/trailing", Content: machineconfig.Content{Text: "a\n\n\n"}},
				{Path: "/etc/spaces", Content: machineconfig.Content{Text: "a \n b\t\nc"}},
			},
		}},
		{name: "own-bootstrap", config: &machineconfig.Config{
			Host: host, PhoneHome: report,
			Commands: []machineconfig.Command{
				{Name: "first", Shell: "echo \"first's\" >>\"$TRACE\""},
				{Phase: machineconfig.PostBootstrap, Argv: []string{"sh", "-c", "echo \"post $1\" >>\"$TRACE\"", "x", "a b'c\n$HOME"}},
				{Phase: machineconfig.EveryBoot, Shell: "echo every"},
			},
			Activation: &machineconfig.Activation{
				Kind:  "kubeadm",
				Files: []machineconfig.File{{Path: "/run/kubeadm/join.yaml", Mode: 0o600, Content: machineconfig.Content{Text: "token: " + late.Marker("join://prod/token")}}},
				Exec:  []string{"sh", "-c", "echo activate >>\"$TRACE\""}, ReadyPath: "/nonexistent/kubelet.conf",
				Cleanup: []string{"/run/kubeadm/join.yaml"},
			},
		}},
		{name: "own-prelude", config: &machineconfig.Config{
			Host: host, PhoneHome: report,
			Bootstrap: &machineconfig.BootstrapSpec{Kind: "capi-secret", ProviderID: "slipway://lab/node-1"},
			Users:     []machineconfig.User{{Name: "alice", SSHKeys: []string{"ssh-ed25519 AAAA"}}},
			Time:      machineconfig.Time{NTPServers: []string{"ntp.ours.example"}},
			Files:     []machineconfig.File{{Path: "/etc/ours", Content: machineconfig.Content{Text: "größe\n"}}},
			Commands: []machineconfig.Command{
				{Shell: "echo ours-first"}, {Shell: "echo ours-post", Phase: machineconfig.PostBootstrap},
			},
			Activation: &machineconfig.Activation{
				Kind: "capi-secret", Sentinel: "/run/cluster-api/bootstrap-success.complete",
				Prelude: &machineconfig.Passthrough{Format: "cloud-config", Jinja: true, Data: []byte(late.Marker("secret://bootstrap"))},
			},
		}},
		{name: "own-document", config: &machineconfig.Config{
			Host: host,
			Document: &machineconfig.Passthrough{Format: "cloud-config", Data: []byte("#cloud-config\n# mine\nruncmd:\n- echo theirs\nwrite_files:\n" +
				"- path: /etc/theirs\n  content: " + late.Marker("secret://db") + "\nswap: {filename: /swap, size: 1024}\n")},
			Commands: []machineconfig.Command{{Shell: "echo ours"}},
			Files:    []machineconfig.File{{Path: "/etc/ours", Content: machineconfig.Content{Text: "ours"}}},
		}},
		{name: "own-silence", config: &machineconfig.Config{Host: host, Document: cloudConfig("#cloud-config\n" +
			"ssh_authorized_keys: [ssh-ed25519 AAAA ops@example.com]\npassword: \"$6$a$b\"\nchpasswd: {expire: false}\nssh_pwauth: true\n")}},
		{name: "own-default-user", config: &machineconfig.Config{
			Host: host, Users: []machineconfig.User{{Name: "alice", SSHKeys: []string{"ssh-ed25519 AAAA"}}},
			Document: cloudConfig("\n#cloud-config for all\npassword: \"$6$a$b\"\n"),
		}},
		{name: "own-precedence", config: &machineconfig.Config{
			Host:     machineconfig.HostIdentity{InstanceID: "i-1", Hostname: "node-1", Timezone: "UTC", Locale: "en_US.UTF-8"},
			Users:    []machineconfig.User{{Name: "ops", Shell: "/bin/bash", Sudo: "ALL=(ALL) NOPASSWD:ALL"}},
			Commands: []machineconfig.Command{{Shell: "echo ours"}},
			Time:     machineconfig.Time{NTPServers: []string{"ntp.ours.example"}},
			Document: cloudConfig("#cloud-config\nhostname: doc-name\nfqdn: doc-name.example\npreserve_hostname: true\ntimezone: Europe/Berlin\n" +
				"locale: de_DE.UTF-8\nmanage_etc_hosts: true\nruncmd: [echo theirs]\nntp: {enabled: false, servers: [ntp.theirs.example], ntp_client: chrony}\nusers:\n- name: ops\n" +
				"  shell: /bin/sh\n  lock_passwd: false\n  ssh_authorized_keys: [ssh-ed25519 AAAA doc]\n- name: other\n"),
		}},
		{name: "own-template", config: &machineconfig.Config{
			Host:     host,
			Document: cloudConfig("\n## template: jinja\n#cloud-config\nhostname: doc-name\nfinal_message: '{{ v1.local_hostname }}'\n"),
		}},
		{name: "own-network", config: &machineconfig.Config{Host: host, Network: fullNetwork()}},
		{name: "own-software", config: &machineconfig.Config{
			Host: host,
			Packages: machineconfig.Packages{
				Repos: []machineconfig.Repo{
					{ID: "k8s", URL: "https://pkgs.example/deb/", Suite: "/", Key: "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n"},
					{ID: "two", URL: "https://two.example/", Suite: "stable", Components: []string{"main", "extra"}, Key: "https://two.example/key.asc"},
				},
				Install: []string{"kubelet=1.35.0-1.1", "curl"}, Hold: []string{"kubelet"}, Update: true,
			},
			Trust: machineconfig.Trust{CAs: []string{"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"}},
			Time:  machineconfig.Time{NTPServers: []string{"192.0.2.1", "ntp.example.org"}},
			Units: []machineconfig.Unit{
				{Name: "x.service", Contents: "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n", Enabled: &yes},
				{Name: "ssh.service", DropIns: []machineconfig.DropIn{{Name: "10-x.conf", Contents: "[Service]\nEnvironment=\"A=%n\"\n"}}},
				{Name: "y.service", Masked: true},
				{Name: "z.timer", Enabled: &no},
			},
			Kernel:     machineconfig.Kernel{Args: []string{"nosmt", "console=ttyS0,115200"}, RemoveArgs: []string{"quiet"}, Modules: []string{"br_netfilter", "overlay"}, Sysctl: map[string]string{"net.ipv4.ip_forward": "1", "kernel.panic": "10"}},
			Extensions: []machineconfig.Extension{{Name: "k8s", Remote: machineconfig.Remote{URL: "https://x.example/k8s.raw", SHA256: "00"}}},
			Dirs:       []machineconfig.Directory{{Path: "/srv/a b", Mode: 0o700, Owner: "alice"}, {Path: "/run/d"}},
			Links:      []machineconfig.Link{{Path: "/etc/l", Target: "/etc/t"}, {Path: "/etc/h", Target: "/etc/t", Hard: true}},
		}},
		{name: "own-storage", config: &machineconfig.Config{
			Host: host,
			Storage: machineconfig.Storage{
				Disks: []machineconfig.Disk{{Name: "data", Device: machineconfig.DeviceSelector{Path: "/dev/disk/by-id/x"}, WipeTable: true, Partitions: []machineconfig.Partition{
					{Label: "etcd", Number: 1, SizeMiB: 10240, TypeGUID: "0FC63DAF-8483-4772-8E79-3D69D8477DE4"}, {Label: "rest"},
				}}},
				Filesystems: []machineconfig.Filesystem{
					{Device: "etcd", Format: "ext4", Label: "ETCD", MountPoint: "/var/lib/etcd", MountOptions: []string{"noatime"}, Wipe: true},
					{Device: "rest", Format: "xfs", UUID: "c0ffee00-0000-4000-8000-000000000000", MountPoint: "/srv"},
					{Device: "/dev/vdz", Format: "swap"},
				},
			},
			Files: []machineconfig.File{{Path: "/srv/late", Content: machineconfig.Content{Text: "x"}}},
		}},
	}
}

func cloudConfig(text string) *machineconfig.Passthrough {
	return &machineconfig.Passthrough{Format: "cloud-config", Data: []byte(text)}
}

func fullNetwork() machineconfig.Network {
	no := false
	return machineconfig.Network{
		Interfaces: []machineconfig.Interface{
			{Name: "eno1", MAC: "52:54:00:12:34:56", L3: machineconfig.L3{MTU: 9000}},
			{Name: "eno2", MAC: "52:54:00:12:34:57"},
			{Name: "eno3", MAC: "52:54:00:12:34:58", L3: machineconfig.L3{DHCP4: true, Optional: true}},
		},
		Bonds: []machineconfig.Bond{{
			Name: "bond0", Mode: "802.3ad", Members: []string{"eno1", "eno2"}, MIIMonMS: 100, LACPRate: "fast", HashPolicy: "layer3+4",
			L3: machineconfig.L3{
				Addresses: []string{"192.0.2.10/24", "2001:db8::10/64"}, AcceptRA: &no,
				Routes: []machineconfig.Route{{To: "0.0.0.0/0", Via: "192.0.2.1"}, {To: "::/0", Via: "2001:db8::1"}, {To: "198.51.100.0/24", Via: "192.0.2.2", Metric: 50}},
			},
		}},
		VLANs:   []machineconfig.VLAN{{Name: "storage", Parent: "bond0", ID: 42, L3: machineconfig.L3{MTU: 1500, Addresses: []string{"203.0.113.5/28"}}}},
		Bridges: []machineconfig.Bridge{{Name: "br0", Members: []string{"eno3"}, STP: &no, L3: machineconfig.L3{DHCP4: true}}},
		DNS:     []string{"192.0.2.53"}, Search: []string{"example.org"},
	}
}
