// Package formats holds what each format makes of the parts of the neutral model that real files need: the lines that a
// case adds to the rendering of nothing, or the reason why it is refused.
package formats

import (
	"bytes"
	"flag"
	"os"
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
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/talos"
	"slipway.dev/slipway/test/corpus"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var columns = []struct {
	name string
	p    machineconfig.Provisioner
	t    machineconfig.Target
}{
	{"Flatcar", ignition.New(), machineconfig.Target{OS: "flatcar", Release: "stable", Tool: "3.4.0"}},
	{"Fedora CoreOS", ignition.New(), machineconfig.Target{OS: "fedora-coreos", Release: "stable", Tool: "3.4.0"}},
	{"cloud-init, Ubuntu", cloudinit.New(), machineconfig.Target{OS: "ubuntu", Release: "24.04", Tool: "24.4"}},
	{"cloud-init, Rocky", cloudinit.New(), machineconfig.Target{OS: "rocky", Release: "9", Tool: "24.4"}},
	{"autoinstall", autoinstall.New(), machineconfig.Target{OS: "ubuntu", Release: "24.04"}},
	{"kickstart", kickstart.New(), machineconfig.Target{OS: "rocky", Release: "9"}},
	{"kickstart, Fedora", kickstart.New(), machineconfig.Target{OS: "fedora", Release: "43"}},
	{"preseed", preseed.New(), machineconfig.Target{OS: "debian", Release: "12"}},
	{"Talos", talos.NewProvisioner(), machineconfig.Target{OS: "talos", Release: "1.11"}},
}

// cases are those of the corpus that came with what real files need.
var cases = []string{
	"default-user", "default-user-removed", "firewall", "firewall-off", "metadata", "mounts", "network-bond-delays", "network-dhcp-overrides",
	"network-link", "network-match", "network-rules", "network-wake", "network-wireguard", "packages-more", "packages-snaps", "root-device-choose",
	"scripts", "scripts-bash", "scripts-error", "selinux", "sshd", "storage-keep", "storage-keep-data", "storage-lvm-percent", "storage-lvm-thin",
	"storage-second-esp", "storage-subvolumes",
}

func TestEveryFormatSaysWhatRealFilesNeedOrRefusesItWithAReason(t *testing.T) {
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for _, c := range columns {
				b.WriteString("=== " + c.name + "\n" + said(t, c.p, c.t, corpus.Config(name)))
			}
			golden(t, name, b.String())
		})
	}
}

// said is what a format makes of a case.
func said(t *testing.T, p machineconfig.Provisioner, on machineconfig.Target, c *machineconfig.Config) string {
	t.Helper()
	on.Arch = inventory.X8664
	report := machineconfig.Check(p, on, c, nil)
	if report.HasErrors() {
		return findings(report)
	}
	// Both have a command, so that what runs commands is in both.
	nothing := &machineconfig.Config{Host: machineconfig.HostIdentity{Hostname: c.Host.Hostname}}
	if p.Kind() != "talos" {
		command := machineconfig.Command{Name: "own", Shell: "true"}
		c.Commands, nothing.Commands = []machineconfig.Command{command}, []machineconfig.Command{command}
	}
	out, report := p.Render(on, withDocument(p, c))
	if out == nil {
		return findings(report)
	}
	base, _ := p.Render(on, withDocument(p, nothing))
	var b strings.Builder
	b.WriteString(findings(report))
	for _, d := range out.Documents {
		known := map[string]int{}
		for _, other := range base.Documents {
			if other.Name != d.Name {
				continue
			}
			for line := range strings.Lines(readable(other.Data)) {
				known[line]++
			}
		}
		var added strings.Builder
		for line := range strings.Lines(readable(d.Data)) {
			if known[line] > 0 {
				known[line]--
				continue
			}
			added.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
		if added.Len() > 0 {
			b.WriteString("--- " + d.Name + "\n" + added.String())
		}
	}
	for _, a := range out.Args {
		if !strings.HasPrefix(a, "network-config=") { // the network once more, compressed
			b.WriteString("--- argument " + a + "\n")
		}
	}
	return b.String()
}

// readable breaks the one line of an Ignition document, and shows secrets by their names.
func readable(data []byte) string {
	if bytes.HasPrefix(data, []byte("{")) {
		data = bytes.ReplaceAll(bytes.ReplaceAll(data, []byte(`},{`), []byte("},\n{")), []byte("%0A"), []byte("\n    "))
		for from, to := range map[string]string{"%20": " ", "%22": `"`, "%27": "'", "%2F": "/", "%3D": "=", "%5B": "[", "%5D": "]", "%3A": ":", "%2C": ",", "%23": "#", "%24": "$", "%7B": "{", "%7D": "}", "%28": "(", "%29": ")", "%3B": ";", "%40": "@", "%09": "\t"} {
			data = bytes.ReplaceAll(data, []byte(from), []byte(to))
		}
	}
	return string(late.Redact(data))
}

// withDocument gives Talos the machine configuration that it cannot do without.
func withDocument(p machineconfig.Provisioner, c *machineconfig.Config) *machineconfig.Config {
	if p.Kind() != "talos" {
		return c
	}
	out := *c
	out.Document = &machineconfig.Passthrough{Format: string(inventory.DocTalos), Data: []byte("version: v1alpha1\nmachine: {type: worker}\ncluster: {}\n")}
	return &out
}

func findings(r machineconfig.Report) string {
	var b strings.Builder
	for _, f := range r {
		f.Source = ""
		b.WriteString(string(f.Severity) + ": " + f.String() + "\n")
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name + ".golden"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (rewrite with -update):\n%s", path, diff)
	}
}
