package released

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory/sqlstore/moving"
	"slipway.dev/slipway/test/postgres"
)

func TestEveryRowMovesToPostgreSQLAndBack(t *testing.T) {
	moveThereAndBack(t, func(t *testing.T) moving.Database { return moving.Database{URL: postgres.Shared(t).Database(t)} })
}

func TestEveryRowMovesToAnotherFileAndBack(t *testing.T) {
	moveThereAndBack(t, func(t *testing.T) moving.Database {
		return moving.Database{Path: filepath.Join(t.TempDir(), "there.db")}
	})
}

// moveThereAndBack copies a database with rows in every table to another one and back, and expects the same bytes.
func moveThereAndBack(t *testing.T, through func(*testing.T) moving.Database) {
	from := filled(t)
	db := open(t, from)
	// Two profiles refer forward and back in the order of their names, and a third to itself.
	for _, q := range []string{
		`UPDATE profiles SET extends = 'web' WHERE name = 'base'`,
		`UPDATE profiles SET extends = NULL WHERE name = 'web'`,
		`INSERT INTO profiles SELECT 'zz', image, selector, priority, kernel_args, parameters, created_at, updated_at, version, 'zz', config, document, format,
accepts, isolated, revision, saved_by, saved_by_admin FROM profiles WHERE name = 'web'`,
		`UPDATE events SET id = 9007199254740993`,
	} {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%v: %s", err, q)
		}
	}
	want := dumped(t, db)
	names := tables(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	by := through(t)
	there, err := moving.Copy(t.Context(), moving.Database{Path: from}, by, moving.Options{})
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "back.db")
	back, err := moving.Copy(t.Context(), by, moving.Database{Path: to}, moving.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, dumped(t, open(t, to))); d != "" {
		t.Errorf("rows are other ones after there and back (-want +got):\n%s", d)
	}
	if d := cmp.Diff(digests(there), digests(back)); d != "" {
		t.Errorf("digests there and back (-there +back):\n%s", d)
	}
	var copied []string
	for _, r := range there.Tables {
		copied = append(copied, r.Table)
		if r.RowN == 0 || r.Digest != r.Copy || r.ChangedN != 0 {
			t.Errorf("%+v", r)
		}
	}
	slices.Sort(names)
	slices.Sort(copied)
	if d := cmp.Diff(names, copied); d != "" {
		t.Errorf("a table is left out (-in the file +copied):\n%s", d)
	}
	readAll(t, to)
}

func digests(c moving.Copied) map[string]string {
	all := map[string]string{}
	for _, r := range c.Tables {
		all[r.Table] = fmt.Sprint(r.RowN, " ", r.Digest)
	}
	return all
}

// dumped are the rows of all tables, sorted, as SQL writes values with their types.
func dumped(t *testing.T, db *sql.DB) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, table := range tables(t, db) {
		all[table] = rows(t, db, table)
		slices.Sort(all[table])
	}
	return all
}
