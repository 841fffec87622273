package sqlstore

import (
	"database/sql"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"slipway.dev/slipway/migrations"
	"slipway.dev/slipway/test/postgres"
)

const goldenPostgresSchema = "../../migrations/postgres/schema.sql"

// openPostgres opens a database of the shared PostgreSQL server, after all migrations.
func openPostgres(t *testing.T) *sql.DB {
	t.Helper()
	url := postgres.Shared(t).Filled(t, "schema", func(url string) error {
		db, err := sql.Open("pgx", url)
		if err != nil {
			return err
		}
		defer db.Close()
		files, err := fs.Sub(migrations.Postgres, "postgres")
		if err != nil {
			return err
		}
		p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true))
		if err != nil {
			return err
		}
		_, err = p.Up(t.Context())
		return err
	})
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// lines runs queries that return text, and returns all rows.
func lines(t *testing.T, db *sql.DB, queries ...string) (all []string) {
	t.Helper()
	for _, q := range queries {
		rows, err := db.QueryContext(t.Context(), q)
		if err != nil {
			t.Fatalf("%v\n%s", err, q)
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			all = append(all, line)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		if err := rows.Err(); err != nil {
			t.Fatalf("%v\n%s", err, q)
		}
	}
	return all
}

// goldenSQL writes what the catalogue has as SQL, a table with what belongs to it in one row. pg_dump would say more and in other words
// with each version of PostgreSQL. These functions of the server say the same from 14 to 18.
const goldenSQL = `SELECT replace(concat_ws(E'\n',
  'CREATE TABLE ' || c.relname || ' (' || E'\n' || concat_ws(E',\n',
    (SELECT string_agg('  ' || a.attname || ' ' || upper(format_type(a.atttypid, a.atttypmod))
        || CASE WHEN co.collname <> 'default' THEN ' COLLATE "' || co.collname || '"' ELSE '' END
        || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END || COALESCE(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), ''),
        E',\n' ORDER BY a.attnum)
      FROM pg_attribute a LEFT JOIN pg_collation co ON co.oid = a.attcollation
      LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
    (SELECT string_agg('  CONSTRAINT ' || conname || ' ' || pg_get_constraintdef(oid), E',\n' ORDER BY contype <> 'p', conname)
      FROM pg_constraint WHERE conrelid = c.oid AND contype IN ('p', 'u', 'f', 'c'))) || E'\n);',
  (SELECT string_agg(pg_get_indexdef(i.indexrelid) || ';', E'\n' ORDER BY i.indexrelid::regclass::text)
    FROM pg_index i WHERE i.indrelid = c.oid AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = i.indexrelid AND conrelid = c.oid)),
  (SELECT string_agg(pg_get_triggerdef(t.oid) || ';', E'\n' ORDER BY t.tgname) FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
), ' public.', ' ') FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname NOT LIKE 'goose%' ORDER BY c.relname COLLATE "C"`

const goldenFunctionsSQL = `SELECT replace(rtrim(pg_get_functiondef(oid), E'\n'), ' public.', ' ') || ';' FROM pg_proc
WHERE pronamespace = 'public'::regnamespace ORDER BY proname COLLATE "C"`

// TestPostgreSQLMigrationsBuildTheGoldenSchema shows what a migration does to the whole schema, in the diff of one file.
func TestPostgreSQLMigrationsBuildTheGoldenSchema(t *testing.T) {
	db := openPostgres(t)
	got := "-- The schema after all migrations. Written by: SLIPWAY_POSTGRES=1 go test ./inventory/sqlstore -run GoldenSchema -update\n\n" +
		strings.Join(lines(t, db, goldenSQL, goldenFunctionsSQL), "\n\n") + "\n"
	if *update {
		if err := os.WriteFile(goldenPostgresSchema, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenPostgresSchema)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("the migrations build another schema than %s (-want +got); if that is meant, run with -update:\n%s", goldenPostgresSchema, d)
	}
}

// onlyPostgres lists what the schema of PostgreSQL has in addition, and why.
var onlyPostgres = map[string]string{
	"leases index leases_by_mac (mac)":   "SQLite's one writer keeps in memory which addresses a MAC has",
	"events trigger events_get_ids":      "on SQLite a row without an id gets the highest one + 1 by itself",
	"issues trigger issues_get_ids":      "as for events",
	"audit trigger audit_get_ids":        "as for events",
	"audit trigger audit_is_not_emptied": "SQLite has no TRUNCATE",
	"changes.id BIGINT NOT NULL":         "several instances keep settings in memory",
	"changes.n BIGINT NOT NULL":          "several instances keep settings in memory",
	"changes primary key (id)":           "several instances keep settings in memory",
	"changes check id = 1":               "several instances keep settings in memory",
	"writers.id TEXT NOT NULL":           "an instance looks whether a commit without an answer was made",
	"writers.batch_n BIGINT NOT NULL":    "an instance looks whether a commit without an answer was made",
	"writers.seen_at BIGINT NOT NULL":    "an instance looks whether a commit without an answer was made",
	"writers primary key (id)":           "an instance looks whether a commit without an answer was made",
}

// The queries below say the same in the same words of both databases, as far as it is the same.

var sqliteLines = []string{
	`SELECT t.name || '.' || c.name || ' ' || c.type || iif(c."notnull", ' NOT NULL', '') || COALESCE(' DEFAULT ' || c.dflt_value, '')
FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'`,
	`SELECT name || ' primary key (' || group_concat(pk, ', ') || ')' FROM (SELECT t.name, c.name AS pk
FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' AND c.pk > 0 ORDER BY t.name, c.pk) GROUP BY name`,
	`SELECT t.name || ' foreign key (' || k."from" || ') references ' || k."table" || ' (' || k."to" || ') on delete ' || k.on_delete || ' on update ' || k.on_update
FROM sqlite_schema t, pragma_foreign_key_list(t.name) k WHERE t.type = 'table'`,
	`SELECT tbl || ' ' || iif(origin = 'u', 'unique', iif(is_unique, 'unique index ', 'index ') || name) || ' (' || group_concat(part, ', ') || ')' || predicate
FROM (SELECT t.name AS tbl, l.name, l."unique" AS is_unique, l.origin, p.name AS part, iif(l.partial, substr(i.sql, instr(i.sql, ' WHERE ')), '') AS predicate
  FROM sqlite_schema t, pragma_index_list(t.name) l, pragma_index_info(l.name) p JOIN sqlite_schema i ON i.name = l.name
  WHERE t.type = 'table' AND l.origin <> 'pk' ORDER BY t.name, l.name, p.seqno) GROUP BY tbl, name`,
	`SELECT tbl_name || ' trigger ' || name FROM sqlite_schema WHERE type = 'trigger'`,
	// SQLite has a check only in the text of its table.
	`SELECT name || ' check ' || substr(rest, 1, instr(rest, char(10)) - 2)
FROM (SELECT name, substr(sql, instr(sql, 'CHECK (') + 7) AS rest FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%CHECK (%')`,
}

var postgresLines = []string{
	`SELECT c.relname || '.' || a.attname || ' ' || upper(format_type(a.atttypid, a.atttypmod))
  || CASE WHEN a.attcollation <> 0 AND a.attcollation <> '"C"'::regcollation THEN ' with the collation of the database' ELSE '' END
  || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END || COALESCE(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped`,
	`SELECT conrelid::regclass || CASE contype WHEN 'p' THEN ' primary key (' ELSE ' unique (' END || (SELECT string_agg(a.attname, ', ' ORDER BY o)
  FROM unnest(conkey) WITH ORDINALITY AS k (n, o) JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = k.n) || ')'
FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype IN ('p', 'u')`,
	`SELECT conrelid::regclass || ' foreign key (' || a.attname || ') references ' || confrelid::regclass || ' (' || f.attname || ') on delete '
  || (` + postgresActions + `->> confdeltype::text) || ' on update ' || (` + postgresActions + `->> confupdtype::text)
FROM pg_constraint JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = ANY (conkey)
JOIN pg_attribute f ON f.attrelid = confrelid AND f.attnum = ANY (confkey)
WHERE connamespace = 'public'::regnamespace AND contype = 'f'`,
	`SELECT i.indrelid::regclass || CASE WHEN i.indisunique THEN ' unique' ELSE '' END || ' index ' || i.indexrelid::regclass || ' ('
  || (SELECT string_agg(pg_get_indexdef(i.indexrelid, n, true), ', ' ORDER BY n) FROM generate_series(1, i.indnatts) AS n) || ')'
  || COALESCE(' WHERE ' || pg_get_expr(i.indpred, i.indrelid), '')
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid AND c.relnamespace = 'public'::regnamespace
WHERE NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = i.indexrelid AND contype IN ('p', 'u'))`,
	`SELECT tgrelid::regclass || ' trigger ' || tgname FROM pg_trigger WHERE NOT tgisinternal`,
	`SELECT conrelid::regclass || ' check ' || pg_get_expr(conbin, conrelid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace AND contype = 'c'`,
}

const postgresActions = `'{"a": "NO ACTION", "c": "CASCADE", "r": "RESTRICT", "n": "SET NULL", "d": "SET DEFAULT"}'::json `

// meaning is a schema as a set of sentences, without what the two databases write in other words: names of types, and expressions with
// types, quotes and parentheses.
func meaning(all []string) []string {
	cast, brackets := regexp.MustCompile(`::(text|bytea|bigint)`), strings.NewReplacer("(", "", ")", "")
	typed := strings.NewReplacer(" INTEGER", " BIGINT", " BLOB", " BYTEA", " x''", ` '\x'`, `"`, "")
	set := map[string]bool{}
	for _, line := range all {
		if strings.HasPrefix(line, "goose") || strings.HasPrefix(line, "sqlite") {
			continue
		}
		line = strings.Join(strings.Fields(typed.Replace(cast.ReplaceAllString(line, ""))), " ")
		for _, before := range []string{" WHERE ", " check "} {
			if head, expression, found := strings.Cut(line, before); found {
				line = head + before + brackets.Replace(expression)
			}
		}
		set[line] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// TestPostgreSQLAndSQLiteHaveTheSameSchema fails when a migration is in one of the two folders only.
func TestPostgreSQLAndSQLiteHaveTheSameSchema(t *testing.T) {
	db := openPostgres(t)
	path := filepath.Join(t.TempDir(), "slipway.db")
	openTest(t, path)
	file, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	want, got := meaning(lines(t, file, sqliteLines...)), meaning(lines(t, db, postgresLines...))
	if len(want) < 500 {
		t.Fatalf("only %d facts about the schema of SQLite were found", len(want))
	}
	for line, why := range onlyPostgres {
		if !slices.Contains(got, line) {
			t.Errorf("onlyPostgres has %q (%s), which PostgreSQL has not", line, why)
		}
	}
	got = slices.DeleteFunc(got, func(line string) bool { return onlyPostgres[line] != "" })
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("a change of the schema needs a migration in migrations/sqlite and one in migrations/postgres (-SQLite +PostgreSQL):\n%s", d)
	}
}
