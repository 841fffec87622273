package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

var now = time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)

const digestOfOne = inventory.Digest("sha256:aa00000000000000000000000000000000000000000000000000000000000000")

func openStore(t *testing.T, dir string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(dir, databaseFile)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func addEvent(t *testing.T, s inventory.Store, detail string) int64 {
	t.Helper()
	e := inventory.Event{At: now, Kind: inventory.EventChanged, Detail: detail}
	if err := s.Write(t.Context(), func(tx inventory.Tx) error { return tx.AddEvent(&e) }); err != nil {
		t.Error(err)
	}
	return e.ID
}

// taken makes a backup of a store with a secret and an artefact in it.
func taken(t *testing.T, s *sqlstore.Store, dir string) []byte {
	t.Helper()
	f, err := Make(t.Context(), Config{Store: s, DataDir: dir, Version: "test", Key: "k1", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := f.Write(&out); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := os.Stat(tempDir(dir)); !os.IsNotExist(err) {
		t.Errorf("the copy stays in the data directory: %v", err)
	}
	return out.Bytes()
}

func seeded(t *testing.T, dir string) *sqlstore.Store {
	t.Helper()
	s := openStore(t, dir)
	err := s.Write(t.Context(), func(tx inventory.Tx) error {
		return errors.Join(
			tx.SaveArtefact(inventory.Artefact{Digest: digestOfOne, SizeBytes: 3, CreatedAt: now}),
			tx.Secrets().Create(&inventory.Secret{Name: "db", Sealed: []byte("sealed")}, now))
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestABackupUnderLoadHasAllThatWasCommittedBefore writes all the time while backups are taken.
func TestABackupUnderLoadHasAllThatWasCommittedBefore(t *testing.T) {
	dir := t.TempDir()
	s := seeded(t, dir)
	var (
		last atomic.Int64 // id of the newest event whose write has returned
		stop atomic.Bool
		wg   sync.WaitGroup
	)
	for w := range 4 {
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				id := addEvent(t, s, fmt.Sprintf("writer %d, %d %s", w, n, strings.Repeat("x", 500)))
				for had := last.Load(); id > had && !last.CompareAndSwap(had, id); had = last.Load() {
				}
			}
		})
	}
	for i := range 3 {
		for last.Load() < int64(50*(i+1)) {
			time.Sleep(time.Millisecond) // until there is something to lose
		}
		had := last.Load()
		file := taken(t, s, dir)
		to := t.TempDir()
		out, err := Restore(t.Context(), bytes.NewReader(file), Options{DataDir: to, Key: "k1", Now: now})
		if err != nil {
			t.Fatal(err)
		}
		if out.Kept != "" || !out.HasKey || out.IsOtherKey || len(out.Missing) != 1 || out.Manifest.SecretN != 1 {
			t.Errorf("restored %+v", out)
		}
		restored := openStore(t, to)
		err = restored.Read(t.Context(), func(tx inventory.Tx) error {
			events, err := tx.ListEvents(inventory.EventFilter{}, 0, 0)
			if err != nil {
				return err
			}
			seen := map[int64]bool{}
			for _, e := range events {
				seen[e.ID] = true
			}
			for id := int64(1); id <= had; id++ {
				if !seen[id] {
					t.Fatalf("backup %d lacks event %d of %d that were committed before it", i, id, had)
				}
			}
			x, err := tx.Secrets().Find("db")
			if string(x.Sealed) != "sealed" {
				t.Errorf("secret %+v", x)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		addEvent(t, restored, "a server goes on with it")
		if err := restored.Close(); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNoWholeBackupIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := seeded(t, dir)
	for range 200 {
		addEvent(t, s, strings.Repeat("x", 500))
	}
	whole := taken(t, s, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, file []byte) {
		t.Helper()
		to := t.TempDir()
		_, err := Restore(t.Context(), bytes.NewReader(file), Options{DataDir: to, Now: now})
		var e *inventory.Error
		if !errors.As(err, &e) || e.Kind != inventory.Invalid && e.Kind != inventory.Conflict || e.Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
		if left, _ := os.ReadDir(to); len(left) != 0 {
			t.Errorf("%s leaves %v", what, left)
		}
	}
	refused("nothing", nil)
	refused("some text", []byte(strings.Repeat("not a backup\n", 100)))
	for _, n := range []int{1, 10, len(whole) / 2, len(whole) - 9, len(whole) - 1} {
		refused(fmt.Sprintf("the first %d of %d bytes", n, len(whole)), whole[:n])
	}
	for i := 20; i < len(whole)-8; i += len(whole) / 23 {
		broken := bytes.Clone(whole)
		broken[i] ^= 0x10
		if bytes.Equal(unzipped(broken), unzipped(whole)) {
			continue // a bit that only fills a byte up: nothing is lost
		}
		refused(fmt.Sprintf("byte %d flipped", i), broken)
	}
	db := databaseIn(t, whole)
	refused("a newer form", repack(t, func(m *Manifest) { m.Format = 99 }, db))
	refused("another database than its manifest says", repack(t, func(m *Manifest) { m.SHA256 = strings.Repeat("0", 64) }, db))
	refused("no database of ours", repack(t, func(*Manifest) {}, []byte(strings.Repeat("x", 4096))))
	broken := bytes.Clone(db)
	for i := 8192; i < len(broken); i += 512 {
		broken[i] ^= 0xff
	}
	refused("a damaged database that is as its manifest says", repack(t, func(*Manifest) {}, broken))
	refused("a database cut short", repack(t, func(*Manifest) {}, db[:len(db)/2/4096*4096]))
}

// unzipped returns what gzip reads of a file, nil for a damaged one.
func unzipped(file []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil
	}
	all, err := io.ReadAll(z)
	if err != nil {
		return nil
	}
	return all
}

// databaseIn returns the database of a backup.
func databaseIn(t *testing.T, file []byte) []byte {
	t.Helper()
	var db bytes.Buffer
	if _, err := Read(bytes.NewReader(file), &db); err != nil {
		t.Fatal(err)
	}
	return db.Bytes()
}

// repack makes a backup of any bytes, with a manifest that fits them but for edit.
func repack(t *testing.T, edit func(*Manifest), db []byte) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, db, 0o600); err != nil {
		t.Fatal(err)
	}
	m := Manifest{Format: format, At: now}
	var err error
	if m.SHA256, m.Bytes, err = digest(path); err != nil {
		t.Fatal(err)
	}
	edit(&m)
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for name, body := range map[string][]byte{manifestFile: text} {
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: name, Size: int64(len(body))}), second(w.Write(body))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: databaseFile, Size: int64(len(db))}), second(w.Write(db)), w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func second(_ int, err error) error { return err }

func TestADatabaseThatIsThereIsKept(t *testing.T) {
	dir, to := t.TempDir(), t.TempDir()
	s := seeded(t, dir)
	file := taken(t, s, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	old := openStore(t, to)
	addEvent(t, old, "of the old one")
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	// A server that was killed leaves a log, which must not be taken for that of the new database.
	if err := os.WriteFile(filepath.Join(to, databaseFile+"-wal"), []byte("log"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Restore(t.Context(), bytes.NewReader(file), Options{DataDir: to, Now: now})
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != inventory.Conflict || !strings.Contains(e.Hint, "--force") {
		t.Fatalf("over a database: %v", err)
	}
	if out, err := Restore(t.Context(), bytes.NewReader(file[:len(file)/2]), Options{DataDir: to, Force: true, Now: now}); err == nil || out.Kept != "" {
		t.Fatalf("half a backup, forced: %+v %v", out, err)
	}
	out, err := Restore(t.Context(), bytes.NewReader(file), Options{DataDir: to, Force: true, Key: "another", Now: now})
	if err != nil || out.Kept == "" || !out.IsOtherKey {
		t.Fatalf("forced: %+v %v", out, err)
	}
	if text, err := os.ReadFile(out.Kept + "-wal"); err != nil || string(text) != "log" {
		t.Errorf("the log of the old one: %q %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(to, databaseFile+"-wal")); !os.IsNotExist(err) {
		t.Errorf("the log of the old one is beside the new one: %v", err)
	}
	restored := openStore(t, to)
	defer restored.Close()
	if err := restored.Read(t.Context(), func(tx inventory.Tx) error { _, err := tx.Secrets().Find("db"); return err }); err != nil {
		t.Error(err)
	}
	if err := os.Remove(out.Kept + "-wal"); err != nil { // it was no log
		t.Fatal(err)
	}
	kept, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: out.Kept})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	err = kept.Read(t.Context(), func(tx inventory.Tx) error {
		events, err := tx.ListEvents(inventory.EventFilter{}, 0, 0)
		if len(events) != 1 || events[0].Detail != "of the old one" {
			t.Errorf("the old one has %+v", events)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestABackupThatIsGivenUpLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := seeded(t, dir)
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Make(ctx, Config{Store: s, DataDir: dir, Now: now}); err == nil {
		t.Error("it was made")
	}
	if _, err := os.Stat(tempDir(dir)); !os.IsNotExist(err) {
		t.Errorf("something stays: %v", err)
	}
}
