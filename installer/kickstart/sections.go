package kickstart

import (
	"regexp"
	"slices"
	"strings"
)

// include reports a file that Anaconda reads while it installs: what is in it is not checked. Usually a script of %pre
// writes it.
func (c *checker) include(l line) {
	words, _ := l.words()
	switch {
	case len(words) < 2:
		c.fail(l.n, 1, "missing", "write the path of a file behind it", "%%include names no file")
	case strings.HasPrefix(words[1].text, "/") && !c.writes(words[1].text):
		c.warn(words[1].line, words[1].column, "included", "write the file in a %pre, or put its lines here",
			"%%include %s: no %%pre here names that file, and what stands in it is not checked", cut(words[1].text))
	case !strings.HasPrefix(words[1].text, "/"):
		c.warn(words[1].line, words[1].column, "included", "put its lines here", "%%include %s: what stands in it is not checked", cut(words[1].text))
	}
}

var preRE = regexp.MustCompile(`(?ms)^%pre(?:-install)?(?:[ \t][^\n]*)?$(.*?)^%end`)

// writes reports whether a script that runs before the installation names a file.
func (c *checker) writes(path string) bool {
	return slices.ContainsFunc(preRE.FindAllStringSubmatch(c.text, -1), func(m []string) bool { return strings.Contains(m[1], path) })
}

// packages checks a line of %packages: one package, group or environment, or one that is left out.
func (c *checker) packages(l line) {
	text, _, _ := strings.Cut(l.raw, "#")
	words := strings.Fields(text)
	if len(words) == 0 {
		return
	}
	name := strings.TrimPrefix(words[0], "-")
	group, isGroup := strings.CutPrefix(name, "@")
	column := 1 + strings.Index(l.raw, words[0])
	switch {
	case words[0] == "-":
		c.fail(l.n, column, "bad-value", "write the name right behind it", "a - leaves a package out, and none is named")
	case isGroup && group == "" && len(words) == 1:
		c.warn(l.n, column, "bad-value", "write the name right behind it", "an @ names a group, and none is named")
	case isGroup:
		c.group(l, words[1:])
	case strings.HasPrefix(words[0], "--"):
		c.warn(l.n, column, "bad-value", "write it in the line of %packages", "%s is read as the name of a package", cut(words[0]))
	case len(words) > 1:
		c.warn(l.n, column, "words", "write one package a line", "%s is read as the name of one package", cut(strings.Join(words, " ")))
	}
}

// group checks the options of a group. A group's name may have blanks.
func (c *checker) group(l line, words []string) {
	var isBare, isFull bool
	for _, w := range words {
		switch {
		case w == "--nodefaults":
			isBare = true
		case w == "--optional":
			isFull = true
		case strings.HasPrefix(w, "--"):
			c.warn(l.n, 1+strings.Index(l.raw, w), "unknown-option", "its options are --nodefaults and --optional", "%s is no option of a group", cut(w))
		}
	}
	if isBare && isFull {
		c.fail(l.n, 1, "exclusive", "leave one of them out", "a group takes only one of --nodefaults and --optional")
	}
}
