package template

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// hostile is a value that leaves quotes, begins commands and breaks lines.
const hostile = "a'b\"c\\d $HOME `touch pwned` $(touch pwned)\n'; touch pwned; # %i é"

func expanded(t *testing.T, format, text string) string {
	t.Helper()
	v := exampleVars()
	v.Parameters["evil"] = hostile
	out, _, r := ExpandText("document", format, text, v)
	if r.HasErrors() {
		t.Fatal(r)
	}
	return out
}

func injected(t *testing.T, doc string) string {
	t.Helper()
	out, err := late.Inject([]byte(doc), func(string) ([]byte, error) { return []byte(hostile), nil })
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestAQuotedValueIsOneWordOfAShell(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a secret", `printf %s {{ secret "x" | shell }}`, hostile},
		{"a secret within a text", `printf %s {{ printf "user:%s" (secret "x") | shell }}`, "user:" + hostile},
		{"a secret in a variable", `p={{ secret "x" | shell }}; printf %s "$p"`, hostile},
		{"free text", `printf %s {{ .Parameters.evil | shell }}`, hostile},
		{"a number", `printf %s {{ shell .Host.Place.Unit }}`, "7"},
		{"a secret as JSON", `printf %s {{ printf "{\"p\": %s}" (secret "x" | json) | shell }}`, `{"p": "` + late.Encode(hostile, late.JSONString) + `"}`},
		{"a secret as base64", `printf %s {{ secret "x" | b64enc }} | base64 -d`, hostile},
	} {
		t.Run(c.name, func(t *testing.T) {
			script := expanded(t, "", c.text)
			for place, run := range map[string]func(string) (string, error){
				"alone":             func(s string) (string, error) { return s, nil },
				"in a YAML text":    throughYAML,
				"in a data: URL":    throughURL,
				"in a word of ours": throughShell,
			} {
				t.Run(place, func(t *testing.T) {
					dir := t.TempDir()
					s, err := run(script)
					if err != nil {
						t.Fatal(err)
					}
					cmd := exec.Command("sh", "-c", injected(t, s))
					if strings.HasPrefix(place, "in a YAML") || strings.HasPrefix(place, "in a data") {
						cmd = exec.Command("sh", "-c", decoded(t, place, injected(t, s)))
					}
					cmd.Dir = dir
					out, err := cmd.CombinedOutput()
					if err != nil || string(out) != c.want {
						t.Errorf("%q %v; want %q", out, err, c.want)
					}
					if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
						t.Error("the value ran as a command")
					}
				})
			}
		})
	}
}

func throughYAML(s string) (string, error) {
	b, err := json.Marshal(s)
	return late.Retag(string(b), late.JSONString), err
}

func throughURL(s string) (string, error) { return late.DataURL(s), nil }

func throughShell(s string) (string, error) { return "eval " + late.ShellWord(s), nil }

