package template

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/machineconfig/layer/layertest"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

func exampleVars() Vars {
	h := &inventory.Host{
		ID: "0193f0c4", Name: "node-1", Serial: "SN1", UUID: "u-1", AssetTag: "A1", Manufacturer: "ACME", Product: "R1", Arch: inventory.X8664,
		Labels: map[string]string{"role": "worker", "a.b/c": "d"}, Facts: map[string]string{"disk": "nvme"},
		Place: inventory.Place{Site: "s", Row: "w", Rack: "r1", Unit: 7},
		NICs:  []inventory.NIC{{MAC: "52:54:00:00:00:02", IsBoot: true}, {MAC: "52:54:00:00:00:01"}},
	}
	return NewVars(h, &inventory.Profile{Name: "web", Parameters: map[string]string{"zone": "z1", "empty": ""}}, "12")
}

func TestTemplatesSay(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no template", "plain {text} } }} %", "plain {text} } }} %"},
		{"the host", "{{ .Host.ID }} {{ .Host.Name }} {{ .Host.UUID }} {{ .Host.Serial }} {{ .Host.AssetTag }} {{ .Host.Manufacturer }} {{ .Host.Product }} {{ .Host.Arch }}", "0193f0c4 node-1 u-1 SN1 A1 ACME R1 x86_64"},
		{"its place", "{{ .Host.Place.Site }}/{{ .Host.Place.Row }}/{{ .Host.Place.Rack }}/{{ .Host.Place.Unit }}", "s/w/r1/7"},
		{"its MACs in order, and the one it boots from", `{{ join "," .Host.MACs }} {{ .Host.BootMAC }}`, "52:54:00:00:00:01,52:54:00:00:00:02 52:54:00:00:00:02"},
		{"labels, facts and parameters", `{{ .Host.Labels.role }} {{ index .Host.Labels "a.b/c" }} {{ .Host.Facts.disk }} {{ .Parameters.zone }}`, "worker d nvme z1"},
		{"profile and release", "{{ .Profile }} {{ .Release }}", "web 12"},
		{"a default for what is not there", `{{ index .Host.Labels "x" | default "y" }}`, "y"},
		{"a default for what is empty", `{{ default "y" .Parameters.empty }} {{ default "y" .Parameters.zone }}`, "y z1"},
		{"conditions", `{{ if eq .Host.Labels.role "master" "worker" }}a{{ else }}b{{ end }}{{ if ne .Profile "web" }}c{{ else if and (gt .Host.Place.Unit 3) (le .Host.Place.Unit 7) }}d{{ end }}{{ if or (lt 3 2) (ge 2 2) }}e{{ end }}{{ if not true }}f{{ end }}`, "ade"},
		{"loops", `{{ range $i, $m := .Host.MACs }}{{ $i }}={{ $m }} {{ end }}{{ range $k, $v := .Host.Labels }}{{ $k }}:{{ $v }} {{ else }}none{{ end }}`, "0=52:54:00:00:00:01 1=52:54:00:00:00:02 a.b/c:d role:worker "},
		{"break and continue", `{{ range split "," "a,b,c,d" }}{{ if eq . "b" }}{{ continue }}{{ end }}{{ if eq . "d" }}{{ break }}{{ end }}{{ . }}{{ end }}`, "ac"},
		{"with and variables", `{{ with .Host.Place }}{{ $r := .Rack }}{{ $r }}{{ end }}`, "r1"},
		{"texts", `{{ upper "a" }}{{ lower "B" }}{{ trim " c " }}{{ replace "x" "y" "axa" }}{{ len "abc" }}{{ index (split "," "a,b") 1 }}`, "Abcaya3b"},
		{"questions about texts", `{{ hasPrefix "a" "abc" }} {{ hasSuffix "a" "abc" }} {{ contains "b" "abc" }}`, "true false true"},
		{"printf", `{{ printf "%05.1f %q %-4s| %x %d%% %t %v" 1.25 "a" "b" "c" 5 true .Host.Place.Unit }}`, `001.2 "a" b   | 63 5% true 7`},
		{"quote and base64", `{{ quote "a\"b\n<ü>" }} {{ b64enc "hi" }}`, `"a\"b\n<ü>" aGk=`},
		{"indent", `{{ indent 2 "a\n\nb" }}`, "  a\n\n  b"},
		{"addresses", `{{ ip "192.0.2.10/24" }} {{ bits "192.0.2.10/24" }} {{ network "192.0.2.10/24" }} {{ nth 7 "192.0.2.10/24" }} {{ nth 300 "10.0.0.0/8" }} {{ nth 65537 "2001:db8::/64" }} {{ ip "2001:db8::1" }}`, "192.0.2.10 24 192.0.2.0/24 192.0.2.7 10.0.1.44 2001:db8::1:1 2001:db8::1"},
		{"a literal {{", `{{"{{"}} .Labels.x {{"}}"}} and {{"{{%"}}`, "{{ .Labels.x }} and {{%"},
		{"a secret", `p={{ secret "db-password" }}`, "p=" + late.Marker("secret://db-password")},
		{"a secret through printf and default", `{{ printf "%s:%v" "u" (secret "a") }} {{ default "x" (secret "a") }}`, "u:" + late.Marker("secret://a") + " " + late.Marker("secret://a")},
		{"a part of a secret", `{{ secret "db#password" }}`, late.Marker("secret://db#password")},
		{"comments and trimmed blanks", "a {{- /* hello */ -}} b", "ab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, r := ExpandText("document", "", c.text, exampleVars())
			if len(r) > 0 || got != c.want {
				t.Errorf("%q, %v; want %q", got, r, c.want)
			}
		})
	}
}

