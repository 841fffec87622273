package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory/sqlstore/database"
)

// Whatever a column is read into that it does not fit is an error and not a guess.
func TestAColumnIsReadIntoWhatItHolds(t *testing.T) {
	d, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "x.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	value := func(into any, query string, args ...any) error {
		return d.Read(t.Context(), func(tx *database.Tx) error {
			_, err := tx.Row([]any{into}, query, args...)
			return err
		})
	}
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
		err := value(c.into, c.query)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s into %T: got %v, want %q", c.query, c.into, err, c.want)
		}
	}
	if err := value(new(int), `SELECT $1`); err == nil || !strings.Contains(err.Error(), "1 parameters was given 0 arguments") {
		t.Errorf("without its argument: got %v", err)
	}
	if err := value(new(int), `SELECT $1`, struct{}{}); err == nil || !strings.Contains(err.Error(), "argument 1") {
		t.Errorf("with an argument that no column takes: got %v", err)
	}
}
