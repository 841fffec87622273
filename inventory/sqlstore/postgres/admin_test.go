package postgres

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
	"slipway.dev/slipway/test/postgres"
)

func nameOf(t *testing.T, url string) string {
	t.Helper()
	c, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return c.Database
}

// An admin has set limits for all users of the database. A write still waits for its turn.
func TestPostgresLimitsOfTheAdmin(t *testing.T) {
	s := postgres.Shared(t)
	url := s.Database(t)
	name := nameOf(t, url)
	for _, set := range []string{
		"statement_timeout = '200ms'", "lock_timeout = '100ms'", "idle_session_timeout = '300ms'",
		"client_min_messages = 'error'",
	} {
		ask(t, s, "postgres", "ALTER DATABASE "+name+" SET "+set)
	}
	a, b := open(t, url, nil), open(t, url, nil)
	held, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- a.Write(t.Context(), func(tx *database.Tx) error {
			_, err := tx.Run(`SELECT pg_sleep(0.7)`)
			close(held)
			time.Sleep(200 * time.Millisecond)
			return err
		})
	}()
	time.Sleep(100 * time.Millisecond)
	if err := put(t.Context(), b, "x", "1"); err != nil {
		t.Errorf("the turn: %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("a statement of 0.7 s: %v", err)
	}
	<-held
	get(t, b, "x")
	time.Sleep(600 * time.Millisecond)
	get(t, b, "x")
	if !b.writing.isAlive() {
		t.Error("the server has ended an idle connection")
	}
}

// An admin cancels commits that wait for a standby. The server then answers as if the standby had them.
func TestPostgresACommitWhoseWaitForTheStandbyIsCancelled(t *testing.T) {
	s := postgres.Start(t, postgres.Options{})
	url := s.Database(t)
	d := open(t, url, func(c *Config) { c.Timeout, c.Patience = 10*time.Second, time.Minute })
	ask(t, s, "postgres", `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`, `SELECT pg_reload_conf()`)
	time.Sleep(500 * time.Millisecond)
	ended := make(chan error, 1)
	go func() { ended <- put(t.Context(), d, "x", "1") }()
	for range 3 {
		time.Sleep(500 * time.Millisecond)
		ask(t, s, "postgres", `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
	}
	select {
	case err := <-ended:
		t.Fatalf("the commit returned without its standby: %v", err)
	case <-time.After(time.Second):
	}
	ask(t, s, "postgres", `ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	wantThings(t, d, map[string]string{"x": "1"})
}

// An admin changes the type of a column, and renames a table for a while. Afterwards all works again.
func TestPostgresASchemaThatIsChangedByHand(t *testing.T) {
	s := postgres.Shared(t)
	url := s.Database(t)
	name := nameOf(t, url)
	d := open(t, url, nil)
	both := func() error {
		err := d.Write(t.Context(), func(tx *database.Tx) error {
			var v string
			_, err := tx.Row([]any{&v}, findThing, "x")
			return err
		})
		var v string
		readErr := d.Read(t.Context(), func(tx *database.Tx) error { _, err := tx.Row([]any{&v}, findThing, "x"); return err })
		if err == nil {
			err = readErr
		}
		return err
	}
	if err := put(t.Context(), d, "x", "1"); err != nil {
		t.Fatal(err)
	}
	if err := both(); err != nil {
		t.Fatal(err)
	}
	ask(t, s, name, `ALTER TABLE things ALTER COLUMN value TYPE VARCHAR(80)`)
	t.Logf("after another type: %v", both())
	if err := both(); err != nil {
		t.Errorf("after another type, again: %v", err)
	}
	ask(t, s, name, `ALTER TABLE things RENAME TO hidden`)
	wantError(t, both(), inventory.Internal, "by hand")
	ask(t, s, name, `ALTER TABLE hidden RENAME TO things`)
	t.Logf("after the table is back: %v", both())
	if err := both(); err != nil {
		t.Errorf("after the table is back, again: %v", err)
	}
}

// The database is dropped and restored while it is in use.
func TestPostgresADatabaseThatIsDropped(t *testing.T) {
	s := postgres.Shared(t)
	url := s.Database(t)
	name := nameOf(t, url)
	var lost atomic.Int64
	d := open(t, url, func(c *Config) { c.Lost = func(n int64) { lost.Add(n) } })
	for i := range 2 {
		if err := put(t.Context(), d, fmt.Sprint(i), "1"); err != nil {
			t.Fatal(err)
		}
	}
	ask(t, s, "postgres", "DROP DATABASE "+name+" WITH (FORCE)")
	says := func(what string) {
		t.Helper()
		eventually(t, what, func() bool {
			err := put(t.Context(), d, "x", "1")
			return err != nil && strings.Contains(err.Error(), what)
		})
	}
	says("does not exist")
	ask(t, s, "postgres", "CREATE DATABASE "+name+" TEMPLATE template0")
	says("not those of this version")
	open(t, url, nil) // as a restored backup
	eventually(t, "it writes again", func() bool { return put(t.Context(), d, "x", "1") == nil })
	if lost.Load() != 2 {
		t.Errorf("%d commits are said to be lost, want 2", lost.Load())
	}
}

// Another instance starts after weeks in which this one has written nothing. Nothing is lost.
func TestPostgresAnInstanceThatWasIdleForWeeks(t *testing.T) {
	s := postgres.Shared(t)
	url := s.Database(t)
	d := open(t, url, func(c *Config) { c.Lost = func(n int64) { t.Errorf("%d commits are said to be lost", n) } })
	if err := put(t.Context(), d, "x", "1"); err != nil {
		t.Fatal(err)
	}
	ask(t, s, nameOf(t, url), `UPDATE writers SET seen_at = seen_at - 60 * 86400000::BIGINT`)
	open(t, url, nil)
	ask(t, s, nameOf(t, url), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	time.Sleep(100 * time.Millisecond)
	if err := put(t.Context(), d, "y", "1"); err != nil {
		t.Error(err)
	}
}

// A server may speak another language, and give reasons that no other test makes.
func TestWhatTheServerSaysIsKnownByItsCode(t *testing.T) {
	to, err := pgx.ParseConfig("postgres://slipway@db.example/slipway")
	if err != nil {
		t.Fatal(err)
	}
	d := &server{to: to}
	for _, c := range []struct {
		code, severity string
		kind           inventory.Kind
		says           string
		loss           database.Loss
	}{
		{"XX000", "FATAL", inventory.Unavailable, "log of PostgreSQL", database.LosesAll},
		{"25P04", "FATAL", inventory.Unavailable, "took too long", database.LosesAll},
		{"57014", "ERROR", inventory.Unavailable, "cancelled", database.LosesOne},
		{"0A000", "ERROR", inventory.Unavailable, "try again", database.LosesOne},
		{"54000", "ERROR", inventory.Invalid, "too long", database.LosesOne},
		{"42704", "FATAL", inventory.Invalid, "option", database.LosesAll},
		{"23505", "ERROR", inventory.Conflict, "taken", database.LosesOne},
	} {
		loss, said := d.fault(&pgconn.PgError{Code: c.code, TableName: "things", Severity: "ОШИБКА", SeverityUnlocalized: c.severity}, true)
		wantError(t, said, c.kind, c.says)
		if loss != c.loss {
			t.Errorf("%s loses %d, want %d", c.code, loss, c.loss)
		}
	}
}
