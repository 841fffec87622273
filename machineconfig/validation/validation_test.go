package validation

import (
	"strings"
	"testing"

	"slipway.dev/slipway/machineconfig/layer/layertest"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/layer"
)

const (
	keyED   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEHasJsr56icBPpkxIC163jwdebO8K5wlUEQ4Uwu79tJ admin@example.com"
	hashOf6 = "$6$saltsaltsalt$Cy2drr8kDRji6smvDcT28wkqtq0R0VzVL5CkrjPQCITc5d/31j94knt9rGTcVSyjLXfjsiIsBh5ee8qR/3QDx1"
)

// TestValidateFinds has a layer for each rule, with the path, a part of the message and a part of the hint.
func TestValidateFinds(t *testing.T) {
	for _, c := range []struct{ name, layer, path, want, hint string }{
		{"a host name with a domain", "host: {hostname: a.example.com}", "/host/hostname", "not a host name", "hostname: a and domain: example.com"},
		{"a host name with an underscore", "host: {hostname: a_b}", "/host/hostname", "not a host name", "letters"},
		{"a host name that ends with a dash", "host: {hostname: a-}", "/host/hostname", "not a host name", ""},
		{"a domain with a dot at its end", "host: {domain: example.com.}", "/host/domain", "not a domain", "without a dot"},
		{"a name that is too long", "host: {hostname: a, domain: " + strings.Repeat("a.", 126) + "b}", "/host/domain", "255 letters", ""},
		{"a short machine id", "host: {machineID: abc}", "/host/machineID", "machine id", "systemd-id128"},
		{"a machine id of zeros", "host: {machineID: '00000000000000000000000000000000'}", "/host/machineID", "zero", ""},
		{"a locale in words", "host: {locale: English}", "/host/locale", "not a locale", "en_US.UTF-8"},
		{"a keymap with a path", "host: {keymap: ../us}", "/host/keymap", "not a keymap", ""},
		{"a time zone with dots", "host: {timezone: ../../etc/passwd}", "/host/timezone", "not a time zone", "Europe/Berlin"},
		{"an unknown end of the installation", "boot: {powerAfter: powerof}", "/boot/powerAfter", "not known", "did you mean poweroff?"},
		{"a root device that is no path", "boot: {rootDevice: {path: sda}}", "/boot/rootDevice/path", "not a device", "/dev/sda"},
		{"sizes the wrong way round", "boot: {rootDevice: {minGiB: 5, maxGiB: 4}}", "/boot/rootDevice/minGiB", "more than maxGiB", ""},
		{"a negative size", "boot: {rootDevice: {minGiB: -5}}", "/boot/rootDevice", "negative", ""},

		{"a relative path", "files: [{path: etc/motd, text: a}]", "/files/etc~1motd/path", "not an absolute path", "begin with /"},
		{"a path with needless parts", "files: [{path: /etc//../motd, text: a}]", "/files/~1etc~1~1..~1motd/path", "needless parts", "write /motd"},
		{"a path with a line end", `files: [{path: "/etc/a\nb", text: a}]`, "/files/~1etc~1a\nb/path", "line end", ""},
		{"a file in /proc", "files: [{path: /proc/sys/a, text: a}]", "/files/~1proc~1sys~1a/path", "belongs to the kernel", "sysctl"},
		{"the root", "directories: [{path: /}]", "/directories/~1/path", "there already", ""},
		{"a path that is two things", "files: [{path: /a, text: a}]\nlinks: [{path: /a, target: b}]", "/links/~1a", "files too", ""},
		{"a directory that is a file too", "files: [{path: /a, text: a}]\ndirectories: [{path: /a}]", "/files/~1a", "directories too", ""},
		{"a file in a file", "files: [{path: /a, text: a}, {path: /a/b/c, text: a}]", "/files/~1a~1b~1c", "lies in /a, which is a file", ""},
		{"a file below a link", "files: [{path: /a/b, text: a}]\nlinks: [{path: /a, target: c}]", "/files/~1a~1b", "below the link", ""},
		{"a file that is a unit too", "files: [{path: /etc/systemd/system/a.service, text: a}]\nunits: [{name: a.service, contents: '[Unit]'}]", "/units/a.service", "files too", ""},
		{"an owner with a blank", "files: [{path: /a, text: a, owner: a b}]", "/files/~1a/owner", "name of a user", ""},
		{"two contents", "files: [{path: /a, text: a, base64: YQ==}]", "/files/~1a", "has text and base64", ""},
		{"an empty text and another content", "files: [{path: /a, text: '', base64: YQ==}]", "/files/~1a", "has text and base64", ""},
		{"no content", "files: [{path: /a, mode: 0600}]", "/files/~1a", "no content", `text: ""`},
		{"base64 that is none", "files: [{path: /a, base64: 'a b'}]", "/files/~1a/base64", "not base64", "base64 -w0"},
		{"base64 in lines", "files: [{path: /a, base64: \"YWJj\\nYWJj\"}]", "/files/~1a/base64", "not base64", "one line"},
		{"a secret without its scheme", "files: [{path: /a, secret: db}]", "/files/~1a/secret", "not a reference", "secret://NAME"},
		{"a secret with a bad name", "files: [{path: /a, secret: 'secret://A b'}]", "/files/~1a/secret", "not a reference", ""},
		{"http without a sum", "files: [{path: /a, remote: {url: 'http://a/b'}}]", "/files/~1a/remote/sha256", "is needed", "sha256sum"},
		{"a sum in capitals", "files: [{path: /a, remote: {url: 'https://a/b', sha256: ABC}}]", "/files/~1a/remote/sha256", "not a SHA-256", ""},
		{"ftp", "files: [{path: /a, remote: {url: 'ftp://a/b'}}]", "/files/~1a/remote/url", "not a URL of a web server", ""},
		{"a URL without a server", "files: [{path: /a, remote: {url: 'https:///b'}}]", "/files/~1a/remote/url", "names no server", ""},
		{"a URL with a password", "files: [{path: /a, remote: {url: 'https://u:p@a/b'}}]", "/files/~1a/remote/url", "user name or password", ""},
		{"a URL with a blank", "files: [{path: /a, remote: {url: 'https://a/b c'}}]", "/files/~1a/remote/url", "not a URL", "%20"},
		{"NUL in a text", `files: [{path: /a, text: "a\0"}]`, "/files/~1a/text", "NUL", "base64"},
		{"a link to nothing", "links: [{path: /a, target: ''}]", "/links/~1a/target", "no target", ""},
		{"a link to itself", "links: [{path: /a, target: /a}]", "/links/~1a/target", "itself", ""},
		{"a hard link to a relative path", "links: [{path: /a, target: b, hard: true}]", "/links/~1a/target", "not an absolute", ""},

		{"a user in capitals", "users: [{name: Admin}]", "/users/Admin", "name of a user", ""},
		{"a uid below 0", "users: [{name: a, uid: -1}]", "/users/a/uid", "not between", ""},
		{"a uid twice", "users: [{name: a, uid: 5}, {name: b, uid: 5}]", "/users/b/uid", `number of "a" too`, ""},
		{"a gid twice", "groups: [{name: a, gid: 5}, {name: b, gid: 5}]", "/groups/b/gid", `number of "a" too`, ""},
		{"a group with a blank", "groups: [{name: a b}]", "/groups/a b", "name of a group", ""},
		{"a group of a user with a comma", "users: [{name: a, groups: ['x,y']}]", "/users/a/groups/0", "name of a group", ""},
		{"a primary group in capitals", "users: [{name: a, primaryGroup: X}]", "/users/a/primaryGroup", "name of a group", ""},
		{"a relative shell", "users: [{name: a, shell: bash}]", "/users/a/shell", "not an absolute", ""},
		{"a colon in the gecos", "users: [{name: a, gecos: 'b:c'}]", "/users/a/gecos", "colon", ""},
		{"a plain password", "users: [{name: a, passwordHash: geheim}]", "/users/a/passwordHash", "not a crypt(3) hash", "openssl passwd -6"},
		{"a plain password of 13 letters", "users: [{name: a, passwordHash: abcdefghijklm}]", "/users/a/passwordHash", "not a crypt(3) hash", "openssl passwd -6"},
		{"a hash that was cut", "users: [{name: a, passwordHash: " + hashOf6[:90] + "}]", "/users/a/passwordHash", "not a complete", ""},
		{"an MD5 hash", "users: [{name: a, passwordHash: $1$saltsalt$qjXMvbEw8oaL.CzflDtaK/}]", "/users/a/passwordHash", "MD5", ""},
		{"a locked hash", "users: [{name: a, passwordHash: '!'}]", "/users/a/passwordHash", "locked", "lockPassword: true"},
		{"a password that is allowed and not given", "users: [{name: a, lockPassword: false}]", "/users/a/lockPassword", "everybody could log in", ""},
		{"sudo with the user's name", "users: [{name: a, sudo: 'a ALL=(ALL) ALL'}]", "/users/a/sudo", "begins with the user's name", "write ALL=(ALL) ALL"},
		{"sudo that is no rule", "users: [{name: a, sudo: 'yes please'}]", "/users/a/sudo", "not a sudoers rule", ""},
		{"sudo of two lines", `users: [{name: a, sudo: "ALL=ALL\nb ALL=ALL"}]`, "/users/a/sudo", "line end", ""},
		{"an SSH key without a type", "users: [{name: a, sshKeys: [AAAAC3NzaC1]}]", "/users/a/sshKeys/0", "not an SSH key", ".pub"},
		{"an SSH key that was cut", "users: [{name: a, sshKeys: ['" + keyED[:60] + "']}]", "/users/a/sshKeys/0", "not a complete", ".pub"},
		{"an SSH key of another type", "users: [{name: a, sshKeys: ['ssh-rsa " + strings.Fields(keyED)[1] + "']}]", "/users/a/sshKeys/0", "not a complete ssh-rsa", ""},
		{"an SSH key that is not base64", "users: [{name: a, sshKeys: ['ssh-ed25519 AAAA*']}]", "/users/a/sshKeys/0", "not base64", ""},
		{"two SSH keys in one", "users: [{name: a, sshKeys: [\"" + keyED + "\\n" + keyED + "\"]}]", "/users/a/sshKeys/0", "more than one line", "item of its own"},
		{"a private SSH key", "users: [{name: a, sshKeys: ['-----BEGIN OPENSSH PRIVATE KEY-----']}]", "/users/a/sshKeys/0", "private key", ""},

		{"a unit without a suffix", "units: [{name: app}]", "/units/app", "name of a unit", ".service"},
		{"a unit with a path", "units: [{name: ../a.service}]", "/units/..~1a.service", "name of a unit", ""},
		{"a unit without a section", "units: [{name: a.service, contents: 'ExecStart=/bin/true'}]", "/units/a.service/contents", "before any section", "[Service]"},
		{"an enabled unit without [Install]", "units: [{name: a.service, enabled: true, contents: '[Service]'}]", "/units/a.service/enabled", "no section [Install]", "WantedBy"},
		{"a masked unit with contents", "units: [{name: a.service, masked: true, contents: '[Service]'}]", "/units/a.service/masked", "has contents", ""},
		{"a masked unit that is enabled", "units: [{name: a.service, masked: true, enabled: true}]", "/units/a.service/masked", "is enabled", ""},
		{"a masked unit with drop-ins", "units: [{name: a.service, masked: true, dropIns: [{name: b.conf, contents: '[Unit]'}]}]", "/units/a.service/masked", "no effect", ""},
		{"a drop-in without .conf", "units: [{name: a.service, dropIns: [{name: b, contents: '[Unit]'}]}]", "/units/a.service/dropIns/b", "name of a drop-in", ".conf"},
		{"an empty drop-in", "units: [{name: a.service, dropIns: [{name: b.conf, contents: ''}]}]", "/units/a.service/dropIns/b.conf/contents", "empty", ""},

		{"a kernel argument with a blank", "kernel: {args: ['a b']}", "/kernel/args/0", "space", "two of it"},
		{"a kernel argument with an open quote", `kernel: {args: ['a="b']}`, "/kernel/args/0", "not closed", ""},
		{"a kernel argument with a line end", `kernel: {args: ["a\nb"]}`, "/kernel/args/0", "line end", ""},
		{"an empty kernel argument", "kernel: {args: ['']}", "/kernel/args/0", "not a kernel argument", ""},
		{"the end of the kernel's arguments", "kernel: {args: ['---']}", "/kernel/args/0", "not a kernel argument", ""},
		{"an argument that is added and removed", "kernel: {args: [quiet], removeArgs: [quiet]}", "/kernel/removeArgs/0", "added and removed", ""},
		{"a module with options", "kernel: {modules: ['a b=c']}", "/kernel/modules/0", "kernel module", ""},
		{"a setting that is no path", "kernel: {sysctl: {ip_forward: 1}}", "/kernel/sysctl/ip_forward", "kernel setting", "net.ipv4.ip_forward"},
		{"a setting of two lines", `kernel: {sysctl: {vm.a: "1\nvm.b=2"}}`, "/kernel/sysctl/vm.a", "line end", ""},
		{"a setting without a value", `kernel: {sysctl: {vm.a: ""}}`, "/kernel/sysctl/vm.a", "no value", ""},
		{"a time server with a blank", "time: {ntpServers: ['a b']}", "/time/ntpServers/0", "time server", ""},
		{"time servers that are off", "time: {ntpServers: [a], enabled: false}", "/time/enabled", "not used", ""},

		{"a package with options", "packages: {install: ['-y']}", "/packages/install/0", "name of a package", ""},
		{"packages in one item", "packages: {hold: ['a b']}", "/packages/hold/0", "name of a package", "per item"},
		{"a repository with a path", "packages: {repos: [{id: a/b, url: 'https://a'}]}", "/packages/repos/a~1b", "name of a repository", ""},
		{"a repository without URL", "packages: {repos: [{id: a}]}", "/packages/repos/a/url", "not a URL", ""},
		{"components of a flat repository", "packages: {repos: [{id: a, url: 'https://a', suite: /, components: [b]}]}", "/packages/repos/a/components", "flat", ""},
		{"components without a suite", "packages: {repos: [{id: a, url: 'https://a', components: [b]}]}", "/packages/repos/a/suite", "needed", ""},
		{"a suite with a blank", "packages: {repos: [{id: a, url: 'https://a', suite: 'a b'}]}", "/packages/repos/a/suite", "not a suite", ""},
		{"a component with a blank", "packages: {repos: [{id: a, url: 'https://a', suite: a, components: ['a b']}]}", "/packages/repos/a/components/0", "not a component", ""},
		{"a key over http", "packages: {repos: [{id: a, url: 'https://a', key: 'http://a/key'}]}", "/packages/repos/a/key", "over http", ""},
		{"a key that was cut", "packages: {repos: [{id: a, url: 'https://a', key: '-----BEGIN PGP PUBLIC KEY BLOCK----- x'}]}", "/packages/repos/a/key", "not a complete", ""},
		{"a private signing key", "packages: {repos: [{id: a, url: 'https://a', key: '-----BEGIN PGP PRIVATE KEY BLOCK-----'}]}", "/packages/repos/a/key", "private key", ""},
		{"an extension of an unknown format", "extensions: [{name: a, url: 'https://a', format: deb}]", "/extensions/a/format", "not known", ""},
		{"an extension over http without a sum", "extensions: [{name: a, url: 'http://a'}]", "/extensions/a/sha256", "needed", ""},
		{"an ostree extension with a URL", "extensions: [{name: a, url: 'https://a b', format: rpm-ostree}]", "/extensions/a/url", "name of a package", ""},
		{"a bootc extension with a blank", "extensions: [{name: a, url: 'a b', format: bootc}]", "/extensions/a/url", "container image", ""},
		{"an extension in capitals", "extensions: [{name: A/b, url: 'https://a'}]", "/extensions/A~1b", "name of an extension", ""},
		{"a CA that is none", "trust: {cas: [hello]}", "/trust/cas/0", "not a certificate", "PEM"},
		{"a CA that was cut", "trust: {cas: [\"-----BEGIN CERTIFICATE-----\\nMIIB\\n-----END CERTIFICATE-----\\n\"]}", "/trust/cas/0", "not a certificate", ""},
		{"a private key as CA", "trust: {cas: [\"-----BEGIN PRIVATE KEY-----\\nMIIB\\n-----END PRIVATE KEY-----\\n\"]}", "/trust/cas/0", "private key", ""},

		{"a command that says nothing", "commands: [{name: a}]", "/commands/a", "nothing to run", ""},
		{"a command that says two things", "commands: [{shell: a, argv: [b]}]", "/commands/0", "shell and argv", ""},
		{"a command without a program", "commands: [{argv: ['', b]}]", "/commands/0/argv/0", "empty", ""},
		{"an unknown phase", "commands: [{shell: a, phase: firstboot}]", "/commands/0/phase", "not known", "did you mean first-boot?"},
		{"a name of a command with a path", "commands: [{name: a/b, shell: c}]", "/commands/a~1b/name", "name of a command", ""},
		{"NUL in an argument", `commands: [{argv: [a, "\0"]}]`, "/commands/0/argv/1", "NUL", ""},

		{"a bootstrap without a kind", "bootstrap: {target: a}", "/bootstrap/kind", "needed", "kubeadm"},
		{"an unknown role", "bootstrap: {kind: kubeadm, role: master}", "/bootstrap/role", "not known", ""},
		{"a version with v", "bootstrap: {kind: kubeadm, version: v1.35.0}", "/bootstrap/version", "not a version", "without v"},
		{"a label that Kubernetes refuses", "bootstrap: {kind: kubeadm, labels: {'a b': c}}", "/bootstrap/labels/a b", "key of a label", ""},
		{"a label with two prefixes", "bootstrap: {kind: kubeadm, labels: {a/b/c: d}}", "/bootstrap/labels/a~1b~1c", "key of a label", ""},
		{"a value of a label with a blank", "bootstrap: {kind: kubeadm, labels: {a: 'b c'}}", "/bootstrap/labels/a", "value of a label", ""},
		{"an unknown effect", "bootstrap: {kind: kubeadm, taints: [{key: a, effect: NoScheduled}]}", "/bootstrap/taints/a:NoScheduled/effect", "not known", "did you mean NoSchedule?"},
		{"a kubelet argument with dashes", "bootstrap: {kind: kubeadm, kubeletArgs: {--max-pods: 5}}", "/bootstrap/kubeletArgs/--max-pods", "argument of the kubelet", "without the leading --"},
		{"a node name in capitals", "bootstrap: {kind: kubeadm, nodeName: Node}", "/bootstrap/nodeName", "name of a node", ""},
		{"a node IP that is none", "bootstrap: {kind: kubeadm, nodeIP: 192.0.2.300}", "/bootstrap/nodeIP", "not an address", ""},
		{"a provider id without a scheme", "bootstrap: {kind: kubeadm, providerID: abc}", "/bootstrap/providerID", "provider id", ""},
		{"a socket that is a path", "bootstrap: {kind: kubeadm, criSocket: /run/a.sock}", "/bootstrap/criSocket", "not a socket", "unix://"},
		{"a secret with its scheme where a name is wanted", "bootstrap: {kind: talos, secret: 'secret://a'}", "/bootstrap/secret", "without secret://", "write a"},
		{"an unknown format of a secret", "bootstrap: {kind: capi-secret, secretFormat: yaml}", "/bootstrap/secretFormat", "not known", ""},
		{"a join target with a path", "bootstrap: {kind: kubeadm, target: ../a}", "/bootstrap/target", "not the name of a join target", ""},
		{"an option with a blank", "bootstrap: {kind: k3s, options: {'a b': c}}", "/bootstrap/options/a b", "name of an option", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkOneFinding(t, c.layer, c.path, c.want, c.hint)
		})
	}
}

