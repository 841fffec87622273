package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
	"slipway.dev/slipway/test/postgres"
)

// schema is the least that this package needs, and a table for tests.
var schema = fstest.MapFS{"202611280001_test.sql": &fstest.MapFile{Data: []byte(`-- +goose Up
CREATE TABLE changes (id BIGINT PRIMARY KEY CHECK (id = 1), n BIGINT NOT NULL);
INSERT INTO changes (id, n) VALUES (1, 0);
CREATE TABLE writers (id TEXT PRIMARY KEY, batch_n BIGINT NOT NULL, seen_at BIGINT NOT NULL);
CREATE TABLE things (name TEXT COLLATE "C" PRIMARY KEY, value TEXT NOT NULL);
`)}}

const (
	insertThing = `INSERT INTO things (name, value) VALUES ($1, $2)`
	findThing   = `SELECT value FROM things WHERE name = $1`
	countThings = `SELECT COUNT(*) FROM things`
)

func open(t *testing.T, url string, change func(*Config)) *DB {
	t.Helper()
	cfg := Config{URL: url, Migrations: schema, Watched: []string{"things"}, Log: slog.New(slog.DiscardHandler), Timeout: 2 * time.Second}
	if change != nil {
		change(&cfg)
	}
	d, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func put(ctx context.Context, d *DB, name, value string) error {
	return d.Write(ctx, func(tx *database.Tx) error {
		_, err := tx.Write(insertThing, name, value)
		return err
	})
}

func get(t *testing.T, d *DB, name string) (value string) {
	t.Helper()
	err := d.Read(t.Context(), func(tx *database.Tx) error {
		_, err := tx.Row([]any{&value}, findThing, name)
		return err
	})
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return value
}

func wantError(t *testing.T, err error, kind inventory.Kind, says string) {
	t.Helper()
	said, ok := errors.AsType[*inventory.Error](err)
	if !ok || said.Kind != kind || !strings.Contains(said.Error()+" "+said.Hint, says) {
		t.Errorf("got %v, want an error of kind %s that says %q", err, kind, says)
	}
}

// eventually waits until what somebody else does is seen.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not seen within 30 s: %s", what)
		}
	}
}

