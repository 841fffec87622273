package postgres

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/inventory/sqlstore/database"
	"slipway.dev/slipway/test/postgres"
)

func countOf(t *testing.T, d *DB) (n uint64) {
	t.Helper()
	err := d.Read(t.Context(), func(tx *database.Tx) error { n, _ = tx.Changes(); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A database that was set back, as by a failover to a standby that lags, has another count when its contents are other ones. An instance
// would use rows that it has read before, if the same count came again.
func TestPostgresACountOfChangesNeverComesAgain(t *testing.T) {
	s := postgres.Shared(t)
	url := s.Database(t)
	d := open(t, url, nil)
	before := countOf(t, d)
	if err := put(t.Context(), d, "x", "1"); err != nil {
		t.Fatal(err)
	}
	after := countOf(t, d)
	ask(t, s, nameOf(t, url), `DELETE FROM things`, fmt.Sprintf(`UPDATE changes SET n = %d`, before))
	if n := countOf(t, d); n != before {
		t.Errorf("the count is %d, want %d", n, before)
	}
	if err := put(t.Context(), d, "x", "2"); err != nil {
		t.Fatal(err)
	}
	if n := countOf(t, d); n == after || n == before {
		t.Errorf("other contents have the count %d again", n)
	}
}

// A failover to a standby that lags loses what it did not have. That is said, with the number of commits.
func TestPostgresAFailoverThatLosesCommitsIsSaid(t *testing.T) {
	a := postgres.Start(t, postgres.Options{})
	url := a.Database(t)
	b := a.Standby(t, nil)
	var lost atomic.Int64
	d := open(t, at(t, url, a.Address()+","+b.Address()), func(c *Config) { c.Lost = func(n int64) { lost.Add(n) } })
	if err := put(t.Context(), d, "kept", "1"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	ask(t, b, "postgres", `ALTER SYSTEM SET primary_conninfo = ''`, `SELECT pg_reload_conf()`)
	time.Sleep(500 * time.Millisecond)
	for i := range 3 {
		if err := put(t.Context(), d, fmt.Sprint("lost ", i), "1"); err != nil {
			t.Fatal(err)
		}
	}
	get(t, d, "lost 0")
	a.Stop(t, postgres.Immediate)
	b.Promote(t)
	eventually(t, "it writes again", func() bool { return put(t.Context(), d, "again", "1") == nil })
	wantThings(t, d, map[string]string{"kept": "1", "lost 0": "", "again": "1"})
	if lost.Load() != 3 {
		t.Errorf("%d commits are said to be lost, want 3", lost.Load())
	}
}

// The primary dies while many commit, and its synchronous standby takes over. What was acknowledged is there, what was refused is not.
func TestPostgresAFailoverLosesNothingAcknowledged(t *testing.T) {
	a := postgres.Start(t, postgres.Options{})
	url := a.Database(t)
	b := a.Standby(t, nil)
	ask(t, a, "postgres", `ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`)
	d := open(t, at(t, url, a.Address()+","+b.Address()), func(c *Config) {
		c.Lost = func(n int64) { t.Errorf("%d commits are said to be lost", n) }
	})
	var (
		mu   sync.Mutex
		said = map[string]string{}
		stop atomic.Bool
		all  sync.WaitGroup
	)
	for w := range 8 {
		all.Go(func() {
			for i := 0; !stop.Load(); i++ {
				name := fmt.Sprintf("%d-%d", w, i)
				err := put(t.Context(), d, name, name)
				mu.Lock()
				switch {
				case err == nil:
					said[name] = name
				case !strings.Contains(err.Error(), "not known whether"):
					said[name] = ""
				}
				mu.Unlock()
				if err != nil {
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
	}
	time.Sleep(time.Second)
	a.Stop(t, postgres.Immediate)
	b.Promote(t)
	began := time.Now()
	eventually(t, "it writes again", func() bool { return put(t.Context(), d, fmt.Sprint("again ", time.Now()), "1") == nil })
	t.Logf("it writes again %v after the promotion", time.Since(began).Round(time.Millisecond))
	time.Sleep(500 * time.Millisecond)
	stop.Store(true)
	all.Wait()
	t.Logf("%d answers", len(said))
	wantThings(t, d, said)
}

// After a failover the connections of readers go to the new server, too, also when the old one still runs.
func TestPostgresReadersFollowTheWriter(t *testing.T) {
	a := postgres.Start(t, postgres.Options{})
	url := a.Database(t)
	b := a.Standby(t, nil)
	p := startProxy(t, a.Address())
	d := open(t, p.url(t, url), func(c *Config) { c.ReaderN = 2 })
	if err := put(t.Context(), d, "x", "1"); err != nil {
		t.Fatal(err)
	}
	get(t, d, "x")
	get(t, d, "x")
	time.Sleep(500 * time.Millisecond)
	b.Promote(t)
	p.sendTo(b.Address())
	ask(t, a, "postgres", fmt.Sprintf(`SELECT pg_terminate_backend(%d)`, d.writing.c.PgConn().PID()))
	time.Sleep(200 * time.Millisecond)
	eventually(t, "it writes to the new server", func() bool { return put(t.Context(), d, "y", "1") == nil })
	for range 4 {
		wantThings(t, d, map[string]string{"x": "1", "y": "1"})
	}
}

// A primary becomes read-only and keeps its connections. The writer looks for another one.
func TestPostgresAServerThatBecomesReadOnly(t *testing.T) {
	a := postgres.Start(t, postgres.Options{})
	url := a.Database(t)
	b := a.Standby(t, nil)
	d := open(t, at(t, url, a.Address()+","+b.Address()), nil)
	if err := put(t.Context(), d, "x", "1"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	ask(t, a, "postgres", `ALTER SYSTEM SET default_transaction_read_only = on`, `SELECT pg_reload_conf()`)
	b.Promote(t)
	eventually(t, "it writes to the new server", func() bool { return put(t.Context(), d, "y", "1") == nil })
}
