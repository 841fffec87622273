package keys

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"slipway.dev/slipway/inventory"
)

// Pair names the files of a certificate and its key.
type Pair struct{ Cert, Key string }

// Older versions kept each pair in two files of the data directory. The first start takes them into the database, and renames them: nothing
// reads them as long as the database has a pair. A restored backup of an older version has none, and then they are taken in again.
const (
	taken  = ".moved"  // the pair is in the database
	unused = ".unused" // the database had another one
)

// named returns a pair whose names end in a suffix.
func (p Pair) named(suffix string) Pair { return Pair{p.Cert + suffix, p.Key + suffix} }

// readPair returns the pair in two files of a directory, none if there is no key. A damaged one is an error: another one would lock all
// clients out.
func readPair(dir string, files Pair) (p pairText, err error) {
	key, err := readKey(filepath.Join(dir, files.Key))
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("read a certificate of an older version: %w", err)
	}
	cert, err := os.ReadFile(filepath.Join(dir, files.Cert))
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil // a first start ended between the two files, and nobody has seen the certificate
	}
	if err != nil {
		return p, fmt.Errorf("read a certificate of an older version: %w", err)
	}
	// This also finds a file that a crash or a full disk has cut short.
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		return p, inventory.Errorf(inventory.Invalid, "%s and %s in %s do not fit together: %v", files.Cert, files.Key, dir, err).
			WithHint("restore both, or delete both: clients that trust the old one then need the new one")
	}
	return pairText{cert, key}, nil
}

// setAside renames the files of a pair that is in the database now, or another one in its place.
func (v *Vault) setAside(files Pair, stored pairText) {
	old, err := readPair(v.Dir, files)
	if err == nil && old.isNone() {
		return
	}
	suffix := taken
	if err != nil || !bytes.Equal(old.cert, stored.cert) {
		suffix = unused
		v.Log.Warn("a certificate in the data directory is not the one in the database, which all instances use", "file", files.Cert,
			"renamed", files.Cert+suffix)
	}
	to := files.named(suffix)
	// The key first: without it, the certificate is a copy for people.
	for _, name := range [][2]string{{files.Key, to.Key}, {files.Cert, to.Cert}} {
		err := os.Rename(filepath.Join(v.Dir, name[0]), filepath.Join(v.Dir, name[1]))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			v.Log.Warn("file of a certificate not renamed", "file", name[0], "err", err)
		}
	}
}

// forget removes the files of a pair of an older version that is in use no more.
func (v *Vault) forget(files Pair) {
	old := files.named(taken)
	for _, name := range []string{old.Key, old.Cert} {
		if err := os.Remove(filepath.Join(v.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			v.Log.Warn("file of a former certificate not removed", "file", name, "err", err)
		}
	}
}