func decoded(t *testing.T, place, s string) string {
	t.Helper()
	if place == "in a data: URL" {
		out, err := url.PathUnescape(strings.TrimPrefix(s, "data:,"))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	var out string
	if err := yaml.Unmarshal([]byte(s), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAQuotedValueIsOneStringOfJSONAndYAML(t *testing.T) {
	text := `{"password": {{ secret "x" | json }}, "zone": {{ .Parameters.evil | json }}, "macs": {{ json .Host.MACs }}, "unit": {{ json .Host.Place.Unit }}}`
	out := injected(t, expanded(t, "", text))
	type answer struct {
		Password, Zone string
		Macs           []string
		Unit           int
	}
	var fromJSON, fromYAML answer
	if err := json.Unmarshal([]byte(out), &fromJSON); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := yaml.Unmarshal([]byte(out), &fromYAML); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, got := range []answer{fromJSON, fromYAML} {
		if got.Password != hostile || got.Zone != hostile || len(got.Macs) != 2 || got.Unit != 7 {
			t.Errorf("%+v", got)
		}
	}
}

func TestAQuotedValueIsOneWordOfAUnit(t *testing.T) {
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("needs systemd-analyze")
	}
	unit := injected(t, expanded(t, "", "[Service]\nType=oneshot\nEnvironment={{ printf \"A=%s\" .Parameters.evil | systemd }}\nExecStart=/bin/true\n"))
	file := filepath.Join(t.TempDir(), "x.service")
	if err := os.WriteFile(file, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(verify, "verify", "--man=no", file).CombinedOutput(); err != nil || strings.Contains(string(out), "x.service") {
		t.Errorf("%v: %s\n%s", err, out, unit)
	}
	if n := strings.Count(unit, "\n"); n != 4 {
		t.Errorf("the value broke a line: %q", unit)
	}
}

func TestASecretThatIsAWholeStringOfADocumentIsQuotedOnce(t *testing.T) {
	for format, text := range map[string]string{
		"cloud-config": "#cloud-config\n# é {{ .Parameters.zone }}\na: {b: {{ secret \"x\" | json }}, c: {{ json (secret \"x\") }}}\nd: |\n  {\"e\": {{ secret \"x\" | json }}}\n",
		"autoinstall":  "autoinstall: {x: {{ quote (secret \"x\") }}}\n",
		"ignition":     "{\"a\":\n\t{{ secret \"x\" | json }}}",
	} {
		t.Run(format, func(t *testing.T) {
			out := expanded(t, format, text)
			var doc yaml.Node
			if err := yaml.Unmarshal([]byte(strings.ReplaceAll(out, "\t", " ")), &doc); err != nil {
				t.Fatal(err)
			}
			again(&doc)
			b, err := yaml.Marshal(&doc)
			if err != nil {
				t.Fatal(err)
			}
			var got any
			if err := yaml.Unmarshal([]byte(injected(t, string(b))), &got); err != nil {
				t.Fatal(err)
			}
			strs(got, func(s string) {
				if strings.HasPrefix(s, "{") {
					var inner map[string]string
					if err := json.Unmarshal([]byte(s), &inner); err != nil || inner["e"] != hostile {
						t.Errorf("%q %v", s, err)
					}
				} else if s != hostile {
					t.Errorf("%q", s)
				}
			})
		})
	}
}

// again writes strings anew, as every provisioner does with a document.
func again(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && late.HasMarker(n.Value) {
		n.Value, n.Style = late.Retag(n.Value, late.JSONString), yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		again(c)
	}
}

func strs(v any, each func(string)) {
	switch v := v.(type) {
	case string:
		each(v)
	case map[string]any:
		for _, item := range v {
			strs(item, each)
		}
	}
}

func TestABase64OfASecretIsItsOwn(t *testing.T) {
	out := injected(t, expanded(t, "", `{{ secret "x" | b64enc }}`))
	if b, err := base64.StdEncoding.DecodeString(out); err != nil || string(b) != hostile {
		t.Errorf("%q %v", out, err)
	}
}

// TestARawValueIsWarnedOf has texts of all kinds, with what is said of the values in them.
func TestARawValueIsWarnedOf(t *testing.T) {
	const none = ""
	shell := func(text string) *machineconfig.Config {
		return &machineconfig.Config{Commands: []machineconfig.Command{{Name: "c", Shell: text}}}
	}
	file := func(path, text string) *machineconfig.Config {
		return &machineconfig.Config{Files: []machineconfig.File{{Path: path, Content: machineconfig.Content{Text: text}}}}
	}
	for _, c := range []struct {
		name       string
		c          *machineconfig.Config
		code, hint string
	}{
		{"a secret in a command", shell(`echo {{ secret "x" }}`), "raw-secret", `{{ secret "x" | shell }}`},
		{"in double quotes", shell(`echo "{{ secret "x" }}"`), "raw-secret", "shell"},
		{"in single quotes", shell(`echo '{{ secret "x" }}'`), "raw-secret", "shell"},
		{"a quoted one", shell(`echo {{ secret "x" | shell }}`), none, ""},
		{"a quoted one in quotes", shell(`echo "{{ secret "x" | shell }}"`), "quoted-twice", "take the quotes"},
		{"a quoted one between other quotes", shell(`echo "a" {{ secret "x" | shell }} 'b'`), none, ""},
		{"one quoted for JSON", shell(`echo {{ secret "x" | json }}`), "raw-secret", "shell"},
		{"one in base64", shell(`echo {{ secret "x" | b64enc }}`), none, ""},
		{"one in a variable", shell(`{{ $p := secret "x" }}echo {{ $p }}`), "raw-secret", "shell"},
		{"one in a condition", shell(`{{ if .Profile }}echo {{ secret "x" }}{{ end }}`), "raw-secret", "shell"},
		{"one of a loop", shell(`{{ range .Host.MACs }}echo {{ secret "x" }}{{ end }}`), "raw-secret", "shell"},
		{"one in printf", shell(`echo {{ printf "u:%s" (secret "x") }}`), "raw-secret", "shell"},
		{"a parameter in a command", shell(`echo {{ .Parameters.zone }}`), "raw-text", "{{ .Parameters.zone | shell }}"},
		{"a label", shell(`echo {{ index .Host.Labels "a.b/c" }}`), "raw-text", `{{ index .Host.Labels "a.b/c" | shell }}`},
		{"a fact, in upper case", shell(`echo {{ .Host.Facts.disk | upper }}`), "raw-text", "shell"},
		{"a label in with", shell(`{{ with .Host.Labels }}echo {{ .role }}{{ end }}`), "raw-text", "shell"},
		{"labels in a loop", shell(`{{ range $k, $v := .Host.Labels }}echo {{ $v }}{{ end }}`), "raw-text", "shell"},
		{"the part of a path", shell(`echo {{ $.Host.Place.Rack }}`), "raw-text", "shell"},
		{"a chain", shell(`echo {{ (.Host).Serial }}`), "raw-text", "shell"},
		{"a quoted parameter", shell(`echo {{ .Parameters.zone | shell }}`), none, ""},
		{"names that the inventory checks", shell(`echo {{ .Host.Name }} {{ .Host.BootMAC }} {{ join "," .Host.MACs }} {{ .Profile }} {{ .Host.Place.Unit }}`), none, ""},
		{"a comparison", shell(`{{ if eq .Parameters.zone "a" }}echo a{{ end }}`), none, ""},
		{"a length", shell(`echo {{ len .Parameters.zone }}`), none, ""},
		{"a script of an installer", &machineconfig.Config{Scripts: []machineconfig.Script{{Name: "s", Stage: machineconfig.Early, Text: `echo {{ secret "x" }}`}}}, "raw-secret", "shell"},
		{"a script of Python", &machineconfig.Config{Scripts: []machineconfig.Script{{Name: "s", Stage: machineconfig.Early, Interpreter: "/usr/bin/python3", Text: `p = {{ secret "x" }}`}}}, "raw-secret", "json"},
		{"a script of Perl", &machineconfig.Config{Scripts: []machineconfig.Script{{Name: "s", Stage: machineconfig.Early, Interpreter: "/usr/bin/perl", Text: `$p = {{ secret "x" | json }}`}}}, "raw-secret", "file"},
		{"a script by its first line", file("/usr/local/bin/x", "#!/usr/bin/env bash\necho {{ secret \"x\" }}\n"), "raw-secret", "shell"},
		{"a script by its name", file("/opt/x.sh", `echo {{ secret "x" }}`), "raw-secret", "shell"},
		{"variables that a shell reads", file("/etc/default/x", `A={{ secret "x" }}`), "raw-secret", "shell"},
		{"a cron table", file("/etc/cron.d/x", `* * * * * root echo {{ secret "x" }}`), "raw-secret", "shell"},
		{"a YAML file", file("/etc/x.yaml", `a: {{ secret "x" }}`), "raw-secret", "json"},
		{"one in quotes there", file("/etc/x.yaml", `a: "{{ secret "x" }}"`), "raw-secret", "json"},
		{"one in JSON", file("/etc/x.json", `{"a": {{ secret "x" | json }}}`), none, ""},
		{"one in JSON and quotes", file("/etc/x.json", `{"a": "{{ secret "x" | json }}"}`), "quoted-twice", "take the quotes"},
		{"a raw one in JSON", file("/etc/x.json", `{"a": "{{ secret "x" }}"}`), "raw-secret", "json"},
		{"a raw one in TOML", file("/etc/x.toml", `a = "{{ secret "x" }}"`), "raw-secret", "json"},
		{"plain text in YAML", file("/etc/x.yaml", `a: {{ .Parameters.zone }}`), none, ""},
		{"text that changes YAML", file("/etc/x.yaml", `a: {{ .Parameters.evil }}`), "raw-text", "json"},
		{"text that changes JSON", file("/etc/x.json", `{"a": "{{ .Parameters.evil }}"}`), "raw-text", "json"},
		{"a file of another kind", file("/etc/motd", `{{ .Parameters.evil }} {{ secret "x" }}`), none, ""},
		{"a secret in a unit", &machineconfig.Config{Units: []machineconfig.Unit{{Name: "x.service", Contents: `Environment=A={{ secret "x" }}`}}}, "raw-secret", "LoadCredential"},
		{"a quoted secret in a unit", &machineconfig.Config{Units: []machineconfig.Unit{{Name: "x.service", Contents: `Environment={{ printf "A=%s" (secret "x") | systemd }}`}}}, "exposed", "LoadCredential"},
		{"text that changes a unit", &machineconfig.Config{Units: []machineconfig.Unit{{Name: "x.service", DropIns: []machineconfig.DropIn{{Name: "a.conf", Contents: `Environment=A={{ .Parameters.evil }}`}}}}}, "raw-text", "systemd"},
		{"plain text in a unit", &machineconfig.Config{Units: []machineconfig.Unit{{Name: "x.service", Contents: `Description={{ .Parameters.zone }}`}}}, none, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := exampleVars()
			v.Parameters["evil"] = hostile
			_, r := Expand(c.c, v)
			if c.code == none {
				if len(r) > 0 {
					t.Errorf("says %v", r)
				}
				return
			}
			if len(r) != 1 || r[0].Code != c.code || r[0].Severity != machineconfig.SeverityWarning || !strings.Contains(r[0].Hint, c.hint) || r[0].Path == "" || !strings.Contains(r[0].Message, "line ") {
				t.Errorf("says %v, want one %s with %q", r, c.code, c.hint)
			}
		})
	}
}

// TestARawValueOfADocumentIsWarnedOf looks for values in the commands, scripts and files of documents.
func TestARawValueOfADocumentIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		name   string
		format inventory.DocumentFormat
		text   string
		want   string // places and codes
	}{
		{"commands of a cloud-config", inventory.DocCloudConfig, "#cloud-config\nruncmd:\n  - echo {{ secret \"x\" }}\n  - [echo, {{ secret \"x\" }}]\n  - [sh, -c, 'echo {{ .Parameters.zone }}']\n  - echo {{ secret \"x\" | shell }}\nbootcmd: [\"echo {{ .Host.Facts.disk }}\"]\npassword: {{ secret \"x\" }}\n", "3:13 raw-secret, 5:23 raw-text, 7:20 raw-text"},
		{"files of a cloud-config", inventory.DocCloudConfig, "#cloud-config\nwrite_files:\n  - path: /opt/x\n    content: |\n      #!/bin/sh\n      echo {{ secret \"x\" }}\n  - {path: /etc/motd, content: 'x {{ secret \"x\" }}'}\n", "6:15 raw-secret"},
		{"text that changes the YAML", inventory.DocCloudConfig, "#cloud-config\nhostname: a\ntimezone: {{ .Parameters.evil | trim }}\n", "3:14 raw-text"},
		{"text that does not, in a block", inventory.DocCloudConfig, "#cloud-config\nfinal_message: |\n  it is: {{ .Parameters.odd }}\n", ""},
		{"commands of autoinstall", inventory.DocAutoinstall, "autoinstall:\n  version: 1\n  late-commands:\n    - echo {{ secret \"x\" }} > /target/x\n", "4:15 raw-secret"},
		{"files and units of Butane", inventory.DocButane, "variant: fcos\nversion: 1.5.0\nstorage:\n  files:\n    - path: /opt/x.sh\n      contents:\n        inline: echo {{ secret \"x\" }}\nsystemd:\n  units:\n    - name: x.service\n      contents: |\n        [Service]\n        Environment=A={{ secret \"x\" }}\n", "7:25 raw-secret, 13:26 raw-secret"},
		{"scripts of kickstart", inventory.DocKickstart, "rootpw --iscrypted {{ secret \"x\" }}\n%post --interpreter=/bin/bash\necho {{ secret \"x\" }}\n%end\n%packages\n{{ .Parameters.zone }}\n%end\n%pre\necho {{ .Parameters.zone }}\n", "3:9 raw-secret, 9:9 raw-text"},
		{"commands of preseed", inventory.DocPreseed, "d-i passwd/root-password-crypted password {{ secret \"x\" }}\nd-i preseed/late_command string true; \\\n  echo {{ secret \"x\" }}\n# d-i preseed/late_command string {{ secret \"x\" }}\n", "3:11 raw-secret"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := exampleVars()
			v.Parameters["evil"], v.Parameters["odd"] = hostile, "a: b"
			_, _, r := ExpandText("document", string(c.format), c.text, v)
			var got []string
			for _, f := range r {
				got = append(got, strings.TrimPrefix(f.Source, "document:")+" "+f.Code)
				if f.Severity != machineconfig.SeverityWarning {
					t.Errorf("no warning: %v", f)
				}
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("says %s\nwant %s\n%v", strings.Join(got, ", "), c.want, r)
			}
		})
	}
}
