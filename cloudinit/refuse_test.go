package cloudinit_test

import (
	"strings"
	"testing"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

func TestWhatCannotBeSaidIsRefusedWithPlaceAndHint(t *testing.T) {
	debian, rocky, photon := targets[0], targets[4], targets[5]
	many := machineconfig.Network{}
	for i := range 200 {
		many.Interfaces = append(many.Interfaces, machineconfig.Interface{
			Name: "eth" + strings.Repeat("x", i%7) + string(rune('a'+i%26)), MAC: "52:54:00:00:" + string("0123456789abcdef"[i/16]) + string("0123456789abcdef"[i%16]) + ":01",
			L3: machineconfig.L3{Addresses: []string{"192.0.2.1/24", "2001:db8::" + string("0123456789abcdef"[i%16]) + "/64"}},
		})
	}
	vlan := machineconfig.Network{VLANs: []machineconfig.VLAN{{Name: "storage", Parent: "eth0", ID: 3}}}
	for name, test := range map[string]struct {
		target machineconfig.Target
		config machineconfig.Config
		path   string
		code   string
	}{
		"a network too large for the kernel's arguments": {debian, machineconfig.Config{Network: many}, "/network", "too-large"},
		"DNS servers without an interface":               {debian, machineconfig.Config{Network: machineconfig.Network{DNS: []string{"192.0.2.1"}}}, "/network/dns", "not-expressible"},
		"a port that is not known":                       {debian, machineconfig.Config{Network: machineconfig.Network{Interfaces: []machineconfig.Interface{{Name: "a", MAC: "boot"}}}}, "/network/interfaces/a", "boot-mac"},
		"a secret in the network":                        {debian, machineconfig.Config{Network: machineconfig.Network{Interfaces: []machineconfig.Interface{{Name: "a", L3: machineconfig.L3{Addresses: []string{late.Marker("secret://x")}}}}}}, "/network", "late-value"},
		"a VLAN's free name with sysconfig":              {rocky, machineconfig.Config{Network: vlan}, "/network/vlans/storage", "vlan-name"},
		"targets of ARP without netplan":                 {rocky, machineconfig.Config{Network: machineconfig.Network{Bonds: []machineconfig.Bond{{Name: "bond1", ARPTargets: []string{"192.0.2.1"}}}}}, "/network/bonds/bond1/arpTargets", "not-expressible"},
		"a VLAN with networkd":                           {photon, machineconfig.Config{Network: vlan}, "/network/vlans/storage", "not-expressible"},
		"the root disk":                                  {debian, machineconfig.Config{Storage: machineconfig.Storage{Disks: []machineconfig.Disk{{Name: "a"}}}}, "/storage/disks/a", "not-expressible"},
		"a disk by its serial number":                    {debian, machineconfig.Config{Storage: machineconfig.Storage{Disks: []machineconfig.Disk{{Name: "a", Device: machineconfig.DeviceSelector{Serial: "x"}}}}}, "/storage/disks/a/device", "not-expressible"},
		"a file system on nothing":                       {debian, machineconfig.Config{Storage: machineconfig.Storage{Filesystems: []machineconfig.Filesystem{{Device: "vg/lv", Format: "ext4"}}}}, "/storage/filesystems/vg~1lv", "not-expressible"},
		"the root file system":                           {debian, machineconfig.Config{Storage: machineconfig.Storage{Filesystems: []machineconfig.Filesystem{{Device: "/dev/vdb", Format: "ext4", MountPoint: "/"}}}}, "/storage/filesystems/~1dev~1vdb", "not-expressible"},
		"a label that looks like another's partition": {debian, machineconfig.Config{Storage: machineconfig.Storage{
			Disks:       []machineconfig.Disk{{Name: "a", Device: machineconfig.DeviceSelector{Path: "/dev/vdb"}, Partitions: []machineconfig.Partition{{Label: "d"}, {Label: "d1"}}}},
			Filesystems: []machineconfig.Filesystem{{Device: "d", Format: "ext4"}},
		}}, "/storage/filesystems/d", "ambiguous-label"},
		"a layered package":              {debian, machineconfig.Config{Extensions: []machineconfig.Extension{{Name: "x", Format: machineconfig.RPMOSTree}}}, "/extensions/x", "not-expressible"},
		"a secret in kernel arguments":   {debian, machineconfig.Config{Kernel: machineconfig.Kernel{Args: []string{"a=" + late.Marker("secret://x")}}}, "/kernel/args", "late-value"},
		"a whole document":               {debian, machineconfig.Config{Activation: &machineconfig.Activation{Native: &machineconfig.Passthrough{Format: "talos"}}}, "/bootstrap/native", "not-expressible"},
		"an Ignition bootstrap secret":   {debian, machineconfig.Config{Activation: &machineconfig.Activation{Prelude: &machineconfig.Passthrough{Format: "ignition"}}}, "/bootstrap/prelude", "not-expressible"},
		"a document of another tool":     {debian, machineconfig.Config{Document: &machineconfig.Passthrough{Format: "butane"}}, "", "document-format"},
		"secrets among other characters": {debian, machineconfig.Config{Activation: &machineconfig.Activation{Prelude: &machineconfig.Passthrough{Format: "cloud-config", Data: []byte("ü" + late.Marker("secret://x"))}}}, "/bootstrap/prelude", "not-ascii"},
	} {
		t.Run(name, func(t *testing.T) {
			r, report := cloudinit.New().Render(test.target, &test.config)
			if r != nil || !report.HasErrors() {
				t.Fatalf("it is rendered: %v", report)
			}
			f := report[0]
			if f.Path != test.path || f.Code != test.code || f.Message == "" || f.Hint == "" {
				t.Errorf("found %+v, want %s at %q", f, test.code, test.path)
			}
		})
	}
	target := targets[1]
	r, report := cloudinit.New().Render(target, &machineconfig.Config{Network: many})
	if r == nil || len(r.Args) != 0 || len(report) != 1 || report[0].Severity != machineconfig.SeverityWarning {
		t.Errorf("a version that fetches its network warns: %v", report)
	}
}

func TestDocumentsAreChecked(t *testing.T) {
	late := late.Marker("secret://x")
	for name, test := range map[string]struct {
		version, text, source, code, hint string
	}{
		"a good one":                     {"22.4.2", "#cloud-config\nruncmd: [a]\n", "", "", ""},
		"an empty one":                   {"22.4.2", "#cloud-config\n", "", "", ""},
		"a script":                       {"22.4.2", "#!/bin/sh\necho\n", "document:1:1", "header", "#cloud-config"},
		"a blank line before it":         {"22.4.2", "\n \n#cloud-config\npackages: [vim]\n", "", "", ""},
		"words after it":                 {"22.4.2", "#cloud-config for the web servers\npackages: [vim]\n", "", "", ""},
		"capital letters":                {"22.4.2", "#Cloud-Config\npackages: [vim]\n", "", "", ""},
		"a blank line, then a mistake":   {"22.4.2", "\n#cloud-config\nhostnme: a\n", "document:3:1", "unknown-key", "did you mean hostname?"},
		"a comment before it":            {"22.4.2", "# mine\n#cloud-config\n", "document:1:1", "header", "first line"},
		"a byte order mark":              {"22.4.2", "\ufeff#cloud-config\n", "document:1:1", "encoding", "without a byte order mark"},
		"UTF-16":                         {"22.4.2", "\xff\xfe#\x00", "document:1:1", "encoding", "UTF-8"},
		"Latin-1":                        {"22.4.2", "#cloud-config\npackages: [\"caf\xe9\"]\n", "document:2:16", "encoding", "iconv"},
		"two documents":                  {"22.4.2", "#cloud-config\npackages: [vim]\n---\nruncmd: [echo]\n", "document:3:1", "second-document", "without ---"},
		"a script after a blank line":    {"22.4.2", "\n#!/bin/sh\necho\n", "document:2:1", "header", "runcmd"},
		"a list of URLs":                 {"22.4.2", "#include\nhttps://x.example/\n", "document:1:1", "header", "what is at the URLs"},
		"a list of URLs for once":        {"22.4.2", "#include-once\nhttps://x.example/\n", "document:1:1", "header", "what is at the URLs"},
		"a boothook":                     {"22.4.2", "#cloud-boothook\necho\n", "document:1:1", "header", "bootcmd"},
		"an archive":                     {"22.4.2", "#cloud-config-archive\n- a\n", "document:1:1", "header", "its parts"},
		"a patch":                        {"22.4.2", "#cloud-config-jsonp\n[]\n", "document:1:1", "header", "as one #cloud-config"},
		"a part handler":                 {"22.4.2", "#part-handler\n", "document:1:1", "header", "image"},
		"a MIME message":                 {"22.4.2", "Content-Type: multipart/mixed; boundary=\"x\"\nMIME-Version: 1.0\n", "document:1:1", "header", "its parts"},
		"gzip":                           {"22.4.2", "\x1f\x8b\x08\x00\xff", "document:1:1", "header", "gunzip"},
		"a script in a template":         {"22.4.2", "## template: jinja\n#!/bin/sh\n", "document:2:1", "header", "runcmd"},
		"words about the merge":          {"22.4.2", "#cloud-config\nmerge_how: dict(replace)\n", "document:2:1", "merge", "merge_how"},
		"a misspelled key":               {"22.4.2", "#cloud-config\n\nhostnme: a\n", "document:3:1", "unknown-key", "did you mean hostname?"},
		"a key of a later version":       {"22.4.2", "#cloud-config\nubuntu_pro: {}\n", "document:2:1", "unknown-key", "it needs cloud-init 24.1"},
		"the same in that version":       {"24.1", "#cloud-config\nubuntu_pro: {}\n", "", "", ""},
		"a key far from any":             {"22.4.2", "#cloud-config\nabcdefghijkl: 1\n", "document:2:1", "unknown-key", "documentation"},
		"a key twice":                    {"22.4.2", "#cloud-config\nruncmd: []\nhostname: a\nruncmd: []\n", "document:4:1", "duplicate", "one"},
		"broken YAML":                    {"22.4.2", "#cloud-config\nruncmd:\n\t- a\n", "document:3:1", "yaml", ""},
		"a list":                         {"22.4.2", "#cloud-config\n- a\n", "document:2:1", "yaml", "key: value"},
		"a command with a colon":         {"22.4.2", "#cloud-config\nruncmd:\n  - echo one: two\n  - echo ok\n", "document:3:5", "bad-type", "quotes"},
		"a word of a command":            {"22.4.2", "#cloud-config\nbootcmd:\n- [sh, -c, {a: b}]\n", "document:3:12", "bad-type", "quotes"},
		"a nested key twice":             {"22.4.2", "#cloud-config\nchpasswd:\n  expire: false\n  users: []\n  expire: true\n", "document:5:3", "duplicate", "leave one"},
		"a nested key misspelled":        {"22.4.2", "#cloud-config\nwrite_files:\n- path: /a\n  contents: b\n", "document:4:3", "unknown-key", "did you mean content?"},
		"a file without a path":          {"22.4.2", "#cloud-config\nwrite_files:\n- content: b\n", "document:3:3", "missing", "add it"},
		"a user without a name":          {"22.4.2", "#cloud-config\nusers:\n- default\n- shell: /bin/sh\n", "document:4:3", "missing", "one of them"},
		"a map of packages":              {"22.4.2", "#cloud-config\npackages: {vim: latest}\n", "document:2:11", "bad-type", "list"},
		"a word for a list":              {"22.4.2", "#cloud-config\npackages: vim\n", "document:2:11", "bad-type", "list"},
		"a mode that is a number":        {"22.4.2", "#cloud-config\nwrite_files:\n- {path: /a, permissions: 0644}\n", "document:3:27", "bad-type", "quotes"},
		"a word of a closed list":        {"22.4.2", "#cloud-config\npower_state: {mode: restart}\n", "document:2:21", "bad-type", "reboot"},
		"an alias of another type":       {"22.4.2", "#cloud-config\nfinal_message: &a {b: c}\nruncmd: [*a]\n", "document:2:16", "bad-type", "quotes"},
		"a mistake in what is merged":    {"22.4.2", "#cloud-config\nwrite_files:\n- &f {path: /a, owner: root}\n- <<: *f\n  pathh: /b\n", "document:5:3", "unknown-key", "did you mean path?"},
		"aliases that are right":         {"22.4.2", "#cloud-config\nwrite_files:\n- &f {path: /a, owner: root}\n- <<: *f\n  path: /b\n", "", "", ""},
		"a nested key after blank lines": {"22.4.2", "\n\n#cloud-config\nntp:\n  severs: [a]\n", "document:5:3", "unknown-key", "did you mean servers?"},
		"a template with two branches":   {"22.4.2", "## template: jinja\n#cloud-config\nntp:\n{% if a %}\n  enabled: true\n{% else %}\n  enabled: false\n{% endif %}\n", "", "", ""},
		"a template":                     {"22.4.2", "## template: jinja\n#cloud-config\n{% if v1.region %}\nruncmd: [ '{{ v1.region }}' ]\n{% endif %}\n", "", "", ""},
		"a misspelled nested key in a template with branches": {"22.4.2", "## template: jinja\n#cloud-config\nntp:\n{% if a %}\n  severs: [a]\n{% endif %}\n", "document:5:3", "unknown-key", "did you mean servers?"},
		"a size in a template":                                {"22.4.2", "## template: jinja\n#cloud-config\nswap: {size: \"{{ a }}\"}\n", "", "", ""},
		"a size without its unit":                             {"22.4.2", "#cloud-config\nswap: {filename: /s, size: 2 gigabytes}\n", "document:2:28", "bad-value", "write a size such as 2G"},
		"a delay of words":                                    {"22.4.2", "#cloud-config\npower_state: {mode: reboot, delay: soon}\n", "document:2:36", "bad-value", "minutes such as +5"},
		"a delay before now":                                  {"22.4.2", "#cloud-config\npower_state: {mode: reboot, delay: -1}\n", "document:2:36", "bad-value", "0 or more"},
		"delays that are right":                               {"22.4.2", "#cloud-config\npower_state: {mode: reboot, delay: now}\nswap: {size: 1.5G, maxsize: 2000000}\n", "", "", ""},
		"a mount of seven words":                              {"22.4.2", "#cloud-config\nmounts:\n- [a, /b, nfs, defaults, '0', '0', x]\n", "document:3:3", "bad-value", "6 or less"},
		"default fields that lack one":                        {"22.4.2", "#cloud-config\nmount_default_fields: [a, b, c, d, e]\n", "document:2:23", "bad-value", "a list of 6"},
		"a package with two versions":                         {"22.4.2", "#cloud-config\npackages: [[a, 1.0-1, 2.0-1]]\n", "document:2:12", "bad-value", "a list of 2"},
		"a password without its user":                         {"22.4.2", "#cloud-config\nchpasswd: {list: [hunter2]}\n", "document:2:19", "bad-value", "USER:PASSWORD"},
		"two names for one key":                               {"22.4.2", "#cloud-config\nrh_subscription: {activation_key: a, activation-key: b}\n", "document:2:38", "exclusive", "leave one"},
		"a user of two kinds":                                 {"22.4.2", "#cloud-config\nusers: [{name: a, snapuser: b@c}]\n", "document:2:19", "exclusive", "leave one"},
		"empty lists":                                         {"22.4.2", "#cloud-config\nruncmd: []\npackages: []\nmounts: []\n", "", "", ""},
		"a secret where a pattern is":                         {"22.4.2", "#cloud-config\nchpasswd: {list: [" + late + "]}\n", "", "", ""},
		"a misspelled key in a template":                      {"22.4.2", "## template: jinja\n#cloud-config\nruncmdd: [ {{ a }} ]\n", "document:3:1", "unknown-key", "did you mean runcmd?"},
		"a secret in a template":                              {"22.4.2", "## template: jinja\n#cloud-config\nruncmd: [ " + late + " ]\n", "document:1:1", "late-in-jinja", "file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, report := cloudinit.CheckDocument(test.version, []byte(test.text))
			if test.code == "" {
				if len(report) > 0 {
					t.Error(report)
				}
				return
			}
			if len(report) == 0 {
				t.Fatal("nothing is found")
			}
			if f := report[0]; f.Source != test.source || f.Code != test.code || !strings.Contains(f.Hint, test.hint) {
				t.Errorf("found %+v", f)
			}
		})
	}
}

func TestAMarkerInADocumentIsQuoted(t *testing.T) {
	out, report := cloudinit.CheckDocument("22.4", []byte("#cloud-config\nwrite_files:\n- path: /a\n  content: |\n    ü "+late.Marker("secret://x")+"\n"))
	if len(report) > 0 {
		t.Fatal(report)
	}
	data, err := late.Inject([]byte(out), func(string) ([]byte, error) { return []byte("a\n\"b: 'c"), nil })
	if err != nil {
		t.Fatal(err)
	}
	if want := "#cloud-config\nwrite_files:\n  - path: /a\n    content: \"\\u00fc a\\n\\\"b: 'c\\n\"\n"; string(data) != want {
		t.Errorf("got  %q\nwant %q", data, want)
	}
}

func TestVersionsAreCompared(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"22.4.2", "24.1", -1},
		{"24.10", "24.9", 1},
		{"22.4", "22.4.0", 0},
		{"22.4.2-1+deb12u4", "22.4.2", 0},
		{"", "0", 0},
		{"25.1", "25.1.4", -1},
		{"99999999999999999999", "1", 1},
	} {
		if got := cloudinit.CompareVersions(test.a, test.b); got != test.want {
			t.Errorf("%q and %q compare as %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
