package render

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/installer/autoinstall"
	"slipway.dev/slipway/installer/kickstart"
	"slipway.dev/slipway/installer/preseed"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// Why something is said though nobody said it.
const (
	same   = "it is what the tool does by itself"
	asks   = "the installer would stop and ask"
	server = "a server has no screen, see docs/profiles.md"
)

// silence is all that a configuration without a word says in each format. docs/profiles.md tells it.
var silence = []struct {
	format, os, release string
	says                map[string]string
}{
	{"cloud-init", "debian", "12", map[string]string{}},
	{"ignition", "fedora-coreos", "43", map[string]string{}},
	{"autoinstall", "ubuntu", "24.04", map[string]string{
		"version: 1": asks, "keyboard:": same, "timezone: Etc/UTC": same, "storage:": same, "updates: security": same, "user-data: {}": asks, "shutdown: reboot": same,
	}},
	{"kickstart", "rocky", "9", map[string]string{
		"text": server, "eula --agreed": asks, "firstboot --disable": asks, "reboot": asks, "lang en_US.UTF-8": asks, "keyboard --vckeymap=us": asks,
		"timezone Etc/UTC --utc": asks, "network --bootproto=dhcp --device=link --activate --onboot=yes": same, "rootpw --lock": asks,
		"%include /tmp/slipway-storage.ks": asks, "@^minimal-environment": server,
	}},
	{"preseed", "debian", "12", map[string]string{
		"debian-installer/locale": asks, "keyboard-configuration/xkb-keymap": asks, "netcfg/choose_interface": asks, "mirror/country": asks,
		"mirror/protocol": same, "mirror/http/hostname": same, "mirror/http/directory": same, "mirror/http/proxy": asks, "passwd/root-login": same,
		"passwd/root-password-crypted": asks, "passwd/make-user": asks, "clock-setup/utc": same, "time/zone": asks, "clock-setup/ntp": same,
		"partman-auto/disk": asks, "grub-installer/bootdev": asks, "partman/early_command": asks, "partman-auto/method": asks, "partman-auto/choose_recipe": same,
		"partman-auto/purge_lvm_from_device": asks, "partman-lvm/device_remove_lvm": asks, "partman-lvm/device_remove_lvm_span": asks,
		"partman-md/device_remove_md": asks, "partman-lvm/confirm": asks, "partman-lvm/confirm_nooverwrite": asks,
		"partman-partitioning/confirm_write_new_label": asks, "partman/confirm": asks, "partman/confirm_nooverwrite": asks, "partman-efi/non_efi_system": asks,
		"partman-basicfilesystems/no_swap": asks, "partman-partitioning/choose_label": asks, "partman-partitioning/default_label": asks,
		"partman/choose_partition": asks, "partman/mount_style": same, "apt-setup/cdrom/set-first": asks, "apt-setup/non-free-firmware": server,
		"apt-setup/disable-cdrom-entries": asks, "tasksel/first": server, "pkgsel/update-policy": same, "popularity-contest/participate": same,
		"grub-installer/only_debian": asks, "grub-installer/with_other_os": asks, "grub-installer/force-efi-extra-removable": same,
		"cdrom-detect/eject": same, "finish-install/reboot_in_progress": asks,
	}},
}

var (
	autoinstallRE = regexp.MustCompile(`(?m)^  (\S.*)$`)
	preseedRE     = regexp.MustCompile(`(?m)^\S+ (\S+/\S+) (?:string|boolean|select|multiselect|note|password)\b`)
)

