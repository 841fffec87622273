// Package storage owns where a server keeps its inventory: in the file slipway.db of the data directory, or in a database on a PostgreSQL
// server. It reads the password, refuses a server that would use the wrong one of the two, and watches the health of PostgreSQL. It never
// reads the inventory itself.
//
// Start reading at Settings. check.go judges a PostgreSQL server for the self-check, and watch.go asks it all the time.
package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/inventory/sqlstore/moving"
	"slipway.dev/slipway/inventory/sqlstore/postgres"
)

const (
	sqliteFile = "slipway.db" // in the data directory
	// usedFile has the address of the PostgreSQL database that a data directory was used with last. Without it, a start without the
	// setting would begin with an empty inventory.
	usedFile = "database"
	// placeFile has the system identifier and the timeline of the primary that was used last, so that a start refuses an older one.
	placeFile = "database.place"
	// passwordCred is a systemd credential: LoadCredential=database-password:/path.
	passwordCred = "database-password"
	maxPassword  = 4096
	keyPassword  = "databasePasswordFile" // in the configuration file
)

// Settings say where the inventory is. The zero value with a data directory is SQLite.
type Settings struct {
	URL          string // of a PostgreSQL database; empty: SQLite
	PasswordFile string // empty: the systemd credential, if there is one
	DataDir      string
}

// IsServer reports whether the inventory is on a PostgreSQL server.
func (s Settings) IsServer() bool { return s.URL != "" }

// Check checks the settings, without asking the server. key is that of the setting that is wrong.
func (s Settings) Check() (key string, err error) {
	if !s.IsServer() {
		if s.PasswordFile != "" {
			return keyPassword, inventory.Errorf(inventory.Invalid, "a file with the password of the database is named, and no database").
				WithHint("add --database postgres://user@host:5432/slipway?sslmode=verify-full")
		}
		return "", nil
	}
	a, err := postgres.ReadAddress(s.URL)
	if err != nil {
		return "database", err
	}
	if a.HasPassword && s.PasswordFile != "" {
		return keyPassword, inventory.Errorf(inventory.Invalid, "the database has two passwords: one in its address and one in a file").
			WithHint("take the one out of the address")
	}
	if _, err := s.password(); err != nil {
		return keyPassword, err
	}
	return "", nil
}

// CheckFlag refuses a password in the arguments of a command.
func CheckFlag(url string) error {
	if a, err := postgres.ReadAddress(url); err != nil || !a.HasPassword {
		return err
	}
	return inventory.Errorf(inventory.Invalid,
		"--database has a password, which every user of this machine can read in the list of processes").
		WithHint("write it to a file with mode 0600, and name that with --database-password-file; then change the password")
}

