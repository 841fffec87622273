package storage

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

const here = "postgres://slipway@127.0.0.1:1/slipway?sslmode=disable"

// isRefused checks that a setting is refused with these words, a hint, and nothing of a password.
func isRefused(t *testing.T, err error, want string) {
	t.Helper()
	said, ok := err.(*inventory.Error)
	if !ok || !strings.Contains(said.Error(), want) || said.Hint == "" || strings.Contains(said.Error()+said.Hint, "hidden") {
		t.Errorf("%v, want %q and a hint", err, want)
	}
}

func write(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestThePasswordOfTheDatabaseIsReadFromAFileThatNobodyElseReads(t *testing.T) {
	read := func(s Settings) (string, error) {
		if _, err := s.Check(); err != nil {
			return "", err
		}
		return s.password()
	}
	for text, want := range map[string]string{"secret\n": "secret", " two words \r\n": " two words "} {
		if got, err := read(Settings{URL: here, PasswordFile: write(t, text, 0o400)}); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for want, path := range map[string]string{
		"others can read": write(t, "hidden", 0o640), "no such file": "/nowhere/at/all", "it is empty": write(t, "\n", 0o600),
		"several lines": write(t, "hidden\nhidden\n", 0o600), "longer than": write(t, strings.Repeat("x", maxPassword+1), 0o600),
	} {
		_, err := read(Settings{URL: here, PasswordFile: path})
		isRefused(t, err, want)
	}
	credentials := t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", credentials)
	if got, err := read(Settings{URL: here}); got != "" || err != nil {
		t.Errorf("no credential: %q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(credentials, passwordCred), []byte("secret"), 0o440); err != nil {
		t.Fatal(err)
	}
	if got, err := read(Settings{URL: here}); got != "secret" || err != nil {
		t.Errorf("a credential: %q, %v", got, err)
	}
}

func TestAPasswordOfTheDatabaseIsNotShown(t *testing.T) {
	const url = "postgres://slipway:hidden@127.0.0.1/slipway"
	isRefused(t, CheckFlag(url), "list of processes")
	s := Settings{URL: url}
	isRefused(t, s.CheckFile(write(t, "database: "+url, 0o644)), "others can read")
	if err := s.CheckFile(write(t, "database: "+url, 0o600)); err != nil {
		t.Error(err)
	}
	s.PasswordFile = write(t, "hidden", 0o600)
	_, err := s.Check()
	isRefused(t, err, "two passwords")
	_, err = Settings{PasswordFile: s.PasswordFile}.Check()
	isRefused(t, err, "no database")
}

// TestADataDirectoryHasOneInventory: neither of two databases is used by mistake.
func TestADataDirectoryHasOneInventory(t *testing.T) {
	dir := t.TempDir()
	quiet := slog.New(slog.DiscardHandler)
	open := func(url string) error {
		store, err := Settings{URL: url, DataDir: dir}.Open(t.Context(), quiet, nil)
		if err == nil {
			return store.Close()
		}
		return err
	}
	used := filepath.Join(dir, usedFile)
	if err := os.WriteFile(used, []byte("postgres://slipway@db/slipway\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	isRefused(t, open(""), "postgres://slipway@db/slipway")
	if _, err := os.Stat(filepath.Join(dir, sqliteFile)); err == nil {
		t.Error("a file of SQLite was made all the same")
	}
	addHost(t, filepath.Join(dir, sqliteFile))
	isRefused(t, open(here), "slipway.db has 1 hosts")
	if err := open(""); err != nil { // it was moved here
		t.Error(err)
	}
	if _, err := os.Stat(used); err == nil {
		t.Error("the server notes another database than the one it uses")
	}
}

func addHost(t *testing.T, path string) {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Write(t.Context(), func(tx inventory.Tx) error {
		return tx.CreateHost(&inventory.Host{ID: "h", Name: "h", State: inventory.Discovered}, time.Now())
	}); err != nil {
		t.Fatal(err)
	}
}