func TestTemplatesAreRefused(t *testing.T) {
	for _, c := range []struct{ name, text, source, want, hint string }{
		{"a missing parameter", "a\n  {{ .Parameters.zon }}", "document:2:17", `.Parameters has no "zon"`, "did you mean zone?"},
		{"a missing label, with the known ones", "{{ .Host.Labels.xxxxxxxx }}", "document:1:9", "has no", "a.b/c, role"},
		{"a field that is none", "{{ .Host.Xxxxxxxxxxxx }}", "document:1:9", "there is no .Host.Xxxxxxxxxxxx", "are .Host.ID, .Host.Name"},
		{"a misspelt field", "{{ .Host.Serail }}", "document:1:9", "there is no .Host.Serail", "did you mean .Host.Serial?"},
		{"a field of nothing", "{{ .Hosts.Name }}", "document:1:10", "there is no .Hosts", "did you mean .Host?"},
		{"a function that is none", "{{ uper .Profile }}", "document:1", `no function "uper"`, "did you mean upper?"},
		{"a function of sprig", "{{ env }}", "document:1", `no function "env"`, ""},
		{"call", "{{ call .Profile }}", "document:1:4", `"call" is not allowed`, "the functions are"},
		{"js", "{{ js .Profile }}", "document:1:4", `"js" is not allowed`, ""},
		{"html", "{{ html .Profile }}", "document:1:4", `"html" is not allowed`, ""},
		{"urlquery", "{{ urlquery .Profile }}", "document:1:4", `"urlquery" is not allowed`, ""},
		{"slice", "{{ slice .Profile 1 }}", "document:1:4", `"slice" is not allowed`, ""},
		{"print", "{{ print .Profile }}", "document:1:4", `"print" is not allowed`, ""},
		{"println, in parentheses in a condition", "{{ if (println .Profile) }}{{ end }}", "document:1:8", `"println" is not allowed`, ""},
		{"the counter of rounds", "{{ slipwayRound }}", "document:1:4", "is not allowed", ""},
		{"template", `{{ template "text" . }}`, "document:1:13", "template is not allowed", ""},
		{"define", `{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`, "document", "define and block", ""},
		{"block", `{{ block "x" . }}{{ end }}`, "document", "define and block", ""},
		{"a loop over a number", "{{ range 1000000 }}a{{ end }}", "document:1:10", "over a number", ""},
		{"a loop over a computed number", "{{ range len .Profile }}a{{ end }}{{ range $i := 5 }}{{ end }}", "document:1:44", "over a number", ""},
		{"loops four deep", "{{range .Host.MACs}}{{range $.Host.MACs}}{{range $.Host.MACs}}{{range $.Host.MACs}}{{end}}{{end}}{{end}}{{end}}", "document:1:71", "more than 3 deep", ""},
		{"a brace that is not closed", "a\nb {{ .Profile", "document:2", "unclosed action", `write {{"{{"}}`},
		{"an action that is not ended", "{{ if .Profile }}", "document:1", "unexpected EOF", ""},
		{"jinja", "{% raw %}{{ ds.meta_data.local_hostname }}", "document:1", "no function", `write {{"{{"}}`},
		{"a secret with a path", `{{ secret "secret://x" }}`, "document:1:4", "not the name of a secret", ""},
		{"a part of a secret that is not ours to take", `{{ secret "x#capi:y" }}`, "document:1:4", "not the name of a secret", ""},
		{"base64 of a text with a secret", `{{ printf "a%s" (secret "x") | b64enc }}`, "document:1:32", "b64enc cannot be applied to a secret", "with shell"},
		{"a list for a shell", `{{ shell .Host.MACs }}`, "document:1:4", "shell quotes a text", "join"},
		{"the watch over outputs", "{{ slipwayOutput 0 .Profile }}", "document:1:4", "is not allowed", ""},
		{"upper case of a secret", `{{ upper (secret "x") }}`, "document:1:4", "upper cannot be applied", ""},
		{"an indented secret", `{{ indent 2 (secret "x") }}`, "document:1:4", "indent cannot be applied", ""},
		{"a replaced secret", `{{ replace "7" "8" (secret "x") }}`, "document:1:4", "replace cannot be applied", ""},
		{"a split secret", `{{ index (split "7" (secret "x")) 0 }}`, "document:1:11", "split cannot be applied", ""},
		{"a cut secret", `{{ printf "%.13s" (secret "x") }}`, "document:1:4", "cannot be applied", ""},
		{"a byte of a secret is no marker, but a joined one is", `{{ join "" (split "," "SLIPWAY,LATEr736563726574,3a2f2f78Z") }}`, "document", "by its marker", ""},
		{"a half marker", `{{ join "" (split "," "SLIPWAY,LATEr7") }}`, "document", "part of a secret's marker", ""},
		{"a marker in a text without a template", late.Marker("secret://x"), "document", "by its marker", ""},
		{"printf with a huge width", `{{ printf "%1000000d" 1 }}`, "document:1:4", "printf does not know", "up to 256"},
		{"printf with a huge precision", `{{ printf "%.1000000f" 1.0 }}`, "document:1:4", "printf does not know", ""},
		{"printf with the width as argument", `{{ printf "%*d" 1000000 1 }}`, "document:1:4", "printf does not know", ""},
		{"printf with a pointer", `{{ printf "%p" .Host.MACs }}`, "document:1:4", "printf does not know", ""},
		{"printf with a verb that does not fit", `{{ printf "%d" "a" }}`, "document:1:4", "do not fit", ""},
		{"printf with too few values", `{{ printf "%s %s" "a" }}`, "document:1:4", "do not fit", ""},
		{"printf of a map", `{{ printf "%v" .Host.Labels }}`, "document:1:4", "texts, numbers and truths", "join"},
		{"an indent of a million", `{{ indent 1000000 "a" }}`, "document:1:4", "indent by 1000000", ""},
		{"replacing nothing", `{{ replace "" "a" "b" }}`, "document:1:4", "needs a text", ""},
		{"splitting at nothing", `{{ split "" "b" }}`, "document:1:4", "needs a text", ""},
		{"comparing a text with a number", `{{ if eq .Profile 5 }}{{ end }}`, "document:1:7", "cannot compare", ""},
		{"comparing lists", `{{ if eq .Host.MACs .Host.MACs }}{{ end }}`, "document:1:7", "only texts", ""},
		{"an address that is none", `{{ ip "x" }}`, "document:1:4", "not an address", ""},
		{"an address beyond its network", `{{ nth 256 "192.0.2.0/24" }}`, "document:1:4", "no address number 256", ""},
		{"a negative address", `{{ nth -1 "192.0.2.0/24" }}`, "document:1:4", "no address number -1", ""},
		{"an index beyond the list", `{{ index .Host.MACs 5 }}`, "document:1:4", "index out of range", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, r := ExpandText("document", "", c.text, exampleVars())
			if got != "" || len(r) != 1 {
				t.Fatalf("%q, %v; want one finding", got, r)
			}
			f := r[0]
			if !(f.Source == c.source || strings.HasPrefix(f.Source, c.source+":")) || !strings.Contains(f.Message, c.want) || !strings.Contains(f.Hint, c.hint) {
				t.Errorf("found %s; want %s %s (%s)", f, c.source, c.want, c.hint)
			}
			if strings.Contains(f.String(), "machineconfig.") || strings.Contains(f.String(), "executing") {
				t.Errorf("speaks of our code: %s", f)
			}
		})
	}
}

