package httpboot

import (
	"sync"
	"time"
)

const (
	refusalEvery = time.Minute
	refusalsKept = 4096
)

// refusals remembers what the server logged in the last minute. A machine asks again and again after a refusal, some
// twice a second.
type refusals struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// isNew reports whether the last minute has no log line for key, and records one. It bounds its memory at 4,096 keys.
func (r *refusals) isNew(key string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.last[key]; ok && now.Sub(at) < refusalEvery {
		return false
	}
	if len(r.last) >= refusalsKept {
		for k, at := range r.last {
			if now.Sub(at) >= refusalEvery {
				delete(r.last, k)
			}
		}
		if len(r.last) >= refusalsKept { // a flood: at worst something is logged twice
			clear(r.last)
		}
	}
	if r.last == nil {
		r.last = map[string]time.Time{}
	}
	r.last[key] = now
	return true
}
