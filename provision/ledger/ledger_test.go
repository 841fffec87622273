package ledger

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

var now = time.Date(2026, 11, 27, 7, 0, 0, 0, time.UTC)

// open returns a Ledger on an empty store, with one host that somebody has accepted.
func open(t *testing.T) (*Ledger, inventory.Store, *inventory.Host) {
	t.Helper()
	store, err := sqlstore.Open(context.Background(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	h := &inventory.Host{
		ID: "00000000-0000-7000-8000-000000000001", Name: "a", State: inventory.Discovered, StateSinceAt: now.Add(-time.Hour),
		NICs: []inventory.NIC{{MAC: "52:54:00:00:00:01"}},
	}
	if err := store.Write(context.Background(), func(tx inventory.Tx) error { return tx.CreateHost(h, now) }); err != nil {
		t.Fatal(err)
	}
	l := &Ledger{}
	l.Configure(Config{
		Base:  Base{Store: store, Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(io.Discard, nil))},
		Freed: func(inventory.Tx, *inventory.Host) error { return nil },
	})
	return l, store, h
}

func stateOf(t *testing.T, s inventory.Store, id inventory.HostID) (state inventory.State, changes []inventory.Event) {
	t.Helper()
	err := s.Read(context.Background(), func(tx inventory.Tx) error {
		h, err := tx.FindHost(id)
		if err != nil {
			return err
		}
		state = h.State
		changes, err = tx.ListEvents(inventory.EventFilter{HostID: id, Kind: inventory.EventStateChanged}, 0, 10)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return state, changes
}

func TestAChangeOfStateIsStoredWithTheEventThatSaysWhy(t *testing.T) {
	l, store, h := open(t)
	freed := 0
	l.cfg.Freed = func(inventory.Tx, *inventory.Host) error { freed++; return nil }
	if err := l.Write(context.Background(), By("eva"), func(tx inventory.Tx) error { return l.Move(tx, h, inventory.Accept, "", "eva wants it") }); err != nil {
		t.Fatal(err)
	}
	state, changes := stateOf(t, store, h.ID)
	if state != inventory.Available || len(changes) != 1 || changes[0].Detail != "discovered → available: eva wants it" || freed != 1 {
		t.Errorf("%s, %+v, freed %d times", state, changes, freed)
	}
}

// witness counts what it is asked for.
type witness struct{ enters, entered int }

func (w *witness) Enter(context.Context, inventory.Tx) error { w.enters++; return nil }
func (w *witness) Entered(context.Context)                   { w.entered++ }

func TestADryRunLeavesNoTrace(t *testing.T) {
	l, store, h := open(t)
	for name, c := range map[string]struct {
		isDry          bool
		wantErr        error
		state          inventory.State
		enters, events int
	}{
		"a dry run":            {true, nil, inventory.Discovered, 0, 0},
		"a dry run that fails": {true, io.EOF, inventory.Discovered, 0, 0},
	} {
		w := &witness{}
		one := *h
		err := l.Write(context.Background(), Asker{By: "eva", Witness: w, DryRun: c.isDry}, func(tx inventory.Tx) error {
			if l.IsDryRun(tx) != c.isDry {
				t.Errorf("%s: the transaction does not know it", name)
			}
			return errors.Join(l.Move(tx, &one, inventory.Accept, "", "why"), c.wantErr)
		})
		state, changes := stateOf(t, store, h.ID)
		if !errors.Is(err, c.wantErr) || state != c.state || w.enters+w.entered != c.enters || len(changes) != c.events {
			t.Errorf("%s: %v, %s, %+v, %+v", name, err, state, w, changes)
		}
	}
}

func TestARefusalIsNotedOnceAMinute(t *testing.T) {
	var r Refusals
	if !r.First("x", now) || r.First("x", now.Add(RefusedAgain-1)) || !r.First("y", now) || !r.First("x", now.Add(RefusedAgain)) {
		t.Error("not once a minute")
	}
}