// TestTemplateBombsEndSoon gives templates that are made to run for ever or to fill the memory.
func TestTemplateBombsEndSoon(t *testing.T) {
	many := exampleVars()
	for i := range 2000 {
		many.Host.MACs = append(many.Host.MACs, fmt.Sprint(i))
	}
	many.Parameters["big"] = strings.Repeat("x", 100_000)
	for _, c := range []struct{ name, text, want string }{
		{"nested loops without output", "{{range .Host.MACs}}{{range $.Host.MACs}}{{range $.Host.MACs}}{{end}}{{end}}{{end}}", "rounds"},
		{"loops one after the other", strings.Repeat("{{range .Host.MACs}}{{end}}", 1300), "rounds"},
		{"loops in the else of loops", "{{range .Host.MACs}}{{range split \",\" \"\"}}{{else}}{{end}}{{range $.Host.MACs}}{{end}}{{end}}", "rounds"},
		{"doubling", `{{$x := "aaaaaaaaaaaaaaaa"}}` + strings.Repeat(`{{$x = printf "%s%s" $x $x}}`, 100), "would make a text"},
		{"doubling with join", `{{$x := "aaaaaaaaaaaaaaaa,a"}}` + strings.Repeat(`{{$x = join $x (split "a" $x)}}`, 100), "would make a text"},
		{"replace that grows", `{{$x := "aaaaaaaaaaaaaaaa"}}` + strings.Repeat(`{{$x = replace "a" "aaaaaaaa" $x}}`, 100), "would make a text"},
		{"indent that grows", `{{$x := .Parameters.big}}` + strings.Repeat(`{{$x = indent 256 (replace "x" "\n" $x)}}`, 5), "would make a text"},
		{"quote that grows", `{{$x := "\"\"\"\""}}` + strings.Repeat(`{{$x = quote $x}}`, 100), "would make a text"},
		{"much output", "{{range .Host.MACs}}" + strings.Repeat("{{$.Parameters.big}}", 50) + "{{end}}", "longer than 4194304"},
		{"much work", strings.Repeat("{{$x := upper .Parameters.big}}", 1000), "too much work"},
		{"long comparisons", `{{$x := printf "%sa" .Parameters.big}}{{$y := printf "%sb" .Parameters.big}}{{range .Host.MACs}}{{if eq $x $y}}{{end}}{{end}}`, "too much work"},
		{"many actions", strings.Repeat("{{.Profile}}", 5000), "5000 actions"},
		{"one huge action", "{{ and " + strings.Repeat("1 ", 500_000) + "}}", "actions have more than"},
		{"many huge actions", strings.Repeat("{{ and "+strings.Repeat("1 ", 5000)+"}}", 100), "actions have more than"},
		{"a huge action behind braces in quotes", "{{ and `}}` " + strings.Repeat("1 ", 500_000) + "}}", "actions have more than"},
		{"a huge action behind a quoted quote", `{{ and "\"}}" '"' ` + strings.Repeat("1 ", 500_000) + "}}", "actions have more than"},
		{"a huge action behind a comment", "{{- /* }} */ -}}{{ and " + strings.Repeat("1 ", 500_000) + "}}", "actions have more than"},
		{"many parts", "{{ and " + strings.Repeat("1 ", 60_000) + "}}", "parts"},
		{"many parentheses", "{{ " + strings.Repeat("(", 500_000) + "}}", ""},
		{"many parentheses, closed", "{{ " + strings.Repeat("(", 9000) + "1" + strings.Repeat(")", 9000) + "}}", ""},
		{"nested conditions", strings.Repeat("{{if true}}", 4000) + strings.Repeat("{{end}}", 4000), "actions"},
		{"nested conditions below the limit", strings.Repeat("{{if true}}", 2000) + strings.Repeat("{{end}}", 2000), ""},
		{"a chain of else if", "{{if false}}" + strings.Repeat("{{else if false}}", 4000) + "{{end}}", ""},
		{"many verbs", `{{ printf "` + strings.Repeat("%256d", 5_000) + `" }}`, "printf"},
		{"a long pipeline", "{{ 1" + strings.Repeat("|len", 100_000) + "}}", "actions have more than"},
		{"a template that is too long", "{{.Profile}}" + strings.Repeat("x", maxTemplateBytes), "at most 1048576"},
		{"recursion", `{{define "text"}}{{template "text" .}}{{end}}{{template "text" .}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := cpu(t)
			out, _, r := ExpandText("document", "", c.text, many)
			d := cpu(t) - start
			t.Logf("%s, %d bytes", d, len(out))
			if d > 250*time.Millisecond { // 50 ms on a machine that has nothing else to do, and without the race detector
				t.Errorf("took %s", d)
			}
			if c.want != "" && (len(r) != 1 || !strings.Contains(r[0].Message, c.want)) {
				t.Errorf("found %v; want %s", r, c.want)
			}
			if len(out) > maxOutputBytes {
				t.Errorf("put out %d bytes", len(out))
			}
		})
	}
}

func TestExpandWorksInPlacesThatSaySo(t *testing.T) {
	c := layertest.Merged(t, `
host: {hostname: '{{ .Profile }}'}
files: [{path: /a, text: '{{ .Profile }}'}, {path: '/{{', text: a}, {path: /b, base64: '{{ .Profile }}'}]
units: [{name: a.service, contents: '{{ .Profile }}', dropIns: [{name: b.conf, contents: '{{ .Profile }}'}]}]
commands: [{shell: '{{ .Profile }}'}, {argv: ['{{ .Profile }}']}]
users: [{name: a, gecos: '{{ .Profile }}'}]
`)
	if _, r := Expand(c, exampleVars()); len(r) > 0 {
		t.Fatal(r)
	}
	for what, got := range map[string]string{"file": c.Files[0].Text, "unit": c.Units[0].Contents, "drop-in": c.Units[0].DropIns[0].Contents, "shell": c.Commands[0].Shell, "host name": c.Host.Hostname} {
		if got != "web" {
			t.Errorf("%s is %q; want it expanded", what, got)
		}
	}
	for what, got := range map[string]string{"path": c.Files[1].Path[1:] + " .Profile }}", "base64": c.Files[2].Base64, "argv": c.Commands[1].Argv[0], "gecos": c.Users[0].Gecos} {
		if got != "{{ .Profile }}" {
			t.Errorf("%s is %q; want it as it was", what, got)
		}
	}
}

func TestExpandNamesPlaceAndLayer(t *testing.T) {
	c := layertest.Merged(t, "files:\n- path: /etc/a\n  text: |\n    one\n    two {{ .Nope }}\ncommands:\n- shell: '{{ nope }}'\nunits:\n- {name: a.service, dropIns: [{name: b.conf, contents: '{{ .Host.Nope }}'}]}")
	_, r := Expand(c, exampleVars())
	want := []string{
		"layer 1:3: /files/~1etc~1a/text: line 2, column 8 of the text: there is no .Nope",
		"layer 1:9: /units/a.service/dropIns/b.conf/contents: line 1, column 9 of the text: there is no .Host.Nope",
		"layer 1:7: /commands/0/shell: line 1, column 1 of the text: there is no function \"nope\"",
	}
	if len(r) != len(want) {
		t.Fatalf("findings %v", r)
	}
	for i, f := range r {
		if !strings.HasPrefix(f.String(), want[i]) || f.Code != "template" {
			t.Errorf("found %s; want %s", f, want[i])
		}
	}
	if c.Files[0].Text != "one\ntwo {{ .Nope }}\n" {
		t.Errorf("a text with an error became %q", c.Files[0].Text)
	}
}

// TestTextsShareTheirBounds shows that many files cannot do together what one may not.
func TestTextsShareTheirBounds(t *testing.T) {
	c := &machineconfig.Config{}
	for i := range 100 {
		c.Files = append(c.Files, machineconfig.File{Path: fmt.Sprintf("/f%d", i), Content: machineconfig.Content{Text: "{{range .Host.MACs}}" + strings.Repeat("{{range $.Host.MACs}}{{end}}", 90) + "{{end}}"}})
	}
	if _, r := Expand(c, exampleVars()); !r.HasErrors() || !strings.Contains(r[0].Message, "rounds") {
		t.Errorf("findings %v; want that the loops take too many rounds", r)
	}
}

// TestFactsCannotAskForSecrets shows that what a machine says of itself is data.
func TestFactsCannotAskForSecrets(t *testing.T) {
	v := exampleVars()
	v.Host.Facts["evil"] = late.Marker("secret://root-password")
	if _, _, r := ExpandText("document", "", "{{ .Host.Facts.evil }}", v); !r.HasErrors() {
		t.Error("a fact asked for a secret")
	}
	v.Host.Facts["evil"] = `{{ secret "root-password" }}`
	if out, _, r := ExpandText("document", "", "{{ .Host.Facts.evil }}", v); r.HasErrors() || late.HasMarker(out) {
		t.Errorf("%q, %v; want the fact as it is", out, r)
	}
	c := &machineconfig.Config{Files: []machineconfig.File{{Path: "/a", Content: machineconfig.Content{Text: late.Marker("secret://x")}}}}
	if _, r := Expand(c, v); !r.HasErrors() {
		t.Error("a marker in a text without a template passed")
	}
}

func TestVarsAreACopy(t *testing.T) {
	h := &inventory.Host{Labels: map[string]string{"a": "b"}}
	p := &inventory.Profile{Parameters: map[string]string{"a": "b"}}
	v := NewVars(h, p, "")
	v.Host.Labels["a"], v.Parameters["a"] = "c", "c"
	if h.Labels["a"] != "b" || p.Parameters["a"] != "b" {
		t.Error("the variables share maps with the inventory")
	}
	if v := NewVars(&inventory.Host{}, nil, ""); v.Host.Labels == nil || v.Host.Facts == nil || v.Parameters == nil {
		t.Error("a map is nil")
	}
}

// cpu is the processor time that the tests have taken: what else the machine does is not in it.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
