package cloudinit

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

func FuzzAnyTextSurvivesYAML(f *testing.F) {
	for _, s := range []string{
		"", "a", "yes", "No", "~", "0644", "1e3", "a: b", "- a", " a\n b\n", "a\n", "a\n\n", "\n", "a\r\nb\n", "#\n", "\ta\n", "a\n\tb", "ü\nß\n",
		"\u2028\n", "\ufeff", "\x00\x1f\x7f\u0085", "'\"\\", "{{ a }}", "@a", "!!binary x", "=", "<<", "a\n---\nb\n", "a \n b \n", "---", "...\n...",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		in := object{{"k", s}, {"l", list{s, object{{"m", s}}}}, {"n", object{{"o", object{{"p", s}}}}}, {"q", argv{s}}, {"r", quoted(s)}}
		for _, doc := range [][]byte{block(in), []byte(ascii(string(block(in)))), []byte(flow(in))} {
			var out struct {
				K string         `yaml:"k"`
				L []any          `yaml:"l"`
				N map[string]any `yaml:"n"`
				Q []string       `yaml:"q"`
				R string         `yaml:"r"`
			}
			if err := yaml.Unmarshal(doc, &out); err != nil {
				t.Fatalf("%v in\n%s", err, doc)
			}
			m, _ := out.L[1].(map[string]any)
			o, _ := out.N["o"].(map[string]any)
			for i, got := range []any{out.K, out.L[0], m["m"], o["p"], out.Q[0], out.R} {
				if got != s {
					t.Fatalf("place %d: %q became %q in\n%s", i, s, got, doc)
				}
			}
		}
	})
}

func FuzzAnyDocumentIsChecked(f *testing.F) {
	for _, s := range []string{
		"#cloud-config\nruncmd: [a]\n", "## template: jinja\n#cloud-config\n{% if %}\n", "#cloud-config\na: &a [*a]\n", "#cloud-config\n? - a\n: b\n",
		"#cloud-config\n" + late.Marker("secret://x") + ": ü\n", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, report := CheckDocument("22.4.2", data)
		if report.HasErrors() {
			return
		}
		if _, again := CheckDocument("22.4.2", []byte(out)); again.HasErrors() {
			t.Fatalf("what passed is refused when it is written anew: %v\n%q\n%q", again, data, out)
		}
	})
}

func FuzzAnyConfigurationIsRendered(f *testing.F) {
	f.Add([]byte(`{"host":{"hostname":"a"},"files":[{"path":"/a","text":"b"}]}`), "22.4", "debian", "")
	f.Add([]byte(`{"storage":{"disks":[{"name":"a","device":{"path":"/dev/vdb"},"partitions":[{"label":"x"}]}],"filesystems":[{"device":"x"}]}}`), "", "", "/x")
	f.Add([]byte(`{"activation":{"Kind":"k","Prelude":{"Format":"cloud-config","Data":"YQ=="}},"commands":[{}],"users":[{}],"units":[{}],"links":[{}]}`), "25.1", "rocky", "x")
	f.Add([]byte(`{"document":{"Format":"cloud-config","Data":"I2Nsb3VkLWNvbmZpZwo="},"network":{"vlans":[{"name":"a","parent":"b"}]}}`), "x", "photon", "")
	f.Fuzz(func(t *testing.T, config []byte, tool, os, path string) {
		var c machineconfig.Config
		if json.Unmarshal(config, &c) != nil {
			return
		}
		target := machineconfig.Target{OS: os, Tool: tool, InitrdPath: path}
		r, report := New().Render(target, &c)
		if (r == nil) != report.HasErrors() {
			t.Fatalf("a rendering is there: %v, and the report is %v", r != nil, report)
		}
		if r == nil {
			return
		}
		for _, d := range r.Documents[:4] {
			if d.Name != "user-data" && d.Name != "meta-data" || len(d.Data) > 0 && d.Data[0] == 'M' {
				continue
			}
			var out map[string]any
			if err := yaml.Unmarshal(d.Data, &out); err != nil {
				t.Fatalf("%s: %v\n%s", d.Name, err, d.Data)
			}
		}
	})
}
