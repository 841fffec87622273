package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"slipway.dev/slipway/inventory"
)

// After a failover, the old primary may come back, or may never have stopped: it takes writes like the new one, and its address may come
// first in the URL. What is written there is lost. Each promotion begins a new timeline with a higher number. So a server is refused if
// Slipway has seen a higher one, and a server of another cluster is refused as long as the program runs.

// Place is which history of changes a primary writes.
type Place struct {
	System   string // the identifier of the cluster, which its standbys share
	Timeline int64  // grows with each promotion
}

func (p Place) isNone() bool { return p.System == "" }

// placeSQL is of a primary. On a standby it is NULL.
const placeSQL = `CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_walfile_name(pg_current_wal_lsn()) END,
(SELECT system_identifier FROM pg_control_system())::text`

const noPlaceSQL = `NULL, NULL`

const (
	surveyEvery = 30 * time.Second
	surveyFor   = 2 * time.Second
)

// readPlace reads what placeSQL returns. The name of a WAL file begins with the timeline.
func readPlace(file, system []byte) (p Place) {
	if len(file) < 8 {
		return p
	}
	n, err := strconv.ParseInt(string(file[:8]), 16, 64)
	if err != nil {
		return p
	}
	return Place{string(system), n}
}

// hidesPlace reports whether an error says that a server does not tell its place, as some services in a cloud do not.
func hidesPlace(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "42501" || pg.Code == "42883" || pg.Code == "55000" || pg.Code == "0A000")
}

// placeError is a primary that must not be used.
type placeError struct {
	at       string
	is, want Place
}

func (e *placeError) Error() string {
	if e.is.System != e.want.System {
		return fmt.Sprintf("%s is another database: its system identifier is %s, and that of the database in use is %s",
			e.at, e.is.System, e.want.System)
	}
	return fmt.Sprintf("%s is an old primary: it writes timeline %d, and timeline %d has begun elsewhere",
		e.at, e.is.Timeline, e.want.Timeline)
}

func (e *placeError) hint() string {
	if e.is.System != e.want.System {
		return "name only servers of one cluster in the address; if the inventory was moved there, start Slipway again"
	}
	return "stop it, and make it a standby of the new primary (pg_rewind); does the new primary run?"
}

// accept refuses a primary that is not where the newest changes are, and else notes where it is.
func (s *server) accept(at string, is Place) error {
	if is.isNone() {
		return nil
	}
	s.placing.Lock()
	defer s.placing.Unlock()
	want := s.place
	if want.isNone() && s.cfg.Place.System == is.System { // of another cluster was the last start: an admin has moved the inventory
		want = s.cfg.Place
	}
	if !want.isNone() && (is.System != want.System || is.Timeline < want.Timeline) {
		return &placeError{at, is, want}
	}
	s.place = is
	if is != s.cfg.Place && is != want && s.cfg.Placed != nil {
		s.cfg.Placed(is)
	}
	return nil
}

// isOld reports whether a connection goes to a server whose timeline is not the newest any more.
func (s *server) isOld(c *conn) bool {
	is, has := c.c.PgConn().CustomData()[placed].(Place)
	return has && is != s.placeNow()
}

// placed has the place of a connection in its custom data.
const placed = "placed"

// seen is a primary that a survey has found.
type seen struct {
	at string
	is Place
}

// survey asks all servers of the URL which of them are primaries. Without it, nobody would see a second one: the first that takes writes is
// used. It is a Conflict if they are of different clusters.
func (s *server) survey(ctx context.Context) error {
	all := s.each()
	if len(all) < 2 {
		return nil
	}
	found := make([]seen, len(all))
	var asking sync.WaitGroup
	for n, to := range all {
		asking.Go(func() { found[n] = askPlace(ctx, to) })
	}
	asking.Wait()
	before, first := s.placeNow(), seen{}
	for _, f := range found {
		if f.is.isNone() { // a standby, or one that does not answer
			continue
		}
		if first.is.isNone() {
			first = f
		}
		if before.isNone() && f.is.System != first.is.System {
			return inventory.Errorf(inventory.Conflict, "the address names two databases: %s has the system identifier %s, and %s has %s",
				first.at, first.is.System, f.at, f.is.System).WithHint("name only servers of one cluster")
		}
		_ = s.accept(f.at, f.is) // nobody is connected to one that it refuses
	}
	if after := s.placeNow(); !before.isNone() && after != before {
		s.cfg.Log.Error("an old primary was in use: another server has become the primary",
			"timeline", after.Timeline, "old", before.Timeline)
		s.dialled.Add(1) // all connections are made again
	}
	return nil
}

func (s *server) placeNow() Place {
	s.placing.Lock()
	defer s.placing.Unlock()
	return s.place
}

// surveys looks for another primary from time to time, until the program ends.
func (d *DB) surveys() {
	for {
		select {
		case <-d.Closing():
			return
		case <-time.After(surveyEvery):
			_ = d.survey(context.Background()) // which servers there are was checked at the start
		}
	}
}

// each returns the settings of a connection for each server of the URL.
func (s *server) each() (all []*pgconn.Config) {
	by := map[string]*pgconn.Config{}
	own := pgconn.FallbackConfig{Host: s.to.Host, Port: s.to.Port, TLSConfig: s.to.TLSConfig}
	for _, f := range append([]*pgconn.FallbackConfig{&own}, s.to.Fallbacks...) {
		at := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port)))
		if is := by[at]; is != nil { // the same without TLS
			is.Fallbacks = append(is.Fallbacks, f)
			continue
		}
		is := s.to.Config.Copy()
		is.Host, is.Port, is.TLSConfig, is.Fallbacks = f.Host, f.Port, f.TLSConfig, nil
		is.ValidateConnect, is.AfterConnect, is.ConnectTimeout = nil, nil, surveyFor
		by[at], all = is, append(all, is)
	}
	return all
}

// askPlace asks one server for its place.
func askPlace(ctx context.Context, to *pgconn.Config) (s seen) {
	ctx, cancel := context.WithTimeout(ctx, surveyFor)
	defer cancel()
	c, err := pgconn.ConnectConfig(ctx, to)
	if err != nil {
		return s
	}
	defer func() { _ = c.Close(ctx) }()
	got := c.ExecParams(ctx, `SELECT current_setting('transaction_read_only'), `+placeSQL, nil, nil, nil, nil).Read()
	if got.Err != nil || len(got.Rows) != 1 || string(got.Rows[0][0]) == "on" {
		return s
	}
	return seen{c.Conn().RemoteAddr().String(), readPlace(got.Rows[0][1], got.Rows[0][2])}
}
