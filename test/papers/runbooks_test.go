package papers

import (
	"regexp"
	"strings"
	"testing"
)

// TestRunbooksQuoteWhatSlipwaySays compares each text that a runbook quotes under "Signs" with the texts of the programs. What
// follows a colon in it may be the text of another program.
func TestRunbooksQuoteWhatSlipwaySays(t *testing.T) {
	var said []*regexp.Regexp
	literal, verb := regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`), regexp.MustCompile(`%[a-z]`)
	each(t, func(name, text string) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		for _, m := range literal.FindAllStringSubmatch(text, -1) {
			if text := strings.TrimSpace(m[1]); len(text) >= 12 && strings.ContainsAny(text, " -_") {
				said = append(said, regexp.MustCompile(verb.ReplaceAllString(regexp.QuoteMeta(text), `\S*`)))
			}
		}
	}, ".go")
	n := 0
	each(t, func(name, text string) {
		if name != "docs/runbooks.md" {
			return
		}
		for _, part := range strings.Split(text, "\n## ")[1:] {
			title, _, _ := strings.Cut(part, "\n")
			_, part, _ = strings.Cut(part, "**Signs.**")
			part, _, _ = strings.Cut(part, "**Meaning.**")
			part = strings.Join(strings.Fields(part), " ")
			for _, m := range spanRE.FindAllStringSubmatch(part, -1) {
				n++
				isSaid := false
				for _, re := range said {
					isSaid = isSaid || re.MatchString(m[1])
				}
				if !isSaid && strings.ContainsAny(m[1], " -_") {
					t.Errorf("%s: no program says %q", title, m[1])
				}
			}
		}
	}, ".md")
	if n < 20 {
		t.Errorf("only %d texts were found", n)
	}
}
