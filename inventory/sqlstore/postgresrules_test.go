package sqlstore

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
)

const addPostgresAuditSQL = `INSERT INTO audit (id, at, actor, role, via, source, request_id, operation, noun, name, host_id, change, status, detail,
version, undo_of, fixed, before, after) VALUES ($1, 0, '', '', '', '', '', '', '', '', '', '', 200, '', 0, 0, '', '', '')`

// TestPostgreSQLOnlyAddsToTheAudit tries each statement that could change or drop an entry.
func TestPostgreSQLOnlyAddsToTheAudit(t *testing.T) {
	db := openPostgres(t)
	for range 2 {
		if _, err := db.ExecContext(t.Context(), addPostgresAuditSQL, nil); err != nil {
			t.Fatal(err)
		}
	}
	again := strings.Replace(addPostgresAuditSQL, "$1", "1", 1)
	for _, query := range []string{
		`UPDATE audit SET actor = 'x' WHERE id = 1`, `DELETE FROM audit WHERE id = 2`, `TRUNCATE audit`, again,
		again + ` ON CONFLICT (id) DO UPDATE SET actor = 'x'`, again + ` ON CONFLICT DO NOTHING`,
	} {
		_, err := db.ExecContext(t.Context(), query)
		var said *pgconn.PgError
		if !errors.As(err, &said) || said.Code != "23000" || said.Message != "the audit is append-only" {
			t.Errorf("%v\n%s", err, query)
		}
	}
	if got := lines(t, db, `SELECT id || actor FROM audit ORDER BY id`); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("the audit has %q", got)
	}
}

// TestPostgreSQLCountsEventsWithoutGaps adds events as the store does, without an id.
func TestPostgreSQLCountsEventsWithoutGaps(t *testing.T) {
	db := openPostgres(t)
	const values = `(0, 'test', '', '', '', '', '', '')`
	const add = `INSERT INTO events (at, kind, host_id, session_id, mac, subject, detail, data) VALUES ` + values
	undone, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := undone.ExecContext(t.Context(), add); err != nil {
		t.Fatal(err)
	}
	if err := undone.Rollback(); err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, query := range []string{add, add + ", " + values} {
		got = append(got, lines(t, db, query+` RETURNING id::text`))
	}
	if _, err := db.ExecContext(t.Context(), `DELETE FROM events WHERE id > 1`); err != nil {
		t.Fatal(err)
	}
	got = append(got, lines(t, db, add+` RETURNING id::text`))
	if d := cmp.Diff([][]string{{"1"}, {"2", "3"}, {"2"}}, got); d != "" {
		t.Errorf("ids (-want +got):\n%s", d)
	}
}

// TestPostgreSQLSortsByBytes uses a database whose locale sorts as people do.
func TestPostgreSQLSortsByBytes(t *testing.T) {
	db := openPostgres(t)
	for _, name := range []string{"b", "A", "a", "B", "a-1", "a1", "é"} {
		if _, err := db.ExecContext(t.Context(), `INSERT INTO accept_rules VALUES ($1, '', 0, 0, 1)`, name); err != nil {
			t.Fatal(err)
		}
	}
	if got := lines(t, db, `SELECT name FROM accept_rules ORDER BY name`); !slices.Equal(got, []string{"A", "B", "a", "a-1", "a1", "b", "é"}) {
		t.Errorf("the list is %q", got)
	}
}

// TestEveryStatementFitsPostgreSQL lets the server parse each statement, and say of which types its parameters and results are. The store
// gives text, 64-bit numbers and bytes. In results it also takes what package postgres turns into those.
func TestEveryStatementFitsPostgreSQL(t *testing.T) {
	c, err := openPostgres(t).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	given := []uint32{pgtype.TextOID, pgtype.Int8OID, pgtype.ByteaOID}
	taken := append(given, pgtype.BoolOID, pgtype.Int4OID, pgtype.NumericOID)
	all := statements(t)
	err = c.Raw(func(driver any) error {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			d, err := driver.(*stdlib.Conn).Conn().Prepare(t.Context(), "", all[name])
			if err != nil {
				t.Errorf("%s does not fit: %v\n%s", name, err, all[name])
				continue
			}
			for i, of := range d.ParamOIDs {
				if !slices.Contains(given, of) {
					t.Errorf("%s: parameter $%d has the type %d\n%s", name, i+1, of, all[name])
				}
			}
			for _, f := range d.Fields {
				if !slices.Contains(taken, f.DataTypeOID) {
					t.Errorf("%s: column %s has the type %d\n%s", name, f.Name, f.DataTypeOID, all[name])
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPostgreSQLCountsChangesInOneRow(t *testing.T) {
	db := openPostgres(t)
	if got := lines(t, db, `SELECT id || ' ' || n FROM changes`); !slices.Equal(got, []string{"1 0"}) {
		t.Errorf("a new database has %q", got)
	}
	for _, query := range []string{`INSERT INTO changes VALUES (2, 0)`, `INSERT INTO changes VALUES (1, 0)`, `UPDATE changes SET id = 2`} {
		if _, err := db.ExecContext(t.Context(), query); err == nil {
			t.Errorf("%s was done", query)
		}
	}
}