// checkOneFinding checks that a layer has one finding, with a source.
func checkOneFinding(t *testing.T, layer, path, want, hint string) {
	t.Helper()
	cfg := layertest.Merged(t, layer)
	r := Validate(cfg)
	if len(r) != 1 {
		t.Fatalf("%d findings; want one:\n%s", len(r), r)
	}
	f := r[0]
	if f.Path != path || !strings.Contains(f.Message, want) || !strings.Contains(f.Hint, hint) {
		t.Errorf("found %s; want %s %s (%s)", f, path, want, hint)
	}
	if !strings.HasPrefix(f.Source, "layer 1:") {
		t.Errorf("source %q; want the layer and its line", f.Source)
	}
	if f.Code == "" || f.Severity == "" {
		t.Errorf("no code or severity: %+v", f)
	}
}

func TestValidateNeverShowsPasswords(t *testing.T) {
	for _, secret := range []string{"hunter2hunter2", "$6$hunter2hunter2", "!hunter2hunter2"} {
		for _, f := range Validate(layertest.Merged(t, "users: [{name: a, passwordHash: '"+secret+"'}]")) {
			if strings.Contains(f.String(), "hunter2") {
				t.Errorf("the finding shows the password: %s", f)
			}
		}
	}
}

func TestValidateAccepts(t *testing.T) {
	for _, c := range []struct{ name, layer string }{
		{"an empty file", "files: [{path: /a, text: ''}]"},
		{"all hashes", "users: [{name: a, passwordHash: " + hashOf6 + "}, {name: b, passwordHash: $5$saltsalt$hcyDOxdIg0p3xyqtpHh/v8Ph.am06tQaovp1KpEklb7}, {name: c, passwordHash: $2b$05$abcdefghijklmnopqrstuuhKF09ZYWwH2zP/0fwE1X8e/Q1YNx/hO}, {name: d, passwordHash: $y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7}, {name: e, passwordHash: 'secret://x'}]"},
		{"an SSH key with options", "users: [{name: a, sshKeys: ['command=\"a b\",no-pty " + keyED + "']}]"},
		{"a part of a secret", "files: [{path: /a, secret: 'secret://tls#key.pem'}]"},
		{"a numeric owner", "files: [{path: /a, text: b, owner: '1000', group: '1000'}]"},
		{"a quoted kernel argument", `kernel: {args: ['dyndbg="file a +p"']}`},
		{"a default route on each interface with its metric", "network: {interfaces: [{name: a, addresses: [192.0.2.2/24], routes: [{to: 0.0.0.0/0, via: 192.0.2.1}]}, {name: b, addresses: [198.51.100.2/24], routes: [{to: 0.0.0.0/0, via: 198.51.100.1, metric: 10}]}]}"},
		{"a gateway that DHCP will reach", "network: {interfaces: [{name: a, dhcp4: true, routes: [{to: 198.51.100.0/24, via: 192.0.2.1}]}]}"},
		{"both ends of a point-to-point link", "network: {interfaces: [{name: a, addresses: [192.0.2.0/31]}]}"},
		{"a bond in a bridge with a VLAN", "network: {interfaces: [{name: a}, {name: b}], bonds: [{name: c, mode: 802.3ad, members: [a, b]}], vlans: [{name: d, parent: c, id: 5}], bridges: [{name: e, members: [d]}]}"},
		{"RAID, LUKS and LVM on each other", "storage: {disks: [{name: x, device: {path: /dev/a}, partitions: [{label: p}]}, {name: y, device: {path: /dev/b}, partitions: [{label: q}]}], raids: [{name: r, level: raid1, devices: [p, q]}], luks: [{name: l, device: r, tpm2: true}], lvm: [{name: v, devices: [l], lvs: [{name: w}]}], filesystems: [{device: v/w, format: xfs, mountPoint: /}]}"},
		{"Kubernetes labels and taints", "bootstrap: {kind: kubeadm, labels: {example.com/a.b: c_d, e: ''}, taints: [{key: example.com/a, effect: NoSchedule}, {key: example.com/a, effect: NoExecute, value: b}]}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := Validate(layertest.Merged(t, c.layer)); len(r) > 0 {
				t.Error(r)
			}
		})
	}
}

