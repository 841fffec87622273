package lookup

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

// brokenStore reads nothing while it is broken.
type brokenStore struct {
	inventory.Store
	isBroken bool
}

func (s *brokenStore) Read(ctx context.Context, fn func(inventory.Tx) error) error {
	if s.isBroken {
		return errors.New("the disk does not answer")
	}
	return s.Store.Read(ctx, fn)
}

func TestAChangeThatCannotBeReadIsReadAgain(t *testing.T) {
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	broken := &brokenStore{Store: store}
	n, err := OpenNetworks(t.Context(), broken, nil)
	if err != nil {
		t.Fatal(err)
	}
	follow := func() error {
		events := make(chan inventory.Event, 1)
		events <- inventory.Event{ID: 7, Kind: inventory.EventChanged, Subject: "subnet/rack-1"}
		close(events)
		return n.Follow(t.Context(), events)
	}
	broken.isBroken = true
	if err := follow(); err == nil || n.AsOf != 0 {
		t.Errorf("error %v, and the book says that it knows event %d", err, n.AsOf)
	}
	broken.isBroken = false
	if err := follow(); err != nil || n.AsOf != 7 {
		t.Errorf("error %v, and the book says that it knows event %d, not 7", err, n.AsOf)
	}
}
