package installer

import (
	"slices"

	"slipway.dev/slipway/machineconfig"
)

// own are the rows of the capability table that are added to a profile's own document.
var own = []string{"/host/hostname", "/host/domain", "/phoneHome"}

// Ignored returns the values of a configuration that are not added to a profile's own document, as JSON pointers.
func Ignored(c *machineconfig.Config) []string {
	var out []string
	for _, u := range machineconfig.Uses(c) {
		if !slices.Contains(own, u.Field) && !slices.Contains(out, u.Path) {
			out = append(out, u.Path)
		}
	}
	return out
}

// Distance counts the letters that have to be changed, added or taken out to make a from b, up to limit.
func Distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return min(row[len(b)], limit)
}
