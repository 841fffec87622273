package machineconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

// FuzzLayers gives any two texts: nothing panics, nothing takes long, and the same texts say the same.
func FuzzLayers(f *testing.F) {
	names, err := filepath.Glob("../test/corpus/testdata/*.yaml")
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
	f.Fuzz(func(t *testing.T, wide, narrow string) {
		start := time.Now()
		a, ra := Parse(wide, "wide")
		b, rb := Parse(narrow, "narrow")
		if len(ra) > maxFindings+1 || len(rb) > maxFindings+1 {
			t.Errorf("%d and %d findings", len(ra), len(rb))
		}
		build := func() (*Config, Report) {
			c, r := Merge(a, b, a)
			Fill(c, &inventory.Host{Name: "node-1", NICs: []inventory.NIC{{MAC: "52:54:00:12:34:56"}}}, "")
			_, expanded := Expand(c, exampleVars())
			r = append(r, expanded...)
			return c, append(r, Validate(c)...)
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
		Uses(c)
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("took %s", d)
		}
	})
}

// FuzzTemplates gives any text as a template.
func FuzzTemplates(f *testing.F) {
	for _, text := range []string{
		"{{ .Host.Name }}", `{{ range $k, $v := .Host.Labels }}{{ $k }}{{ printf "%-5s" $v }}{{ end }}`, `{{ secret "a" | quote }}`,
		`{{ nth 5 "10.0.0.0/8" }}{{ index .Host.MACs 0 | upper | b64enc }}`, `{{ define "x" }}{{ end }}`, `{{"{{"}}`,
		`{{ $x := split "," "a,b" }}{{ join "-" $x }}{{ with $x }}{{ len . }}{{ else }}{{ indent 3 "a" }}{{ end }}`,
		`{{ range .Host.MACs }}{{ break }}{{ end }}{{ if and (eq 1 1) (ne "a" "b") }}{{ end }}{{- /* a */ -}}`,
		`{{ .Parameters.zone | default "x" | replace "z" "y" | trim | lower }}{{ range len "abc" }}{{ end }}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		start := time.Now()
		out, _, r := ExpandText("document", "", text, exampleVars())
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("took %s", d)
		}
		if len(out) > maxOutputBytes && len(out) > len(text) {
			t.Errorf("put out %d bytes", len(out))
		}
		if len(r) > 1 || r.HasErrors() && out != "" {
			t.Errorf("%d findings and %d bytes", len(r), len(out))
		}
		for _, ref := range References([]byte(out)) {
			if !strings.Contains(text, "secret") || !strings.HasPrefix(ref, "secret://") {
				t.Errorf("asks for %s", ref)
			}
		}
		if !strings.Contains(text, "{{") && !strings.Contains(text, markerStart) && out != text {
			t.Error("a text without a template was changed")
		}
	})
}
