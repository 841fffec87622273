package installer

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/installer/autoinstall"
	"slipway.dev/slipway/installer/kickstart"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// TestOurVerdictsOnKickstartAreAnacondas asks pykickstart about files in which one thing is wrong for some releases.
func TestOurVerdictsOnKickstartAreAnacondas(t *testing.T) {
	judge(t, nil)
	validator := os.Getenv("SLIPWAY_KSVALIDATOR")
	if validator == "" {
		t.Skip("pykickstart is not in Debian: set SLIPWAY_KSVALIDATOR to a ksvalidator program to have it judge")
	}
	versions := map[machineconfig.Target]string{}
	for v, t := range map[string]machineconfig.Target{
		"RHEL8": {OS: "rocky", Release: "8"}, "RHEL9": {OS: "rhel", Release: "9"}, "RHEL10": {OS: "almalinux", Release: "10"}, "F43": {OS: "fedora", Release: "43"},
	} {
		t.Arch = inventory.X8664
		versions[t] = v
	}
	texts := []string{
		"install", "part / --sise=1024", "part / --fstype=xfs --size=1024", "%packages --nobase\n%end", "auth --enableshadow", "authselect select minimal",
		"timezone UTC --isUtc", "timezone UTC --utc --ntpservers=a", "timesource --ntp-server=a", "rdp --password=a", "vnc --host=a",
		"rhsm --organization=1 --activation-key=k", "user --groups=wheel", "user --name=u --lock", "rootpw --lock", "rootpw --lock=yes", "network --hostn=x",
		"repo --name='a b' --baseurl=http://x/ # --bogus", "lang 'en", "%post --erroronfial\n%end", "%pre --nochroot\n%end", "%packages --excludeWeakdeps\n%end",
		"%packages --exclude-weakdeps\n%end", "sshkey --username=a 'ssh-rsa k'", "zerombr --x", "selinux --enforcing", "ostreecontainer --url=x", "bogus",
		"bootloader --sdboot", "part / --hw-passphrase=x --size=1", "unsupported_hardware", "module --name=a",
		"reboot --kexec", "ignoredisk --only-use=sda", "clearpart --all --initlabel", "%addon com_redhat_kdump --enable\n%end",
	}
	all := len(texts)
	texts = append(texts,
		"autopart --type=LVM", "autopart --type=zfs", "autopart --type=btrfs", "autopart lvm", "autopart --noswap --hibernation", "raid / --device=md0 --level=RAID7 raid.1",
		"raid / --device=md0 --level=RAID1 raid.1 raid.2", "raid / --device=md0 raid.1", "raid / --device=md0 --level=1", "raid / --device=md0 --noformat",
		"snapshot a/b --name=x --when=now", "snapshot a/b --name=x --when=pre-install", "logvol / --vgname=a --name=b --size=1 --percent=200",
		"logvol / --vgname=a --name=b --percent=50", "logvol / --vgname=a --name=b --thin", "logvol / --vgname=a --name=b --thinpool --thin --poolname=a",
		"logvol / --vgname=a --name=b --chunksize=1 --size=1", "logvol / --vgname=a --name=b --resize --size=1", "logvol --vgname=a --name=b --size=1",
		"network --bootproto=DHCP", "network --bootproto dhcp", "network --bootproto=auto", "network --onboot=maybe", "network --onboot=YES", "network --bindto=ip --device=a",
		"network --bridgeopts=a=b --device=b", "mount /dev/sda1 home", "mount /dev/sda1 none", "mount /dev/sda1 /x --mkfsoptions=a", "mount /dev/sda1",
		"part --size=1", "part / /x --size=1", "part / --size=1G", "part / --size=1_0", "part / --size", "part / --resize --size=1", "part / --resize --onpart=a",
		"part / --resize --onpart=a --size=1", "part / --resize --usepart=a --size=1", "part / --mkfsoptions=a --noformat", "part / --mkfsoptions=a --fsprofile=b",
		"part / --pbkdf-time=1 --pbkdf-iterations=2 --size=1", "volgroup a", "volgroup", "volgroup a --noformat", "volgroup a pv.1 --reserved-percent=100",
		"volgroup a pv.1 --reserved-space=-1", "volgroup a pv.1 --pesize=4096", "rootpw", "rootpw a", "rootpw a b", "rootpw a --lock", "url", "url --url=http://a",
		"url --url=a --mirrorlist=b", "url --url=a --metalink=b", "url http://a", "repo --name=a", "repo --name=a --baseurl=x --mirrorlist=y", "repo --name=a --baseurl=x --cost=y",
		"keyboard", "keyboard us", "keyboard us de", "keyboard --vckeymap=us", "lang", "lang a b", "lang --addsupport=a", "ignoredisk", "ignoredisk --drives=a --only-use=b",
		"services", "services --enabled=a", "bootloader --location=Mbr", "bootloader --location=none", "bootloader --timeout=x", "timezone", "timezone a b",
		"timezone a --nontp --ntpservers=b", "logging --level=trace", "logging --host=a", "user --name=a --uid=x", "group --name=a --gid=x", "iscsi --ipaddr=1 --port=x", "iscsiname",
		"sshkey --username=a k l", "sshpw --username=a", "zerombr yes", "reboot now", "text me", "updates x y", "firewall --enabled ssh", "selinux enforcing",
		"%packages --timeout=x\n%end", "%packages\n@a --nodefaults --optional\n%end", "%packages\n@a --bogus\n%end", "%packages\nvim emacs\n%end", "%packages\n-\n%end",
		"%packages\n-vim\n@^env\n@group with blanks\n*\n%end",
	)
	for i, text := range texts {
		for target, version := range versions {
			if i >= all && version != "RHEL8" { // one release says what words and values there may be; each run takes a second
				continue
			}
			_, report := kickstart.New().Render(target, &machineconfig.Config{Document: &machineconfig.Passthrough{Format: "kickstart", Data: []byte(text + "\n")}})
			out, err := exec.Command(validator, "-v", version, write(t, "ks.cfg", []byte(text+"\n"))).CombinedOutput()
			isWarned := strings.Contains(string(out), "deprecated") && !strings.Contains(string(out), "problem occurred")
			if (err != nil && !isWarned) != report.HasErrors() {
				t.Errorf("%s, %q: pykickstart says %v %s, we say %v", version, text, err, out, report)
			}
		}
	}
}

