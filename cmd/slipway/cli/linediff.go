package cli

import (
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// maxDiffLines bounds the work of lineDiff; a longer text is shown as taken out and put in.
const maxDiffLines = 4000

// LineDiff returns the lines of two texts. "-" marks those of the first only, and "+" those of the second only. Of the
// other lines, it returns those nearby.
func LineDiff(before, after string) (out []string) {
	a, b := Lines(before), Lines(after)
	add := func(mark string, lines ...string) {
		for _, l := range lines {
			out = append(out, mark+l)
		}
	}
	if len(a)*len(b) > maxDiffLines*maxDiffLines/4 {
		add("-", a...)
		add("+", b...)
		return out
	}
	for _, group := range difflib.NewMatcher(a, b).GetGroupedOpCodes(3) {
		for _, c := range group {
			if c.Tag == 'e' {
				add(" ", a[c.I1:c.I2]...)
				continue
			}
			add("-", a[c.I1:c.I2]...)
			add("+", b[c.J1:c.J2]...)
		}
		if group[len(group)-1].I2 < len(a) {
			add(" ", "...")
		}
	}
	return out
}

// Lines splits a text into lines for LineDiff; an empty text has none.
func Lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
