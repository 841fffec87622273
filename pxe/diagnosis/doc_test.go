package diagnosis

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table of docs/diagnosis.md")

const (
	tableBegin = "<!-- rules: written by go test ./pxe/diagnosis -run Documented -update -->\n"
	tableEnd   = "<!-- end of rules -->"
)

// The documentation lists each rule, with the anchor that its findings name.
func TestEachRuleIsDocumented(t *testing.T) {
	var b strings.Builder
	codes := map[string]bool{}
	for _, r := range Rules() {
		if codes[r.Code] {
			t.Errorf("two rules are called %s", r.Code)
		}
		codes[r.Code] = true
		b.WriteString("\n### " + r.Code + "\n\n" + sentence(r.Title) + "\n*" + sentence(r.Hint) + "*\n")
	}
	b.WriteString("\n")
	name := filepath.Join("..", "..", "docs", "diagnosis.md")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, hasBegin := strings.Cut(string(text), tableBegin)
	was, after, hasEnd := strings.Cut(rest, tableEnd)
	if !hasBegin || !hasEnd {
		t.Fatal("no marks of the table in " + name)
	}
	if was == b.String() {
		return
	}
	if !*update {
		t.Fatal("the table of docs/diagnosis.md is not that of the rules; rewrite it with: go test ./pxe/diagnosis -run Documented -update")
	}
	if err := os.WriteFile(name, []byte(before+tableBegin+b.String()+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// literal is what a reader copies: commands, flags and names of metrics.
var literal = regexp.MustCompile(`slipway( [a-z]+){1,2}( [A-Z]+(-[A-Z]+)*)*( --[a-z-]+( [a-z]+)?)*|slipway_[a-z_]+|--[a-z-]+`)

// sentence is a text of a rule in the documentation. A name that begins it keeps its first letter.
func sentence(s string) string {
	if !strings.HasPrefix(s, "iPXE") && !strings.HasPrefix(s, "slipway") {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	s = literal.ReplaceAllString(s, "`$0`")
	return strings.TrimSuffix(s, ".") + "."
}
