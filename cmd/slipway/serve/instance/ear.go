package instance

import (
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
)

const (
	// cutOffAfter is how long a leader may leave calls unanswered before others read of it. One that has just taken over needs
	// some seconds.
	cutOffAfter = 6 * time.Second
	// reasonAgainIn is how often the reason may change. Each change is stored.
	reasonAgainIn = 30 * time.Second
	reasonAtMost  = 200
)

// ear remembers since when the leader does not answer.
type ear struct {
	leader   string    // its id
	sinceAt  time.Time // zero: it has answered
	reason   string    // as the other instances read it; "" before cutOffAfter
	reasonAt time.Time
}

// hear notes whether a leader has answered, and returns the reason to tell others: "" if there is nothing to tell. Another instance takes
// over from a leader that gives no sign of life, so that it is not waited for.
func (e *ear) hear(leader string, life duty.Life, err error, now time.Time) string {
	if err == nil || leader != e.leader || life == duty.Silent || life == duty.Stopped {
		*e = ear{leader: leader}
	}
	if err == nil || leader == "" || life != duty.Alive {
		return e.reason
	}
	if e.sinceAt.IsZero() {
		e.sinceAt = now
	}
	if now.Sub(e.sinceAt) >= cutOffAfter && (e.reason == "" || now.Sub(e.reasonAt) >= reasonAgainIn) {
		e.reason, e.reasonAt = inventory.Clean(err.Error(), reasonAtMost), now
	}
	return e.reason
}
