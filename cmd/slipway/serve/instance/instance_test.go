package instance

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

// TestAServerAloneHasItsDutiesAtOnce starts a server three times on one data directory; the second one is killed.
func TestAServerAloneHasItsDutiesAtOnce(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(dir, "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := range 3 {
		k, _, err := newKeeper(Config{Store: s, DataDir: dir, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Version: "1", IsAlone: true})
		if err != nil {
			t.Fatal(err)
		}
		k.Want(inventory.DutyEngine)
		if err := k.Register(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- k.Run(ctx) }()
		for until := time.Now().Add(10 * time.Second); !k.Holds(inventory.DutyEngine); time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatal("it does not get the engine")
			}
		}
		i, d := stored(t, s)
		if d.Holder != i.ID || d.Epoch != int64(n+1) || i.Run == "" || i.Version != "1" || len(i.Addresses) != 1 {
			t.Errorf("start %d: %+v has %+v", n, i, d)
		}
		if n == 1 { // the next start meets a row that says that this one runs
			defer stop()
			continue
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if i, d := stored(t, s); d.Holder != "" || i.Run != "" {
			t.Errorf("after a stop: %+v has %+v", i, d)
		}
	}
}

// stored returns the only instance, and the duty of the engine.
func stored(t *testing.T, s inventory.Store) (i inventory.Instance, d inventory.Duty) {
	t.Helper()
	err := s.Read(t.Context(), func(tx inventory.Tx) (err error) {
		all, err := tx.ListInstances()
		if err != nil {
			return err
		}
		if len(all) != 1 {
			t.Fatalf("instances: %+v", all)
		}
		i = all[0]
		d, err = tx.FindDuty(inventory.DutyEngine)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return i, d
}

func TestTheIDOfAnInstanceStays(t *testing.T) {
	dir := t.TempDir()
	first, err := readID(dir)
	if err != nil || inventory.CheckName("instance", first) != nil {
		t.Fatalf("made %q: %v", first, err)
	}
	if again, err := readID(dir); err != nil || again != first {
		t.Errorf("read %q: %v", again, err)
	}
	if other, err := readID(t.TempDir()); err != nil || other == first {
		t.Errorf("another directory has %q: %v", other, err)
	}
	info, err := os.Stat(filepath.Join(dir, File))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v: %v", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, File), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if id, err := readID(dir); !inventory.IsKind(err, inventory.Invalid) {
		t.Errorf("an empty file is %q: %v", id, err)
	}
}

// A server alone has nobody to serve on behalf of, so it waits for its engine while the disk is slow.
func TestAServerAloneWaitsForItsEngine(t *testing.T) {
	s := newStore(t)
	slow := &slowStore{Store: s}
	m, err := Join(t.Context(), Config{
		Store: slow, DataDir: t.TempDir(), Name: "a", Version: "1", IsAlone: true, Out: io.Discard, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Leave()
	if ok, err := m.LeadAtOnce(t.Context()); !ok || err != nil || !m.Leads() {
		t.Errorf("it leads: %t, %v", ok, err)
	}
}

// slowStore takes longer for each write but the first than LeadAtOnce waits for a free engine.
type slowStore struct {
	inventory.Store
	n atomic.Int64
}

// Write implements inventory.Store.
func (s *slowStore) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	if s.n.Add(1) > 1 {
		time.Sleep(freeFor + freeFor/4)
	}
	return s.Store.Write(ctx, fn)
}

func TestTheTermOfALeaderEndsWhenAnotherHasTheEngine(t *testing.T) {
	m := &Member{}
	m.term.Store(newTerm(""))
	a := inventory.Instance{ID: "a", Run: "1"}
	m.note(&a)
	term := m.Term()
	for _, same := range []*inventory.Instance{&a, nil, {ID: "a", Run: "1"}} {
		if m.note(same); term.Err() != nil {
			t.Fatalf("after %+v the term has ended", same)
		}
	}
	for _, other := range []inventory.Instance{{ID: "a", Run: "2"}, {ID: "b", Run: "2"}} {
		m.note(&other)
		if term.Err() == nil {
			t.Fatalf("%+v has the engine, and the term goes on", other)
		}
		if term = m.Term(); term.Err() != nil {
			t.Fatal("the next term has ended already")
		}
	}
}

// A server that was paused answers people that it cannot do what they ask. A Conflict would say that what they ask for is wrong, for example
// that the name is taken.
func TestALeaderThatHasLostTheEngineIsUnavailable(t *testing.T) {
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, err := Join(t.Context(), Config{
		Store: s, DataDir: t.TempDir(), Name: "a", Version: "1", Out: io.Discard, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Leave()
	if err := m.Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	taken := inventory.Errorf(inventory.Conflict, "the name is taken")
	if err := m.Store.Write(t.Context(), func(inventory.Tx) error { return taken }); !errors.Is(err, taken) {
		t.Errorf("while it leads: %v", err)
	}
	if err := s.Write(t.Context(), func(tx inventory.Tx) error {
		d, err := tx.FindDuty(inventory.DutyEngine)
		if err != nil {
			return err
		}
		d.Epoch++
		return tx.SaveDuty(d)
	}); err != nil {
		t.Fatal(err)
	}
	err = m.Store.Write(t.Context(), func(inventory.Tx) error { return taken })
	if !inventory.IsKind(err, inventory.Unavailable) || !strings.Contains(err.Error(), "has lost duty engine") || inventory.HintOf(err) == "" {
		t.Errorf("after another has taken the engine: %v", err)
	}
}