func TestValidateLimitsCounts(t *testing.T) {
	var b strings.Builder
	b.WriteString("files:\n")
	for i := range 4097 {
		b.WriteString("- {text: x, path: /a" + strings.Repeat("b", i%5) + string(rune('a'+i%26)) + "/" + strings.Repeat("c", i/130) + "/" + string(rune('a'+i/26%26)) + "}\n")
	}
	l, _ := layer.Parse(b.String(), "big")
	cfg, _ := layer.Merge(l)
	for len(cfg.Files) <= 4096 {
		cfg.Files = append(cfg.Files, cfg.Files...)
	}
	r := Validate(cfg)
	if len(r) != 1 || r[0].Path != "/files" || !strings.Contains(r[0].Message, "at most 4096") {
		t.Errorf("findings %v; want one about the number of files", r)
	}
	for _, l := range limits {
		if l.has(&machineconfig.Config{}) != 0 || l.most < 16 {
			t.Errorf("the limit of %s is odd", l.path)
		}
	}
}

// TestValidateChecksWhatProgramsBuild checks configurations that no layer made: lists may hold a key twice there.
func TestValidateChecksWhatProgramsBuild(t *testing.T) {
	c := &machineconfig.Config{
		Users: []machineconfig.User{{Name: "a"}, {Name: "a"}}, Groups: []machineconfig.Group{{Name: "g"}, {Name: "g"}},
		Units:    []machineconfig.Unit{{Name: "a.service", DropIns: []machineconfig.DropIn{{Name: "x.conf", Contents: "[Unit]"}, {Name: "x.conf", Contents: "[Unit]"}}}, {Name: "a.service"}},
		Files:    []machineconfig.File{{Path: "/a"}, {Path: "/a"}, {Path: "/b", Mode: 0o17777}},
		Commands: []machineconfig.Command{{Name: "x", Shell: "a"}, {Name: "x", Shell: "b"}, {Shell: "c"}, {Shell: "c"}},
		Packages: machineconfig.Packages{Repos: []machineconfig.Repo{{ID: "r", URL: "https://a"}, {ID: "r", URL: "https://a"}}},
	}
	got := map[string]string{}
	for _, f := range Validate(c) {
		got[f.Path] += f.Code
	}
	for path, code := range map[string]string{
		"/users/a": "duplicate", "/groups/g": "duplicate", "/units/a.service": "duplicate", "/units/a.service/dropIns/x.conf": "duplicate",
		"/files/~1a": "duplicate", "/commands/x": "duplicate", "/packages/repos/r": "duplicate", "/files/~1b/mode": "invalid",
	} {
		if got[path] != code {
			t.Errorf("%s: found %q; want %s", path, got[path], code)
		}
		delete(got, path)
	}
	if len(got) > 0 {
		t.Errorf("found more: %v", got)
	}
}
