package duty

import (
	"time"

	"slipway.dev/slipway/inventory"
)

// Life says whether an instance runs, as far as another one can know.
type Life string

// The lives. Unknown is none of the others: this instance has not watched for long enough, or has just lost its own database.
const (
	Alive   Life = "alive"   // it has given a sign of life within SilentAfter
	Silent  Life = "silent"  // it has given none for that long: it died, or cannot reach the database
	Stopped Life = "stopped" // it stopped by itself, and said so
	Unknown Life = "unknown"
)

// SilentAfter is how long an instance gives no sign of life before it counts as silent. It is three times heartbeatEvery, and networks go
// to others after that time.
const SilentAfter = 3 * time.Second

// Sight is what this instance knows of the life of one.
type Sight struct {
	Life Life
	// Quiet is the age of the last sign of life by the clock of this instance. The sign may be older, if IsFirst.
	Quiet time.Duration
	// IsFirst says that this instance has seen no change of the sign: it was there when this instance began to watch.
	IsFirst bool
}

// seen is what the last turn has seen of all instances. It is replaced whole, so that requests read it without a lock.
type seen struct {
	at    time.Duration // of the turn, by the own clock
	signs watch
	// others are the rows of other instances, ordered by name; nil before the first turn.
	others []inventory.Instance
}

// sight judges what the last turn has seen of another instance. Silence ends with that turn: nobody knows what happened after it.
func (s *seen) sight(i inventory.Instance, now time.Duration) Sight {
	last, known := s.signs[i.ID]
	switch {
	case known && (last.run != i.Run || i.HeartbeatN > last.n) && i.Run != "": // the row is newer than the last turn
		return Sight{Life: Alive}
	case known:
		is := Sight{Life: Unknown, Quiet: s.at - last.since, IsFirst: last.changedN == 0}
		switch {
		case i.Run == "":
			is.Life = Stopped
		case now-s.at > SilentAfter: // this instance has not looked for some time
		case is.Quiet >= SilentAfter:
			is.Life = Silent
		case !is.IsFirst:
			is.Life = Alive
		}
		return is
	case i.Run == "":
		return Sight{Life: Stopped, IsFirst: true}
	}
	return Sight{Life: Unknown, IsFirst: true}
}
