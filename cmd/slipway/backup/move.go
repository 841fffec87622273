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

// toServer puts the database of a backup into one on a PostgreSQL server. What was there is kept as a file in the data directory.
func toServer(ctx context.Context, path string, o Options) (kept string, c moving.Copied, err error) {
	has, err := moving.HasRows(ctx, o.Server)
	if err != nil {
		return "", c, err
	}
	if has && !o.IsDryRun {
		kept = filepath.Join(o.DataDir, databaseFile+beforeRestore+stamp(o.Now))
		if _, err := moving.Copy(ctx, o.Server, moving.Database{Path: kept}, moving.Options{}); err != nil {
			return "", c, err
		}
	}
	c, err = moving.Copy(ctx, moving.Database{Path: path}, o.Server, moving.Options{IsReplacing: has, IsDryRun: o.IsDryRun})
	return kept, c, err
}

// mayRestore refuses a restore over an inventory that is there, unless it is forced.
func mayRestore(ctx context.Context, o Options) error {
	if o.Force {
		return nil
	}
	if o.Server.URL == "" {
		if _, err := os.Lstat(filepath.Join(o.DataDir, databaseFile)); err == nil {
			return inventory.Errorf(inventory.Conflict, "there is a database in %s already", o.DataDir).
				WithHint("--force puts the backup in its place and keeps it under another name")
		}
		used, err := storage.Settings{DataDir: o.DataDir}.Used()
		if err == nil && used != "" {
			err = inventory.Errorf(inventory.Conflict, "the inventory of %s is in a PostgreSQL database: %s", o.DataDir, inventory.Clean(used, 200)).
				WithHint("name it with --config or --database; --force puts the backup into a file of the data directory")
		}
		return err
	}
	has, err := moving.HasRows(ctx, o.Server)
	if err == nil && has {
		err = inventory.Errorf(inventory.Conflict, "the PostgreSQL database has an inventory already").
			WithHint("--force puts the backup in its place and keeps it as a file in %s", o.DataDir)
	}
	return err
}

// stamp is a time in the name of a file.
func stamp(t time.Time) string { return t.UTC().Format("20060102T150405Z") }
