package backup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/inventory/sqlstore/moving"
	"slipway.dev/slipway/test/postgres"
)

// onServer opens a store on PostgreSQL, and closes it with the test at the latest.
func onServer(t *testing.T, db moving.Database) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: db.URL})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// details are the texts of all events.
func details(t *testing.T, s *sqlstore.Store) (all string) {
	t.Helper()
	err := s.Read(t.Context(), func(tx inventory.Tx) error {
		events, err := tx.ListEvents(inventory.EventFilter{}, 0, 0)
		for _, e := range events {
			all += e.Detail + "\n"
		}
		return err
	})
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return all
}

func conflict(t *testing.T, err error, msg string) {
	t.Helper()
	e, ok := errors.AsType[*inventory.Error](err)
	if !ok || e.Kind != inventory.Conflict || !strings.Contains(e.Msg, msg) || e.Hint == "" {
		t.Errorf("%#v, want a conflict with %q", err, msg)
	}
}

// TestAMoveToPostgreSQLAndBackLeavesNoServerOnTheOldDatabase moves a data directory, and looks what a server would do on it.
func TestAMoveToPostgreSQLAndBackLeavesNoServerOnTheOldDatabase(t *testing.T) {
	dir := t.TempDir()
	s := seeded(t, dir)
	addEvent(t, s, "of the file")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	o := MoveOptions{File: filepath.Join(dir, databaseFile), Server: moving.Database{URL: postgres.Shared(t).Database(t)}, Now: now}

	dry := o
	dry.IsDryRun = true
	if m, err := Move(t.Context(), dry); err != nil || m.Kept != "" || len(m.Tables) < 40 {
		t.Fatalf("dry run: %+v %v", m, err)
	}
	m, err := Move(t.Context(), o)
	if err != nil || m.Kept != o.File+".moved-20261122T180000Z" || strings.Contains(m.To, ":slipway") {
		t.Fatalf("%+v %v", m, err)
	}
	if _, err := os.Stat(o.File); !os.IsNotExist(err) {
		t.Errorf("the old database has its name still: %v", err)
	}
	if err := sqlstore.Check(t.Context(), m.Kept); err != nil {
		t.Errorf("the old database: %v", err)
	}
	_, err = storage.Settings{DataDir: dir}.Open(t.Context(), nil, nil)
	conflict(t, err, "is on a PostgreSQL server, and no database is named")
	conflict(t, mayRestore(t.Context(), Options{DataDir: dir}), "is in a PostgreSQL database")
	server := onServer(t, o.Server)
	addEvent(t, server, "of the server")
	if got := details(t, server); got != "of the file\nof the server\n" {
		t.Errorf("on PostgreSQL: %q", got)
	}

	_, err = Move(t.Context(), MoveOptions{File: m.Kept, Server: o.Server, Now: now})
	conflict(t, err, "not empty")

	back := o
	back.IsBack = true
	if m, err := Move(t.Context(), back); err != nil || m.Kept != "" {
		t.Fatalf("back: %+v %v", m, err)
	}
	again, err := storage.Settings{DataDir: dir}.Open(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := details(t, again); got != "of the file\nof the server\n" {
		t.Errorf("back in the file: %q", got)
	}
	_, err = Move(t.Context(), back)
	conflict(t, err, "exists already")
}

// TestABackupOfPostgreSQLIsRestoredAnywhere takes a backup of a store on PostgreSQL, and restores it into a file and into PostgreSQL.
func TestABackupOfPostgreSQLIsRestoredAnywhere(t *testing.T) {
	db := moving.Database{URL: postgres.Shared(t).Database(t)}
	s := onServer(t, db)
	addEvent(t, s, "in the backup")
	file := taken(t, s, t.TempDir())
	addEvent(t, s, "after the backup")

	to := t.TempDir()
	if _, err := Restore(t.Context(), bytes.NewReader(file), Options{DataDir: to, Now: now}); err != nil {
		t.Fatal(err)
	}
	if got := details(t, openStore(t, to)); got != "in the backup\n" {
		t.Errorf("in a file: %q", got)
	}
	here := Options{DataDir: t.TempDir(), Server: db, Now: now}
	_, err := Restore(t.Context(), bytes.NewReader(file), here)
	conflict(t, err, "has an inventory already")
	here.Force = true
	_, err = Restore(t.Context(), bytes.NewReader(file), here)
	conflict(t, err, "Slipway uses the database")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), bytes.NewReader(file[:len(file)/2]), here); err == nil {
		t.Error("half a backup was restored")
	}
	if got := details(t, onServer(t, db)); got != "in the backup\nafter the backup\n" {
		t.Errorf("after restores that were refused: %q", got)
	}
	out, err := Restore(t.Context(), bytes.NewReader(file), here)
	if err != nil {
		t.Fatal(err)
	}
	if got := details(t, onServer(t, db)); got != "in the backup\n" {
		t.Errorf("in PostgreSQL: %q", got)
	}
	kept, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: out.Kept})
	if err != nil {
		t.Fatal(err)
	}
	if got := details(t, kept); got != "in the backup\nafter the backup\n" {
		t.Errorf("what was kept: %q", got)
	}
	empty := Options{DataDir: t.TempDir(), Server: moving.Database{URL: postgres.Shared(t).Database(t)}, Now: now}
	if out, err := Restore(t.Context(), bytes.NewReader(file), empty); err != nil || out.Kept != "" || len(out.Tables) < 40 {
		t.Errorf("into an empty database: %+v %v", out.Kept, err)
	}
}
