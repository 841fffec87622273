package postgres

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// The schema is compared by the names of what it has. Each version of PostgreSQL says definitions in other words, and an admin may add
// indexes and tables.

const (
	isMadeSQL = `SELECT to_regclass('goose_db_version') IS NOT NULL`
	// schemaSQL is the number of the newest migration that the database has.
	schemaSQL = `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied`
)

// missingSQL returns those lines of its argument that the catalogue does not have. An index that could not be made to its end is not there.
const missingSQL = `WITH class AS (
  SELECT c.* FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema())
SELECT line FROM unnest(string_to_array($1, chr(10))) WITH ORDINALITY AS wanted (line, n) WHERE line NOT IN (
  SELECT 'table ' || relname FROM class WHERE relkind IN ('r', 'p')
  UNION ALL SELECT 'column ' || attname || ' of table ' || relname FROM pg_attribute JOIN class ON class.oid = attrelid
    WHERE attnum > 0 AND NOT attisdropped
  UNION ALL SELECT 'constraint ' || conname || ' of table ' || relname FROM pg_constraint JOIN class ON class.oid = conrelid
  UNION ALL SELECT CASE WHEN indisunique THEN 'unique ' ELSE '' END || 'index ' || relname
    FROM pg_index JOIN class ON class.oid = indexrelid WHERE indisvalid
  UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger JOIN class ON class.oid = tgrelid WHERE tgenabled <> 'D'
) ORDER BY n`

// wanted reads the names out of the text of a schema, as migrations/postgres/schema.sql has it.
func wanted(schema string) (all []string) {
	table := ""
	for line := range strings.Lines(schema) {
		w := strings.Fields(line)
		switch {
		case len(w) < 2:
		case w[0] == "CREATE" && w[1] == "TABLE":
			table = w[2]
			all = append(all, "table "+table)
		case w[0] == "CREATE" && w[1] == "UNIQUE":
			all = append(all, "unique index "+w[3])
		case w[0] == "CREATE" && w[1] == "INDEX":
			all = append(all, "index "+w[2])
		case w[0] == "CREATE" && w[1] == "TRIGGER":
			all = append(all, "trigger "+w[2])
		case strings.HasPrefix(line, ");"), strings.HasPrefix(line, "CREATE"):
			table = ""
		case table != "" && w[0] == "CONSTRAINT":
			all = append(all, "constraint "+w[1]+" of table "+table)
		case table != "" && strings.HasPrefix(line, "  "):
			all = append(all, "column "+w[0]+" of table "+table)
		}
	}
	return all
}

// MissingHint is what to do about an index.
const MissingHint = "make it again with the statement in migrations/postgres/schema.sql of this version"

// compare looks for what the database lacks of the schema. Without a table, a column, a constraint or a trigger, answers would be wrong:
// that is a Conflict. Without an index they are only slow: slow names these. It compares nothing while the database has another version.
func (s *server) compare(c *conn) (slow []string, err error) {
	newest, err := newestOf(s.cfg.Migrations)
	if err != nil || newest == 0 || s.cfg.Schema == "" {
		return nil, err
	}
	if has, err := versionOf(c); err != nil || has != newest {
		return nil, err
	}
	var wrong []string
	err = database.Each(c, func(scan database.Scan) error {
		var line string
		if err := scan(&line); err != nil {
			return err
		}
		if strings.HasPrefix(line, "index ") {
			slow = append(slow, line)
		} else {
			wrong = append(wrong, line)
		}
		return nil
	}, missingSQL, []any{strings.Join(wanted(s.cfg.Schema), "\n")})
	if err != nil || len(wrong) == 0 {
		return slow, err
	}
	more := ""
	if n := len(wrong) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return slow, inventory.Errorf(inventory.Conflict,
		"the tables of the database are not those of this version: %s is missing%s", wrong[0], more).
		WithHint("somebody has changed them by hand: put it back, or restore a backup")
}

// versionOf returns the number of the newest migration that the database has, 0 if Slipway has made nothing in it.
func versionOf(c *conn) (has int64, err error) {
	var isMade bool
	if err := database.Each(c, func(scan database.Scan) error { return scan(&isMade) }, isMadeSQL, nil); err != nil || !isMade {
		return 0, err
	}
	err = database.Each(c, func(scan database.Scan) error { return scan(&has) }, schemaSQL, nil)
	return has, err
}

// isOurs refuses a database that has another schema than this version.
func (s *server) isOurs(c *conn) error {
	newest, err := newestOf(s.cfg.Migrations)
	if err != nil {
		return err
	}
	has, err := versionOf(c)
	switch {
	case err != nil || has == newest:
		return err
	case has == 0:
		return inventory.Errorf(inventory.Conflict, "the database has no tables of Slipway").WithHint("is this the right database?")
	case has > newest:
		return inventory.Errorf(inventory.Conflict,
			"the database was written by a newer Slipway (schema %d; this one knows %d)", has, newest).
			WithHint("install the version of the running instances here")
	}
	return inventory.Errorf(inventory.Conflict,
		"the database has the schema of an older Slipway (schema %d; this one has %d)", has, newest).
		WithHint("install the version of the running instances here, or update them first")
}

// newestOf is the number of the newest migration.
func newestOf(files fs.FS) (newest int64, err error) {
	if files == nil {
		return 0, nil
	}
	names, err := fs.Glob(files, "*.sql")
	for _, name := range names {
		number, _, _ := strings.Cut(name, "_")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			newest = max(newest, n)
		}
	}
	return newest, err
}
