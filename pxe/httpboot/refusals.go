package httpboot

import (
	"sync"
	"time"
)

const (
	refusalEvery = time.Minute
	refusalsKept = 4096
)

// refusals remembers what was logged lately: a machine that is refused asks again and again, some twice a second.
type refusals struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// isNew reports whether a refusal, which key stands for, has not been logged within the last minute.
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
