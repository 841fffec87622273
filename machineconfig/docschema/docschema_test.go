package docschema

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const table = `
# a comment
top = {name!: string, sizes: [integer], mode: 'on' | 'slow' | boolean, run: [command],
  tags: {*: string}, free: {known: string, ...}, disk: {<path | serial>, path: string, serial: string},
  self: top, many: string | [string] | {a!: string}, n: null | number, time: string,
  port: integer(1..65535), word: string(2..4), code: string~^[a-z]+$~ 'small letters', pair: [string](2..2), wait: integer(0..) | code | 'now',
  either: {<a ^ b>, a: string, b: string}, long: [string](..3) | string(3..)}
code = string~^[a-z]+[0-9]$~ 'letters and a digit'
command = string | [string]
`

func check(t testing.TB, text string) (out []string) {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
		return nil
	}
	for _, f := range Must(table).Check(doc.Content[0], "top", "") {
		out = append(out, fmt.Sprintf("%d:%d %d %s %s (%s)", f.Line, f.Column, f.Severity, f.Code, f.Message, f.Hint))
	}
	return out
}

func TestAFaultStandsAtItsOwnPlace(t *testing.T) {
	for text, want := range map[string]string{
		"name: x\nsizes: [1, 2]\nmode: on\nrun: [a, [b, c]]\ntags: {a: b}\nfree: {other: 1}\nself: {name: y}\nn: ~": "",
		"sizes: [1]":                  "1:1 0 missing lacks the key name (add it)",
		"name: x\nsizes: [1, a]":      "2:12 1 bad-type sizes[1] is the text \"a\", and the tool reads an integer there (write an integer)",
		"name: x\nsizes: [\"1\"]":     "2:9 1 bad-type sizes[0] is the text \"1\", and the tool reads an integer there (take the quotes off, or write an integer)",
		"name: 1":                     "1:7 1 bad-type name is an integer 1, and the tool reads a text there (put it in quotes)",
		"name: yes":                   "1:7 1 bad-type name is a boolean yes, and the tool reads a text there (put it in quotes)",
		"name: x\ntime: 12:30:00":     "2:7 1 bad-type time is an integer 12:30:00, and the tool reads a text there (put it in quotes)",
		"name: x\nmode: fast":         "2:7 1 bad-type mode is the text \"fast\", and the tool reads on or slow or true or false there (write on or slow or true or false)",
		"name: x\nrun:\n  - a: b":     "3:5 0 bad-type run[0] is a mapping, and the tool reads a text or a list there (the colon in it makes it a mapping: put the text in quotes)",
		"name: x\nrun: [[a, {b: c}]]": "2:11 0 bad-type run[0][1] is a mapping, and the tool reads a text there (the colon in it makes it a mapping: put the text in quotes)",
		"name: x\nsize: [1]":          "2:1 0 unknown-key has the key size, which the tool does not know (did you mean sizes?)",
		"name: x\nfree: {knwon: a}":   "2:8 2 unknown-key free has the key knwon, which the tool does not know there (did you mean known?)",
		"name: x\ntags: {a: b, a: c}": "2:14 0 duplicate tags has the key a twice: first on line 2 (leave one of them out, or put both under one)",
		"name: x\ndisk: {}":           "2:7 0 missing disk has none of the keys path, serial (add one of them)",
		"name: x\nself:\n  nam: y":    "3:3 0 unknown-key self has the key nam, which the tool does not know there (did you mean name?);3:3 0 missing self lacks the key name (add it)",
		"name: x\nmany: {other: c}":   "2:8 0 unknown-key many has the key other, which the tool does not know there (its keys are a);2:7 0 missing many lacks the key a (add it)",
		"name: x\n? [a]\n: b":         "2:3 0 bad-key has a key that is no text (write a word as the key)",
		"name: x\nport: 22\nword: abc\ncode: abc\npair: [a, b]\nwait: 0\neither: {a: b}\nlong: [a]": "",
		"name: x\nwait: now\nlong: abc\nword: 'äöü'":                                                "",
		"name: x\nport: 0":              "2:7 1 bad-value port is an integer 0, and the tool reads an integer of 1 to 65535 there (write an integer of 1 to 65535)",
		"name: x\nport: 65536":          "2:7 1 bad-value port is an integer 65536, and the tool reads an integer of 1 to 65535 there (write an integer of 1 to 65535)",
		"name: x\nword: abcde":          "2:7 1 bad-value word is the text \"abcde\", and the tool reads a text with a length of 2 to 4 there (write a text with a length of 2 to 4)",
		"name: x\ncode: Abc":            "2:7 1 bad-value code is the text \"Abc\", and the tool reads small letters there (write small letters)",
		"name: x\npair: [a]":            "2:7 1 bad-value pair is a list of 1, and the tool reads a list of 2 there (write a list of 2)",
		"name: x\nwait: -1":             "2:7 1 bad-value wait is an integer -1, and the tool reads an integer of 0 or more there (write an integer of 0 or more)",
		"name: x\nwait: soon":           "2:7 1 bad-value wait is the text \"soon\", and the tool reads letters and a digit there (write letters and a digit)",
		"name: x\nlong: [a, b, c, d]":   "2:7 1 bad-value long is a list of 4, and the tool reads a list of 3 or less there (write a list of 3 or less)",
		"name: x\neither: {a: b, b: c}": "2:16 1 exclusive either has the keys a and b, and the tool reads one of them (leave one of them out)",
		// An alias is what it stands for; a fault of its type is the alias's own.
		"name: &n x\ntags: {a: *n}":                   "",
		"name: &n x\nsizes: *n":                       "2:8 0 bad-type sizes is the text \"x\", and the tool reads a list there (write a list)",
		"free: &f {a: b}\nname: x\nrun: [*f]":         "3:7 0 bad-type run[0] is a mapping, and the tool reads a text or a list there (the colon in it makes it a mapping: put the text in quotes)",
		"free: &f {name: z}\nself: {<<: *f}\nname: x": "",
		"name: x\nself: {<<: 1}":                      "2:12 0 bad-type self merges something that is no mapping (name a mapping with &, and write <<: *NAME);2:7 0 missing self lacks the key name (add it)",
		"name: x\nsizes:":                             "2:7 1 bad-type sizes is empty, and the tool reads a list there (write a list)",
	} {
		if got := strings.Join(check(t, text), ";"); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestAliasesCannotMakeTheCheckLong(t *testing.T) {
	var b strings.Builder
	b.WriteString("free: &f0 {a: b}\nname: x\n")
	for i := range 40 {
		fmt.Fprintf(&b, "k%d: &f%d [*f%d, *f%d, *f%d]\n", i, i+1, i, i, i)
	}
	b.WriteString("self: &s {name: a, self: *s}\n")
	got := strings.Join(check(t, b.String()), "\n")
	if !strings.Contains(got, "too-large") {
		t.Error(got)
	}
}

func TestATableThatIsWrongIsRefused(t *testing.T) {
	for _, text := range []string{"a = b", "a = a", "a = b\nb = a", "a = {x}", "a = [string", "a = 'x", "a = string extra", " x", "a", "a = any\na = any", "a = {<x>, y: }", "a = ?", "a = integer(1..", "a = integer(x..)", "a = string~[~", "a = integer~x~", "a = string~x~ 'y", "a = {<x ^ y, z: any}"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestWhatIsNotKnownYetKeepsAllBounds(t *testing.T) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte("name: x\ncode: SECRET\npair: [a]\n"), &doc); err != nil {
		t.Fatal(err)
	}
	s := Must(table)
	if f := s.Loose().Check(doc.Content[0], "top", ""); len(f) > 0 {
		t.Errorf("a template: %v", f)
	}
	s.IsOpaque = func(text string) bool { return text == "SECRET" }
	if f := s.Check(doc.Content[0], "top", ""); len(f) != 1 || f[0].Line != 3 {
		t.Errorf("a secret: %v", f)
	}
}

func TestTheNearestWord(t *testing.T) {
	known := []string{"late-commands", "layout", "authorized-keys", "x"}
	for word, want := range map[string]string{"late-command": "late-commands", "layuot": "layout", "authorized_keys": "authorized-keys", "LAYOUT": "layout", "y": "x", "nothing": ""} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("name: x\nself: &s {name: a, self: *s}\nrun: [a: b]\n")
	f.Fuzz(func(t *testing.T, text string) { check(t, text) })
}

func FuzzParse(f *testing.F) {
	f.Add(table)
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := Parse(text); err == nil {
			for name := range s.named {
				s.Check(&yaml.Node{Kind: yaml.ScalarNode, Value: "x"}, name, "")
			}
		}
	})
}
