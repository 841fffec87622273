package sqlite

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/copying"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// Side is a database file during a copy. It implements copying.Side.
type Side struct {
	*conn
	db *DB // for errors
}

// OpenSource begins to read a file, in one snapshot. Its schema stays as it is. A server may use the file.
func OpenSource(path string) (*Side, error) {
	// SQLite would make a file that is not there.
	if _, err := os.Stat(path); err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "there is no database in %s", path).
			WithHint("name the file, or the data directory that has it")
	}
	return openSide(path, beginRead, "_query_only", "1")
}

// OpenTarget begins the transaction of a copy into a file, which has its tables already and is of no use to anybody before Commit. A crash
// may leave anything in it: the caller gives it its name after MoveIntoPlace has made it durable.
func OpenTarget(path string) (*Side, error) {
	return openSide(path, beginWrite, "_journal_mode", "DELETE", "_synchronous", "OFF")
}

func openSide(path, begin string, settings ...string) (*Side, error) {
	s := &Side{db: &DB{cfg: Config{Path: path}, dir: filepath.Dir(path)}}
	c, err := dial(dsn(path, settings...), nil)
	if err != nil {
		return nil, s.db.fault(err, "open the database "+path)
	}
	s.conn = c
	if _, err := c.run(begin); err != nil {
		_ = c.close()
		return nil, s.db.fault(err, "read the database "+path)
	}
	return s, nil
}

// catalogueSQL has a row for each column. Keys are numbered from 1, and other columns have 0.
const catalogueSQL = `SELECT t.name, c.name, c.type, c.pk FROM sqlite_schema t, pragma_table_info(t.name) c
WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND t.name <> 'goose_db_version' ORDER BY t.name, c.name`

const referencesSQL = `SELECT '', t.name, k."table" FROM sqlite_schema t, pragma_foreign_key_list(t.name) k WHERE t.type = 'table'`

// errEnough ends a query whose caller wants no more rows.
var errEnough = errors.New("no more rows are wanted")

var kinds = map[string]copying.Kind{"INTEGER": copying.Number, "TEXT": copying.Text, "BLOB": copying.Bytes}

// Tables implements copying.Side.
func (s *Side) Tables(ctx context.Context) ([]copying.Table, error) {
	return copying.Catalogue(s.Rows(ctx, catalogueSQL), s.Rows(ctx, referencesSQL), kinds)
}

// Rows implements copying.Side.
func (s *Side) Rows(ctx context.Context, query string) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		var row, dest []any
		isEnough := false
		stmt, err := s.prepare(query)
		if err != nil {
			yield(nil, s.said(ctx, err))
			return
		}
		err = database.Each(s, func(scan database.Scan) error {
			for len(row) < len(stmt.found.columns) { // known from the first row on
				row = append(row, nil)
			}
			if dest == nil {
				for i := range row {
					dest = append(dest, &row[i])
				}
			}
			if err := errors.Join(ctx.Err(), scan(dest...)); err != nil {
				return err
			}
			if isEnough = !yield(row, nil); isEnough {
				return errEnough
			}
			return nil
		}, query, nil)
		if err != nil && !isEnough {
			yield(nil, s.said(ctx, err))
		}
	}
}

// Insert implements copying.Side.
func (s *Side) Insert(ctx context.Context, t copying.Table, rows iter.Seq2[[]any, error]) error {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = `"` + c.Name + `"`
	}
	query := `INSERT INTO "` + t.Name + `" (` + strings.Join(names, ", ") + `) VALUES (?` + strings.Repeat(", ?", len(names)-1) + `)`
	for row, err := range rows {
		if err != nil {
			return err
		}
		if _, err := s.Exec(query, row); err != nil {
			return s.said(ctx, err)
		}
	}
	return nil
}

// Clear implements copying.Side. A copy is made into a new file.
func (s *Side) Clear(context.Context, []copying.Table) error {
	return inventory.Errorf(inventory.Internal, "a copy never replaces the rows of a database file")
}

// Defer implements copying.Side. SQLite can do it for all references of a transaction, until it ends.
func (s *Side) Defer(ctx context.Context, _ []copying.Reference) error {
	_, err := s.Exec(`PRAGMA defer_foreign_keys = ON`, nil)
	return s.said(ctx, err)
}

// Settle implements copying.Side.
func (s *Side) Settle(ctx context.Context, _ []copying.Reference) error {
	isBroken := false
	err := database.Each(s, func(database.Scan) error {
		isBroken = true
		return nil
	}, `SELECT "table" FROM pragma_foreign_key_check LIMIT 1`, nil)
	if err != nil {
		return s.said(ctx, err)
	}
	if isBroken {
		return inventory.Errorf(inventory.Conflict, "rows of the source refer to rows that do not exist").
			WithHint("restore a backup; nothing was changed")
	}
	return nil
}

// Keeps implements copying.Side. SQLite keeps any text.
func (s *Side) Keeps(text string) string { return text }

// Commit ends the transaction of a copy.
func (s *Side) Commit(ctx context.Context) error {
	_, err := s.run(commit)
	return s.said(ctx, err)
}

// Close ends the connection, and undoes what was not committed.
func (s *Side) Close() error {
	_, _ = s.run(rollback) // there may be no transaction any more
	return s.close()
}

// said is an error for people.
func (s *Side) said(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if said, ok := errors.AsType[*inventory.Error](err); ok {
		return said
	}
	if ctx.Err() != nil {
		return copying.Interrupted(err)
	}
	return s.db.fault(err, "copy the database")
}

// Version returns the version of the schema, 0 for a file without one.
func (s *Side) Version(ctx context.Context) (int64, error) {
	return copying.Version(ctx, s, `SELECT 1 FROM sqlite_schema WHERE name = 'goose_db_version'`)
}
