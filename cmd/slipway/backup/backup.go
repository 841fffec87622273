// Package backup owns the form of a backup: a gzipped tar file with two files. manifest.json says what a restore needs
// besides, and slipway.db is a copy of the database at one moment. It is a file of SQLite, also when the inventory is in PostgreSQL.
// The package writes one from a running server's store, and puts one into a database that no server uses. It also moves an
// inventory from one database into another. A backup never holds the key of the secrets.
//
// Start reading at Make; then Restore, and Move.
package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// Manifest is what a backup says of itself. It comes first in the file.
type Manifest struct {
	Format    int           `json:"format"`  // 1
	Slipway   string        `json:"slipway"` // version that made it
	At        time.Time     `json:"at"`
	SHA256    string        `json:"sha256"` // of slipway.db, in hex
	Bytes     int64         `json:"bytes"`
	HostN     int           `json:"hostN"`          // so that one can tell backups apart
	LastEvent int64         `json:"lastEvent"`      // id of the newest event
	SecretN   int           `json:"secretN"`        // secrets and passwords in it that are sealed
	Key       string        `json:"keyFingerprint"` // of the key that opens them, which is not in the file
	Artefacts []ArtefactRef `json:"artefacts"`      // files that images need, which are not in it either
	NotInIt   []string      `json:"notInIt"`        // for people who open the file
}

// ArtefactRef names a file of an image.
type ArtefactRef struct {
	Digest inventory.Digest `json:"digest"`
	Bytes  int64            `json:"bytes"`
}

const (
	format       = 1
	databaseFile = "slipway.db"
	manifestFile = "manifest.json"
	manifestMax  = 64 << 20
	margin       = 64 << 20 // bytes that must stay free on the disk
)

// Store is what a backup is made of.
type Store interface {
	inventory.Store
	Backup(ctx context.Context, path string) error
	Size(ctx context.Context) (bytes int64, err error)
}

// Config says what to make a backup of.
type Config struct {
	Store   Store
	DataDir string
	Version string
	Key     string // fingerprint of the key of the secrets
	Now     time.Time
}

// File is a backup that is ready to be written out.
type File struct {
	Manifest Manifest
	dir      string
}

// tempDir is where a copy lies while it is sent. There is one at a time, and what a crash has left is removed by the next.
func tempDir(dataDir string) string { return filepath.Join(dataDir, "backup.tmp") }

// Make copies the database, while everything goes on, into a folder of the data directory. Close removes the copy.
func Make(ctx context.Context, cfg Config) (*File, error) {
	if err := needs(ctx, cfg.Store, cfg.DataDir); err != nil {
		return nil, err
	}
	f := &File{dir: tempDir(cfg.DataDir)}
	if err := errors.Join(os.RemoveAll(f.dir), os.Mkdir(f.dir, 0o700)); err != nil {
		return nil, inventory.Errorf(inventory.Unavailable, "cannot write the backup: %v", err)
	}
	path := filepath.Join(f.dir, databaseFile)
	// The copy is of one moment. describe reads the live database a little later, so that its counts may be newer by some rows.
	if err := cfg.Store.Backup(ctx, path); err != nil {
		f.Close()
		return nil, err
	}
	m, err := describe(ctx, cfg)
	if err == nil {
		// Read back from the disk: the sum is of what was really written.
		m.SHA256, m.Bytes, err = digest(path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	f.Manifest = m
	return f, nil
}

// describe says what belongs to a backup besides the database.
func describe(ctx context.Context, cfg Config) (Manifest, error) {
	m := Manifest{
		Format: format, Slipway: cfg.Version, At: cfg.Now.UTC().Truncate(time.Second), Key: cfg.Key, Artefacts: []ArtefactRef{},
		NotInIt: []string{
			"secret.key, without which the sealed secrets cannot be opened", "artefacts/, the files of images",
		},
	}
	err := cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		artefacts, err := tx.ListArtefacts(inventory.Page{})
		if err != nil {
			return err
		}
		for _, a := range artefacts {
			m.Artefacts = append(m.Artefacts, ArtefactRef{a.Digest, a.SizeBytes})
		}
		secrets, err := tx.Secrets().List(inventory.Page{})
		if err != nil {
			return err
		}
		controllers, err := tx.ListBMCs(inventory.Page{})
		if err != nil {
			return err
		}
		m.SecretN = len(secrets)
		for _, b := range controllers {
			if len(b.Sealed) > 0 {
				m.SecretN++
			}
		}
		if m.HostN, err = tx.CountHosts(inventory.HostFilter{}); err != nil {
			return err
		}
		m.LastEvent, err = tx.LastEventID()
		return err
	})
	return m, err
}

// Name is what a backup's file is called.
func (f *File) Name() string {
	return "slipway-" + f.Manifest.At.Format("20060102T150405Z") + ".tar.gz"
}

// Write writes the backup.
func (f *File) Write(w io.Writer) error {
	db, err := os.Open(filepath.Join(f.dir, databaseFile))
	if err != nil {
		return err
	}
	defer db.Close()
	text, err := json.MarshalIndent(f.Manifest, "", "  ")
	if err != nil {
		return err
	}
	// Sealed secrets and hashes do not shrink anyway, and the sender should not wait for the CPU.
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // that level exists
	t := tar.NewWriter(z)
	head := func(name string, size int64) error {
		return t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: f.Manifest.At, Format: tar.FormatPAX})
	}
	if err := head(manifestFile, int64(len(text))); err != nil {
		return err
	}
	if _, err := t.Write(text); err != nil {
		return err
	}
	if err := head(databaseFile, f.Manifest.Bytes); err != nil {
		return err
	}
	if _, err := io.Copy(t, db); err != nil {
		return err
	}
	return errors.Join(t.Close(), z.Close())
}

// Close removes the copy.
func (f *File) Close() { _ = os.RemoveAll(f.dir) } // the next backup removes what stays

// Space returns how large the database is, and how many bytes are free in the data directory.
func Space(ctx context.Context, store Store, dataDir string) (databaseBytes, freeBytes int64, err error) {
	var is unix.Statfs_t
	if err := unix.Statfs(dataDir, &is); err != nil {
		return 0, 0, fmt.Errorf("ask for free space of %s: %w", dataDir, err)
	}
	databaseBytes, err = store.Size(ctx)
	return databaseBytes, int64(is.Bavail) * is.Bsize, err
}

// needs refuses to fill the disk.
func needs(ctx context.Context, store Store, dataDir string) error {
	bytes, free, err := Space(ctx, store, dataDir)
	if err != nil {
		return err
	}
	if bytes += margin; free < bytes {
		return inventory.Errorf(inventory.Unavailable,
			"the disk has %d MiB free and a copy of the database needs up to %d MiB", free>>20, bytes>>20).
			WithHint("free space on the file system of %s", dataDir)
	}
	return nil
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func digest(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}
