package provision

import (
	"sync"
	"time"
)

const (
	// tookAgain is when a refusal is told again: controllers repeat what they ask.
	tookAgain = time.Hour
	// takesAtMost bounds what is remembered. Beyond it refusals are not told again before the oldest are forgotten.
	takesAtMost = 1024
)

// takeRefusals remembers what was refused and told. Its zero value is ready.
type takeRefusals struct {
	mu   sync.Mutex
	told map[string]time.Time
}

// isNew reports whether a refusal has to be told, and remembers that it is.
func (r *takeRefusals) isNew(key string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.told[key]; ok && now.Sub(at) < tookAgain {
		return false
	}
	if len(r.told) >= takesAtMost {
		for k, at := range r.told {
			if now.Sub(at) >= tookAgain {
				delete(r.told, k)
			}
		}
		if len(r.told) >= takesAtMost {
			return false
		}
	}
	if r.told == nil {
		r.told = map[string]time.Time{}
	}
	r.told[key] = now
	return true
}
