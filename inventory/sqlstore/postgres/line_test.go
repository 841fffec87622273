package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/test/line"
	"slipway.dev/slipway/test/postgres"
)

// Many write while the line to the server is slow, narrow, cut and silent, one after the other. After each fault all works again without a
// restart. What was acknowledged is there in the end, and what was refused is not.
func TestPostgresALineWithFaultsLosesNothingAcknowledged(t *testing.T) {
	s := postgres.Shared(t)
	url := s.Database(t)
	way := line.New(t, s.Address())
	d := open(t, line.URL(t, url, way), func(c *Config) {
		c.Timeout = 2 * time.Second // the server waits a fifth of it for the next statement: longer than the line is slow
		c.Lost = func(n int64) { t.Errorf("%d commits are said to be lost", n) }
	})
	var (
		mu   sync.Mutex
		said = map[string]string{} // what is there, of those that have an answer
		stop atomic.Bool
		all  sync.WaitGroup
		kept atomic.Int64
		lost atomic.Int64
	)
	write := func(name string) {
		err := put(t.Context(), d, name, name)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			said[name] = name
			kept.Add(1)
		case !strings.Contains(err.Error(), "not known whether"):
			said[name] = ""
			lost.Add(1)
			if !inventory.IsKind(err, inventory.Unavailable) || err.(*inventory.Error).Hint == "" {
				t.Errorf("%s: %v, without a reason for an admin", name, err)
			}
		}
	}
	for w := range 6 {
		all.Go(func() {
			for i := 0; !stop.Load(); i++ {
				write(fmt.Sprintf("%d-%d", w, i))
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	late := 0
	// refuses waits until a write is refused. The six writers may share a commit whose answer is lost: they wait until the database tells
	// what became of it, and perhaps none of them is refused. Writes that come later have to hear the reason at once.
	refuses := func(what string, before int64) {
		for until := time.Now().Add(15 * time.Second); lost.Load() == before; time.Sleep(50 * time.Millisecond) { // half of Patience
			if time.Now().After(until) {
				t.Errorf("%s: no write is refused", what)
				return
			}
			late++
			name := fmt.Sprintf("late-%d", late)
			all.Go(func() { write(name) })
		}
	}
	eventually(t, "writes go through", func() bool { return kept.Load() > 20 })
	for _, fault := range []struct {
		what string
		do   func(*line.Line)
		last time.Duration
		ends bool // writes are refused
	}{
		{"60 ms more each way, and up to 40 ms besides", func(l *line.Line) {
			l.Slow(t, line.Questions, 60*time.Millisecond, 40*time.Millisecond)
			l.Slow(t, line.Answers, 60*time.Millisecond, 40*time.Millisecond)
		}, 4 * time.Second, false},
		{"messages in pieces of three bytes", func(l *line.Line) { l.Crumble(t, line.Answers, 3, 100*time.Microsecond) }, time.Second, false},
		{"8 kB/s", func(l *line.Line) { l.Narrow(t, line.Questions, 8) }, 1500 * time.Millisecond, false},
		{"no answer arrives", func(l *line.Line) { l.Swallow(t, line.Answers) }, 5 * time.Second, true},
		{"answers end after 300 bytes", func(l *line.Line) { l.StopAfter(t, line.Answers, 300) }, time.Second, true},
		{"questions end after 2,000 bytes", func(l *line.Line) { l.StopAfter(t, line.Questions, 2000) }, time.Second, true},
		{"RST for each answer", func(l *line.Line) { l.Reset(t, line.Answers) }, time.Second, true},
		{"nobody listens", func(l *line.Line) { l.Cut() }, time.Second, true},
	} {
		before, refused := kept.Load(), lost.Load()
		fault.do(way)
		time.Sleep(fault.last)
		if fault.ends {
			refuses(fault.what, refused)
		}
		during := kept.Load() - before
		if fault.what == "nobody listens" {
			way.Join(t)
		}
		way.Mend(context.Background())
		mended, since := time.Now(), kept.Load()
		eventually(t, "writes go through after: "+fault.what, func() bool { return kept.Load() > since+10 })
		t.Logf("%s: %d acknowledged and %d refused; %v later all is well", fault.what, during, lost.Load()-refused,
			time.Since(mended).Round(time.Millisecond))
		if !fault.ends && during == 0 {
			t.Errorf("%s: nothing went through", fault.what)
		}
	}
	stop.Store(true)
	all.Wait()
	wantThings(t, d, said)
}

// All connections of the server are taken. Whoever starts then is told so, and so is one that runs and has lost its own. When there are
// connections again, work goes on.
func TestPostgresAServerWithoutFreeConnections(t *testing.T) {
	s := postgres.Start(t, postgres.Options{Settings: map[string]string{"max_connections": "12", "superuser_reserved_connections": "0"}})
	url := s.Database(t)
	d := open(t, url, nil)
	if err := put(t.Context(), d, "before", "1"); err != nil {
		t.Fatal(err)
	}
	get(t, d, "before")
	ask(t, s, "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '`+nameOf(t, url)+`'`)
	var taken []*pgx.Conn
	var mu sync.Mutex
	take := func() bool {
		for {
			c, err := pgx.Connect(t.Context(), s.SocketURL("postgres"))
			if err != nil {
				return strings.Contains(err.Error(), "53300")
			}
			mu.Lock()
			taken = append(taken, c)
			mu.Unlock()
		}
	}
	t.Cleanup(func() {
		for _, c := range taken {
			_ = c.Close(context.Background())
		}
	})
	if !take() {
		t.Fatal("connections are not used up")
	}
	// Its own connections that have not noticed yet hold places. They are ended until it has none.
	eventually(t, "a write is refused", func() bool {
		_, _ = taken[0].Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '`+nameOf(t, url)+`'`)
		take()
		return put(t.Context(), d, fmt.Sprint("tried ", time.Now()), "1") != nil
	})
	// A busy server may refuse the connection only after the write has timed out. Then the reason is another one.
	var refused error
	eventually(t, "the refusal says why", func() bool {
		refused = put(t.Context(), d, "refused", "1")
		return refused != nil && strings.Contains(refused.Error(), "too many connections")
	})
	wantError(t, refused, inventory.Unavailable, "raise max_connections")
	if _, err := Open(t.Context(), Config{URL: url, Migrations: schema}); err == nil {
		t.Error("another instance starts")
	} else {
		wantError(t, err, inventory.Unavailable, "too many connections")
	}
	for _, c := range taken {
		_ = c.Close(t.Context())
	}
	taken = nil
	eventually(t, "it writes again", func() bool { return put(t.Context(), d, "after", "1") == nil })
	wantThings(t, d, map[string]string{"before": "1", "refused": "", "after": "1"})
}
