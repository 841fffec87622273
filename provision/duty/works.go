package duty

import (
	"context"
	"sync"
)

// works counts the works that run under duties. A duty is given up after its works have ended: others begin with theirs as soon as they can
// read that nobody has it.
type works struct {
	changed func() // is called after each change

	mu sync.Mutex
	n  map[string]int
}

// count notes that works under a duty have begun or ended.
func (w *works) count(name string, by int) {
	w.mu.Lock()
	w.n[name] += by
	w.mu.Unlock()
	w.changed()
}

func (w *works) isBusy(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n[name] > 0
}

func (w *works) isAny() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.n {
		if n > 0 {
			return true
		}
	}
	return false
}

// rest waits until no work runs. Looks gets a value with each change.
func (w *works) rest(ctx context.Context, looks <-chan struct{}) {
	for w.isAny() {
		select {
		case <-looks:
		case <-ctx.Done():
			return
		}
	}
}
