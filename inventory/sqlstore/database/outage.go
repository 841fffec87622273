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

// say notes what became of a commit of some writes, and logs what is worth it. hasStored says that one of them was stored: a write that fails
// by itself says nothing of the database.
func (o *outage) say(log *slog.Logger, writeN int, hasStored bool, err error, now time.Time) {
	switch {
	case err == nil:
		if !o.since.IsZero() && hasStored {
			log.Info("commits work again", "after", now.Sub(o.since).Round(time.Millisecond))
			*o = outage{}
		}
	case !inventory.IsKind(err, inventory.Unavailable): // it is about these writes, and not about the database
		log.Error("commit failed", "writes", writeN, "err", err)
	case o.since.IsZero():
		log.Error("commit failed", "writes", writeN, "err", err)
		o.since, o.saidAt = now, now
	case now.Sub(o.saidAt) < saidEvery:
		o.failN++
		o.writeN += writeN
	default:
		log.Error("commits fail still", "commits", o.failN+1, "writes", o.writeN+writeN,
			"since", o.since.UTC().Format(time.RFC3339), "err", err)
		o.saidAt, o.failN, o.writeN = now, 0, 0
	}
}
