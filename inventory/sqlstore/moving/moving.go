// Package moving moves an inventory from one database into another: from a file of SQLite to PostgreSQL, back, and into a backup. It
// opens both databases, refuses what must not be copied, and commits. Package copying copies the rows.
//
// Start reading at Copy.
package moving

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/copying"
	"slipway.dev/slipway/inventory/sqlstore/postgres"
	"slipway.dev/slipway/inventory/sqlstore/sqlite"
	"slipway.dev/slipway/migrations"
)

// Database says which database it is: a file of SQLite, or a database on a PostgreSQL server.
type Database struct {
	Path string
	// URL and Password are those of postgres.Config.
	URL, Password string
}

// Options say how a database is copied.
type Options struct {
	IsDryRun    bool // everything is read and checked, and nothing is written
	IsReplacing bool // the rows of a PostgreSQL database are replaced; a file is never
}

// Copied says what came of a copy.
type Copied struct {
	Tables []copying.Result `json:"tables"`
	// Risks are settings of the target's server with which it may lose what it has acknowledged, such as fsync=off.
	Risks []string `json:"risks,omitempty"`
}

// RowN returns how many rows were copied, or would be, and how many of them with changed texts.
func (c Copied) RowN() (all, changed int64) {
	for _, t := range c.Tables {
		all, changed = all+t.RowN, changed+t.ChangedN
	}
	return all, changed
}

// side is a database during a copy, as packages sqlite and postgres have it.
type side interface {
	copying.Side
	Commit(ctx context.Context) error
	Close() error
}

// Copy copies all rows of one database into another, with the bytes that they have, and compares both. No server may use them. The source
// must have the schema of this version. The target is a file that does not exist, or a PostgreSQL database without rows. After an error
// the target has what it had before: all rows come in one transaction.
//
// The error is Conflict for a database that is in use, not empty, or of another version. It is Unavailable when a server or a disk fails.
func Copy(ctx context.Context, from, to Database, o Options) (Copied, error) {
	source, size, err := openSource(ctx, from, true)
	if err != nil {
		return Copied{}, err
	}
	defer source.Close()
	if to.URL != "" {
		return copyToServer(ctx, source, to, o)
	}
	return copyToFile(ctx, source, size, to.Path, o.IsDryRun)
}

// Backup copies a PostgreSQL database to a new SQLite file, so that backups have one form. Instances may use it meanwhile.
func Backup(ctx context.Context, from Database, path string) error {
	source, size, err := openSource(ctx, from, false)
	if err != nil {
		return err
	}
	defer source.Close()
	_, err = copyToFile(ctx, source, size, path, false)
	return err
}

// openSource opens a database for reading, and refuses one whose rows this program does not know all.
func openSource(ctx context.Context, db Database, isAlone bool) (s side, size int64, err error) {
	var has int64
	newest, name := newestOf(migrations.SQLite, "sqlite"), db.Path
	if db.URL == "" {
		file, err := sqlite.OpenSource(db.Path)
		if err != nil {
			return nil, 0, err
		}
		s = file
		size = sizeOf(db.Path) + sizeOf(db.Path+"-wal")
		has, err = file.Version(ctx)
		if err != nil {
			_ = s.Close()
			return nil, 0, err
		}
	} else {
		newest, name = newestOf(migrations.Postgres, "postgres"), "the source"
		server, err := postgres.OpenSource(ctx, postgresConfig(db))
		if err != nil {
			return nil, 0, err
		}
		s = server
		facts, err := server.Facts(ctx)
		if err == nil && isAlone {
			err = alone(facts)
		}
		if err != nil {
			_ = s.Close()
			return nil, 0, err
		}
		has, size = facts.Version, facts.Bytes
	}
	if err := fits(name, has, newest); err != nil {
		_ = s.Close()
		return nil, 0, err
	}
	return s, size, nil
}

// fits refuses a schema that this program would not copy whole.
func fits(name string, has, newest int64) error {
	switch {
	case has == 0:
		return inventory.Errorf(inventory.Invalid, "%s is no database of Slipway", name).WithHint("name the one that has the inventory")
	case has > newest:
		return newer(name, has, newest)
	case has < newest:
		return inventory.Errorf(inventory.Conflict, "%s has the schema of an older Slipway (%d; this one has %d)", name, has, newest).
			WithHint("start the server of this version on it once, stop it, and try again")
	}
	return nil
}

