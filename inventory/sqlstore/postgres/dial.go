package postgres

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// oldest and newest are the versions of PostgreSQL that this package is tested with, and all between.
const oldest, newest = 14, 18

// newServer reads where the server is, and with what settings it is used.
func newServer(cfg Config) (*server, error) {
	to, err := parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Password != "" {
		to.Password = cfg.Password
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	to.ConnectTimeout = max(time.Second, cfg.Timeout/time.Duration(attemptN(to)))
	to.RuntimeParams["application_name"] = "slipway"
	to.DefaultQueryExecMode, to.StatementCacheCapacity = pgx.QueryExecModeCacheStatement, statementN
	to.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			c.CustomData()[warned] = true
		}
	}
	s := &server{cfg: cfg, to: to, session: map[string]string{
		"client_min_messages": "warning",
		// Limits that an admin sets for all users would end a wait for the turn, and the connection that listens. Each answer has a limit of
		// its own.
		"statement_timeout": "0", "lock_timeout": "0", "idle_session_timeout": "0",
		// An instance that is paused in a transaction holds the turn. The server ends that transaction, and the instance finds out when it
		// wakes. A fifth, 2 s, is less than the term of a network: the others can take its duties in time.
		"idle_in_transaction_session_timeout": strconv.FormatInt(cfg.Timeout.Milliseconds()/5, 10),
		// The server ends a wait for the turn whose instance has gone.
		"client_connection_check_interval": "2000",
	}}
	to.ValidateConnect, to.AfterConnect = s.welcome, s.settle
	for _, found := range parentRule.FindAllStringSubmatch(cfg.Schema, -1) {
		if s.parents == nil {
			s.parents = map[string]bool{}
		}
		s.parents[found[1]] = true
	}
	s.first = to.Copy()
	s.first.ValidateConnect, s.first.AfterConnect = meet, s.refuseShared
	return s, nil
}

// attemptN is how many servers an attempt to connect tries at most. One more is for a name with several addresses. A server that is
// switched off answers nothing, and must leave time for the next one.
func attemptN(to *pgx.ConnConfig) int {
	servers := map[string]bool{net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))): true}
	for _, f := range to.Fallbacks {
		servers[net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port)))] = true
	}
	return len(servers) + 1
}

// dial connects.
func (s *server) dial() (*conn, error) { return s.dialWith(s.to) }

func (s *server) dialWith(to *pgx.ConnConfig) (*conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), to.ConnectTimeout*time.Duration(attemptN(to)))
	defer cancel()
	of := s.dialled.Load()
	c, err := pgx.ConnectConfig(ctx, to)
	if err != nil {
		return nil, err
	}
	return &conn{c: c, timeout: s.cfg.Timeout, prepared: map[string]bool{}, dialled: of, traffic: &s.traffic}, nil
}

const serverSQL = `SELECT current_setting('server_version_num'), current_setting('server_encoding'), current_setting('server_version')`

// check refuses a server that cannot keep what Slipway stores, and logs that one is newer than those that Slipway is tested with.
func (s *server) check() error {
	if err := s.survey(context.Background()); err != nil {
		return err
	}
	c, err := s.dialWith(s.first)
	if err != nil {
		return s.said(err)
	}
	defer func() { _ = c.close() }()
	_, rows, err := c.send(&step{query: serverSQL})
	if err != nil {
		return s.said(err)
	}
	number, _ := rows[0][0].(string)
	encoding, _ := rows[0][1].(string)
	version, _ := rows[0][2].(string)
	n, err := strconv.Atoi(number)
	if err != nil || n/10_000 < oldest {
		return inventory.Errorf(inventory.Conflict, "the database is PostgreSQL %s, which is too old", inventory.Clean(version, 40)).
			WithHint("Slipway is tested with PostgreSQL %d to %d", oldest, newest)
	}
	if note := isNew(n); note != "" {
		s.cfg.Log.Warn(note, "version", inventory.Clean(version, 40))
	}
	if encoding != "UTF8" {
		return inventory.Errorf(inventory.Conflict, "the database has the encoding %s", inventory.Clean(encoding, 40)).
			WithHint("make one with: CREATE DATABASE slipway ENCODING 'UTF8' TEMPLATE template0")
	}
	return nil
}

// isNew says that no test has run with a server of this number, such as 190001. It is empty for the others. Newer servers are not refused:
// PostgreSQL rarely takes something away.
func isNew(number int) string {
	if number/10_000 <= newest {
		return ""
	}
	return fmt.Sprintf("PostgreSQL %d is newer than those that Slipway is tested with, %d to %d", number/10_000, oldest, newest)
}

// migrate applies the missing migrations, each in its own transaction. Instances that start at once take turns.
func (s *server) migrate(ctx context.Context) error {
	if s.cfg.Migrations == nil {
		return nil
	}
	turn, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*s.to)
	defer db.Close()
	err = database.Migrate(ctx, db, database.Migrations{
		Dialect: goose.DialectPostgres, Files: s.cfg.Migrations, Name: "the database", Log: s.cfg.Log,
		Options: []goose.ProviderOption{goose.WithSessionLocker(turn)},
	})
	if err != nil {
		return s.said(err)
	}
	return nil
}

// isOld reports whether a connection goes to a server whose timeline is not the newest any more.
func (s *server) isOld(c *conn) bool {
	is, has := c.c.PgConn().CustomData()[placed].(Place)
	return has && is != s.placeNow()
}
