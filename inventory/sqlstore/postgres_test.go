package sqlstore

import (
	"log/slog"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/storetest"
	"slipway.dev/slipway/test/postgres"
)

func openOnPostgres(t testing.TB) *Store {
	t.Helper()
	url := postgres.Shared(t).Filled(t, "slipway", func(url string) error {
		s, err := Open(t.Context(), Config{URL: url})
		if err != nil {
			return err
		}
		return s.Close()
	})
	s, err := Open(t.Context(), Config{URL: url, Log: slog.New(slog.DiscardHandler)})
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
	storetest.Run(t, func(t *testing.T) inventory.Store { return openOnPostgres(t) })
}
