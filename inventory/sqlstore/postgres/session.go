package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"slipway.dev/slipway/inventory"
)

// A connection of ours has one session of the server, from its beginning to its end: with its settings, its prepared statements and what
// it listens for. A connection pooler such as PgBouncer may break that. In its modes transaction and statement each transaction goes to any
// session that is free. In its mode session all is as it should be.

// pooled says in the custom data of a connection that something between us and the server has answered for it.
const pooled = "pooled"

// meet is the first way to the server. It refuses a standby, which answers with old data and takes no writes. If the URL names several
// servers, the next one is tried.
func meet(ctx context.Context, c *pgconn.PgConn) error {
	_, err := meetWith(ctx, c, "NULL", noPlaceSQL)
	return err
}

// welcome does what meet does. It also sends the settings if this is a connection to the server itself: then the session is the one that
// the server has named at the beginning of the connection. A pooler names another one, and the next client of that session would get
// the settings.
// Welcome also refuses an old primary, and a server of another cluster.
func (s *server) welcome(ctx context.Context, c *pgconn.PgConn) error {
	if !s.isPlaceless.Load() {
		is, err := meetWith(ctx, c, s.setting(), placeSQL)
		if err == nil {
			c.CustomData()[placed] = is
			return s.accept(c.Conn().RemoteAddr().String(), is)
		}
		if !hidesPlace(err) {
			return err
		}
		s.isPlaceless.Store(true)
	}
	_, err := meetWith(ctx, c, s.setting(), noPlaceSQL)
	return err
}

func meetWith(ctx context.Context, c *pgconn.PgConn, setting, place string) (is Place, err error) {
	pid := strconv.FormatUint(uint64(c.PID()), 10)
	got := c.ExecParams(ctx, `SELECT pg_backend_pid(), current_setting('transaction_read_only'), CASE WHEN pg_backend_pid() = `+pid+
		` THEN `+setting+` END, `+place, nil, nil, nil, nil).Read()
	switch {
	case got.Err != nil:
		return is, got.Err
	case len(got.Rows) != 1:
		return is, fmt.Errorf("a server answers with %d rows", len(got.Rows))
	case string(got.Rows[0][1]) == "on":
		return is, errReadOnly
	case string(got.Rows[0][0]) != pid:
		c.CustomData()[pooled] = true
	}
	return readPlace(got.Rows[0][3], got.Rows[0][4]), nil
}

// setting is the expression that makes all settings of a session.
func (s *server) setting() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.session)) {
		all = append(all, fmt.Sprintf("set_config('%s', '%s', false)", name, s.session[name]))
	}
	return strings.Join(all, " || ")
}

// settle makes the settings of a connection that goes over a pooler, if that keeps a session for it.
func (s *server) settle(ctx context.Context, c *pgconn.PgConn) error {
	if err := s.refuseShared(ctx, c); err != nil || c.CustomData()[pooled] == nil {
		return err
	}
	return c.ExecParams(ctx, `SELECT `+s.setting(), nil, nil, nil, nil).Read().Err
}

// refuseShared refuses a connection over a pooler that does not keep a session for it.
func (s *server) refuseShared(ctx context.Context, c *pgconn.PgConn) error {
	if c.CustomData()[pooled] == nil {
		return nil
	}
	isShared, err := s.isShared(ctx, c)
	if err == nil && isShared {
		err = inventory.Errorf(inventory.Conflict, "a connection pooler stands before the database, and lets connections share sessions").
			WithHint("set pool_mode = session for this database in PgBouncer, or name PostgreSQL itself: notifications, prepared " +
				"statements and limits belong to a session")
	}
	return err
}

// isShared finds out whether transactions of a connection go to any session. While another connection has a transaction open, in what may
// be the session of this one, this one asks again. The second round is for poolers that take the session which was free for longest.
func (s *server) isShared(ctx context.Context, c *pgconn.PgConn) (bool, error) {
	first, err := sessionOf(ctx, c)
	if err != nil {
		return false, err
	}
	to := s.to.Config.Copy()
	to.AfterConnect, to.ValidateConnect = nil, nil
	other, err := pgconn.ConnectConfig(ctx, to)
	if err != nil {
		return false, err
	}
	defer func() { _ = other.Close(ctx) }()
	for range 2 {
		if err := other.Exec(ctx, `BEGIN`).Close(); err != nil {
			pg, ok := errors.AsType[*pgconn.PgError](err)
			if ok && pg.Code == "08P01" { // PgBouncer knows no transactions in its mode statement
				return true, nil
			}
			return false, err
		}
		theirs, err := sessionOf(ctx, other)
		if err != nil || theirs == first {
			return true, err
		}
		if again, err := sessionOf(ctx, c); err != nil || again != first {
			return true, err
		}
		if err := other.Exec(ctx, `COMMIT`).Close(); err != nil {
			return false, err
		}
	}
	return false, nil
}

// sessionOf returns which session of the server answers.
func sessionOf(ctx context.Context, c *pgconn.PgConn) (string, error) {
	got := c.ExecParams(ctx, `SELECT pg_backend_pid()`, nil, nil, nil, nil).Read()
	if got.Err != nil || len(got.Rows) != 1 {
		return "", got.Err
	}
	return string(got.Rows[0][0]), nil
}
