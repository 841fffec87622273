package postgres

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// goesOn ends the hints of faults that a server outlives.
const goesOn = "; work goes on by itself"

// errReadOnly is a server that takes no writes.
var errReadOnly = errors.New("it is read-only")

// errPartLost is a commit that undid the transaction, because the part of its only caller failed.
var errPartLost = errors.New("its only part is lost")

// partError is the error of a statement of Later whose caller still runs.
type partError struct{ said error }

func (e *partError) Error() string { return e.said.Error() }

// said is the error of a statement, for callers who need not know what was lost.
func (s *server) said(err error) error {
	_, said := s.fault(err, false)
	return said
}

// fault turns an error of the driver into one with a kind and a hint, and says what the transaction has lost with it. It knows the
// error by its SQLSTATE (PostgreSQL's manual, appendix A), never by its text.
//
// An error of the server ends the part of the caller, as PostgreSQL does nothing more until a ROLLBACK TO. The driver ends the connection
// with most of its own errors, and the whole transaction with it. If the connection isOpen still, the error came from what was read.
func (s *server) fault(err error, isOpen bool) (database.Loss, error) {
	if said, ok := errors.AsType[*inventory.Error](err); ok {
		return database.LosesOne, said
	}
	if part, ok := errors.AsType[*partError](err); ok {
		return database.LosesOne, part.said
	}
	if errors.Is(err, errNotCommitted) {
		return database.LosesOne, &inventory.Error{Kind: inventory.Internal, Msg: "cannot use the database", Err: err}
	}
	e := &inventory.Error{
		Kind: inventory.Unavailable, Msg: "the database cannot be reached", Err: err,
		Hint: "check that PostgreSQL runs at " + s.where() + " and that this machine reaches it" + goesOn,
	}
	readOnly := func() (database.Loss, error) {
		e.Msg, e.Err = "the database is read-only", nil
		e.Hint = "is " + s.where() + " a standby? Name the primary, or all servers" + goesOn
		return database.LosesAll, e
	}
	if old, ok := errors.AsType[*placeError](err); ok { // before errReadOnly: of several servers, that one matters more
		e.Msg, e.Err, e.Hint = old.Error(), nil, old.hint()+goesOn
		return database.LosesAll, e
	}
	if errors.Is(err, errReadOnly) {
		return readOnly()
	}
	if errors.Is(err, errInDoubt) {
		e.Msg, e.Hint = "the standby of the database has not confirmed a change", "look at the log of PostgreSQL on "+s.where()
		return database.LosesAll, e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		e.Msg, e.Err = "the database does not answer in time", nil
		return database.LosesAll, e
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok && isOpen {
		return database.LosesStatement, &inventory.Error{Kind: inventory.Internal, Msg: "cannot use the database", Err: err}
	} else if !ok {
		e.Msg += ": " + reason(err)
		e.Err = nil // its text is long, and says the same
		return database.LosesAll, e
	}
	e.Err = pg // without the way to it
	loss := database.LosesOne
	if !isOpen || pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC" { // Severity is in the language of the server
		loss = database.LosesAll
	}
	switch class := pg.Code[:min(2, len(pg.Code))]; {
	// Callers check names before they write, and say who holds one. This is for what they did not check.
	case pg.Code == "23503":
		e.Kind, e.Msg, e.Hint = inventory.Conflict, "it names something that does not exist, or something still uses it", ""
	case class == "23":
		e.Kind, e.Msg, e.Hint = inventory.Conflict, "the name or address is taken", ""
	case class == "40": // deadlock or serialization failure: not us, there is one writer
		e.Msg, e.Hint, loss = "another program writes to the database of Slipway", "let no other program write to "+s.where(), database.LosesAll
	case pg.Code == "25006": // the server has become a standby: the next connection looks for the primary
		return readOnly()
	case pg.Code == "25P03", pg.Code == "25P04": // we were paused in a transaction, or stuck
		e.Msg, e.Hint, loss = "the database has ended a change that took too long", "was this machine paused? Try again", database.LosesAll
	case pg.Code == "55P03":
		e.Msg, e.Hint = "another program holds tables of the database", "stop what is connected to "+s.where()
	case pg.Code == "57014":
		e.Msg, e.Hint = "a statement was cancelled", "who cancels statements on "+s.where()+"? Try again"
	case pg.Code == "0A000": // prepared statements would return columns of other types
		e.Msg, e.Hint = "the tables of the database were changed while they were in use", "try again"
	case pg.Code == "54000" && pg.Routine != "PreCommit_Notify": // an index has values of up to 2,704 bytes
		e.Kind, e.Msg, e.Hint = inventory.Invalid, "a value is too long for the database", "shorten it"
	case pg.Code == "53100":
		e.Msg, e.Hint = "the disk with the database is full", "free space on the server "+s.where()+goesOn
	case pg.Code == "53300":
		e.Msg, e.Hint = "the database has too many connections", "raise max_connections on "+s.where()+", or end what holds them"
	case class == "53":
		e.Msg, e.Hint = "the database lacks memory or another resource", "look at the log of PostgreSQL on "+s.where()
	case class == "57" && pg.Code != "57014": // it stops, it starts, or an admin has ended the connection
		e.Msg, loss = "the database is stopping or starting", database.LosesAll
	case class == "28":
		e.Msg, e.Err = "the database refuses the user or the password: "+inventory.Clean(pg.Message, 200), nil
		e.Hint = "check user, password and pg_hba.conf of " + s.where()
	case pg.Code == "42704" && pg.SeverityUnlocalized == "FATAL": // of a connection that begins
		e.Kind, e.Err, e.Hint = inventory.Invalid, nil, "take it out of the address"
		e.Msg = "the database does not know an option of its address: " + inventory.Clean(pg.Message, 200)
	case pg.Code == "3D000":
		e.Msg, e.Hint = "the database does not exist", "make it with: CREATE DATABASE "+s.to.Database+" ENCODING 'UTF8' TEMPLATE template0"
	case pg.Code == "08P01" && strings.Contains(pg.Message, "startup parameter"): // of pgbouncer, which has no other code for it
		e.Kind, e.Msg = inventory.Conflict, "a connection pooler stands before the database"
		e.Hint = "it refuses an option of the address: take that out, or name PostgreSQL itself"
	case pg.Code == "42501":
		e.Msg, e.Hint = "the user of the database may not do that", "let "+s.to.User+" own the database and its tables"
	case class == "42": // a table or column is missing
		e.Kind, e.Msg = inventory.Internal, "the tables of the database are not those of this version"
		e.Hint = "were they changed by hand? Restore a backup, or look at the log"
	case class == "58", class == "XX":
		e.Msg, e.Hint = "the server of the database fails", "look at the log of PostgreSQL on "+s.where()
	default:
		e.Kind, e.Msg, e.Hint = inventory.Internal, "cannot use the database", ""
	}
	return loss, e
}

// where is the server, or the servers, as an admin names them.
func (s *server) where() string {
	all := []string{net.JoinHostPort(s.to.Host, strconv.Itoa(int(s.to.Port)))}
	for _, f := range s.to.Fallbacks {
		if at := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))); !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return strings.Join(all, ", ")
}
