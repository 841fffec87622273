package postgres

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
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

// placed has the place of a connection in its custom data.
const placed = "placed"
