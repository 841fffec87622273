package postgres

import "slipway.dev/slipway/inventory/sqlstore/database"

// A savepoint for each caller is expensive: the server gives each that writes a number of its own. Most callers store one lease, and none of
// them fails. So those whose whole part goes to the server in one way share a savepoint. If a statement between fails, all of them are
// undone and sent again, each with its own. Nobody has seen an answer yet.
const (
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

// unpack undoes the parts that share a savepoint, if the step that failed is among them. It returns what to send in place of them and of
// what follows.
func (w *writing) unpack(steps []step, failed int, err error) (again []step, isPacked bool, _ error) {
	from := failed
	for from >= 0 && steps[from].loose == nil {
		if steps[from].query == releasePack && from < failed {
			return nil, false, nil
		}
		from--
	}
	if from < 0 {
		return nil, false, nil
	}
	if loss, _ := w.server.fault(err, w.isOpen()); loss == database.LosesAll {
		return nil, true, err
	}
	w.answers.clear()
	if _, _, _, err := w.try([]step{{query: rollbackAll}, {query: releasePack}}); err != nil {
		return nil, true, err
	}
	to := failed
	for steps[to].query != releasePack {
		to++
	}
	return append(append([]step(nil), steps[from].loose...), steps[to+1:]...), true, nil
}
