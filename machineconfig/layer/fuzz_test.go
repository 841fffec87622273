package layer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/machineconfig/layer"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/template"
	"slipway.dev/slipway/machineconfig/validation"
)

// FuzzLayers gives any two texts: nothing panics, nothing takes long, and the same texts say the same.
func FuzzLayers(f *testing.F) {
	names, err := filepath.Glob("../../test/corpus/testdata/*.yaml")
	if err != nil || len(names) == 0 {
		f.Fatal("no corpus to begin with", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		wide, narrow, _ := strings.Cut(string(text), "\n---\n")
		f.Add(wide, narrow)
	}
	f.Add("users: [{name: a}]", "users: {$remove: [a], $add: [{name: b, $remove: true}]}")
	f.Add("kernel: {sysctl: {a: 1}}", "kernel: {$replace: true, sysctl: {a: {$remove: true}, $remove: [a]}}")
	f.Add("bootstrap: {kind: a, taints: [{key: k, effect: e}]}", "bootstrap: {taints: [{key: k, effect: e, $replace: true}]}")
	host := &inventory.Host{Name: "node-1", NICs: []inventory.NIC{{MAC: "52:54:00:12:34:56"}}}
	f.Fuzz(func(t *testing.T, wide, narrow string) {
		start := time.Now()
		a, ra := layer.Parse(wide, "wide")
		b, rb := layer.Parse(narrow, "narrow")
		if len(ra) > mostFindings || len(rb) > mostFindings {
			t.Errorf("%d and %d findings", len(ra), len(rb))
		}
		build := func() (*machineconfig.Config, machineconfig.Report) {
			c, r := layer.Merge(a, b, a)
			machineconfig.Fill(c, host, "")
			_, expanded := template.Expand(c, template.NewVars(host, nil, "12"))
			r = append(r, expanded...)
			return c, append(r, validation.Validate(c)...)
		}
		c, r := build()
		again, rAgain := build()
		if d := cmp.Diff(c, again); d != "" {
			t.Errorf("the second time it is another: %s", d)
		}
		if d := cmp.Diff(r, rAgain); d != "" {
			t.Errorf("the second time there are other findings: %s", d)
		}
		for _, f := range r {
			if f.Code == "" || f.Message == "" || f.Severity == "" || f.Path != "" && f.Path[0] != '/' {
				t.Errorf("an incomplete finding: %+v", f)
			}
		}
		machineconfig.Uses(c)
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("took %s", d)
		}
	})
}
