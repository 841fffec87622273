package sqlite

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/mattn/go-sqlite3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// fault turns an error of the driver into one with a kind and a hint. It knows the error by its code, never by its
// text. doing says what failed, as in "cannot open the database".
func (d *DB) fault(err error, doing string) error {
	e := &inventory.Error{Kind: inventory.Internal, Msg: "cannot " + doing, Err: err}
	var code sqlite3.Error
	if !errors.As(err, &code) {
		return e
	}
	switch code.Code {
	// Callers check names before they write, and say who holds one. This is for what they did not check.
	case sqlite3.ErrConstraint:
		e.Kind = inventory.Conflict
		e.Msg = "the name or address is taken"
		if code.ExtendedCode == sqlite3.ErrConstraintForeignKey {
			e.Msg = "it names something that does not exist, or something still uses it"
		}
		return e
	case sqlite3.ErrFull:
		return d.isFull(e)
	// A full disk shows as FULL from SQLite's own writes, and as IOERR with the system's reason from sync and mmap.
	case sqlite3.ErrIoErr:
		if code.SystemErrno == syscall.ENOSPC || code.SystemErrno == syscall.EDQUOT {
			return d.isFull(e)
		}
		e.Kind = inventory.Unavailable
		e.Msg = "the disk with the database fails"
		e.Hint = fmt.Sprintf("look at the kernel log, and check the file system of %s", d.dir)
	case sqlite3.ErrBusy, sqlite3.ErrLocked: // not us: there is one writer, and WAL lets readers read
		e.Kind = inventory.Unavailable
		e.Msg = "another program holds the database"
		e.Hint = fmt.Sprintf("end programs other than slipway that have %s open; fuser lists them", d.cfg.Path)
	// A file system that had an error is often mounted again as read-only: no lease can be promised then.
	case sqlite3.ErrReadonly, sqlite3.ErrPerm, sqlite3.ErrCantOpen, sqlite3.ErrAuth:
		e.Kind = inventory.Unavailable
		e.Msg = "the database cannot be written"
		e.Hint = fmt.Sprintf("check the owner and mode of %s and its files, and that its file system is not read-only", d.dir)
	// Nothing is repaired here: a copy of the damaged file may hold what the last backup lacks.
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB:
		e.Msg = d.cfg.Path + " is damaged, or not a database of ours"
		e.Hint = "keep a copy of it and restore the latest backup"
	}
	return e
}

// isFull makes an error of a full disk. The transaction was undone, so that the database is whole, and the next write may succeed.
func (d *DB) isFull(e *inventory.Error) error {
	e.Kind = inventory.Unavailable
	e.Msg = "the disk with the database is full"
	e.Hint = fmt.Sprintf("free space on the file system of %s; work goes on by itself", d.dir)
	return e
}

// losesTransaction reports whether SQLite may have rolled back the whole transaction with this error. The others undo
// a single statement. See "Response To Errors Within A Transaction" in SQLite's manual. Every code that is not
// certainly harmless counts as lost: committing a half transaction is worse than repeating a whole one.
func losesTransaction(err error) bool {
	var code sqlite3.Error
	if !errors.As(err, &code) {
		return false
	}
	switch code.Code {
	case sqlite3.ErrConstraint, sqlite3.ErrError, sqlite3.ErrMismatch, sqlite3.ErrRange, sqlite3.ErrTooBig:
		return false
	}
	return true
}

// used is the error of a caller's statement, and what its transaction has lost with it.
func (d *DB) used(err error) (database.Loss, error) {
	loss := database.LosesStatement
	if losesTransaction(err) {
		loss = database.LosesAll
	}
	return loss, d.fault(err, "use the database")
}
