package copying

import (
	"cmp"
	"slices"
)

// order sorts tables so that rows come after those that they refer to. A table that refers to itself, and tables that refer to each other
// in a circle, have no such order: late are the references that lead to rows which may come later.
func order(tables []Table) (sorted []Table, late []Reference) {
	waiting := slices.Clone(tables)
	slices.SortFunc(waiting, func(a, b Table) int { return cmp.Compare(a.Name, b.Name) })
	isWaiting := map[string]bool{}
	for _, t := range waiting {
		isWaiting[t.Name] = true
	}
	for len(waiting) > 0 {
		i := slices.IndexFunc(waiting, func(t Table) bool {
			return !slices.ContainsFunc(t.References, func(r Reference) bool { return r.To != t.Name && isWaiting[r.To] })
		})
		i = max(i, 0) // in a circle any is as good as another
		t := waiting[i]
		for _, r := range t.References {
			if isWaiting[r.To] { // itself included
				late = append(late, r)
			}
		}
		sorted = append(sorted, t)
		isWaiting[t.Name] = false
		waiting = slices.Delete(waiting, i, i+1)
	}
	return sorted, late
}
