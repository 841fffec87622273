package postgres

import (
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
	"slipway.dev/slipway/test/postgres"
)

// asked is the value of a thing, as a transaction finds it.
func asked(t *testing.T, tx *database.Tx, name string) string {
	t.Helper()
	var value string
	if _, err := tx.Row([]any{&value}, findThing, name); err != nil {
		t.Error(err)
	}
	return value
}

// What a transaction has asked once, it knows, until a statement changes that table. A write that waits counts, and so does one that is
// undone.
func TestPostgresATransactionKnowsWhatItHasAsked(t *testing.T) {
	d := open(t, postgres.Shared(t).Database(t), nil)
	if err := put(t.Context(), d, "a", "1"); err != nil {
		t.Fatal(err)
	}
	want := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("it holds %q, want %q", got, want)
		}
	}
	write := func(fn func(tx *database.Tx)) func(*database.Tx) error {
		return func(tx *database.Tx) error { fn(tx); return nil }
	}
	parts := []func(*database.Tx) error{
		write(func(tx *database.Tx) {
			want(asked(t, tx, "a"), "1")
			_, _ = tx.Write(`UPDATE things SET value = '2' WHERE name = 'a'`)
			want(asked(t, tx, "a"), "2")
			_ = tx.Later(nil, `UPDATE things SET value = '3' WHERE name = 'a'`)
			want(asked(t, tx, "a"), "3")
			tx.Ahead(findThing, "a") // known
			tx.Ahead(countThings)
			_ = tx.Later(nil, insertThing, "b", "1")
			var n int
			if _, err := tx.Row([]any{&n}, countThings); err != nil || n != 2 {
				t.Errorf("there are %d things, %v: the answer is older than the write behind it", n, err)
			}
			want(asked(t, tx, "b"), "1")
		}),
		func(tx *database.Tx) error {
			want(asked(t, tx, "a"), "3")
			_ = tx.Later(nil, `UPDATE things SET value = '4' WHERE name = 'a'`)
			want(asked(t, tx, "a"), "4")
			return inventory.Errorf(inventory.Conflict, "undone")
		},
		write(func(tx *database.Tx) {
			want(asked(t, tx, "a"), "3")
			_, _ = tx.Write(`DELETE FROM things WHERE name = 'a'`)
			want(asked(t, tx, "a"), "")
		}),
	}
	inOneCommit(t, d, parts, []inventory.Kind{"", inventory.Conflict, ""})
	wantThings(t, d, map[string]string{"a": "", "b": "1"})
}

// Nobody goes to the server for what is known. Only somebody who writes without the turn, as with psql, can show it.
func TestPostgresWhatIsKnownIsNotAskedAgain(t *testing.T) {
	d := open(t, postgres.Shared(t).Database(t), nil)
	if err := put(t.Context(), d, "a", "1"); err != nil {
		t.Fatal(err)
	}
	other, err := d.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.close() })
	err = d.Write(t.Context(), func(tx *database.Tx) error {
		tx.Ahead(findThing, "a")
		tx.Ahead(findThing, "b")
		if got := asked(t, tx, "none"); got != "" {
			t.Errorf("there is a thing without a name: %q", got)
		}
		if _, err := other.Exec(`UPDATE things SET value = '2' WHERE name = 'a'`, nil); err != nil {
			t.Error(err)
		}
		if got := asked(t, tx, "a"); got != "1" {
			t.Errorf("it holds %q: it was asked for again", got)
		}
		if _, err := tx.Write(insertThing, "c", "1"); err != nil {
			return err
		}
		if got := asked(t, tx, "a"); got != "1" {
			t.Errorf("it holds %q after a change of another row: it was asked for again", got)
		}
		if _, err := tx.Write(`UPDATE things SET value = value WHERE name = 'a'`); err != nil {
			return err
		}
		if got := asked(t, tx, "a"); got != "2" {
			t.Errorf("it holds %q after a change of its row, want what is stored", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A Read that ends with a query that nobody needed leaves its snapshot like any other.
func TestPostgresAReadEndsWithAQueryThatWaits(t *testing.T) {
	d := open(t, postgres.Shared(t).Database(t), func(c *Config) { c.ReaderN = 1 })
	for i, want := range []string{"", "1"} {
		err := d.Read(t.Context(), func(tx *database.Tx) error {
			if got := asked(t, tx, "a"); got != want {
				t.Errorf("Read %d finds %q, want %q", i+1, got, want)
			}
			tx.Ahead(countThings)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if err := put(t.Context(), d, []string{"a", "b"}[i], "1"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnAnswerIsThatOfItsArguments(t *testing.T) {
	seen := map[string]bool{}
	for _, args := range [][]any{
		{int64(1763713800123)}, {int64(1763717400123)}, {"1763713800123"}, {[]byte("1")}, {"[49]"}, {nil}, {"<nil>"}, {"a", "b"}, {"a b"}, {"a", "b", ""},
	} {
		key := string(new(answers).keyOf(args))
		if seen[key] {
			t.Errorf("%q has the key of others: %q", args, key)
		}
		seen[key] = true
	}
}

func TestAStatementDropsTheAnswersThatItMayChange(t *testing.T) {
	const hosts, claims, label = `SELECT name FROM hosts`, `SELECT c.id FROM claims AS c JOIN hosts AS h ON h.id = c.host_id`, `SELECT key FROM host_labels`
	mayCascade := func(table string) bool { return table == "hosts" }
	for _, c := range []struct {
		statement string
		left      int // of the three answers
	}{
		{`SELECT 1 FROM hosts`, 3},
		{`SELECT pg_notify('x', 'hosts')`, 0}, // nobody knows what it does
		{`UPDATE hosts SET name = 'a'`, 1},
		{`UPDATE claims SET id = 'a'`, 2},
		{"INSERT INTO host_labels\n(key) VALUES ($1)", 2},
		{`DELETE FROM claims WHERE id = $1`, 2},
		{`DELETE FROM hosts WHERE id = $1`, 0}, // and what goes with it
		{`WITH x AS (SELECT 1) DELETE FROM claims`, 0},
	} {
		var a answers
		for _, query := range []string{hosts, claims, label} {
			a.expect(query, nil).come(nil)
		}
		a.drop(c.statement, nil, mayCascade)
		left := 0
		for _, query := range []string{hosts, claims, label} {
			if a.find(query, nil) != nil {
				left++
			}
		}
		if left != c.left {
			t.Errorf("%s leaves %d answers, want %d", c.statement, left, c.left)
		}
	}
}
