package template

import (
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/machineconfig/late"
)

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
		for _, ref := range late.References([]byte(out)) {
			if !strings.Contains(text, "secret") || !strings.HasPrefix(ref, "secret://") {
				t.Errorf("asks for %s", ref)
			}
		}
		if !strings.Contains(text, "{{") && !strings.Contains(text, late.Prefix) && out != text {
			t.Error("a text without a template was changed")
		}
	})
}
