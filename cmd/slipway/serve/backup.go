package serve

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"slipway.dev/slipway/cmd/slipway/backup"
	"slipway.dev/slipway/cmd/slipway/serve/keys"
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
func (b backups) BackupSpace() (databaseBytes, freeBytes int64, err error) {
	return backup.Space(b.dataDir)
}

// Restore is "slipway restore": it puts a backup into a data directory that no server uses.
func Restore(ctx context.Context, r io.Reader, dataDir string, force bool) (out backup.Restored, err error) {
	if err := makeDataDir(dataDir); err != nil {
		return out, err
	}
	// A running server has the database open, and would write its pages over the restored ones.
	unlock, err := lockDataDir(dataDir)
	if err != nil {
		return out, err
	}
	defer unlock()
	// Secrets in the backup are sealed with one key. The check before the restore avoids a database that nobody can open.
	key, err := keyFingerprint(dataDir)
	if err != nil {
		return out, err
	}
	return backup.Restore(ctx, r, backup.Options{DataDir: dataDir, Force: force, Key: key, Now: time.Now()})
}

// keyFingerprint returns the fingerprint of the key that a server on this data directory would use, "" if it would make one.
func keyFingerprint(dataDir string) (string, error) {
	if _, err := os.Stat(keys.KeyPath(dataDir)); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	_, derived, err := keys.OpenBox(dataDir, 1)
	if err != nil {
		return "", err
	}
	return backup.Fingerprint(derived), nil
}
