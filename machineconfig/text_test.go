package machineconfig_test

import (
	"testing"

	"slipway.dev/slipway/machineconfig"
)

func TestAByteThatIsNotUTF8IsFound(t *testing.T) {
	for name, c := range map[string]struct {
		text         string
		line, column int
	}{
		"plain":            {"a: b\n", 0, 0},
		"letters":          {"a: café\n", 0, 0},
		"U+FFFD as it is":  {"a: \ufffd\n", 0, 0},
		"Latin-1":          {"#cloud-config\npackages: [\"caf\xe9\"]\n", 2, 16},
		"after letters":    {"é\xe9", 1, 2},
		"a cut character":  {"a\n\xc3", 2, 1},
		"byte order mark":  {"\ufeff#cloud-config\n", 1, 1},
		"UTF-16":           {"\xff\xfea\x00", 1, 1},
		"UTF-16, reversed": {"\xfe\xff\x00a", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			line, column, what, hint := machineconfig.TextFault(c.text)
			if line != c.line || column != c.column || (line > 0) != (what != "" && hint != "") {
				t.Errorf("found %d:%d %q %q, want %d:%d", line, column, what, hint, c.line, c.column)
			}
		})
	}
}

func TestASecondYAMLDocumentIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"one":                     {"#cloud-config\na: 1\n", 0},
		"one with its marker":     {"#cloud-config\n---\na: 1\n", 0},
		"one with its end":        {"a: 1\n...\n# no more\n", 0},
		"one with a directive":    {"%YAML 1.1\n---\na: 1\n", 0},
		"two":                     {"#cloud-config\npackages: [vim]\n---\nruncmd: [echo]\n", 3},
		"two with markers":        {"---\na: 1\n--- # next\nb: 1\n", 3},
		"an empty one at the end": {"a: 1\n---\n", 2},
		"after the end":           {"a: 1\n...\nb: 1\n", 3},
		"in a text":               {"a: |\n  ---\n  x\nb: 1\n", 0},
		"part of a word":          {"a: 1\n---b: 1\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := machineconfig.SecondDocument(c.text); got != c.line {
				t.Errorf("line %d, want %d", got, c.line)
			}
		})
	}
}
