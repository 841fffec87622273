package access

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// triedMax is how many sources or names are remembered.
const triedMax = 4096

// tries counts failed tries, and refuses more for a while when there were too many. It remembers a bounded number of those
// who try; when there are more, the ones that have waited long enough are forgotten, and if there are none, any of them: somebody who
// comes from many addresses wins no new tries at the others.
type tries[K comparable] struct {
	now   func() time.Time
	every time.Duration
	burst int

	mu     sync.Mutex
	failAt map[K]*rate.Limiter
}

func newTries[K comparable](now func() time.Time, every time.Duration, burst int) *tries[K] {
	return &tries[K]{now: now, every: every, burst: burst, failAt: map[K]*rate.Limiter{}}
}

// allowed says when to try again, if that is not now.
func (t *tries[K]) allowed(key K, msg string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.failAt[key]
	if l == nil {
		return nil
	}
	// Asking takes no token. Only a failure does, so that right passwords are never slowed down.
	left := l.TokensAt(t.now())
	if left >= 1 {
		return nil
	}
	wait := max(time.Duration((1-left)*float64(t.every)).Round(time.Second), time.Second)
	return &rest.StatusError{
		Status: http.StatusTooManyRequests, RetryAfter: wait,
		Err: inventory.Errorf(inventory.Unavailable, "%s", msg).WithHint("wait %s", wait),
	}
}

// failed counts a failed try.
func (t *tries[K]) failed(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.failAt[key]
	if l == nil {
		if len(t.failAt) >= triedMax {
			t.forget()
		}
		l = rate.NewLimiter(rate.Every(t.every), t.burst)
		t.failAt[key] = l
	}
	// It may take the last one and go below none; allowed then says how long that lasts.
	l.AllowN(t.now(), 1)
}

func (t *tries[K]) forget() {
	now := t.now()
	// A full limiter has waited long enough. It refuses nothing, like one that does not exist.
	for key, l := range t.failAt {
		if l.TokensAt(now) >= float64(t.burst) {
			delete(t.failAt, key)
		}
	}
	// The order of a map is random: nobody can choose whose count is forgotten.
	for key := range t.failAt {
		if len(t.failAt) < triedMax {
			return
		}
		delete(t.failAt, key)
	}
}
