package postgres

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/test/postgres"
)

// TestPostgresUnderPatroniLosesNothingAcknowledged writes all the time: an admin moves the primary, and then it loses power.
func TestPostgresUnderPatroniLosesNothingAcknowledged(t *testing.T) {
	c := postgres.StartCluster(t, postgres.Here, postgres.Here, postgres.Here, postgres.Here)
	d := open(t, c.URL(c.Database(t)), func(c *Config) {
		c.Lost = func(n int64) { t.Errorf("%d commits are said to be lost", n) }
	})
	w := writeOn(t, d)
	t.Cleanup(w.stop)
	time.Sleep(time.Second)
	for _, fault := range []struct {
		name  string
		do    func()
		limit time.Duration
	}{
		{"a switchover", func() { c.Switchover(t) }, 30 * time.Second},
		{"the primary loses power", func() { c.Primary(t.Context()).Kill(t) }, 45 * time.Second},
	} {
		c.Await(t, "a synchronous standby", func() bool { return c.Synchronous(t.Context()) != nil })
		began := time.Now()
		fault.do()
		for w.latest().Before(began.Add(time.Second)) || time.Since(began) < 5*time.Second || w.isOut() {
			if time.Since(began) > fault.limit {
				t.Fatalf("%s: nothing is stored after %v", fault.name, fault.limit)
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Logf("%s: nothing was stored for %v", fault.name, w.gapSince(began).Round(time.Millisecond))
	}
	w.stop()
	t.Logf("%d answers", len(w.said))
	wantThings(t, d, w.said)
}

// writers write all the time, and keep what they were told.
type writers struct {
	mu   sync.Mutex
	said map[string]string // "" for what was refused
	at   []time.Time       // of what was stored
	done atomic.Bool
	all  sync.WaitGroup
}

func writeOn(t *testing.T, d *DB) *writers {
	w := &writers{said: map[string]string{}}
	for n := range 4 {
		w.all.Go(func() {
			for i := 0; !w.done.Load(); i++ {
				name := fmt.Sprintf("%d-%d", n, i)
				err := put(t.Context(), d, name, name)
				w.mu.Lock()
				switch {
				case err == nil:
					w.said[name] = name
					w.at = append(w.at, time.Now())
				case !strings.Contains(err.Error(), "not known whether"):
					w.said[name] = ""
				}
				w.mu.Unlock()
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	return w
}

func (w *writers) stop() {
	w.done.Store(true)
	w.all.Wait()
}

func (w *writers) latest() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at[len(w.at)-1]
}

// isOut reports whether nothing has been stored just now.
func (w *writers) isOut() bool { return time.Since(w.latest()) > time.Second }

// gapSince returns the longest time without a commit after a moment.
func (w *writers) gapSince(moment time.Time) (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.at {
		if at.After(moment) {
			longest, moment = max(longest, at.Sub(moment)), at
		}
	}
	return longest
}
