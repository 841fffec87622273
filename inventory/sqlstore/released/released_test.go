// Package released keeps a database of each released version as test data, and proves that this version reads it whole.
//
//	go test ./inventory/sqlstore/released -dump     writes the dump of the next release, with all that the schema holds now
//	go test ./inventory/sqlstore/released -update   writes what is read of all dumps; look at the diff
//
// A dump of a version that was released is never written again.
package released

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

// next is the version that -dump writes; RELEASING.md says when it changes.
const next = "0.1.0"

var (
	dump   = flag.Bool("dump", false, "write the dump of the next release")
	update = flag.Bool("update", false, "write what is read of the dumps")
)

// TestDatabasesOfAllReleasesAreRead restores each dump, migrates it to the schema of today, and reads every noun back.
func TestDatabasesOfAllReleasesAreRead(t *testing.T) {
	if *dump {
		writeDump(t, "testdata/"+next+".sql")
	}
	dumps, err := filepath.Glob("testdata/*.sql")
	if err != nil || len(dumps) == 0 {
		t.Fatalf("no dumps: %v", err)
	}
	for _, file := range dumps {
		t.Run(filepath.Base(file), func(t *testing.T) {
			path := restore(t, file)
			got := readAll(t, path)
			golden := strings.TrimSuffix(file, ".sql") + ".json"
			if *update || *dump && strings.Contains(file, next) {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("a database of %s is read differently (-want +got):\n%s", file, d)
			}
		})
	}
}

// TestADumpHasARowInEveryTable keeps fill complete: a migration that makes a table has its row there.
func TestADumpHasARowInEveryTable(t *testing.T) {
	path := filled(t)
	db := open(t, path)
	for _, table := range tables(t, db) {
		if n := count(t, db, table); n == 0 {
			t.Errorf("fill stores nothing in %s", table)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	readAll(t, path)
}

// filled makes a database of today's schema and stores one of everything in it.
func filled(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "slipway.db")
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), fill); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// open opens a database file without the store, as sqlite3 would.
func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// column returns the first column of a query.
func column(t *testing.T, db *sql.DB, query string, args ...any) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%v: %s", err, query)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// tables are ours: neither SQLite's nor those of the migrations.
func tables(t *testing.T, db *sql.DB) []string {
	t.Helper()
	return column(t, db, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'goose_%' ORDER BY rowid`)
}

func count(t *testing.T, db *sql.DB, table string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// writeDump writes a filled database as SQL text: tables, rows, then indexes and triggers.
func writeDump(t *testing.T, file string) {
	t.Helper()
	db := open(t, filled(t))
	var b bytes.Buffer
	fmt.Fprintf(&b, "-- A database of Slipway %s. Written by: go test ./inventory/sqlstore/released -dump\nPRAGMA foreign_keys = OFF;\nBEGIN;\n", next)
	const ours = ` FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' AND type `
	for _, s := range column(t, db, `SELECT sql`+ours+`= 'table' ORDER BY rowid`) {
		b.WriteString(s + ";\n")
	}
	for _, table := range column(t, db, `SELECT name`+ours+`= 'table' ORDER BY rowid`) {
		for _, row := range rows(t, db, table) {
			fmt.Fprintf(&b, "INSERT INTO %s VALUES (%s);\n", table, row)
		}
	}
	for _, s := range column(t, db, `SELECT sql`+ours+`<> 'table' ORDER BY rowid`) {
		b.WriteString(s + ";\n")
	}
	b.WriteString("COMMIT;\n")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// rows returns the rows of a table as SQL writes values. When a migration ran is left out: it differs from run to run.
func rows(t *testing.T, db *sql.DB, table string) []string {
	t.Helper()
	names := column(t, db, `SELECT name FROM pragma_table_info(?)`, table)
	for i, name := range names {
		names[i] = "quote(" + name + ")"
		if name == "tstamp" {
			names[i] = "'''2026-11-18 11:06:40'''"
		}
	}
	return column(t, db, `SELECT `+strings.Join(names, ` || ', ' || `)+` FROM `+table)
}

// restore makes a database of a dump, and checks that it is whole: no reference leads nowhere, no table is empty.
func restore(t *testing.T, file string) (path string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "slipway.db")
	db := open(t, path)
	if _, err := db.ExecContext(t.Context(), string(text)); err != nil {
		t.Fatalf("restore %s: %v", file, err)
	}
	if bad := column(t, db, `SELECT "table" FROM pragma_foreign_key_check`); len(bad) > 0 {
		t.Errorf("rows of %q refer to nothing", bad)
	}
	for _, table := range tables(t, db) {
		if n := count(t, db, table); n == 0 {
			t.Errorf("%s has no row in %s", table, file)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// readAll opens a database as the server does, which migrates it, and returns every noun in it. A table without rows is left
// out: a dump has nothing in the tables of later versions. A migration that empties a table shows in the golden file.
func readAll(t *testing.T, path string) []byte {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db := open(t, path)
	all := map[string]any{}
	err = s.Read(t.Context(), func(tx inventory.Tx) error {
		known := reads(tx)
		knowsAll(t, path, known)
		for table, read := range known {
			if read == nil || count(t, db, table) == 0 {
				continue
			}
			v, err := read()
			if err != nil {
				return fmt.Errorf("%s: %w", table, err)
			}
			if all[table] = plain(reflect.ValueOf(v)); reflect.ValueOf(v).IsZero() || fmt.Sprint(all[table]) == "[]" {
				return fmt.Errorf("nothing of %s is read back", table)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// knowsAll expects reads to know every table of today's schema.
func knowsAll(t *testing.T, path string, known map[string]func() (any, error)) {
	t.Helper()
	for _, table := range tables(t, open(t, path)) {
		if _, ok := known[table]; !ok {
			t.Errorf("reads does not know how %s is read", table)
		}
	}
}
