package postgres

// A savepoint for each caller is expensive: the server gives each that writes a number of its own. Most callers store one lease, and none of
// them fails. So those whose whole part goes to the server in one way share a savepoint. If a statement between fails, all of them are
// undone and sent again, each with its own. Nobody has seen an answer yet.
const (
	savepoint    = `SAVEPOINT one` // of one caller
	rollbackOne  = `ROLLBACK TO one`
	releasePoint = `RELEASE one`

	packPoint   = `SAVEPOINT pack`
	rollbackAll = `ROLLBACK TO pack`
	releasePack = `RELEASE pack`
)

// packed puts the whole parts among steps under one savepoint. Parts come one after the other.
func packed(steps []step) []step {
	begun := map[*part]bool{}
	first, last, n := -1, -1, 0
	for i, s := range steps {
		switch {
		case s.query == savepoint:
			begun[s.part] = true
			if first < 0 {
				first = i
			}
		case s.query == releasePoint && begun[s.part]:
			last = i
			n++
		}
	}
	if n < 2 {
		return steps
	}
	loose := steps[first : last+1]
	all := append(make([]step, 0, len(steps)), steps[:first]...)
	all = append(all, step{query: packPoint, loose: loose})
	for _, s := range loose {
		if s.query != savepoint && s.query != releasePoint {
			all = append(all, s)
		}
	}
	all = append(all, step{query: releasePack})
	return append(all, steps[last+1:]...)
}
