package sqlstore

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory/sqlstore/database"
)

// run runs a statement of a test in a write of its own.
func run(t testing.TB, s *Store, query string, args ...any) (n int64, err error) {
	err = s.DB.Write(t.Context(), func(tx *database.Tx) error {
		n, err = tx.Write(query, args...)
		return err
	})
	return n, err
}

// query runs a statement of a test in a write of its own and calls fn for every row.
func query(t *testing.T, s *Store, fn func(database.Scan) error, query string, args ...any) error {
	return s.DB.Write(t.Context(), func(tx *database.Tx) error { return tx.Each(fn, query, args...) })
}

// value reads the one value of a statement of a test.
func value(t *testing.T, s *Store, v any, sql string, args ...any) error {
	return query(t, s, func(row database.Scan) error { return row(v) }, sql, args...)
}

// planOf returns how SQLite would run a statement, a line for each step.
func planOf(t *testing.T, s *Store, sql string) string {
	t.Helper()
	args := make([]any, strings.Count(sql, "$"))
	for i := range args {
		args[i] = "1"
	}
	var plan strings.Builder
	err := query(t, s, func(row database.Scan) error {
		var id, parent, unused int
		var detail string
		err := row(&id, &parent, &unused, &detail)
		plan.WriteString(detail + "\n")
		return err
	}, `EXPLAIN QUERY PLAN `+sql, args...)
	if err != nil {
		t.Errorf("%v\n%s", err, sql)
	}
	return plan.String()
}
