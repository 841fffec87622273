package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/moving"
	"slipway.dev/slipway/inventory/sqlstore/postgres"
)

// MoveOptions say between which databases an inventory moves. The caller holds the lock of the data directory, unless it IsDryRun.
type MoveOptions struct {
	File     string          // of SQLite
	Server   moving.Database // on PostgreSQL
	IsBack   bool            // from the server into the file
	IsDryRun bool
	Now      time.Time
}

// Moved says what came of a move.
type Moved struct {
	From string `json:"from"`
	To   string `json:"to"`
	moving.Copied
	Kept    string `json:"kept,omitempty"` // where the file is now that had the inventory before
	IsInUse bool   `json:"isInUse,omitempty"`
}

// Move copies an inventory from one database into the other. The old one stays as it is, and a file of a data directory gets another name:
// no server starts on it by mistake.
func Move(ctx context.Context, o MoveOptions) (Moved, error) {
	from, to := moving.Database{Path: o.File}, o.Server
	m := Moved{From: o.File, To: Address(o.Server.URL)}
	if o.IsBack {
		from, to = to, from
		m.From, m.To = m.To, m.From
	}
	var err error
	if m.Copied, err = moving.Copy(ctx, from, to, moving.Options{IsDryRun: o.IsDryRun}); err != nil || o.IsDryRun || !IsDatabaseOf(o.File) {
		return m, err
	}
	now := storage.Settings{DataDir: filepath.Dir(o.File)}
	if !o.IsBack {
		now.URL = o.Server.URL
	}
	// The note comes first. Between the two steps a server without the new setting finds the old database, and after them it does not start.
	if err := now.Note(); err != nil {
		return m, movedBut(m, err, "the file database in "+now.DataDir+" has the address of PostgreSQL if the inventory is there")
	}
	if o.IsBack {
		return m, nil
	}
	if m.Kept, err = setAside(o.File, o.Now); err != nil {
		return m, movedBut(m, err, "mv "+o.File+" "+o.File+".moved")
	}
	return m, nil
}

// movedBut is the error of a step after the rows have moved.
func movedBut(m Moved, err error, step string) error {
	return inventory.Errorf(inventory.Unavailable, "all rows are in %s, but a last step failed: %v", m.To, err).
		WithHint("do it by hand: %s", step)
}

// setAside gives a database file, and its log if it has one, another name.
func setAside(file string, now time.Time) (name string, err error) {
	name = file + ".moved-" + stamp(now)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		// Link refuses a name that is taken, and Rename would replace that file.
		if err := os.Link(file+suffix, name+suffix); err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
			return "", err
		}
		if err := os.Remove(file + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return name, syncDir(filepath.Dir(file))
}

// IsDatabaseOf reports whether a file is the database of a data directory.
func IsDatabaseOf(file string) bool { return filepath.Base(file) == databaseFile }

// DatabaseFile returns the file of SQLite that a path names: a data directory has one.
func DatabaseFile(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, databaseFile)
	}
	return path
}

// IsBackup reports whether a file is a backup, or begins as one.
func IsBackup(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	magic := make([]byte, 2)
	_, err = f.Read(magic)
	return err == nil && string(magic) == "\x1f\x8b" // gzip
}

// IsServer reports whether a text is the address of a PostgreSQL database, and no path.
func IsServer(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// Address is the address of a PostgreSQL database without its password.
func Address(text string) string {
	a, err := postgres.ReadAddress(text)
	if err != nil {
		return "PostgreSQL"
	}
	return a.URL
}
