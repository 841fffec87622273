package sqlstore

import (
	"path/filepath"
	"strings"
	"testing"
)

// query runs a statement of a test and calls fn for every row.
func (c *conn) query(fn func(scan) error, query string, args ...any) error {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	return s.each(args, fn)
}

// value reads the one value of a statement of a test.
func (c *conn) value(v any, query string, args ...any) error {
	return c.query(func(row scan) error { return row(v) }, query, args...)
}

// planOf returns how SQLite would run a statement, a line for each step.
func planOf(t *testing.T, s *Store, query string) string {
	t.Helper()
	args := make([]any, strings.Count(query, "$"))
	for i := range args {
		args[i] = "1"
	}
	var plan strings.Builder
	err := s.writer.query(func(row scan) error {
		var id, parent, unused int
		var detail string
		err := row(&id, &parent, &unused, &detail)
		plan.WriteString(detail + "\n")
		return err
	}, `EXPLAIN QUERY PLAN `+query, args...)
	if err != nil {
		t.Errorf("%v\n%s", err, query)
	}
	return plan.String()
}

// Whatever a column is read into that it does not fit is an error and not a guess.
func TestAColumnIsReadIntoWhatItHolds(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "slipway.db"))
	type name string
	for _, c := range []struct {
		query string
		into  any
		want  string // "" when it can be read
	}{
		{`SELECT 'a'`, new(string), ""},
		{`SELECT 'a'`, new(name), ""},
		{`SELECT 7`, new(int), ""},
		{`SELECT 7`, new(int64), ""},
		{`SELECT 1`, new(bool), ""},
		{`SELECT X'00'`, new([]byte), ""},
		{`SELECT 'a'`, new([]byte), "string, not bytes"},
		{`SELECT 'a'`, new(int), "string, not int"},
		{`SELECT 'a'`, new(bool), "string, not bool"},
		{`SELECT 7`, new(string), "int64, not string"},
		{`SELECT 1.5`, new(int), "float64, not int"},
		{`SELECT NULL`, new(string), "<nil>, not string"},
		{`SELECT NULL`, new([]byte), "<nil>, not bytes"},
		{`SELECT 1, 2`, new(int), "a row of 2 columns is read as 1"},
	} {
		err := s.writer.value(c.into, c.query)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s into %T: got %v, want %q", c.query, c.into, err, c.want)
		}
	}
	if err := s.writer.value(new(int), `SELECT $1`); err == nil || !strings.Contains(err.Error(), "1 parameters was given 0 arguments") {
		t.Errorf("without its argument: got %v", err)
	}
	if err := s.writer.value(new(int), `SELECT $1`, struct{}{}); err == nil || !strings.Contains(err.Error(), "argument 1") {
		t.Errorf("with an argument that no column takes: got %v", err)
	}
}
