package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/copying"
	"slipway.dev/slipway/inventory/sqlstore/moving"
	engine "slipway.dev/slipway/inventory/sqlstore/postgres"
	"slipway.dev/slipway/inventory/storetest"
	"slipway.dev/slipway/test/postgres"
)

// withEvents makes a file with a host and n events, and returns its path.
func withEvents(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "slipway.db")
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Write(t.Context(), func(tx inventory.Tx) error {
		h := storetest.Host(1)
		if err := tx.CreateHost(&h, storetest.Now); err != nil {
			return err
		}
		for i := range n {
			if err := tx.AddEvent(eventOf(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// onServer runs statements on a database without the store.
func onServer(t *testing.T, url string, queries ...string) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range queries {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%v: %s", err, q)
		}
	}
}

// asked returns the rows of a query, which returns texts.
func asked(t *testing.T, url, query string) []string {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	return lines(t, db, query)
}

func hintOf(err error) string {
	e, _ := errors.AsType[*inventory.Error](err)
	return e.Hint
}

func refused(t *testing.T, err error, kind inventory.Kind, msg string) {
	t.Helper()
	e, ok := errors.AsType[*inventory.Error](err)
	if !ok || e.Kind != kind || !strings.Contains(e.Msg, msg) || e.Hint == "" {
		t.Errorf("got %#v, want %v with %q and a hint", err, kind, msg)
	}
}

func TestACopyLeavesTheSchemaOfPostgreSQLAsItIs(t *testing.T) {
	golden := lines(t, openPostgres(t), goldenSQL, goldenFunctionsSQL)
	to := emptyOnPostgres(t)
	if _, err := moving.Copy(t.Context(), moving.Database{Path: withEvents(t, 1)}, moving.Database{URL: to}, moving.Options{}); err != nil {
		t.Fatal(err)
	}
	same := func(when string) {
		t.Helper()
		if d := cmp.Diff(golden, append(asked(t, to, goldenSQL), asked(t, to, goldenFunctionsSQL)...)); d != "" {
			t.Errorf("%s the schema is another one (-want +got):\n%s", when, d)
		}
	}
	same("after a copy")
	was := asked(t, to, `SELECT n::text FROM changes`)
	if _, err := moving.Copy(t.Context(), moving.Database{Path: withEvents(t, 2)}, moving.Database{URL: to}, moving.Options{IsReplacing: true}); err != nil {
		t.Fatal(err)
	}
	same("after a copy that replaces the rows")
	if got := asked(t, to, `SELECT count(*)::text FROM events`); got[0] != "2" {
		t.Errorf("%v events after two were put in place of one", got)
	}
	if now := asked(t, to, `SELECT n::text FROM changes`); now[0] == was[0] {
		t.Error("an instance that kept settings in memory would not read them again")
	}
	// The triggers of the audit are there again.
	db, err := sql.Open("pgx", to)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `TRUNCATE audit`); err == nil || !strings.Contains(err.Error(), "append-only") {
		t.Errorf("the audit was emptied: %v", err)
	}
}

// TestRowsThatReferToEachOtherInACircleAreCopiedToPostgreSQL has two tables that Slipway does not have: its own have no such circle yet.
func TestRowsThatReferToEachOtherInACircleAreCopiedToPostgreSQL(t *testing.T) {
	var urls []string
	for range 2 {
		url := postgres.Shared(t).Database(t)
		onServer(t, url, `CREATE TABLE changes (n BIGINT)`, `CREATE TABLE a (id BIGINT PRIMARY KEY, b BIGINT)`,
			`CREATE TABLE b (id BIGINT PRIMARY KEY, a BIGINT REFERENCES a (id))`, `ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b (id)`)
		urls = append(urls, url)
	}
	onServer(t, urls[0], `INSERT INTO a VALUES (1, NULL)`, `INSERT INTO b VALUES (2, 1)`, `UPDATE a SET b = 2`)
	from, err := engine.OpenSource(t.Context(), engine.Config{URL: urls[0]})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := engine.OpenTarget(t.Context(), engine.Config{URL: urls[1]})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if _, err := copying.Copy(t.Context(), from, to, false); err != nil {
		t.Fatal(err)
	}
	if err := to.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := asked(t, urls[1], `SELECT a.id || ' ' || b.id FROM a JOIN b ON a.b = b.id AND b.a = a.id`); len(got) != 1 || got[0] != "1 2" {
		t.Errorf("copied %v", got)
	}
}

// TestWhatPostgreSQLCannotKeepIsNamed copies texts with NUL and with bytes that are not UTF-8.
func TestWhatPostgreSQLCannotKeepIsNamed(t *testing.T) {
	path := withEvents(t, 3)
	onFile := func(q string) {
		t.Helper()
		db, err := sql.Open("sqlite3", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	onFile(`UPDATE events SET detail = 'a' || char(0) || 'b', subject = CAST(x'61ff62' AS TEXT) WHERE id = 2`)
	to := moving.Database{URL: postgres.Shared(t).Database(t)}
	for _, isDryRun := range []bool{true, false} {
		got, err := moving.Copy(t.Context(), moving.Database{Path: path}, to, moving.Options{IsDryRun: isDryRun})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got.Tables {
			if r.Table != "events" {
				if r.ChangedN != 0 || !isDryRun && r.Copy != r.Digest {
					t.Errorf("%+v", r)
				}
				continue
			}
			if r.RowN != 3 || r.ChangedN != 1 || fmt.Sprint(r.Changed) != "[{[2] [detail subject]}]" {
				t.Errorf("dry run %t: %+v", isDryRun, r)
			}
			if !isDryRun && r.Copy == r.Digest {
				t.Error("the digests are the same, though a row was changed")
			}
		}
	}
	if got := asked(t, to.URL, `SELECT detail || ' ' || subject FROM events WHERE id = 2`); got[0] != "a\uFFFDb a\uFFFDb" {
		t.Errorf("kept %q", got)
	}
	// Two such keys could become one.
	onFile(`INSERT INTO reports (id, host_id, kind, machine, body, created_at) SELECT 'a' || char(0), '01', 'wipe', '', '{}', 1`)
	_, err := moving.Copy(t.Context(), moving.Database{Path: path}, moving.Database{URL: postgres.Shared(t).Database(t)}, moving.Options{IsDryRun: true})
	refused(t, err, inventory.Conflict, "a key in table reports")
}

func TestACopyToPostgreSQLIsRefused(t *testing.T) {
	server := postgres.Shared(t)
	from := moving.Database{Path: withEvents(t, 1)}
	for _, c := range []struct {
		name string
		make func(t *testing.T) (url string)
		kind inventory.Kind
		msg  string
	}{
		{"not empty", func(t *testing.T) string {
			url := emptyOnPostgres(t)
			onServer(t, url, `INSERT INTO locks VALUES ('a', 'b', 'c', 1)`)
			return url
		}, inventory.Conflict, "not empty: it has rows in 1 tables, such as locks"},
		{"newer", func(t *testing.T) string {
			url := emptyOnPostgres(t)
			onServer(t, url, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (299912310000, true)`)
			return url
		}, inventory.Conflict, "the target was written by a newer Slipway"},
		{"another program's", func(t *testing.T) string {
			url := server.Database(t)
			onServer(t, url, `CREATE TABLE shop (id BIGINT PRIMARY KEY)`)
			return url
		}, inventory.Conflict, "1 tables that are not Slipway's"},
		{"a column more", func(t *testing.T) string {
			url := emptyOnPostgres(t)
			onServer(t, url, `ALTER TABLE hosts ADD COLUMN colour TEXT`)
			return url
		}, inventory.Conflict, "hosts has other columns"},
		{"without rights", func(t *testing.T) string {
			url := server.Database(t)
			onServer(t, url, `DROP ROLE IF EXISTS guest`, `CREATE ROLE guest LOGIN PASSWORD 'guest'`,
				`REVOKE CREATE ON SCHEMA public FROM PUBLIC`) // which everybody has on PostgreSQL 14
			return as(t, url, "guest", "guest")
		}, inventory.Unavailable, "may not make tables"},
		{"tables of another user", func(t *testing.T) string {
			url := emptyOnPostgres(t)
			onServer(t, url, `DROP ROLE IF EXISTS other`, `CREATE ROLE other LOGIN PASSWORD 'other'`, `GRANT SELECT ON goose_db_version TO other`)
			return as(t, url, "other", "other")
		}, inventory.Unavailable, "does not own"},
		{"wrong password", func(t *testing.T) string { return as(t, server.Database(t), "slipway", "wrong") }, inventory.Unavailable, "refuses the user or the password"},
		{"in use", func(t *testing.T) string {
			url := emptyOnPostgres(t)
			s, err := Open(t.Context(), Config{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return url
		}, inventory.Conflict, "Slipway uses the database, from 127.0.0.1"},
		{"unreachable", func(*testing.T) string { return "postgres://slipway@127.0.0.1:1/slipway" }, inventory.Unavailable, "cannot be reached"},
		{"no address", func(*testing.T) string { return "postgres://a b" }, inventory.Invalid, "cannot read the address"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-")+" PostgreSQL", func(t *testing.T) {
			to := moving.Database{URL: c.make(t)}
			_, dry := moving.Copy(t.Context(), from, to, moving.Options{IsDryRun: true})
			if c.name != "a column more" {
				refused(t, dry, c.kind, c.msg)
			}
			_, err := moving.Copy(t.Context(), from, to, moving.Options{})
			refused(t, err, c.kind, c.msg)
		})
	}
}

// as is the address of a database for another user.
func as(t *testing.T, address, user, password string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

func TestADryRunWritesNothingToPostgreSQL(t *testing.T) {
	to := moving.Database{URL: postgres.Shared(t).Database(t)}
	got, err := moving.Copy(t.Context(), moving.Database{Path: withEvents(t, 2)}, to, moving.Options{IsDryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if all, changed := got.RowN(); all < 3 || changed != 0 {
		t.Errorf("%d rows, %d changed", all, changed)
	}
	if has := asked(t, to.URL, `SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace`); len(has) != 0 {
		t.Errorf("the dry run has made %v", has)
	}
}

func TestACopyOfPostgreSQLToAFileIsRefused(t *testing.T) {
	empty := postgres.Shared(t).Database(t)
	dir := t.TempDir()
	_, err := moving.Copy(t.Context(), moving.Database{URL: empty}, moving.Database{Path: filepath.Join(dir, "new.db")}, moving.Options{})
	refused(t, err, inventory.Invalid, "no database of Slipway")
	url := emptyOnPostgres(t)
	if _, err := moving.Copy(t.Context(), moving.Database{Path: withEvents(t, 1)}, moving.Database{URL: url}, moving.Options{}); err != nil {
		t.Fatal(err)
	}
	_, err = moving.Copy(t.Context(), moving.Database{URL: url}, moving.Database{Path: withEvents(t, 1)}, moving.Options{})
	refused(t, err, inventory.Conflict, "exists already")
	onServer(t, url, `DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
	_, err = moving.Copy(t.Context(), moving.Database{URL: url}, moving.Database{Path: filepath.Join(dir, "new.db")}, moving.Options{})
	refused(t, err, inventory.Conflict, "the schema of an older Slipway")
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("it has left %v", left)
	}
}

// TestPostgreSQLHasNothingOfACopyThatIsCutShort ends the connection, or the command, in the middle of a table.
func TestPostgreSQLHasNothingOfACopyThatIsCutShort(t *testing.T) {
	from := moving.Database{Path: withEvents(t, 60_000)}
	for _, c := range []struct {
		name string
		cut  func(t *testing.T, url string, cancel func())
		msg  string
	}{
		{"connection", func(t *testing.T, url string, _ func()) {
			onServer(t, url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'slipway copy' AND datname = current_database()`)
		}, "the database is stopping"},
		{"command", func(_ *testing.T, _ string, cancel func()) { cancel() }, "the copy was interrupted"},
	} {
		t.Run(c.name+" PostgreSQL", func(t *testing.T) {
			to := moving.Database{URL: emptyOnPostgres(t)}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := moving.Copy(ctx, from, to, moving.Options{})
				done <- err
			}()
			for isCopying := false; !isCopying; {
				select {
				case err := <-done:
					t.Fatalf("it has ended before it could be cut: %v", err)
				case <-time.After(time.Millisecond):
				}
				isCopying = len(asked(t, to.URL, `SELECT query FROM pg_stat_activity WHERE application_name = 'slipway copy' AND datname = current_database() AND query LIKE 'copy "events"%' AND state = 'active'`)) > 0
			}
			c.cut(t, to.URL, cancel)
			err := <-done
			refused(t, err, inventory.Unavailable, c.msg)
			if hint := hintOf(err); strings.Contains(hint, "by itself") {
				t.Errorf("a command is told %q", hint)
			}
			if n := asked(t, to.URL, `SELECT (SELECT count(*) FROM hosts) + (SELECT count(*) FROM events)`); n[0] != "0" {
				t.Errorf("%v rows are left", n)
			}
			if _, err := moving.Copy(t.Context(), from, to, moving.Options{}); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// TestACommitOfACopyWhoseAnswerIsLostIsLookedUpOnPostgreSQL ends the connection after the server has got COMMIT.
func TestACommitOfACopyWhoseAnswerIsLostIsLookedUpOnPostgreSQL(t *testing.T) {
	server, direct := postgres.Shared(t), emptyOnPostgres(t)
	for _, isSent := range []bool{false, true} {
		var cuts atomic.Int32
		u, err := url.Parse(direct)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = cutAtCommit(t, server.Address(), isSent, &cuts)
		got, err := moving.Copy(t.Context(), moving.Database{Path: withEvents(t, 10)}, moving.Database{URL: u.String()}, moving.Options{})
		if cuts.Load() != 1 {
			t.Fatalf("the connection was cut %d times", cuts.Load())
		}
		want := "0"
		if isSent {
			want = "10"
			if all, _ := got.RowN(); err != nil || all < 11 {
				t.Errorf("%d rows, %v", all, err)
			}
		} else {
			refused(t, err, inventory.Unavailable, "cannot be reached")
		}
		if n := asked(t, direct, `SELECT count(*)::text FROM events`); n[0] != want {
			t.Errorf("sent %t: %v events", isSent, n)
		}
	}
}

// cutAtCommit passes on connections to a server. It cuts the first one that commits a copy, before or after the server has got that.
func cutAtCommit(t *testing.T, server string, isSent bool, cuts *atomic.Int32) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", server)
			if err != nil {
				c.Close()
				return
			}
			go func() {
				defer c.Close()
				defer s.Close()
				isCopy := false
				buf := make([]byte, 64<<10)
				for {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					isCopy = isCopy || bytes.Contains(buf[:n], []byte("copy \"events\""))
					if isCopy && bytes.Contains(buf[:n], []byte(commitText)) && cuts.Add(1) == 1 {
						if isSent {
							c.Close() // before the server can answer
							_, _ = s.Write(buf[:n])
							time.Sleep(100 * time.Millisecond) // for the server to commit
						}
						return
					}
					if _, err := s.Write(buf[:n]); err != nil {
						return
					}
				}
			}()
			go func() { _, _ = io.Copy(c, s) }()
		}
	}()
	return l.Addr().String()
}

const commitText = "COMMIT"

// TestABackupOfPostgreSQLIsOfOneMoment takes a backup of a store that is written to all the time.
func TestABackupOfPostgreSQLIsOfOneMoment(t *testing.T) {
	s := openOnPostgres(t)
	var stop atomic.Bool
	var lastID atomic.Int64
	ended := make(chan error, 1)
	go func() {
		for n := 0; !stop.Load(); n++ {
			e := eventOf(0)
			err := s.Write(t.Context(), func(tx inventory.Tx) error {
				// Two tables change together.
				if err := tx.AddEvent(e); err != nil {
					return err
				}
				return tx.SaveLock(inventory.Lock{Name: fmt.Sprintf("l%09d", n), HostID: "h", SinceAt: storetest.Now})
			})
			lastID.Store(e.ID)
			if err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	for lastID.Load() < 20 {
		time.Sleep(time.Millisecond)
	}
	path := filepath.Join(t.TempDir(), "backup.db")
	had := lastID.Load()
	if err := s.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	refused(t, s.Backup(t.Context(), path), inventory.Conflict, "exists already")
	stop.Store(true)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var events, locks int64
	if err := db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM locks)`).Scan(&events, &locks); err != nil {
		t.Fatal(err)
	}
	if events != locks || events < had {
		t.Errorf("%d events and %d locks in the backup; %d were there before", events, locks, had)
	}
}
