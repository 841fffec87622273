package plain

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	update = flag.Bool("update", false, "write lower numbers into debts.txt; it never writes a higher one")
	list   = flag.Bool("findings", false, "print every finding")
)

const (
	root  = "../.."
	debts = "debts.txt"
)

// TestTextsArePlain reads all docs, the texts of the web UI and the texts in Go code. What is not rewritten yet is counted in
// debts.txt, by page for docs and the UI, and together for Go, whose files move more often.
func TestTextsArePlain(t *testing.T) {
	allowed := readDebts(t)
	found := map[string][]finding{}
	for _, name := range files(t) {
		for _, s := range read(t, name) {
			place := debtor(name)
			found[place] = append(found[place], check(fmt.Sprintf("%s:%d", name, s.line), s.says)...)
		}
	}
	left := map[string]int{}
	for place, all := range found {
		n := len(all)
		left[place] = min(n, allowed[place])
		if *list || n > allowed[place] {
			for _, f := range all {
				fmt.Printf("%s: %s: %s (%s)\n", f.where, f.rule, f.sentence, f.advice)
			}
		}
		if n > allowed[place] {
			t.Errorf("%s has %d sentences that are not plain, %d more than %s allows", place, n, n-allowed[place], debts)
		}
	}
	for place, n := range allowed {
		if left[place] < n && !*update {
			t.Errorf("%s has only %d findings left; lower the %d in %s: go test ./test/plain -update", place, left[place], n, debts)
		}
	}
	if *update {
		writeDebts(t, left)
	}
}

// debtor is the place under which the findings of a file are counted.
func debtor(name string) string {
	if strings.HasSuffix(name, ".go") {
		return "*.go"
	}
	return name
}

// isRead says whether people read the texts of a file: not those of tests, of generated files, of the log of changes, nor of
// decisions, which stay as they were taken, nor of the glossary, which lists what to avoid.
func isRead(name string) bool {
	switch path.Ext(name) {
	case ".md":
		return (path.Dir(name) == "docs" || path.Dir(name) == ".") && name != "CHANGELOG.md" && name != "docs/glossary.md"
	case ".ts", ".tsx":
		return strings.HasPrefix(name, "ui/src/") && !strings.Contains(name, ".test.") && !strings.HasSuffix(name, ".d.ts")
	case ".go":
		return !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "test/") && !strings.HasPrefix(name, "tools/") &&
			!strings.Contains(name, "zz_generated") && !strings.HasSuffix(path.Dir(name), "test")
	}
	return false
}

// TestTheGlossaryIsInOrder also keeps its entries short, and each word there once.
func TestTheGlossaryIsInOrder(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "docs", "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	words, _, _ := strings.Cut(string(b), "\n## ")
	last, n := "", 0
	for _, line := range strings.Split(words, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(line, "|--") || strings.HasPrefix(line, "| word ") {
			continue
		}
		word := strings.ToLower(strings.TrimSpace(cells[1]))
		if word <= last {
			t.Errorf("%q comes after %q", word, last)
		}
		if s := sentences(cells[2]); len(s) > 2 {
			t.Errorf("%q has %d sentences, at most 2 are read", word, len(s))
		}
		last, n = word, n+1
	}
	if n < 50 {
		t.Errorf("%d words were found in the glossary", n)
	}
}

func files(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch d.Name() {
		case "node_modules", ".git", "build", "bin", "testdata", "dist", "shared":
			if d.IsDir() {
				return filepath.SkipDir
			}
		}
		rel, err := filepath.Rel(root, name)
		if rel = filepath.ToSlash(rel); err == nil && !d.IsDir() && isRead(rel) {
			all = append(all, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, name string) []text {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	switch path.Ext(name) {
	case ".md":
		return markdown(string(b))
	case ".go":
		all, err := golang(name, string(b))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	return typescript(string(b))
}

func readDebts(t *testing.T) map[string]int {
	t.Helper()
	b, err := os.ReadFile(debts)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		name, count, _ := strings.Cut(line, " ")
		if n, err := strconv.Atoi(count); err == nil {
			all[name] = n
		} else if line != "" {
			t.Fatalf("%s: %q is no name and number", debts, line)
		}
	}
	return all
}

func writeDebts(t *testing.T, left map[string]int) {
	t.Helper()
	var lines []string
	for name, n := range left {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("%s %d\n", name, n))
		}
	}
	slices.Sort(lines)
	if err := os.WriteFile(debts, []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRulesFindWhatIsNotPlain(t *testing.T) {
	for sentence, want := range map[string][]string{
		"Who has no role may log in.":                                {"clause-as-subject"},
		"What is not known of a host counts as met.":                 {"clause-as-subject"},
		"What is a host?":                                            nil,
		"A user without a role can log in.":                          nil,
		"The host is told to wait.":                                  {"passive"},
		"Slipway tells the host to wait.":                            nil,
		"A machine asks in vain.":                                    {"private-word"},
		"The admin door is closed.":                                  {"private-word"},
		"Strangers get no offer.":                                    {"private-word"},
		"GET /strangers/MAC, or --keep-strangers.":                   nil,
		"Slipway asks 3.5 times, e.g. at the start. It then waits.":  nil,
		strings.Repeat("word ", 26) + ".":                            {"long-sentence"},
		strings.Repeat("word ", 20) + ". " + strings.Repeat("a ", 9): nil,
	} {
		var got []string
		for _, f := range check("here", sentence) {
			got = append(got, f.rule)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", sentence, got, want)
		}
	}
}

func TestOnlyEnglishIsRead(t *testing.T) {
	page := "# Title\n\nOne `code`\nline.\n\n    block of code\n\n- an *item* of a [list](x.md)\n\n```\ncode\n```\n| a cell | `b` |\n|---|---|\n"
	if got, want := markdown(page), []text{{3, "One CODE line."}, {8, "an item of a list"}, {13, " a cell "}, {13, " CODE "}}; !reflect.DeepEqual(got, want) {
		t.Errorf("Markdown: %v, want %v", got, want)
	}
	source := "// a comment of words\nimport x from '../a'\nconst a = cond ? 'Words on a button' : 'no'\n<p className=\"pf-v6 a b\">\n  Words between tags {n}\n</p>\n"
	if got, want := typescript(source), []text{{4, "Words between tags"}, {3, "Words on a button"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("TypeScript: %v, want %v", got, want)
	}
	program := "// Package a has A.\n// B.Do is code.\n//\n//\tcode\n//\n//   - an item\n// +kubebuilder:x\npackage a\n\n// a comment of words\ntype t struct {\n\tA string `help:\"Help of a flag.\" json:\"a,omitempty\"`\n}\n\nvar q, e = \"SELECT a FROM b\", \"the host %q is busy\"\n"
	got, err := golang("a.go", program)
	if want := []text{{1, "CODE has CODE. CODE is code."}, {1, "an item"}, {12, "Help of a flag."}, {15, "the host CODE is busy"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Go: %v, %v, want %v", got, err, want)
	}
}
