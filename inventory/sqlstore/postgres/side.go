package postgres

import (
	"context"
	"errors"
	"iter"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/copying"
)

// Side is a database during a copy, with a connection of its own. It implements copying.Side.
type Side struct {
	server *server // for errors
	c      *pgx.Conn
}

// OpenSource begins to read a database, in one snapshot.
func OpenSource(ctx context.Context, cfg Config) (*Side, error) {
	return openSide(ctx, cfg, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
}

// OpenTarget begins the transaction of a copy into a database. It takes the turn to write, so that no instance writes meanwhile.
func OpenTarget(ctx context.Context, cfg Config) (*Side, error) {
	s, err := openSide(ctx, cfg, beginWrite)
	if err != nil {
		return nil, err
	}
	for _, query := range []string{`SET LOCAL lock_timeout = '10s'`, takeTurn} {
		if err := s.exec(ctx, query); err != nil {
			_ = s.Close()
			return nil, err
		}
	}
	return s, nil
}

func openSide(ctx context.Context, cfg Config, begin string) (*Side, error) {
	cfg.Timeout = 10 * time.Second
	to, err := newServer(cfg)
	if err != nil {
		return nil, err
	}
	s := &Side{server: to}
	to.to.RuntimeParams["application_name"] = "slipway copy"
	// The target is idle while the source sends nothing, and a large table is read for longer than any answer may take else.
	to.session["idle_in_transaction_session_timeout"] = "0"
	to.session["statement_timeout"] = "0"
	to.to.DialFunc = dialWatched
	if err := s.server.check(); err != nil {
		return nil, err
	}
	if s.c, err = pgx.ConnectConfig(ctx, to.to); err != nil {
		return nil, s.said(ctx, err)
	}
	if err := s.exec(ctx, begin); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// dialWatched connects so that the kernel ends a connection whose other side has been silent for half a minute. Statements of a copy
// have no time limit that would do it.
func dialWatched(ctx context.Context, network, address string) (net.Conn, error) {
	const tcpUserTimeout = 18 // of tcp(7): for what was sent and not acknowledged
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4},
		Control: func(network, _ string, c syscall.RawConn) error {
			if !strings.HasPrefix(network, "tcp") {
				return nil
			}
			var failed error
			err := c.Control(func(fd uintptr) { failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, 30_000) })
			if err != nil {
				return err
			}
			return failed
		},
	}
	return d.DialContext(ctx, network, address)
}

// bookkeeping are the tables that belong to the server and its instances, and not to the inventory. Every other table is copied.
const bookkeeping = `('changes', 'writers', 'goose_db_version')`

const catalogueSQL = `SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), COALESCE(k.place, 0)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
LEFT JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place) ON k.attnum = a.attnum
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND c.relname NOT IN ` + bookkeeping + `
ORDER BY c.relname COLLATE "C", a.attname COLLATE "C"`

const referencesSQL = `SELECT k.conname::text, f.relname::text, t.relname::text
FROM pg_constraint k JOIN pg_class f ON f.oid = k.conrelid JOIN pg_class t ON t.oid = k.confrelid
WHERE k.contype = 'f' AND f.relnamespace = current_schema()::regnamespace ORDER BY k.conname COLLATE "C"`

var kinds = map[string]copying.Kind{"bigint": copying.Number, "text": copying.Text, "bytea": copying.Bytes}

// Tables implements copying.Side.
func (s *Side) Tables(ctx context.Context) ([]copying.Table, error) {
	return copying.Catalogue(s.Rows(ctx, catalogueSQL), s.Rows(ctx, referencesSQL), kinds)
}

// Rows implements copying.Side. The driver reads one row at a time, and the server waits for it.
func (s *Side) Rows(ctx context.Context, query string) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		rows, err := s.c.Query(ctx, query)
		if err != nil {
			yield(nil, s.said(ctx, err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			row, err := rows.Values()
			for i := range row {
				if err == nil {
					row[i], err = stored(row[i])
				}
			}
			if err != nil {
				yield(nil, s.said(ctx, err))
				return
			}
			if !yield(row, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, s.said(ctx, err))
		}
	}
}

// Insert implements copying.Side. COPY needs no answer for each row, and holds none of them.
func (s *Side) Insert(ctx context.Context, t copying.Table, rows iter.Seq2[[]any, error]) error {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	next, stop := iter.Pull2(rows)
	defer stop()
	var failed error // of the source
	_, err := s.c.CopyFrom(ctx, pgx.Identifier{t.Name}, names, pgx.CopyFromFunc(func() ([]any, error) {
		row, err, isThere := next()
		if !isThere {
			return nil, nil
		}
		failed = err
		return row, err
	}))
	if failed != nil {
		return failed
	}
	return s.said(ctx, err)
}