func newer(name string, has, newest int64) error {
	return inventory.Errorf(inventory.Conflict, "%s was written by a newer Slipway (schema %d; this one knows %d)", name, has, newest).
		WithHint("use that version of slipway")
}

// alone refuses a server that instances of Slipway are connected to. One that starts later finds the turn to write taken.
func alone(f postgres.Facts) error {
	if len(f.Users) == 0 {
		return nil
	}
	return inventory.Errorf(inventory.Conflict, "Slipway uses the database, from %s", strings.Join(f.Users, ", ")).
		WithHint("stop all its instances first; nothing was changed")
}

// CheckAlone refuses a PostgreSQL database that instances of Slipway are connected to.
func CheckAlone(ctx context.Context, db Database) error {
	s, _, err := openSource(ctx, db, true)
	if err != nil {
		return err
	}
	return s.Close()
}

// newestOf returns the version of the newest migration.
func newestOf(files fs.FS, folder string) (newest int64) {
	names, _ := fs.Glob(files, folder+"/*.sql")
	for _, name := range names {
		number, _, _ := strings.Cut(filepath.Base(name), "_")
		n, _ := strconv.ParseInt(number, 10, 64)
		newest = max(newest, n)
	}
	return newest
}

func postgresConfig(db Database) postgres.Config {
	return postgres.Config{URL: db.URL, Password: db.Password, ReaderN: 1}
}

// room is what must stay free on a disk.
const room = 64 << 20

// copyToFile copies into a new SQLite file, which gets its name last. A process that dies before leaves a file with the ending .part.
func copyToFile(ctx context.Context, source side, size int64, path string, isDryRun bool) (Copied, error) {
	if _, err := os.Lstat(path); err == nil {
		return Copied{}, inventory.Errorf(inventory.Conflict, "%s exists already", path).
			WithHint("name a new file, or move that one away; nothing was changed")
	}
	if err := hasRoom(filepath.Dir(path), size); err != nil {
		return Copied{}, err
	}
	if isDryRun {
		results, err := copying.Read(ctx, source, func(text string) string { return text })
		return Copied{Tables: results}, err
	}
	part := path + ".part"
	remove := func() {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			_ = os.Remove(part + suffix)
		}
	}
	remove()
	results, err := fillFile(ctx, source, part)
	if err == nil {
		if err = sqlite.MoveIntoPlace(part, path); err != nil {
			err = inventory.Errorf(inventory.Unavailable, "cannot write %s: %v", path, err)
		}
	}
	if err != nil {
		remove()
		return Copied{}, err
	}
	return Copied{Tables: results}, nil
}

func hasRoom(dir string, size int64) error {
	var is syscall.Statfs_t
	if err := syscall.Statfs(dir, &is); err != nil {
		return inventory.Errorf(inventory.Unavailable, "cannot write to %s: %v", dir, err)
	}
	if free := int64(is.Bavail) * is.Bsize; free < size+room {
		return inventory.Errorf(inventory.Unavailable, "the disk has %d MiB free and the copy needs up to %d MiB", free>>20, (size+room)>>20).
			WithHint("free space on the file system of %s; nothing was changed", dir)
	}
	return nil
}

// fillFile makes a file with the schema and all rows.
func fillFile(ctx context.Context, source side, path string) ([]copying.Result, error) {
	files, err := fs.Sub(migrations.SQLite, "sqlite")
	if err != nil {
		return nil, err
	}
	empty, err := sqlite.Open(ctx, sqlite.Config{Path: path, Migrations: files, ReaderN: 1})
	if err != nil {
		return nil, err
	}
	if err := empty.Close(); err != nil {
		return nil, err
	}
	target, err := sqlite.OpenTarget(path)
	if err != nil {
		return nil, err
	}
	results, err := copying.Copy(ctx, source, target, false)
	if err == nil {
		err = target.Commit(ctx)
	}
	if closed := target.Close(); err == nil {
		err = closed
	}
	return results, err
}

