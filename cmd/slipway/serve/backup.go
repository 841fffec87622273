package serve

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"slipway.dev/slipway/cmd/slipway/backup"
	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/moving"
	"slipway.dev/slipway/web/files"
)

// backups takes backups of a running server.
type backups struct {
	store   backup.Store
	dataDir string
	version string
	key     string // fingerprint
}

// Backup implements files.Backups.
func (b backups) Backup(ctx context.Context) (files.Backup, error) {
	f, err := backup.Make(ctx, backup.Config{Store: b.store, DataDir: b.dataDir, Version: b.version, Key: b.key, Now: time.Now()})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// BackupSpace implements files.Backups.
func (b backups) BackupSpace(ctx context.Context) (databaseBytes, freeBytes int64, err error) {
	return backup.Space(ctx, b.store, b.dataDir)
}

// Restore is "slipway restore": it puts a backup into a data directory that no server uses, or into a PostgreSQL database.
func Restore(ctx context.Context, r io.Reader, o backup.Options) (out backup.Restored, err error) {
	if err := makeDataDir(o.DataDir); err != nil {
		return out, err
	}
	// A running server has the database open, and would write its pages over the restored ones.
	unlock, err := lockDataDir(o.DataDir)
	if err != nil {
		return out, err
	}
	defer unlock()
	// Secrets in the backup are sealed with one key. The check before the restore avoids a database that nobody can open.
	if o.Key, err = keyFingerprint(o.DataDir); err != nil {
		return out, err
	}
	o.Now = time.Now()
	return backup.Restore(ctx, r, o)
}

// Move is "slipway database move": it copies the inventory of a data directory that no server uses into a PostgreSQL database, or back. A
// server may run during a dry run, which reads one snapshot.
func Move(ctx context.Context, o backup.MoveOptions) (out backup.Moved, err error) {
	o.Now = time.Now()
	if !backup.IsDatabaseOf(o.File) { // a copy of a database, which belongs to no server
		return backup.Move(ctx, o)
	}
	dir := filepath.Dir(o.File)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return out, inventory.Errorf(inventory.Invalid, "there is no data directory %s", dir).WithHint("name the one of the server")
	}
	unlock, err := lockDataDir(dir)
	if err == nil {
		defer unlock()
	} else if !o.IsDryRun {
		return out, err
	}
	isInUse := err != nil
	out, err = backup.Move(ctx, o)
	out.IsInUse = isInUse
	return out, err
}

// NewKey is "slipway database new-key": it makes a database belong to the key of a data directory. No server may use either.
func NewKey(ctx context.Context, cfg Config) (out keys.Replaced, err error) {
	unlock, err := TakeDataDir(cfg.DataDir)
	if err != nil {
		return out, err
	}
	defer unlock()
	at := cfg.storage()
	if at.IsServer() {
		server, err := at.Server()
		if err != nil {
			return out, err
		}
		// An instance that runs would go on to seal with the former key.
		if err := moving.CheckAlone(ctx, server); err != nil {
			return out, err
		}
	}
	store, err := at.Open(ctx, slog.New(slog.DiscardHandler), func(int64) {})
	if err != nil {
		return out, err
	}
	defer store.Close()
	return keys.Replace(ctx, store, cfg.DataDir, time.Now())
}

// keyFingerprint returns the fingerprint of the key that a server on this data directory would use, "" if it would make one.
func keyFingerprint(dataDir string) (string, error) {
	key, err := keys.ReadKey(dataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	}
	return key.Fingerprint, nil
}