// said takes what a rendering says out of it.
func said(format, text string) (out []string) {
	switch format {
	case "autoinstall":
		for _, m := range autoinstallRE.FindAllStringSubmatch(text, -1) {
			out = append(out, m[1])
		}
	case "preseed":
		for _, m := range preseedRE.FindAllStringSubmatch(text, -1) {
			out = append(out, m[1])
		}
	case "kickstart":
		isScript := false
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			switch {
			case line == "%end":
				isScript = false
			case strings.HasPrefix(line, "%p") && line != "%packages":
				isScript = true
			case !isScript && line != "" && line != "%packages" && line[0] != '#':
				out = append(out, line)
			}
		}
	default:
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "#cloud-config" && line != "{}" && !strings.HasPrefix(line, `{"ignition":{"version":"3.3.0"}}`) {
				out = append(out, line)
			}
		}
	}
	return out
}

// TestSilenceKeepsItsMeaning renders a configuration without a word for every format.
func TestSilenceKeepsItsMeaning(t *testing.T) {
	provisioners := []machineconfig.Provisioner{ignition.New(), cloudinit.New(), autoinstall.New(), kickstart.New(), preseed.New()}
	for _, c := range silence {
		t.Run(c.format, func(t *testing.T) {
			i := slices.IndexFunc(provisioners, func(p machineconfig.Provisioner) bool { return p.Kind() == c.format })
			r, report := provisioners[i].Render(machineconfig.Target{OS: c.os, Release: c.release, Arch: inventory.X8664}, &machineconfig.Config{})
			if r == nil || len(report) > 0 {
				t.Fatal(report)
			}
			want := slices.Sorted(maps.Keys(c.says))
			if d := cmp.Diff(want, slices.Sorted(slices.Values(said(c.format, string(r.Documents[0].Data))))); d != "" && len(want)+len(said(c.format, string(r.Documents[0].Data))) > 0 {
				t.Error(d)
			}
		})
	}
}

// TestADocumentKeepsWhatItDoesNotSay has what each installer would do for a document that is silent about a thing.
func TestADocumentKeepsWhatItDoesNotSay(t *testing.T) {
	for _, c := range []struct {
		format, os, release string
		doc                 inventory.DocumentFormat
		text                string
		added               []string // the only lines that the rendering has beside the document's
	}{
		{"autoinstall", "ubuntu", "24.04", inventory.DocAutoinstall, "#cloud-config\nautoinstall:\n  version: 1\n  identity:\n    hostname: web-1\n    username: u\n    password: $6$a$b\n", []string{
			"  late-commands:", "    - \"( urls=", "  error-commands:", "    - \"( urls=",
		}},
		{"kickstart", "rocky", "9", inventory.DocKickstart, "lang de_DE.UTF-8\nnetwork --hostname=web-1\npoweroff\n", []string{
			"%post --nochroot", "( urls=", "%end", "%onerror", "( urls=", "%end",
		}},
		{"preseed", "debian", "12", inventory.DocPreseed, "d-i netcfg/get_domain string own.example\nd-i pkgsel/upgrade select safe-upgrade\nd-i finish-install/reboot_in_progress note\n", []string{
			"# Added by Slipway", "d-i netcfg/get_hostname string web-1", "d-i netcfg/hostname string web-1", "d-i preseed/late_command string { ( urls=",
		}},
	} {
		t.Run(c.format, func(t *testing.T) {
			res := documentedHost(c.format, c.os, c.release, c.doc, c.text, "")
			if err := res.Findings.Err(); err != nil {
				t.Fatal(err)
			}
			left := strings.Split(c.text, "\n")
			added := c.added
			for line := range strings.Lines(res.Documents[0].Text) {
				line = strings.TrimSuffix(line, "\n")
				if i := slices.Index(left, line); i >= 0 {
					left = slices.Delete(left, i, i+1)
					continue
				}
				if strings.TrimSpace(line) == "" {
					continue
				}
				if len(added) == 0 || !strings.HasPrefix(line, added[0]) {
					t.Errorf("%q is added", line)
					continue
				}
				added = added[1:]
			}
			if rest := strings.Join(left, ""); rest != "" || len(added) > 0 {
				t.Errorf("of the document is lost: %q; not there: %q", rest, added)
			}
		})
	}
}