// ask runs SQL beside the store, as an admin does with psql.
func ask(t *testing.T, s *postgres.Server, db string, statements ...string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.SocketURL(db))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	for _, sql := range statements {
		if _, err := c.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// A part whose statement failed writes nothing more, and is not taken for one that went well. Its neighbours in the same commit are kept.
func TestPostgresAFailedStatementEndsItsPartOnly(t *testing.T) {
	d := open(t, postgres.Shared(t).Database(t), nil)
	if err := put(t.Context(), d, "taken", "1"); err != nil {
		t.Fatal(err)
	}
	inOneCommit(t, d, []func(*database.Tx) error{
		func(tx *database.Tx) error { _, err := tx.Write(insertThing, "before", "1"); return err },
		func(tx *database.Tx) error {
			if _, err := tx.Write(insertThing, "half", "1"); err != nil {
				return err
			}
			_, _ = tx.Write(insertThing, "taken", "2") // its error is overlooked
			_, _ = tx.Write(insertThing, "later", "1")
			return nil
		},
		func(tx *database.Tx) error { _, err := tx.Write(insertThing, "after", "1"); return err },
	}, []inventory.Kind{"", inventory.Conflict, ""})
	for name, want := range map[string]string{"taken": "1", "before": "1", "half": "", "later": "", "after": "1"} {
		if got := get(t, d, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// inOneCommit holds the writer back until all of these wait.
func inOneCommit(t *testing.T, d *DB, parts []func(*database.Tx) error, want []inventory.Kind) {
	t.Helper()
	held, hold := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = d.Write(t.Context(), func(*database.Tx) error { close(held); <-hold; return nil })
	})
	<-held
	for i, fn := range parts {
		all.Go(func() {
			err := d.Write(t.Context(), fn)
			if want[i] == "" && err != nil || want[i] != "" && !inventory.IsKind(err, want[i]) {
				t.Errorf("part %d: got %v, want %q", i, err, want[i])
			}
		})
		time.Sleep(20 * time.Millisecond) // in this order
	}
	close(hold)
	all.Wait()
}

// What a transaction may take from memory is what its snapshot holds, also when another instance has changed it.
func TestPostgresInstancesCountChangesTogether(t *testing.T) {
	url := postgres.Shared(t).Database(t)
	a, b := open(t, url, nil), open(t, url, nil)
	count := func(d *DB) (n uint64) {
		t.Helper()
		err := d.Read(t.Context(), func(tx *database.Tx) error {
			var ok bool
			if n, ok = tx.Changes(); !ok {
				t.Error("a read does not know the count of changes")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := count(a)
	if err := put(t.Context(), b, "x", "1"); err != nil {
		t.Fatal(err)
	}
	if n := count(a); n == first {
		t.Errorf("the change of another instance is not counted: %d", n)
	}
	second := count(a)
	errUndone := errors.New("undone")
	err := b.Write(t.Context(), func(tx *database.Tx) error {
		if _, ok := tx.Changes(); !ok {
			t.Error("a write does not know the count of changes at its beginning")
		}
		if _, err := tx.Write(insertThing, "y", "1"); err != nil {
			return err
		}
		if _, ok := tx.Changes(); ok {
			t.Error("a write that has changed a watched table may take its rows from memory")
		}
		return errUndone
	})
	if !errors.Is(err, errUndone) {
		t.Error(err)
	}
	if n := count(a); n != second {
		t.Errorf("an undone change is counted: %d, was %d", n, second)
	}
	if a.isWatched(countThings) {
		t.Error("a query counts as a change")
	}
}

// Commits of all instances come one after the other: a sum that each reads and writes is right in the end.
func TestPostgresInstancesTakeTurns(t *testing.T) {
	url := postgres.Shared(t).Database(t)
	dbs := []*DB{open(t, url, nil), open(t, url, nil), open(t, url, nil)}
	if err := put(t.Context(), dbs[0], "sum", "0"); err != nil {
		t.Fatal(err)
	}
	const each = 40
	var all sync.WaitGroup
	for _, d := range dbs {
		for range 4 {
			all.Go(func() {
				for range each {
					err := d.Write(t.Context(), func(tx *database.Tx) error {
						var v string
						if _, err := tx.Row([]any{&v}, findThing, "sum"); err != nil {
							return err
						}
						n := 0
						if _, err := fmt.Sscan(v, &n); err != nil {
							return err
						}
						_, err := tx.Write(`UPDATE things SET value = $2 WHERE name = $1`, "sum", fmt.Sprint(n+1))
						return err
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if got, want := get(t, dbs[1], "sum"), fmt.Sprint(len(dbs)*4*each); got != want {
		t.Errorf("the sum is %s, want %s: updates were lost", got, want)
	}
}

// A commit that adds events wakes the other instances, and its own.
func TestPostgresACommitWakesOtherInstances(t *testing.T) {
	url := postgres.Shared(t).Database(t)
	a, b := open(t, url, nil), open(t, url, nil)
	var woken [2]atomic.Int64
	a.OnCommit(func() { woken[0].Add(1) })
	b.OnCommit(func() { woken[1].Add(1) })
	wake := func() {
		err := a.Write(t.Context(), func(tx *database.Tx) error { tx.Wake(); return nil })
		if err != nil {
			t.Error(err)
		}
	}
	eventually(t, "the other instance is woken", func() bool { wake(); return woken[1].Load() > 0 })
	if woken[0].Load() == 0 {
		t.Error("the own instance is not woken")
	}
}

// An instance that is paused in a commit holds the turn of all. The server ends its transaction: the others go on, it writes nothing.
func TestPostgresAPausedInstanceIsFenced(t *testing.T) {
	url := postgres.Shared(t).Database(t)
	a, b := open(t, url, func(c *Config) { c.Timeout = 2 * time.Second }), open(t, url, func(c *Config) { c.Timeout = 10 * time.Second })
	paused, wake, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- a.Write(t.Context(), func(tx *database.Tx) error {
			_, err := tx.Write(insertThing, "of the paused one", "1")
			close(paused)
			<-wake
			return err
		})
	}()
	<-paused
	began := time.Now()
	if err := put(t.Context(), b, "of the other", "1"); err != nil {
		t.Errorf("the other instance: %v", err)
	}
	t.Logf("the other instance had its turn after %v", time.Since(began).Round(time.Millisecond))
	close(wake)
	wantError(t, <-ended, inventory.Unavailable, "")
	if got := get(t, b, "of the paused one"); got != "" {
		t.Error("the paused instance has written")
	}
	if err := put(t.Context(), a, "again", "1"); err != nil {
		t.Errorf("the paused instance does not come back: %v", err)
	}
}

// The answer to a commit is lost while the standby that it waits for is away. Write returns when the commit is durable, and says so.
func TestPostgresALostAnswerIsLookedUp(t *testing.T) {
	s := postgres.Start(t, postgres.Options{})
	url := s.Database(t)
	d := open(t, url, func(c *Config) { c.Timeout, c.Patience = time.Second, time.Minute })
	ask(t, s, "postgres", `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`, `SELECT pg_reload_conf()`)
	time.Sleep(500 * time.Millisecond)
	ended := make(chan error, 1)
	go func() { ended <- put(t.Context(), d, "in doubt", "1") }()
	select {
	case err := <-ended:
		t.Fatalf("the commit returned without its standby: %v", err)
	case <-time.After(4 * time.Second):
	}
	ask(t, s, "postgres", `ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`)
	if err := <-ended; err != nil {
		t.Errorf("a commit that was made is reported as: %v", err)
	}
	if get(t, d, "in doubt") != "1" {
		t.Error("the change is not there")
	}
	if d.writing.batchN != 1 {
		t.Errorf("the last batch is %d, want 1", d.writing.batchN)
	}
}

// The server is killed again and again while many write. Each acknowledged write is there afterwards, each refused one is not.
func TestPostgresAKilledServerLosesNothingAcknowledged(t *testing.T) {
	s := postgres.Start(t, postgres.Options{})
	d := open(t, s.Database(t), func(c *Config) { c.Lost = func(n int64) { t.Errorf("%d commits are said to be lost", n) } })
	var (
		mu      sync.Mutex
		acked   []string
		refused []string
		unknown int
		stop    atomic.Bool
		all     sync.WaitGroup
	)
	for w := range 8 {
		all.Go(func() {
			for i := 0; !stop.Load(); i++ {
				name := fmt.Sprintf("%d-%d", w, i)
				err := put(t.Context(), d, name, name)
				mu.Lock()
				switch {
				case err == nil:
					acked = append(acked, name)
				case strings.Contains(err.Error(), "not known whether"):
					unknown++
				default:
					refused = append(refused, name)
					if !inventory.IsKind(err, inventory.Unavailable) {
						t.Errorf("%s: %v", name, err)
					}
				}
				mu.Unlock()
				if err != nil {
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
	}
	for range 4 {
		time.Sleep(700 * time.Millisecond)
		s.Stop(t, postgres.Immediate)
		time.Sleep(300 * time.Millisecond)
		s.StartAgain(t)
	}
	time.Sleep(time.Second)
	stop.Store(true)
	all.Wait()
	t.Logf("%d acknowledged, %d refused, %d unknown", len(acked), len(refused), unknown)
	if len(acked) < 50 || len(refused) == 0 {
		t.Errorf("%d acknowledged and %d refused prove nothing", len(acked), len(refused))
	}
	for _, name := range acked {
		if get(t, d, name) != name {
			t.Errorf("%s was acknowledged and is lost", name)
		}
	}
	for _, name := range refused {
		if get(t, d, name) != "" {
			t.Errorf("%s was refused and is there", name)
		}
	}
}

// What a network sent may not be text as PostgreSQL knows it. It is stored with a mark in the place, and found by what was sent.
func TestPostgresHostileTextIsStored(t *testing.T) {
	d := open(t, postgres.Shared(t).Database(t), nil)
	for sent, want := range map[string]string{"a\x00b": "a\uFFFDb", "c\xffd": "c\uFFFDd", "\xe4\xf6": "\uFFFD", "plain ü": "plain ü"} {
		if err := put(t.Context(), d, sent, sent); err != nil {
			t.Errorf("%q: %v", sent, err)
		}
		if got := get(t, d, sent); got != want {
			t.Errorf("%q came back as %q, want %q", sent, got, want)
		}
	}
}

// Each reason why a start cannot use a server is named, with what to do.
func TestPostgresAStartThatCannotBe(t *testing.T) {
	s := postgres.Start(t, postgres.Options{})
	url := s.Database(t)
	at := func(change func(*pgx.ConnConfig) string) string {
		c, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		return change(c)
	}
	name := at(func(c *pgx.ConnConfig) string { return c.Database })
	try := func(what, url string, kind inventory.Kind, says string) {
		t.Helper()
		d, err := Open(t.Context(), Config{URL: url, Migrations: schema, Timeout: 2 * time.Second})
		if err == nil {
			_ = d.Close()
			t.Errorf("%s: it starts", what)
			return
		}
		t.Logf("%s: %v (%s)", what, err, err.(*inventory.Error).Hint)
		wantError(t, err, kind, says)
		if strings.Contains(fmt.Sprint(err, err.(*inventory.Error).Hint), at(func(c *pgx.ConnConfig) string { return c.Password })) {
			t.Errorf("%s: the password is in the error", what)
		}
	}
	try("no URL", "postgres://a b", inventory.Invalid, "cannot read the address")
	try("nobody listens", "postgres://x:y@127.0.0.1:1/x", inventory.Unavailable, "cannot be reached")
	try("another database", strings.Replace(url, name, "nowhere", 1), inventory.Unavailable, "does not exist")
	try("a wrong password", at(func(c *pgx.ConnConfig) string { return strings.Replace(url, c.Password, "wrong", 1) }), inventory.Unavailable, "refuses the user or the password")
	ask(t, s, "postgres", `ALTER DATABASE `+name+` SET default_transaction_read_only = on`)
	try("a standby", url, inventory.Unavailable, "read-only")
	ask(t, s, "postgres", `ALTER DATABASE `+name+` RESET default_transaction_read_only`, `CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`)
	try("another encoding", strings.Replace(url, name, "latin", 1), inventory.Conflict, "encoding LATIN1")
	d := open(t, url, nil)
	if err := put(t.Context(), d, "x", "1"); err != nil {
		t.Fatal(err)
	}
	ask(t, s, name, `UPDATE goose_db_version SET version_id = 299901010000 WHERE version_id > 0`)
	try("a newer schema", url, inventory.Conflict, "newer Slipway")
}

// Statements of Later go with the commit. One that fails undoes its own part, of the first, a middle and the last caller alike, and of one
// that is alone. The caller hears what its error means to it.
func TestPostgresALateErrorEndsItsPartOnly(t *testing.T) {
	d := open(t, postgres.Shared(t).Database(t), nil)
	if err := put(t.Context(), d, "taken", "1"); err != nil {
		t.Fatal(err)
	}
	mine := func(err error) error { return inventory.Errorf(inventory.NotFound, "mine: %v", err) }
	later := func(names ...string) func(*database.Tx) error {
		return func(tx *database.Tx) error {
			for _, name := range names {
				if err := tx.Later(mine, insertThing, name, "1"); err != nil {
					return err
				}
			}
			return nil
		}
	}
	inOneCommit(t, d, []func(*database.Tx) error{
		later("a1", "taken"), later("b1"), later("taken", "c1"), later("taken"),
		func(tx *database.Tx) error { _, err := tx.Row([]any{new(int64)}, countThings); return err },
		later("d1"), later("e1", "taken"),
	}, []inventory.Kind{inventory.NotFound, "", inventory.NotFound, inventory.NotFound, "", "", inventory.NotFound})
	wantError(t, d.Write(t.Context(), later("f1", "taken")), inventory.NotFound, "mine: the name or address is taken")
	wantError(t, d.Write(t.Context(), func(tx *database.Tx) error { // its next statement fails with it
		if err := later("g1", "taken")(tx); err != nil {
			t.Errorf("an error before it can be known: %v", err)
		}
		if _, err := tx.Row([]any{new(int64)}, countThings); err == nil {
			t.Error("a query after a failed statement")
		}
		return nil
	}), inventory.NotFound, "mine")
	many := make([]string, 2*maxLater+10)
	for i := range many {
		many[i] = fmt.Sprintf("m%d", i)
	}
	if err := d.Write(t.Context(), later(many...)); err != nil {
		t.Error(err)
	}
	var names []string
	err := d.Read(t.Context(), func(tx *database.Tx) error {
		return tx.Each(func(s database.Scan) error {
			var name string
			err := s(&name)
			names = append(names, name)
			return err
		}, `SELECT name FROM things WHERE name NOT LIKE 'm%' ORDER BY name`)
	})
	if got := strings.Join(names, " "); err != nil || got != "b1 d1 taken" {
		t.Errorf("there are %q, want b1 d1 taken (%v)", got, err)
	}
}
