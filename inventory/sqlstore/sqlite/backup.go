package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"slipway.dev/slipway/inventory"
)

// Backup writes a copy of the database, as it is at this moment, to a new file at path. Reads and writes go on
// meanwhile: VACUUM INTO reads one snapshot. The error is Conflict when the file exists, and Unavailable when it
// cannot be written.
//
// The copy gets its name last. If the process dies before, a file with the ending .part remains, which the next
// Backup to the same path removes.
func (d *DB) Backup(ctx context.Context, path string) error {
	if _, err := os.Lstat(path); err == nil {
		return inventory.Errorf(inventory.Conflict, "%s exists already", path).WithHint("name a new file")
	}
	// A connection of its own: a long copy takes no reader away from the machines. Its snapshot keeps the write-ahead log from being begun
	// again, so that the log grows for as long as the copy takes.
	db, err := sql.Open("sqlite3", dsn(d.cfg.Path))
	if err != nil {
		return d.fault(err, "open the database for a backup")
	}
	defer db.Close()
	part := path + ".part"
	_ = os.Remove(part) // of a backup that was cut short
	// SQLite would create the file with the umask, readable by others, and it holds password hashes and encrypted
	// secrets. VACUUM INTO accepts an existing file that is empty.
	if f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return inventory.Errorf(inventory.Unavailable, "cannot write the backup: %v", err)
	} else if err := f.Close(); err != nil {
		return inventory.Errorf(inventory.Unavailable, "cannot write the backup: %v", err)
	}
	if _, err := db.ExecContext(ctx, backupSQL, part); err != nil {
		_ = os.Remove(part)
		return d.fault(err, "write the backup "+path)
	}
	if err := MoveIntoPlace(part, path); err != nil {
		_ = os.Remove(part)
		return inventory.Errorf(inventory.Unavailable, "cannot write the backup: %v", err)
	}
	return nil
}

// Size returns how many bytes the database has on the disk, with those of its log.
func (d *DB) Size(context.Context) (n int64, err error) {
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(d.cfg.Path + suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, d.fault(err, "look at the database")
		}
		if err == nil {
			n += info.Size()
		}
	}
	return n, nil
}

// MoveIntoPlace makes the bytes of the file durable, and then its name. After a power failure path leads to a whole
// copy or does not exist.
func MoveIntoPlace(part, path string) error {
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	// The new name is durable only when the folder is synced as well, see fsync(2).
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Check reads a database file from end to end and reports damage, and a database that has no such table. It changes nothing, and the file
// must not be in use.
func Check(ctx context.Context, path, table string) error {
	damaged := func(why string) error {
		return inventory.Errorf(inventory.Invalid, "the database in it is damaged: %s", inventory.Clean(why, 200)).
			WithHint("take another backup")
	}
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&immutable=1")
	if err != nil {
		return damaged(err.Error())
	}
	defer db.Close()
	var said string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&said); err != nil {
		return damaged(err.Error())
	}
	if said != "ok" {
		return damaged(said)
	}
	var n int
	err = db.QueryRowContext(ctx, `SELECT COUNT(*) FROM sqlite_schema WHERE name IN ('goose_db_version', $1)`, table).Scan(&n)
	if err != nil || n != 2 {
		return inventory.Errorf(inventory.Invalid, "the database in it is not Slipway's").WithHint("take another backup")
	}
	return nil
}
