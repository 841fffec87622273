package cli

import (
	"strings"
)

// maxDiffLines bounds the work of lineDiff; a longer text is shown as taken out and put in.
const maxDiffLines = 4000

// LineDiff returns the lines of two texts. "-" marks those of the first only, and "+" those of the second only. Of the
// other lines, it returns those nearby.
func LineDiff(before, after string) []string {
	a, b := Lines(before), Lines(after)
	if len(a)*len(b) > maxDiffLines*maxDiffLines/4 {
		var out []string
		for _, l := range a {
			out = append(out, "-"+l)
		}
		for _, l := range b {
			out = append(out, "+"+l)
		}
		return out
	}
	// same[i][j] is how many lines the rests from i and j have in common, in order.
	same := make([][]int32, len(a)+1)
	for i := range same {
		same[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				same[i][j] = same[i+1][j+1] + 1
			} else {
				same[i][j] = max(same[i+1][j], same[i][j+1])
			}
		}
	}
	var out []string
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, " "+a[i])
			i++
			j++
		case j == len(b) || i < len(a) && same[i+1][j] >= same[i][j+1]:
			out = append(out, "-"+a[i])
			i++
		default:
			out = append(out, "+"+b[j])
			j++
		}
	}
	return near(out, 3)
}

// Lines splits a text into lines for LineDiff; an empty text has none.
func Lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// near leaves out lines that are farther than n from a difference.
func near(all []string, n int) (out []string) {
	keep := make([]bool, len(all))
	for i, l := range all {
		if l[0] != ' ' {
			for k := max(0, i-n); k <= min(len(all)-1, i+n); k++ {
				keep[k] = true
			}
		}
	}
	for i, l := range all {
		switch {
		case keep[i]:
			out = append(out, l)
		case i > 0 && keep[i-1]:
			out = append(out, " ...")
		}
	}
	return out
}
