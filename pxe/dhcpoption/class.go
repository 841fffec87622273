package dhcpoption

import (
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Client is what is known of a client for finding its classes.
type Client struct {
	MAC         inventory.MAC
	VendorClass string
	UserClasses []string
	Archs       []int
}

// isIn reports whether a client is in a class.
func isIn(x Client, c *inventory.Class) bool {
	fits := func(patterns, texts []string) bool {
		return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
			return slices.ContainsFunc(texts, func(t string) bool { return t != "" && matchesStar(p, t) })
		})
	}
	isOf := func(p string) bool { return strings.HasPrefix(string(x.MAC), p) }
	return fits(c.VendorClasses, []string{x.VendorClass}) && fits(c.UserClasses, x.UserClasses) &&
		(len(c.Archs) == 0 || slices.ContainsFunc(c.Archs, func(a int) bool { return slices.Contains(x.Archs, a) })) &&
		(len(c.MACPrefixes) == 0 || slices.ContainsFunc(c.MACPrefixes, isOf))
}

// matchesStar reports whether a text is the pattern, in which * stands for any text.
func matchesStar(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, first) || len(text) < len(first)+len(last) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return true
}

// ClassesOf returns the classes that a client is in, the first of them first.
func ClassesOf(all []inventory.Class, x Client) (in []inventory.Class) {
	for _, c := range all {
		if isIn(x, &c) {
			in = append(in, c)
		}
	}
	slices.SortStableFunc(in, func(a, b inventory.Class) int {
		if a.Priority != b.Priority {
			return b.Priority - a.Priority
		}
		return strings.Compare(a.Name, b.Name)
	})
	return in
}
