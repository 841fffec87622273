package serve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// makeDataDir makes the data directory, which nobody else may look into; one of an earlier version is tightened.
func makeDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &inventory.Error{
			Kind: inventory.Invalid, Msg: "cannot make the data directory: " + err.Error(),
			Hint: "choose another with --data-dir, or run as root",
		}
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return &inventory.Error{
			Kind: inventory.Invalid, Msg: fmt.Sprintf("others can look into the data directory %s (mode %04o), and that cannot be changed: %s", dir, info.Mode().Perm(), err),
			Hint: "chmod 0700 " + dir,
		}
	}
	return nil
}

// TakeDataDir makes a data directory if need be, for a command that works without a server. No server may use it meanwhile.
func TakeDataDir(dir string) (unlock func(), err error) {
	if err := makeDataDir(dir); err != nil {
		return nil, err
	}
	return lockDataDir(dir)
}

// lockDataDir makes sure that one process at a time uses a data directory; the lock goes with the process.
func lockDataDir(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	// flock belongs to the open file: the kernel drops it when the process ends, however that happens. No file is ever stale. On
	// NFS it needs a lock daemon; a data directory belongs on a local disk.
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, errInUse(dir)
	}
	return func() { f.Close() }, nil
}

// errInUse is the answer to a second process on one data directory.
func errInUse(dir string) error {
	return inventory.Errorf(inventory.Conflict, "another slipway uses the data directory %s", dir).
		WithHint("stop it, or choose another with --data-dir")
}

const (
	firstTokenFile = "admin.token" // in the data directory
	firstTokenName = "admin"
	firstTokenFor  = 24 * time.Hour
)

// firstToken makes the admin token of a first start, and returns the file that it lies in, "" when there are tokens already. It
// ends after a day, and is in no log: journals are read by many and sent far away.
func firstToken(ctx context.Context, store inventory.Store, dataDir string, now time.Time) (path string, err error) {
	err = store.Write(ctx, func(tx inventory.Tx) error {
		tokens, err := tx.ListTokens()
		if err != nil || len(tokens) > 0 {
			return err
		}
		b := make([]byte, 32)
		_, _ = rand.Read(b) // never fails
		secret := "slipway_" + hex.EncodeToString(b)
		sum := sha256.Sum256([]byte(secret))
		path = filepath.Join(dataDir, firstTokenFile)
		// A file of an earlier try, whose token never reached the database: a crash between file and commit leaves one. O_EXCL
		// below then makes sure that the secret goes into a new file with the right mode, and not through somebody's link.
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(f, secret)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		// The file comes before the commit. The other order could store a token whose secret nobody has ever seen.
		return tx.CreateToken(&inventory.Token{Name: firstTokenName, Hash: hex.EncodeToString(sum[:]), Grants: inventory.AdminEverywhere(), ExpiresAt: now.Add(firstTokenFor)}, now)
	})
	if err != nil && path != "" {
		_ = os.Remove(path) // it opens nothing
	}
	return path, err
}

// dropFirstToken removes the file of the first token when the token has expired or is deleted, and then waits for ctx. The file
// outlives a restart, so that every start takes up the watch again.
func dropFirstToken(ctx context.Context, store inventory.Store, dataDir string, log *slog.Logger) error {
	path := filepath.Join(dataDir, firstTokenFile)
	for {
		// Nothing makes the file again while this server runs.
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			<-ctx.Done()
			return nil
		}
		var isOver bool
		err := store.Read(ctx, func(tx inventory.Tx) error {
			t, err := tx.FindToken(firstTokenName)
			if why, ok := errors.AsType[*inventory.Error](err); ok && why.Kind == inventory.NotFound {
				isOver = true
				return nil
			}
			// An admin may have extended the token, or made it permanent. Its file then stays.
			isOver = err == nil && !t.ExpiresAt.IsZero() && !time.Now().Before(t.ExpiresAt)
			return err
		})
		if err == nil && isOver {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				log.Warn("file of the first token not removed", "path", path, "err", err)
			}
		}
		if sleep.For(ctx, time.Minute) != nil {
			return nil
		}
	}
}
