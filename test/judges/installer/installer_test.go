// Package installer has other people's programs judge what the installers' provisioners write. It never judges by
// itself what a program can judge.
package installer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/installer/autoinstall"
	"slipway.dev/slipway/installer/kickstart"
	"slipway.dev/slipway/installer/preseed"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/test/corpus"
)

// judge skips without SLIPWAY_JUDGES, and fails loudly when a program is missing.
func judge(t *testing.T, programs map[string]string) {
	t.Helper()
	if os.Getenv("SLIPWAY_JUDGES") == "" {
		t.Skip("other people's programs are run by make test-judges")
	}
	for name, pkg := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%s is missing: apt-get install %s", name, pkg)
		}
	}
}

var targets = map[string][]machineconfig.Target{
	"preseed": {
		{OS: "debian", Release: "12", Arch: inventory.X8664, Tool: "12", InitrdPath: "/preseed.cfg"},
		{OS: "debian", Release: "13", Arch: inventory.X8664, Tool: "13"},
	},
	"kickstart": {
		{OS: "rocky", Release: "9", Arch: inventory.X8664, Tool: "9"},
		{OS: "almalinux", Release: "8.10", Arch: inventory.X8664, Tool: "8"},
		{OS: "rhel", Release: "10", Arch: inventory.X8664, Tool: "10", InitrdPath: "/ks.cfg"},
		{OS: "fedora", Release: "43", Arch: inventory.X8664, Tool: "43"},
	},
	"autoinstall": {
		{OS: "ubuntu", Release: "22.04", Arch: inventory.X8664, Tool: "22.04"},
		{OS: "ubuntu", Release: "24.04", Arch: inventory.X8664, Tool: "24.04"},
	},
}

func provisioners() []machineconfig.Provisioner {
	return []machineconfig.Provisioner{preseed.New(), kickstart.New(), autoinstall.New()}
}

// each renders every case of the corpus that a provisioner can express, for each of its targets. The configurations
// report home, as they do in the appliance.
func each(t *testing.T, p machineconfig.Provisioner, f func(t *testing.T, target machineconfig.Target, c *machineconfig.Config, r *machineconfig.Rendered)) {
	t.Helper()
	cases, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	rendered := 0
	var others []string
	for _, target := range targets[p.Kind()] {
		for _, c := range cases {
			name := target.String() + " " + c.Name
			c.Config.PhoneHome.URL = late.Marker("session://report")
			if r := machineconfig.Check(p, target, c.Config, nil); r.HasErrors() {
				others = append(others, name)
				continue
			}
			r, report := p.Render(target, c.Config)
			if report.HasErrors() {
				others = append(others, name)
				continue
			}
			rendered++
			t.Run(name, func(t *testing.T) { f(t, target, c.Config, r) })
		}
	}
	t.Logf("%s: %d renderings judged; not expressible: %s", p.Kind(), rendered, strings.Join(others, ", "))
	if rendered < 20*len(targets[p.Kind()]) {
		t.Errorf("only %d of %d cases were rendered", rendered, len(cases)*len(targets[p.Kind()]))
	}
}

// inject puts values where markers stand.
func inject(t *testing.T, doc []byte) []byte {
	t.Helper()
	out, err := late.Inject(doc, func(ref string) ([]byte, error) { return []byte(value(ref)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// value is what a reference stands for: what a session gives is a URL; a secret has what breaks weak quoting.
func value(ref string) string {
	switch ref {
	case "session://report":
		return "http://192.0.2.1/r/0123456789abcdef"
	case "session://base":
		return "http://192.0.2.1"
	}
	if len(ref) > 17 && ref[:17] == "session://config/" {
		return "http://192.0.2.1/c/0123456789abcdef/" + ref[17:]
	}
	return `$6$salt$it's "quoted" \ $HOME é` + "`x`"
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}