// copyToServer copies into a PostgreSQL database, whose schema it brings up to date first.
func copyToServer(ctx context.Context, source side, to Database, o Options) (Copied, error) {
	results, risks, err := look(ctx, source, to, o)
	if err != nil || o.IsDryRun {
		return Copied{Tables: results, Risks: risks}, err
	}
	cfg := postgresConfig(to)
	if cfg.Migrations, err = fs.Sub(migrations.Postgres, "postgres"); err != nil {
		return Copied{}, err
	}
	empty, err := postgres.Open(ctx, cfg)
	if err != nil {
		return Copied{}, err
	}
	if err := empty.Close(); err != nil {
		return Copied{}, err
	}
	target, err := postgres.OpenTarget(ctx, postgresConfig(to))
	if err != nil {
		return Copied{}, err
	}
	defer target.Close()
	if results, err = copying.Copy(ctx, source, target, o.IsReplacing); err != nil {
		return Copied{}, err
	}
	// From here on nobody may interrupt: whoever does would not know whether it was committed.
	ctx = context.WithoutCancel(ctx)
	if err := target.Commit(ctx); err != nil {
		if err = resolve(ctx, to, results, err); err != nil {
			return Copied{}, err
		}
	}
	return Copied{Tables: results, Risks: risks}, nil
}

// look checks a PostgreSQL database before anything is written there. For a dry run it reads the source, too.
func look(ctx context.Context, source side, to Database, o Options) (results []copying.Result, risks []string, err error) {
	target, err := postgres.OpenSource(ctx, postgresConfig(to))
	if err != nil {
		return nil, nil, err
	}
	defer target.Close()
	facts, err := target.Facts(ctx)
	if err != nil {
		return nil, nil, err
	}
	newest := newestOf(migrations.Postgres, "postgres")
	switch {
	case facts.Version > newest:
		return nil, nil, newer("the target", facts.Version, newest)
	case facts.Version == 0 && facts.TableN > 0:
		return nil, nil, inventory.Errorf(inventory.Conflict, "the target has %d tables that are not Slipway's", facts.TableN).
			WithHint("make a database of its own: CREATE DATABASE slipway ENCODING 'UTF8' TEMPLATE template0")
	case facts.ForeignN > 0, facts.Version < newest && !facts.MayMake:
		return nil, nil, inventory.Errorf(inventory.Unavailable,
			"the user of the target may not make tables there, or does not own those that are there").
			WithHint("as an admin of PostgreSQL: ALTER DATABASE slipway OWNER TO the user; nothing was changed")
	}
	if err := alone(facts); err != nil {
		return nil, nil, err
	}
	if facts.Version > 0 && !o.IsReplacing {
		tables, err := target.Tables(ctx)
		if err != nil {
			return nil, nil, err
		}
		if some, err := copying.HasRows(ctx, target, tables); err != nil || len(some) > 0 {
			return nil, nil, cmp.Or(err, copying.NotEmpty(some))
		}
	}
	if o.IsDryRun {
		results, err = copying.Read(ctx, source, target.Keeps)
	}
	return results, facts.Risks, err
}

// resolve finds out whether a copy was committed whose answer was lost.
func resolve(ctx context.Context, to Database, want []copying.Result, cause error) error {
	for until := time.Now().Add(30 * time.Second); ; {
		is, err := isStored(ctx, to, want)
		switch {
		case err == nil && is:
			return nil
		case err == nil:
			return cause
		case time.Now().After(until):
			return &inventory.Error{
				Kind: inventory.Unavailable, Err: errors.Join(cause, err),
				Msg:  "it is not known whether the copy was stored: the database went away during the commit",
				Hint: "run the command again when the database answers: it refuses a target that has the rows",
			}
		}
		time.Sleep(time.Second)
	}
}

// isStored reads the target. Taking the turn waits for the transaction of the copy, if the server still has it.
func isStored(ctx context.Context, to Database, want []copying.Result) (bool, error) {
	target, err := postgres.OpenTarget(ctx, postgresConfig(to))
	if err != nil {
		return false, err
	}
	defer target.Close()
	has, err := copying.Read(ctx, target, target.Keeps)
	if err != nil {
		return false, err
	}
	byName := map[string]string{}
	for _, r := range has {
		byName[r.Table] = r.Digest
	}
	return !slices.ContainsFunc(want, func(r copying.Result) bool { return byName[r.Table] != r.Copy }), nil
}

// HasRows reports whether a PostgreSQL database has an inventory.
func HasRows(ctx context.Context, db Database) (bool, error) {
	s, err := postgres.OpenSource(ctx, postgresConfig(db))
	if err != nil {
		return false, err
	}
	defer s.Close()
	facts, err := s.Facts(ctx)
	if err != nil || facts.Version == 0 {
		return false, err
	}
	tables, err := s.Tables(ctx)
	if err != nil {
		return false, err
	}
	some, err := copying.HasRows(ctx, s, tables)
	return len(some) > 0, err
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
