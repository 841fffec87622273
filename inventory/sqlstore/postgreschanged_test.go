package sqlstore

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/migrations"
	"slipway.dev/slipway/test/postgres"
)

// TestAPostgreSQLSchemaThatWasChangedByHand: the start and the self-check say what is missing. Indexes and tables of an admin are no harm.
func TestAPostgreSQLSchemaThatWasChangedByHand(t *testing.T) {
	server := postgres.Shared(t)
	for name, c := range map[string]struct{ sql, says string }{
		"nothing":               {"SELECT 1", ""},
		"a table of the admin":  {"CREATE TABLE mine (id BIGINT); CREATE INDEX mine_too ON leases (hostname)", ""},
		"no column":             {"ALTER TABLE hosts DROP COLUMN serial", "column serial of table hosts is missing"},
		"another name":          {"ALTER TABLE layers RENAME TO old_layers", "table layers is missing"},
		"no key":                {"ALTER TABLE layers DROP CONSTRAINT layers_pkey", "constraint layers_pkey of table layers is missing"},
		"no reference":          {"ALTER TABLE leases DROP CONSTRAINT leases_subnet_fkey", "constraint leases_subnet_fkey of table leases is missing"},
		"no trigger":            {"DROP TRIGGER audit_is_not_changed ON audit", "trigger audit_is_not_changed is missing"},
		"a trigger that is off": {"ALTER TABLE audit DISABLE TRIGGER audit_is_not_changed", "trigger audit_is_not_changed is missing"},
		"no index":              {"DROP INDEX leases_by_mac", "index leases_by_mac"},
	} {
		t.Run(name, func(t *testing.T) {
			url := emptyOnPostgres(t)
			onServer(t, url, c.sql)
			h, lookErr := Look(url, "")
			s, err := Open(t.Context(), Config{URL: url})
			if err == nil {
				s.Close()
			}
			if c.says == "" || strings.HasPrefix(c.says, "index") {
				if err != nil || lookErr != nil {
					t.Errorf("it is refused: %v, %v", err, lookErr)
				}
				if got := strings.Join(h.Slow, ", "); got != c.says {
					t.Errorf("missing is %q, want %q", got, c.says)
				}
				return
			}
			for _, err := range []error{err, lookErr} {
				if !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v, want a refusal with %q", err, c.says)
				}
			}
		})
	}
	if h, err := Look(server.Database(t), ""); err != nil || h.Slow != nil {
		t.Errorf("a database before its first start: %v, %v", h.Slow, err)
	}
	if n := strings.Count(migrations.PostgresSchema, "\n"); n < 500 {
		t.Errorf("the schema has %d lines", n)
	}
}

// TestPostgreSQLIsPeekedAtOnlyWithItsOwnSchema reads a database as a new machine does, which may not change it.
func TestPostgreSQLIsPeekedAtOnlyWithItsOwnSchema(t *testing.T) {
	url := postgres.Shared(t).Database(t)
	peek := func() error {
		return Peek(url, "", func(tx inventory.Tx) error {
			_, err := tx.ListInstances()
			return err
		})
	}
	refused := func(what, want string) {
		t.Helper()
		if err := peek(); !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("an empty database", "no tables of Slipway")
	s, err := Open(t.Context(), Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := peek(); err != nil {
		t.Error(err)
	}
	onServer(t, url, `ALTER TABLE instances RENAME COLUMN links TO linked`)
	refused("a changed schema", "are not those of this version")
	onServer(t, url, `ALTER TABLE instances RENAME COLUMN linked TO links`)
	onServer(t, url, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (299901010000, true)`)
	refused("a newer schema", "was written by a newer Slipway (schema 299901010000")
	onServer(t, url, `DELETE FROM goose_db_version WHERE version_id > 202601010000`)
	refused("an older schema", "no tables of Slipway")
	onServer(t, url, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (202601010000, true)`)
	refused("an older schema", "has the schema of an older Slipway (schema 202601010000")
}
