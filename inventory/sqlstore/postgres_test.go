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
