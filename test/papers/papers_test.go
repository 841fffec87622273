// Package papers tests what is written about Slipway: every page can be found from the README, no link is broken, and no page
// names a file that is gone.
package papers

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

// notRead are folders with files of others or of a build.
var notRead = []string{".git", "node_modules", "build", "bin", "dist", "testdata", "shared"}

// each calls f for every file whose name ends so, by its path from the root.
func each(t *testing.T, f func(name, text string), ends ...string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(notRead, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains(ends, filepath.Ext(name)) {
			return nil
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		f(filepath.ToSlash(rel), string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// page is a Markdown page.
type page struct {
	links   []link
	anchors map[string]bool
	spans   []link // pieces of code in a line
}

// link is what a line leads to.
type link struct {
	to   string
	line int
}

var (
	linkRE    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	spanRE    = regexp.MustCompile("`([^`]+)`")
	headingRE = regexp.MustCompile(`^#{1,6} +(.*?) *$`)
	labelRE   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// parse reads a page. Blocks of code have no links; nor has code in a line.
func parse(text string) page {
	p := page{anchors: map[string]bool{}}
	isCode := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			isCode = !isCode
			continue
		}
		if isCode || strings.HasPrefix(line, "    ") && !strings.HasPrefix(strings.TrimSpace(line), "- ") {
			continue
		}
		if m := headingRE.FindStringSubmatch(line); m != nil {
			p.addAnchor(anchor(m[1]))
		}
		for _, m := range spanRE.FindAllStringSubmatch(line, -1) {
			p.spans = append(p.spans, link{m[1], i + 1})
		}
		for _, m := range linkRE.FindAllStringSubmatch(spanRE.ReplaceAllString(line, ""), -1) {
			p.links = append(p.links, link{m[1], i + 1})
		}
	}
	return p
}

// addAnchor gives the second heading of a text the ending -1, the third -2.
func (p *page) addAnchor(a string) {
	name := a
	for n := 1; p.anchors[name]; n++ {
		name = fmt.Sprintf("%s-%d", a, n)
	}
	p.anchors[name] = true
}

// anchor is how Markdown viewers name a heading: small letters, without punctuation, with hyphens for blanks.
func anchor(heading string) string {
	heading = labelRE.ReplaceAllString(heading, "$1")
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			b.WriteRune('-')
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(r)
		}
	}
	return b.String()
}

func pages(t *testing.T) map[string]page {
	t.Helper()
	all := map[string]page{}
	each(t, func(name, text string) { all[name] = parse(text) }, ".md")
	if len(all) < 50 {
		t.Fatalf("only %d pages were found", len(all))
	}
	return all
}

func isElsewhere(to string) bool {
	return strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:")
}

// leads returns the file that a link of a page leads to, and its anchor. A folder stands for its README.md.
func leads(from, to string) (file, anchor string) {
	to, anchor, _ = strings.Cut(to, "#")
	if to == "" {
		return from, anchor
	}
	file = path.Join(path.Dir(from), to)
	if info, err := os.Stat(filepath.Join(root, file)); err == nil && info.IsDir() {
		file = path.Join(file, "README.md")
	}
	return file, anchor
}

func TestNoLinkIsBroken(t *testing.T) {
	all := pages(t)
	for name, p := range all {
		for _, l := range p.links {
			if isElsewhere(l.to) {
				continue
			}
			file, anchor := leads(name, l.to)
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s:%d: %s leads to %s, which does not exist", name, l.line, l.to, file)
			} else if to, isPage := all[file]; isPage && anchor != "" && !to.anchors[anchor] {
				t.Errorf("%s:%d: %s has no heading for #%s", name, l.line, file, anchor)
			}
		}
	}
}

// TestEveryPageIsReachable follows links from the README, and from the index of docs alone.
func TestEveryPageIsReachable(t *testing.T) {
	all := pages(t)
	for _, from := range []string{"README.md", "docs/README.md"} {
		seen := map[string]bool{from: true}
		for next := []string{from}; len(next) > 0; next = next[1:] {
			for _, l := range all[next[0]].links {
				file, _ := leads(next[0], l.to)
				if _, isPage := all[file]; isPage && !isElsewhere(l.to) && !seen[file] {
					seen[file] = true
					next = append(next, file)
				}
			}
		}
		for name := range all {
			if !seen[name] {
				t.Errorf("no link leads from %s to %s", from, name)
			}
		}
	}
}

