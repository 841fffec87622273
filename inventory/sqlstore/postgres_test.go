package sqlstore

import (
	"log/slog"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/storetest"
	"slipway.dev/slipway/test/postgres"
)

// emptyOnPostgres makes a database with the schema and without rows, and returns its address.
func emptyOnPostgres(t testing.TB) string {
	t.Helper()
	return postgres.Shared(t).Filled(t, "slipway", func(url string) error {
		s, err := Open(t.Context(), Config{URL: url})
		if err != nil {
			return err
		}
		return s.Close()
	})
}

func openOnPostgres(t testing.TB) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{URL: emptyOnPostgres(t), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestPostgresKeepsTheContract(t *testing.T) {
	open := func(t *testing.T) inventory.Store { return openOnPostgres(t) }
	storetest.Run(t, open)
	storetest.RunInstances(t, open)
}

func TestPostgreSQLShowsADutyThatAnotherServerHasTaken(t *testing.T) {
	url := emptyOnPostgres(t)
	open := func() *Store {
		s, err := Open(t.Context(), Config{URL: url, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	a, b := open(), open()
	must(t, a.Write(t.Context(), func(tx inventory.Tx) error { return tx.SaveInstance(inventory.Instance{ID: "1", Name: "a"}) }))
	for epoch := range int64(3) {
		must(t, b.Write(t.Context(), func(tx inventory.Tx) error {
			return tx.SaveDuty(inventory.Duty{Name: inventory.DutyEngine, Holder: "1", Epoch: epoch})
		}))
		for range 2 { // the second one from memory
			must(t, a.Write(t.Context(), func(tx inventory.Tx) error {
				d, err := tx.FindDuty(inventory.DutyEngine)
				if err != nil || d.Epoch != epoch {
					t.Errorf("epoch %d shows as %d, %v", epoch, d.Epoch, err)
				}
				return nil
			}))
		}
	}
}
