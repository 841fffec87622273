package postgres

import (
	"fmt"
	"sync/atomic"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
	"slipway.dev/slipway/test/postgres"
)

// A pooler that lets connections share sessions is refused at the start, also when it is idle, and whatever session it takes next.
func TestPostgresAPoolerThatSharesSessionsIsRefused(t *testing.T) {
	s := postgres.Shared(t)
	for _, pool := range [][]string{
		{"transaction"}, {"transaction", "server_round_robin = 1"}, {"statement"}, {"transaction", "min_pool_size = 3", "server_round_robin = 1"},
	} {
		url := s.Bouncer(t, s.Database(t), pool[0], pool[1:]...)
		for try := range 3 { // the sessions of before are free, in an order that nobody knows
			d, err := Open(t.Context(), Config{URL: url, Migrations: schema})
			if err == nil {
				_ = d.Close()
				t.Fatalf("%v, try %d: it starts", pool, try)
			}
			wantError(t, err, inventory.Conflict, "pool_mode = session")
		}
		_, err := Look(Config{URL: url}) // as the self-check does
		wantError(t, err, inventory.Conflict, "connections share sessions")
	}
}

// With a session for each connection all works as without the pooler, the settings and the notifications included.
func TestPostgresAPoolerThatKeepsSessionsWorks(t *testing.T) {
	s := postgres.Shared(t)
	direct := s.Database(t)
	url := s.Bouncer(t, direct, "session")
	d, other := open(t, url, nil), open(t, direct, nil)
	var woken atomic.Int64
	d.OnCommit(func() { woken.Add(1) })
	for i := range 20 {
		if err := put(t.Context(), d, fmt.Sprint(i), "1"); err != nil {
			t.Fatal(err)
		}
		if get(t, d, fmt.Sprint(i)) != "1" {
			t.Error("it is not read")
		}
	}
	eventually(t, "it hears of the other instance", func() bool {
		err := other.Write(t.Context(), func(tx *database.Tx) error { tx.Wake(); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return woken.Load() > 0
	})
	for _, x := range []*DB{d, other} {
		for name, want := range map[string]string{
			"statement_timeout": "0", "idle_in_transaction_session_timeout": "400ms", "client_connection_check_interval": "2s",
			"client_min_messages": "warning",
		} {
			var got string
			if err := x.Read(t.Context(), func(tx *database.Tx) error {
				_, err := tx.Row([]any{&got}, `SELECT current_setting($1)`, name)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
	ask(t, s, "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '`+nameOf(t, direct)+`'`)
	eventually(t, "it writes again", func() bool { return put(t.Context(), d, "again", "1") == nil })
}