// Clear implements copying.Side. The audit has triggers against it, which are off until this is done.
func (s *Side) Clear(ctx context.Context, tables []copying.Table) error {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = pgx.Identifier{t.Name}.Sanitize()
	}
	queries := []string{`TRUNCATE ` + strings.Join(names, ", ")}
	for _, n := range names {
		queries = append([]string{`ALTER TABLE ` + n + ` DISABLE TRIGGER USER`}, append(queries, `ALTER TABLE `+n+` ENABLE TRIGGER USER`)...)
	}
	return s.exec(ctx, queries...)
}

// Defer implements copying.Side. The transaction changes the references themselves, and changes them back in Settle.
func (s *Side) Defer(ctx context.Context, late []copying.Reference) error {
	for _, r := range late {
		if err := s.exec(ctx, alter(r)+` DEFERRABLE INITIALLY DEFERRED`); err != nil {
			return err
		}
	}
	return nil
}

// Settle implements copying.Side.
func (s *Side) Settle(ctx context.Context, late []copying.Reference) error {
	if err := s.exec(ctx, `SET CONSTRAINTS ALL IMMEDIATE`); err != nil {
		return err
	}
	for _, r := range late {
		if err := s.exec(ctx, alter(r)+` NOT DEFERRABLE`); err != nil {
			return err
		}
	}
	return nil
}

func alter(r copying.Reference) string {
	return `ALTER TABLE ` + pgx.Identifier{r.From}.Sanitize() + ` ALTER CONSTRAINT ` + pgx.Identifier{r.Name}.Sanitize()
}

// Keeps implements copying.Side.
func (s *Side) Keeps(text string) string { return kept(text) }

// Commit ends the transaction of a copy. Instances forget what they keep in memory. An error may come from a lost answer: then only the
// database knows whether it was committed.
func (s *Side) Commit(ctx context.Context) error {
	return s.exec(ctx, raiseChanges, `SELECT pg_notify('slipway', '')`, commit)
}

// Close ends the connection, and the server undoes what was not committed.
func (s *Side) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.server.cfg.Timeout)
	defer cancel()
	return s.c.Close(ctx)
}

func (s *Side) exec(ctx context.Context, queries ...string) error {
	for _, q := range queries {
		tag, err := s.c.Exec(ctx, q)
		if err == nil && q == commit && tag.String() != commit {
			err = errNotCommitted
		}
		if err != nil {
			return s.said(ctx, err)
		}
	}
	return nil
}

// said is an error for people.
func (s *Side) said(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return copying.Interrupted(err)
	}
	said := s.server.said(err)
	// Nothing of a copy goes on by itself: that is true of a server.
	if e, ok := errors.AsType[*inventory.Error](said); ok && strings.HasSuffix(e.Hint, goesOn) {
		e.Hint = strings.TrimSuffix(e.Hint, goesOn) + "; nothing was changed: start it again"
	}
	return said
}

// Facts are what a copy has to know of a database.
type Facts struct {
	Version  int64    // of the schema, 0 without one
	Bytes    int64    // on the disk of the server
	TableN   int64    // in its schema, of any owner
	ForeignN int64    // those of other owners than the user of the connection
	Users    []string // addresses of instances of Slipway that are connected
	Risks    []string // settings with which the server may lose what it has acknowledged
	MayMake  bool     // tables
}

const factsSQL = `SELECT pg_database_size(current_database()),
  (SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')),
  COALESCE((SELECT string_agg(DISTINCT COALESCE(host(client_addr), 'local'), ' ') FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'slipway'), ''),
  COALESCE((SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings
    WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting IN ('off', 'local')), ''),
  COALESCE(has_schema_privilege(current_schema(), 'CREATE'), false),
  (SELECT count(*) FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT pg_has_role(relowner, 'USAGE'))`

const hasVersionsSQL = `SELECT 1 FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname = 'goose_db_version'`

// Facts asks the server.
func (s *Side) Facts(ctx context.Context) (f Facts, err error) {
	for row, err := range s.Rows(ctx, factsSQL) {
		if err != nil {
			return f, err
		}
		f.Bytes, _ = row[0].(int64)
		f.TableN, _ = row[1].(int64)
		users, _ := row[2].(string)
		risks, _ := row[3].(string)
		mayMake, _ := row[4].(int64)
		f.ForeignN, _ = row[5].(int64)
		f.Users, f.Risks, f.MayMake = strings.Fields(users), strings.Fields(risks), mayMake != 0
	}
	if f.Bytes == 0 {
		return f, inventory.Errorf(inventory.Internal, "the server says nothing about the database")
	}
	f.Version, err = copying.Version(ctx, s, hasVersionsSQL)
	return f, err
}
