package database

import (
	"log/slog"
	"time"

	"slipway.dev/slipway/inventory"
)

// saidEvery is how often the log says that commits fail still.
const saidEvery = time.Minute

// outage keeps the log short while the database is away, when commits fail all the time. The log has the first one, one a minute, and how
// long it took.
type outage struct {
	since  time.Time // zero: commits work
	saidAt time.Time
	failN  int // commits since then, without those that the log has
	writeN int // in these
}

// say notes what became of a commit, and logs what is worth it.
func (o *outage) say(log *slog.Logger, live []*request, err error, now time.Time) {
	switch {
	case err == nil:
		if !o.since.IsZero() && anyWorked(live) {
			log.Info("commits work again", "after", now.Sub(o.since).Round(time.Millisecond))
			*o = outage{}
		}
	case !inventory.IsKind(err, inventory.Unavailable): // it is about these writes, and not about the database
		log.Error("commit failed", "writes", len(live), "err", err)
	case o.since.IsZero():
		log.Error("commit failed", "writes", len(live), "err", err)
		o.since, o.saidAt = now, now
	case now.Sub(o.saidAt) < saidEvery:
		o.failN++
		o.writeN += len(live)
	default:
		log.Error("commits fail still", "commits", o.failN+1, "writes", o.writeN+len(live),
			"since", o.since.UTC().Format(time.RFC3339), "err", err)
		o.saidAt, o.failN, o.writeN = now, 0, 0
	}
}

// anyWorked reports whether a write was stored. One that fails by itself says nothing of the database.
func anyWorked(live []*request) bool {
	for _, r := range live {
		if r.err == nil {
			return true
		}
	}
	return false
}
