package keys

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/secret"
)

// KeyPath is where the key of the secrets lies: a systemd credential, or a file of the data directory.
func KeyPath(dataDir string) string {
	if dir := os.Getenv("CREDENTIALS_DIRECTORY"); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, KeyCred)); err == nil {
			return filepath.Join(dir, KeyCred)
		}
	}
	return filepath.Join(dataDir, KeyFile)
}

const (
	KeyFile = "secret.key"  // in the data directory
	KeyCred = "slipway.key" // systemd credential: LoadCredential=slipway.key:/path
	maxKey  = 4096
)

// OpenBox returns what seals and opens secrets. Its key is a systemd credential, or a file of the data directory that the
// first start makes. A backup of the database alone opens nothing.
func OpenBox(dataDir string, storedN int) (*secret.Box, []byte, error) {
	path := KeyPath(dataDir)
	text, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		// With a new key Slipway would start, and fail later at each stored secret. The admin has to restore the old
		// one.
		if storedN > 0 {
			return nil, nil, inventory.Errorf(inventory.Invalid, "the key of the secrets, %s, is missing: %d stored secrets cannot be opened without it", path, storedN).
				WithHint("restore it from where it was kept; a new one would not open them")
		}
		text, err = makeKey(path)
	}
	if err != nil {
		return nil, nil, err
	}
	key, err := secret.ParseKey(string(text))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path, err)
	}
	box, err := secret.NewBox(key)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path, err)
	}
	// The reports of machines are authenticated by a key of their own, derived so that only one has to be kept.
	m := hmac.New(sha256.New, key)
	m.Write([]byte("reports of booted machines"))
	return box, m.Sum(nil), nil
}

// readKey reads a key file that nobody else can read.
func readKey(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, inventory.Errorf(inventory.Invalid, "others can read the key of the secrets, %s (mode %04o)", path, info.Mode().Perm()).
			WithHint("chmod 0600 %s; if somebody may have read it, set the secrets again", path)
	}
	if info.Size() > maxKey {
		return nil, inventory.Errorf(inventory.Invalid, "%s is not a key: it has %d bytes", path, info.Size())
	}
	return os.ReadFile(path)
}

// makeKey writes a new key; it is on disk before anything is sealed with it.
func makeKey(path string) ([]byte, error) {
	key, err := secret.NewKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	text := []byte(key)
	// O_EXCL: of two starts at once, one fails and does not replace the other's key.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the key of the secrets: %w", err)
	}
	defer f.Close()
	if _, err := f.Write(append(text, '\n')); err != nil {
		return nil, fmt.Errorf("write the key of the secrets: %w", err)
	}
	if err := f.Sync(); err != nil {
		return nil, fmt.Errorf("write the key of the secrets: %w", err)
	}
	return text, nil
}
