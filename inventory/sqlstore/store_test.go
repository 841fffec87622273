package sqlstore

import (
	"log/slog"
	"path/filepath"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/storetest"
)

func openTest(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: path, Log: slog.New(slog.DiscardHandler)})
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

func TestStoreKeepsTheContract(t *testing.T) {
	open := func(t *testing.T) inventory.Store { return openTest(t, filepath.Join(t.TempDir(), "slipway.db")) }
	storetest.Run(t, open)
	storetest.RunInstances(t, open)
}
