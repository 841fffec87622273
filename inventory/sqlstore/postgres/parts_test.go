package postgres

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
	"slipway.dev/slipway/test/postgres"
)

func wantThings(t *testing.T, d *DB, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := get(t, d, name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}

func adds(name string) func(*database.Tx) error {
	return func(tx *database.Tx) error { _, err := tx.Write(insertThing, name, "1"); return err }
}

// The server refuses to prepare a statement, as when an admin has dropped a column. Its neighbours in the same commit are kept.
func TestPostgresAStatementThatCannotBePrepared(t *testing.T) {
	d := open(t, postgres.Shared(t).Database(t), nil)
	inOneCommit(t, d, []func(*database.Tx) error{
		adds("first"),
		func(tx *database.Tx) error { _, err := tx.Run(`SELECT name FROM nothing_of_ours`); return err },
		adds("second"),
		func(tx *database.Tx) error {
			if err := adds("undone")(tx); err != nil {
				return err
			}
			_, _ = tx.Run(`SELECT nothing_of_ours FROM things`) // its error is overlooked
			return nil
		},
		adds("third"),
	}, []inventory.Kind{"", inventory.Internal, "", inventory.Internal, ""})
	wantThings(t, d, map[string]string{"first": "1", "second": "1", "third": "1", "undone": ""})
}

// The driver refuses a statement before it sends anything. What follows is still in the transaction, and is undone with it.
func TestPostgresAStatementThatTheDriverRefuses(t *testing.T) {
	d := open(t, postgres.Shared(t).Database(t), nil)
	if err := put(t.Context(), d, "known", "1"); err != nil { // so that the statement is prepared
		t.Fatal(err)
	}
	many := make([]any, 70_000)
	places := make([]string, len(many))
	for i := range many {
		many[i], places[i] = "x", fmt.Sprint("$", i+1)
	}
	refused := map[string]func(*database.Tx) error{
		"too few arguments": func(tx *database.Tx) error { _, err := tx.Write(insertThing, "alone"); return err },
		"too many arguments": func(tx *database.Tx) error {
			return tx.Each(func(database.Scan) error { return nil },
				`SELECT name FROM things WHERE name IN (`+strings.Join(places, ",")+`)`, many...)
		},
		"another type":        func(tx *database.Tx) error { _, err := tx.Write(insertThing, "alone", 7); return err },
		"no type of database": func(tx *database.Tx) error { _, err := tx.Write(insertThing, "alone", struct{}{}); return err },
	}
	errUndone := errors.New("undone")
	for what, refuse := range refused {
		t.Run(what, func(t *testing.T) {
			err := d.Write(t.Context(), func(tx *database.Tx) error {
				if err := refuse(tx); err == nil {
					t.Error("it is accepted")
				}
				_, _ = tx.Write(insertThing, "ghost", "1")
				return errUndone
			})
			if err == nil {
				t.Error("it is stored")
			}
			if err := put(t.Context(), d, what, "1"); err != nil {
				t.Error(err)
			}
			wantThings(t, d, map[string]string{"ghost": "", what: "1"})
		})
	}
}

// A part that ends its goroutine takes its commit along, and nothing else.
func TestPostgresAPartThatEndsItsGoroutine(t *testing.T) {
	d := open(t, postgres.Shared(t).Database(t), nil)
	inOneCommit(t, d, []func(*database.Tx) error{
		adds("before"),
		func(tx *database.Tx) error { _ = adds("half")(tx); runtime.Goexit(); return nil },
		adds("after"),
	}, []inventory.Kind{inventory.Internal, inventory.Internal, inventory.Internal})
	inOneCommit(t, d, []func(*database.Tx) error{
		adds("kept"),
		func(tx *database.Tx) error { _ = adds("panicked")(tx); panic("a mistake") },
		func(*database.Tx) error { panic("a mistake before any statement") },
		adds("kept too"),
	}, []inventory.Kind{"", inventory.Internal, inventory.Internal, ""})
	wantThings(t, d, map[string]string{"before": "", "half": "", "after": "", "kept": "1", "panicked": "", "kept too": "1"})
}

// Parts that send nothing, that fail before they send anything, and that fail after it, are mixed in commits of many.
func TestPostgresPartsOfAllKindsInOneCommit(t *testing.T) {
	d := open(t, postgres.Shared(t).Database(t), nil)
	if err := put(t.Context(), d, "taken", "1"); err != nil {
		t.Fatal(err)
	}
	var parts []func(*database.Tx) error
	var want []inventory.Kind
	kept := map[string]string{}
	for i := range 24 {
		name := fmt.Sprint("thing ", i)
		fn, kind := adds(name), inventory.Kind("")
		kept[name] = "1"
		switch {
		case i%6 == 1:
			fn = func(*database.Tx) error { return nil }
			kept[name] = ""
		case i%6 == 2:
			fn, kind = func(*database.Tx) error { return inventory.Errorf(inventory.Invalid, "no") }, inventory.Invalid
			kept[name] = ""
		case i%6 == 3:
			fn, kind = func(tx *database.Tx) error { _ = adds(name)(tx); return adds("taken")(tx) }, inventory.Conflict
			kept[name] = ""
		case i%6 == 4:
			fn, kind = func(tx *database.Tx) error { _ = adds(name)(tx); return inventory.Errorf(inventory.Invalid, "no") }, inventory.Invalid
			kept[name] = ""
		}
		parts, want = append(parts, fn), append(want, kind)
	}
	inOneCommit(t, d, parts, want)
	wantThings(t, d, kept)
}

// A value that is too long for an index is said to be too long.
func TestPostgresAValueThatIsTooLongForItsIndex(t *testing.T) {
	d := open(t, postgres.Shared(t).Database(t), nil)
	var long strings.Builder
	for i := range 500 { // it must not compress well
		fmt.Fprintf(&long, "%x", i*2654435761)
	}
	wantError(t, put(t.Context(), d, long.String(), "1"), inventory.Invalid, "too long")
}

// Close ends in a bounded time while a server that has stopped to answer holds writes back.
func TestPostgresCloseWhileTheServerHangs(t *testing.T) {
	url := postgres.Shared(t).Database(t)
	p := startProxy(t, postgres.Shared(t).Address())
	before := runtime.NumGoroutine()
	d := open(t, p.url(t, url), func(c *Config) { c.Timeout, c.Patience = time.Second, time.Minute })
	if err := put(t.Context(), d, "x", "1"); err != nil {
		t.Fatal(err)
	}
	get(t, d, "x")
	hung := startSilent(t)
	p.sendTo(hung)
	p.stop(true, true)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := put(t.Context(), d, fmt.Sprint(i), "1"); err == nil {
				t.Error("it is stored")
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	began := time.Now()
	_ = d.Close()
	t.Logf("Close took %v", time.Since(began).Round(time.Millisecond))
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("Close took %v", took)
	}
	all.Wait()
	eventually(t, "the goroutines have ended", func() bool {
		p.each(func(k *link) { k.client.Close(); k.server.Close() })
		return runtime.NumGoroutine() <= before+3
	})
}