// CheckFile refuses a configuration file with a password that others can read.
func (s Settings) CheckFile(path string) error {
	if !s.IsServer() {
		return nil
	}
	if a, err := postgres.ReadAddress(s.URL); err != nil || !a.HasPassword {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return onlyOurs("the password of the database in "+path, path, info)
}

// onlyOurs refuses a file that others can read.
func onlyOurs(what, path string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return inventory.Errorf(inventory.Invalid, "others can read %s (mode %04o)", what, info.Mode().Perm()).
		WithHint("chmod 0600 %s; if somebody may have read it, change the password", path)
}

// password reads the password; it is empty if there is none, because the server may not ask for one.
func (s Settings) password() (string, error) {
	path := s.PasswordFile
	if path == "" {
		dir := os.Getenv("CREDENTIALS_DIRECTORY")
		if dir == "" {
			return "", nil
		}
		path = filepath.Join(dir, passwordCred)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && s.PasswordFile == "" {
		return "", nil
	} else if err != nil {
		return "", inventory.Errorf(inventory.Invalid, "cannot read the password of the database: %w", err).
			WithHint("write it to a file with mode 0600 that belongs to the user of the server")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	// systemd guards its own credentials. It shows the rights of a service user as those of the group, so that the mode says nothing.
	if s.PasswordFile != "" {
		if err := onlyOurs("the password of the database, "+path, path, info); err != nil {
			return "", err
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxPassword+1))
	switch {
	case err != nil:
		return "", inventory.Errorf(inventory.Invalid, "cannot read the password of the database: %w", err).
			WithHint("%s is a file with the password only", path)
	case len(text) > maxPassword:
		return "", inventory.Errorf(inventory.Invalid, "%s is no password: it is longer than %d bytes", path, maxPassword).
			WithHint("the file has the password only")
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" || strings.ContainsAny(password, "\r\n\x00") {
		return "", inventory.Errorf(inventory.Invalid, "%s is no password: it is empty, or has several lines", path).
			WithHint("the file has the password only")
	}
	return password, nil
}

// Open opens the database. The caller has the lock on the data directory. lost is called when PostgreSQL has lost acknowledged changes.
func (s Settings) Open(ctx context.Context, log *slog.Logger, lost func(commitN int64)) (*sqlstore.Store, error) {
	file := filepath.Join(s.DataDir, sqliteFile)
	hostN, err := countHosts(ctx, file)
	if err != nil {
		return nil, err
	}
	if !s.IsServer() {
		if err := s.notEmptied(hostN); err != nil {
			return nil, err
		}
		return sqlstore.Open(ctx, sqlstore.Config{Path: file, Log: log})
	}
	if hostN > 0 {
		return nil, inventory.Errorf(inventory.Conflict, "a PostgreSQL database is named, but %s has %d hosts", file, hostN).
			WithHint("take it along with: slipway database move; or, to leave it behind: mv %s %s.old", file, file)
	}
	password, err := s.password()
	if err != nil {
		return nil, err
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{
		URL: s.URL, Password: password, Log: log, Lost: lost, Place: s.place(),
		Placed: func(p postgres.Place) {
			if err := s.notePlace(p); err != nil {
				log.Warn("the timeline of the database is not noted: the next start may use an old primary", "err", err)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	if err := s.Note(); err != nil {
		return nil, errors.Join(fmt.Errorf("note which database is used: %w", err), store.Close())
	}
	return store, nil
}

// place returns the primary that the data directory names as the one in use last; none if it has no such file.
func (s Settings) place() (p postgres.Place) {
	text, err := os.ReadFile(filepath.Join(s.DataDir, placeFile))
	if err == nil {
		_, _ = fmt.Sscan(string(text), &p.System, &p.Timeline) // without it, the servers of the address are compared with each other only
	}
	return p
}

func (s Settings) notePlace(p postgres.Place) error {
	path := filepath.Join(s.DataDir, placeFile)
	next := path + ".new"
	if err := os.WriteFile(next, fmt.Appendln(nil, p.System, p.Timeline), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// Server returns the PostgreSQL database for a command that works without a server.
func (s Settings) Server() (moving.Database, error) {
	if _, err := s.Check(); err != nil {
		return moving.Database{}, err
	}
	password, err := s.password()
	return moving.Database{URL: s.URL, Password: password}, err
}

// Used returns the address of the PostgreSQL database that the data directory was used with last, and "" if it has its inventory itself.
func (s Settings) Used() (string, error) {
	text, err := os.ReadFile(filepath.Join(s.DataDir, usedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return cmp.Or(strings.TrimSpace(string(text)), "unknown"), nil // a crash may leave the file empty
}

// Note notes where the inventory is from now on. A server that has other settings then does not start.
func (s Settings) Note() error {
	used := filepath.Join(s.DataDir, usedFile)
	if !s.IsServer() {
		if err := os.Remove(used); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	a, err := postgres.ReadAddress(s.URL)
	if err != nil {
		return err
	}
	return os.WriteFile(used, []byte(a.URL+"\n"), 0o600)
}

// countHosts counts the hosts in the file of SQLite, 0 if there is none.
func countHosts(ctx context.Context, file string) (int, error) {
	if info, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return 0, nil
	}
	return sqlstore.CountHosts(ctx, file)
}

// notEmptied refuses to begin with an empty inventory in a data directory whose inventory is on a PostgreSQL server. A file of SQLite with
// hosts was moved here since.
func (s Settings) notEmptied(hostN int) error {
	used, err := s.Used()
	switch {
	case err != nil:
		return fmt.Errorf("read which database was used: %w", err)
	case used == "":
		return nil
	case hostN > 0:
		return s.Note()
	}
	return inventory.Errorf(inventory.Conflict,
		"the inventory of this data directory is on a PostgreSQL server, and no database is named: %s", inventory.Clean(used, 200)).
		WithHint("add --database, or database: to the file; or, to begin without that inventory: rm %s", filepath.Join(s.DataDir, usedFile))
}