// TestEveryDecisionIsListed keeps the index of decisions whole: following links is not enough, as other pages link to some.
func TestEveryDecisionIsListed(t *testing.T) {
	all := pages(t)
	const index = "docs/decisions/README.md"
	var listed []string
	for _, l := range all[index].links {
		listed = append(listed, l.to)
	}
	for name := range all {
		if dir, file := path.Split(name); dir == path.Dir(index)+"/" && name != index && !slices.Contains(listed, file) {
			t.Errorf("%s does not list %s", index, file)
		}
	}
}

// pageRE finds pages that programs name, in hints, comments and texts.
var pageRE = regexp.MustCompile(`docs/[a-z0-9/-]+\.md`)

func TestProgramsNamePagesThatExist(t *testing.T) {
	all := pages(t)
	n := 0
	each(t, func(name, text string) {
		for _, to := range pageRE.FindAllString(text, -1) {
			if n++; all[to].anchors == nil {
				t.Errorf("%s names %s, which does not exist", name, to)
			}
		}
	}, ".go", ".ts", ".tsx", ".mjs", ".sh", ".yaml")
	if n == 0 {
		t.Error("no program names a page")
	}
}

// TestContributorsFindTheFilesThatPagesName looks for each path, test and make target of the pages for contributors.
func TestContributorsFindTheFilesThatPagesName(t *testing.T) {
	all := pages(t)
	tests := map[string]bool{}
	each(t, func(name, text string) {
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(text, -1) {
			tests[m[1]] = true
		}
	}, ".go")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"CONTRIBUTING.md", "RELEASING.md", "docs/architecture.md"} {
		for _, s := range all[name].spans {
			for _, word := range strings.Fields(s.to) {
				if missing := whatIsMissing(word, tests); missing != "" {
					t.Errorf("%s:%d: %s: %s", name, s.line, s.to, missing)
				}
			}
			if target, ok := strings.CutPrefix(s.to, "make "); ok {
				for _, word := range strings.Fields(target) {
					if !strings.Contains(word, "=") && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(word)+`:`).Match(makefile) {
						t.Errorf("%s:%d: the Makefile has no target %s", name, s.line, word)
					}
				}
			}
		}
	}
}

var (
	pathRE = regexp.MustCompile(`^(\./)?[a-z][A-Za-z0-9_.-]*(/[A-Za-z0-9_.-]+)+$`)
	testRE = regexp.MustCompile(`^Test\w+$`)
)

// whatIsMissing says that a word names a file, folder or test that there is none of; "" where it names none or is there.
func whatIsMissing(word string, tests map[string]bool) string {
	switch {
	case testRE.MatchString(word):
		for name := range tests {
			if strings.HasPrefix(name, word) {
				return ""
			}
		}
		return "there is no such test"
	case pathRE.MatchString(word):
		first, _, _ := strings.Cut(strings.TrimPrefix(word, "./"), "/")
		if info, err := os.Stat(filepath.Join(root, first)); err != nil || !info.IsDir() || slices.Contains([]string{"bin", "build"}, first) {
			return "" // it is the name of something else, such as a module
		}
		if _, err := os.Stat(filepath.Join(root, word)); err != nil {
			return "there is no such file"
		}
	}
	return ""
}

func TestWhatIsAnAnchor(t *testing.T) {
	p := parse("# Title\n\n## A `code`, and [a link](x.md#y)!\n\n## Same\n## Same\n\n```\n# no heading\n[no](link.md)\n```\n\n    [nor](this.md)\n\n`[nor](that.md)` [yes](z.md)\n")
	for _, want := range []string{"title", "a-code-and-a-link", "same", "same-1"} {
		if !p.anchors[want] {
			t.Errorf("no anchor %s in %v", want, p.anchors)
		}
	}
	if len(p.anchors) != 4 || len(p.links) != 2 || p.links[1].to != "z.md" {
		t.Errorf("%v, %v", p.anchors, p.links)
	}
}
