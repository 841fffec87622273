package docschema

import (
	"slices"
	"strings"
)

// Nearest returns the word that differs least from a misspelled one, "" if none differs in one or two letters.
func Nearest(word string, known []string) string {
	best, at := "", min(3, max(2, len(word)/2+1))
	if len(word) > 60 {
		return ""
	}
	same := strings.NewReplacer("-", "_").Replace(strings.ToLower(word))
	known = slices.Sorted(slices.Values(known))
	for _, k := range known {
		if strings.NewReplacer("-", "_").Replace(strings.ToLower(k)) == same {
			return k
		}
		if d := Distance(word, k); d < at {
			best, at = k, d
		}
	}
	return best
}

// Distance counts the letters that have to be changed, added, taken out or swapped with the next.
func Distance(a, b string) int {
	before, row := []int(nil), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// NearestKey returns the word that one of a few typing errors makes of name, "" if none is near.
func NearestKey(name string, among []string) string {
	best, bestD := "", len(name)/3+2
	for _, w := range among {
		if strings.EqualFold(name, w) || strings.EqualFold(strings.NewReplacer("_", "", "-", "").Replace(name), w) {
			return w
		}
		if max(len(name), len(w)) > 64 {
			continue
		}
		if d := Distance(name, w); d < bestD {
			best, bestD = w, d
		}
	}
	return best
}
