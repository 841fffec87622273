package kickstart

import (
	"strings"
	"testing"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// TestWordsAndValuesAreCheckedByRelease has commands whose words, values or options together Anaconda refuses, or not.
func TestWordsAndValuesAreCheckedByRelease(t *testing.T) {
	for _, c := range []struct {
		release, text string
		source, code  string // "" for nothing
		hint          string
	}{
		{"9", "url --url=http://a --mirrorlist=http://b", "document:1:20", "exclusive", "leave one"},
		{"9", "url", "document:1:1", "missing", "add one"},
		{"9", "part / --size=1G", "document:1:8", "bad-value", "a whole number"},
		{"9", "part / --size 1G", "document:1:15", "bad-value", "a whole number"},
		{"9", "part / /home --size=1", "document:1:8", "words", "words besides"},
		{"9", "part --size=1", "document:1:1", "words", "words besides"},
		{"9", "network --bootproto=DHCP", "document:1:9", "bad-value", "dhcp, bootp"},
		{"9", "network --onboot=maybe", "document:1:9", "bad-value", "yes"},
		{"9", "network --onboot=YES --bootproto=static", "", "", ""},
		{"9", "raid / --device=md0 --level=RAID7 raid.1", "document:1:21", "bad-value", "raid1"},
		{"9", "raid / --device=md0 --level=RAID1 raid.1 raid.2", "", "", ""},
		{"9", "raid / --device=md0 --useexisting", "", "", ""},
		{"9", "logvol / --vgname=a --name=b --thin", "document:1:30", "missing", "--poolname"},
		{"9", "logvol / --vgname=a --name=b --percent=200", "document:1:30", "bad-value", "0 to 100"},
		{"9", "part / --resize --usepart=sda1 --size=1", "", "", ""},
		{"9", "autopart --type=btrfs", "document:1:10", "bad-value", "lvm"},
		{"7", "autopart --type=btrfs", "", "", ""},
		{"9", "reboot now", "document:1:8", "words", "option"},
		{"9", "rootpw --lock", "", "", ""},
		{"9", "rootpw", "document:1:1", "words", ""},
		{"9", "rootpw --iscrypted " + late.Marker("secret://x"), "", "", ""},
		{"9", "logvol / --vgname=a --name=b --size=" + late.Marker("secret://x"), "", "", ""},
		{"10", "vnc anything goes", "document:1:1", "deprecated", ""},
		{"9", "mount /dev/sda1 home", "document:1:17", "bad-value", "none"},
		{"9", "%packages\nvim emacs\n%end", "document:2:1", "words", "one package"},
		{"9", "%packages\n-\n%end", "document:2:1", "bad-value", "right behind"},
		{"9", "%packages\n@a b --bogus\n%end", "document:2:6", "unknown-option", "--nodefaults"},
		{"9", "%packages\n@a --nodefaults --optional\n%end", "document:2:1", "exclusive", "leave one"},
		{"9", "%packages\n# all\nvim # editor\n-nano\n@^server env\n*\n%end", "", "", ""},
		{"9", "%packages --timeout=x\n%end", "document:1:11", "bad-value", "number"},
		{"9", "%include /tmp/parts", "document:1:10", "included", "%pre"},
		{"9", "%pre\necho part / > /tmp/parts\n%end\n%include /tmp/parts", "", "", ""},
		{"9", "%include http://a/b", "document:1:10", "included", "put its lines here"},
		{"9", "%include", "document:1:1", "missing", "path"},
	} {
		t.Run(c.release+" "+c.text, func(t *testing.T) {
			_, report := New().Render(machineconfig.Target{OS: "rhel", Release: c.release, Arch: rocky9.Arch},
				&machineconfig.Config{Document: &machineconfig.Passthrough{Format: "kickstart", Data: []byte(c.text + "\n")}})
			if c.code == "" {
				if len(report) > 0 {
					t.Error(report)
				}
				return
			}
			if len(report) == 0 || report[0].Source != c.source || report[0].Code != c.code || !strings.Contains(report[0].Hint, c.hint) {
				t.Errorf("%+v", report)
			}
		})
	}
}

// TestEachRuleNamesACommandAndItsOptions finds what is misspelled in the table of rules.
func TestEachRuleNamesACommandAndItsOptions(t *testing.T) {
	for name, all := range rules {
		known := table[name]
		if known == nil {
			t.Errorf("there is no command %s", name)
			continue
		}
		for _, r := range all {
			for _, o := range r.options {
				found := false
				for _, k := range known.options {
					found = found || k.name == o
				}
				if !found {
					t.Errorf("%s has no option %s", name, o)
				}
			}
		}
	}
}