// TestOurVerdictsOnAutoinstallAreTheSchemas asks the schema that Ubuntu's installer publishes.
func TestOurVerdictsOnAutoinstallAreTheSchemas(t *testing.T) {
	judge(t, nil)
	path := os.Getenv("SLIPWAY_AUTOINSTALL_SCHEMA")
	if path == "" {
		t.Skip("the schema is not in Debian: set SLIPWAY_AUTOINSTALL_SCHEMA to autoinstall-schema.json of Ubuntu's installer to have it judge")
	}
	schema, err := jsonschema.NewCompiler().Compile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", "interactive-sections: []", "late-commands: ['a: b', [a, b]]", "late-commands:\n  - echo note: done", "late-commands: [[a, {b: c}]]", "late-commands: x",
		"identity: {hostname: h, username: u, password: p}", "identity: {hostname: h, username: u}", "identity: {hostname: h, username: u, password: 1}",
		"identity: {hostname: h, username: u, password: p, shell: x}", "identity: {hostname: h, username: u, password: p, groups: [a]}",
		"keyboard: {layout: de}", "keyboard: {layuot: de}", "keyboard: {layout: de, toggle: ~}", "keyboard: {layout: de, variant: 1}", "keyboard: de",
		"updates: all", "updates: none", "shutdown: poweroff", "shutdown: halt", "packages: [a]", "packages: [1]", "packages: {a: b}",
		"snaps: [{name: a, classic: true}]", "snaps: [{channel: a}]", "snaps: [{name: a, clasic: true}]", "snaps: [a]", "kernel: {flavor: hwe}", "kernel: {}",
		"kernel-crash-dumps: {enabled: ~}", "kernel-crash-dumps: {}", "proxy: ~", "proxy: http://x/", "proxy: []", "apt: {fallback: abort}", "apt: {fallback: x}",
		"apt: {mirror-selection: {primary: [country-mirror, {uri: http://x/}]}}", "apt: {mirror-selection: {primary: [{arches: [a]}]}}", "apt: {geoip: 1}",
		"network: {version: 2, ethernets: {e: {dhcp4: true}}}", "network: {network: {version: 2}}", "network: {ethernets: {}}", "ssh: {install-server: true}",
		"ssh: {install-server: [a]}", "ssh: {authorized-keys: a}", "refresh-installer: {update: true}", "refresh-installer: {updates: true}", "drivers: {install: true}",
		"oem: {install: auto}", "oem: {}", "source: {id: x}", "source: {search_drivers: x}", "reporting: {b: {type: print}}", "reporting: {b: {level: x}}",
		"storage: {layout: {name: lvm}}", "storage: []", "zdevs: [{id: x, enabled: true}]", "active-directory: {admin-name: a, domain: b}", "timezone: Europe/Berlin",
		"user-data: {}", "user-data: []", "debconf-selections: a", "locale: de_DE.UTF-8", "locale: 1", "codecs: {install: false}", "ubuntu-pro: {token: C1111111111111111111111111}", "ubuntu-pro: {token: 1}",
		"ubuntu-pro: {token: C111111111111111111111111O}", "ubuntu-advantage: {token: X1111111111111111111111111}", "ubuntu-pro: {token: C1}", "network: {version: 1}",
		"network: {network: {version: 3}}", "kernel: {package: a, flavor: b}", "kernel: {package: a}", "oem: {install: yess}", "oem: {install: true}",
		"apt: {mirror-selection: {primary: [other-mirror]}}",
	} {
		body := "version: 1\n" + text + "\n"
		var v any
		if err := yaml.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(plain)))
		if err != nil {
			t.Fatal(err)
		}
		theirs := schema.Validate(doc)
		_, report := autoinstall.New().Render(machineconfig.Target{OS: "ubuntu", Release: "24.04", Arch: inventory.X8664},
			&machineconfig.Config{Document: &machineconfig.Passthrough{Format: "autoinstall", Data: []byte("autoinstall:\n  " + strings.ReplaceAll(body, "\n", "\n  "))}})
		if (theirs != nil) != report.HasErrors() {
			t.Errorf("%q: the schema says %v, we say %v", text, theirs, report)
		}
	}
}
