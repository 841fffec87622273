package keys

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/secret"
)

// Key is the key of the secrets, and what is derived from it. A backup of the database alone opens nothing.
type Key struct {
	Box *secret.Box // seals and opens secrets
	// Reports authenticates what machines report. It is derived, so that only one key has to be kept.
	Reports []byte
	// Fingerprint tells keys apart without telling anything of them. The database has it, so that a wrong key stops the start.
	Fingerprint string
}

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

// ReadKey reads the key of a data directory. It is fs.ErrNotExist where there is none.
func ReadKey(dataDir string) (*Key, error) {
	path := KeyPath(dataDir)
	text, err := readKey(path)
	if err != nil {
		return nil, err
	}
	return parseKey(path, text)
}

// Text returns the text of the key, as the file has it, for a machine that becomes an instance. The error is a Conflict if the file has
// another key by now.
func (k *Key) Text(dataDir string) (string, error) {
	text, err := readKey(KeyPath(dataDir))
	if err != nil {
		return "", fmt.Errorf("read the key of the secrets: %w", err)
	}
	is, err := parseKey(KeyPath(dataDir), text)
	if err != nil {
		return "", err
	}
	if is.Fingerprint != k.Fingerprint {
		return "", inventory.Errorf(inventory.Conflict, "%s has changed since this server started: its fingerprint was %s, and is %s",
			KeyPath(dataDir), k.Fingerprint, is.Fingerprint).WithHint("put the former file back, or start the server again")
	}
	return string(text), nil
}

// Compare reads the key that another instance has sent. The error is a Conflict if a data directory has another one. isHere says that it
// has this one.
func Compare(dataDir, text string) (k *Key, isHere bool, err error) {
	path := filepath.Join(dataDir, KeyFile)
	if k, err = parseKey("the key of the other instance", []byte(text)); err != nil {
		return nil, false, err
	}
	had, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	is, err := parseKey(path, had)
	if err != nil {
		return nil, false, err
	}
	if is.Fingerprint != k.Fingerprint {
		return nil, false, inventory.Errorf(inventory.Conflict,
			"%s is of another site: its fingerprint is %s, that of the other instances is %s",
			path, is.Fingerprint, k.Fingerprint).
			WithHint("choose another --data-dir; or, if nobody needs what this key opens, move it away: mv %s %s.old", path, path)
	}
	return k, true, nil
}

// Check is the line of the self-check about a key that a server has compared with its database.
func (k *Key) Check() doctor.Check {
	return doctor.Check{Name: KeyFile, Status: doctor.OK, Detail: "fingerprint " + k.Fingerprint + ", and the database belongs to it"}
}

// CheckFile is the line of the self-check about the key of a data directory that no server uses. It does not ask the database.
func CheckFile(dataDir string) (c doctor.Check, ok bool) {
	key, err := ReadKey(dataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // before the first start, or not as root
		return c, false
	case err != nil:
		c = doctor.Check{Name: KeyFile, Status: doctor.Failed, Detail: inventory.Clean(err.Error(), 300)}
		if said, ok := errors.AsType[*inventory.Error](err); ok {
			c.Hint = said.Hint
		}
		return c, true
	}
	return doctor.Check{Name: KeyFile, Status: doctor.OK, Detail: "fingerprint " + key.Fingerprint}, true
}

func parseKey(path string, text []byte) (*Key, error) {
	key, err := secret.ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	box, err := secret.NewBox(key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	m := hmac.New(sha256.New, key)
	m.Write([]byte("reports of booted machines"))
	reports := m.Sum(nil)
	sum := sha256.Sum256(append([]byte("fingerprint of a key\x00"), reports...))
	return &Key{Box: box, Reports: reports, Fingerprint: hex.EncodeToString(sum[:8])}, nil
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
func makeKey(path string) (*Key, error) {
	text, err := secret.NewKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	// O_EXCL: of two starts at once, one fails and does not replace the other's key.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the key of the secrets: %w", err)
	}
	defer f.Close()
	if _, err := f.WriteString(text + "\n"); err != nil {
		return nil, fmt.Errorf("write the key of the secrets: %w", err)
	}
	if err := f.Sync(); err != nil {
		return nil, fmt.Errorf("write the key of the secrets: %w", err)
	}
	return parseKey(path, []byte(text))
}
