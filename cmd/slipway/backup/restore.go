package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/inventory/sqlstore/moving"
)

// Restored is what came of a restore.
type Restored struct {
	Manifest Manifest      `json:"manifest"`
	Kept     string        `json:"kept,omitempty"` // where the database is that was there before
	Missing  []ArtefactRef `json:"missing"`        // files of images that are not here
	HeldN    int           `json:"heldN"`          // hosts put into maintenance, so that nothing goes on with them by itself
	// HasKey says whether the key of the secrets is here, IsOtherKey that it is not the one that they were sealed with.
	HasKey        bool `json:"hasKey"`
	IsOtherKey    bool `json:"isOtherKey"`
	moving.Copied      // into a PostgreSQL database
}

// Read goes through a backup and checks it. A nil db checks and keeps nothing; otherwise the database is written there. Any
// fault in the file is Invalid.
func Read(r io.Reader, db io.Writer) (m Manifest, err error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return m, damaged("it is not a gzip file", err)
	}
	t := tar.NewReader(z)
	head, err := t.Next()
	if err != nil || head.Name != manifestFile || head.Size > manifestMax {
		return m, damaged("it does not begin with "+manifestFile, err)
	}
	text, err := io.ReadAll(t)
	if err != nil {
		return m, damaged("its manifest cannot be read", err)
	}
	if err := json.Unmarshal(text, &m); err != nil || m.Format < 1 {
		return m, damaged("its manifest cannot be read", err)
	}
	if m.Format > format {
		return m, inventory.Errorf(inventory.Conflict, "the backup was made by a newer Slipway (%s)", inventory.Clean(m.Slipway, 40)).
			WithHint("restore it with that version")
	}
	// Only these two names are read, in this order: no path of the archive ever becomes one on this machine.
	if head, err = t.Next(); err != nil || head.Name != databaseFile || head.Size != m.Bytes {
		return m, damaged("it holds no database", err)
	}
	h := sha256.New()
	var to io.Writer = h
	if db != nil {
		to = io.MultiWriter(h, db)
	}
	if _, err := io.Copy(to, t); err != nil {
		return m, damaged("it is cut short or damaged", err)
	}
	if hex.EncodeToString(h.Sum(nil)) != m.SHA256 {
		return m, damaged("the database in it is not the one that was put in", nil)
	}
	// A file that was cut behind the database still has its right sum. The end of the archive and gzip's checksum show it.
	if _, err := t.Next(); !errors.Is(err, io.EOF) {
		return m, damaged("it does not end where it should", err)
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(z, 1<<20)); err != nil { // up to the checksum of the whole file
		return m, damaged("it is cut short or damaged", err)
	}
	return m, nil
}

func damaged(why string, err error) error {
	return &inventory.Error{
		Kind: inventory.Invalid, Msg: "the file is no whole backup: " + why, Hint: "take another backup; nothing was changed", Err: err,
	}
}

// Options say where a backup goes.
type Options struct {
	DataDir string
	// Server is the PostgreSQL database that the backup goes into. Without an address it goes into the data directory.
	Server   moving.Database
	IsDryRun bool   // only for a server
	Force    bool   // even where there is an inventory; it is kept in another file
	Key      string // fingerprint of the key that is there; "" for none
	Now      time.Time
}

// Restore puts a backup into a data directory that no server uses, or into a PostgreSQL database. The caller holds the lock of the
// directory. Slipway checks the backup and brings it up to date first. Then one rename, or one transaction, puts it in place.
func Restore(ctx context.Context, r io.Reader, o Options) (out Restored, err error) {
	if err := mayRestore(ctx, o); err != nil {
		return out, err
	}
	dir := filepath.Join(o.DataDir, "restore.tmp")
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return out, inventory.Errorf(inventory.Unavailable, "cannot write to %s: %v", o.DataDir, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, databaseFile)
	if out.Manifest, err = unpack(r, path); err != nil {
		return out, err
	}
	if err := sqlstore.Check(ctx, path); err != nil {
		return out, err
	}
	if err := out.upgrade(ctx, path, o); err != nil {
		return out, err
	}
	if o.Server.URL != "" {
		out.Kept, out.Copied, err = toServer(ctx, path, o)
	} else {
		out.Kept, err = place(path, filepath.Join(o.DataDir, databaseFile), o.Now)
	}
	if err != nil {
		return out, err
	}
	out.HasKey = o.Key != ""
	out.IsOtherKey = o.Key != "" && out.Manifest.Key != "" && o.Key != out.Manifest.Key
	return out, nil
}

// unpack writes the database of a backup to a new file.
func unpack(r io.Reader, path string) (m Manifest, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return m, inventory.Errorf(inventory.Unavailable, "cannot write %s: %v", path, err)
	}
	m, err = Read(r, f)
	if done := errors.Join(f.Sync(), f.Close()); err == nil && done != nil {
		err = inventory.Errorf(inventory.Unavailable, "cannot write %s: %v", path, done)
	}
	return m, err
}

// upgrade brings the database up to date by opening it as a server does, holds its hosts, frees its duties, and lists the files that its
// images lack.
func (r *Restored) upgrade(ctx context.Context, path string, o Options) error {
	s, err := sqlstore.Open(ctx, sqlstore.Config{Path: path})
	if err != nil {
		return err
	}
	before := epochs(o.Server)
	r.Missing = []ArtefactRef{}
	err = s.Write(ctx, func(tx inventory.Tx) error {
		all, err := tx.ListArtefacts(inventory.Page{})
		if err != nil {
			return err
		}
		for _, a := range all {
			h := a.Digest.Hex()
			if sizeOf(filepath.Join(o.DataDir, "artefacts", "sha256", h[:2], h)) != a.SizeBytes {
				r.Missing = append(r.Missing, ArtefactRef{a.Digest, a.SizeBytes})
			}
		}
		if r.HeldN, err = hold(tx, r.Manifest.At, o.Now); err != nil {
			return err
		}
		return free(tx, before, o.Now)
	})
	return errors.Join(err, s.Close())
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

// beforeRestore is in the name of the file that had the inventory before a restore.
const beforeRestore = ".before-restore-"

// place puts the database where a server looks for it. One that is there, with the files next to it, gets another name, under
// which it is whole before anything is taken away.
func place(path, target string, now time.Time) (kept string, err error) {
	fail := func(err error) (string, error) {
		return kept, inventory.Errorf(inventory.Unavailable, "cannot put the database in place: %v", err)
	}
	name := target + beforeRestore + stamp(now)
	suffixes := []string{"", "-wal", "-shm"}
	for _, suffix := range suffixes {
		// A second name, and no copy and no rename: at every moment the old database has its first name, or both.
		switch err := os.Link(target+suffix, name+suffix); {
		case err == nil:
			kept = name
		case errors.Is(err, fs.ErrExist):
			return "", inventory.Errorf(inventory.Conflict, "%s exists already", name+suffix).WithHint("wait a second and try again")
		case !errors.Is(err, fs.ErrNotExist):
			return fail(err)
		}
	}
	if err := syncDir(filepath.Dir(target)); err != nil {
		return fail(err)
	}
	for _, suffix := range suffixes[1:] { // SQLite would take an old log for that of the new database
		if err := os.Remove(target + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail(err)
		}
	}
	// A crash between the two steps leaves the old database without its log. The caller's lock stays, and Restore can be run
	// again: the old one is whole under its other name.
	if err := os.Rename(path, target); err != nil {
		return fail(err)
	}
	if err := syncDir(filepath.Dir(target)); err != nil {
		return fail(err)
	}
	return kept, nil
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
