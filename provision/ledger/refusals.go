package ledger

import (
	"sync"
	"time"
)

// Refusals remembers what was refused lately: a tool that asks again every few seconds is noted once a minute.
type Refusals struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

const (
	RefusedAgain = time.Minute
	maxRefusals  = 10_000
)

// First reports whether that refusal is worth a note.
func (r *Refusals) First(what string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.seen[what]) < RefusedAgain {
		return false
	}
	if r.seen == nil || len(r.seen) >= maxRefusals {
		// Forgetting all of them costs at most one more note each.
		r.seen = map[string]time.Time{}
	}
	r.seen[what] = now
	return true
}
