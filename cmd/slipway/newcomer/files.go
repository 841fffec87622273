package newcomer

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"slipway.dev/slipway/inventory"
)

// proofFile has what the machine has drawn for an invitation: its id and 32 bytes in hex.
func proofFile(dataDir string) string { return filepath.Join(dataDir, "join.proof") }

// proofFor returns the proof for an invitation, and draws one if there is none. It is on disk before it is sent: a machine that loses its
// power after the hand-over must be known again.
func proofFor(dataDir, id string) ([]byte, error) {
	path := proofFile(dataDir)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if of, proof, ok := strings.Cut(strings.TrimSpace(string(text)), " "); ok && of == id {
		if b, err := hex.DecodeString(proof); err == nil && len(b) == 32 {
			return b, nil
		}
	}
	proof := make([]byte, 32)
	_, _ = rand.Read(proof) // never fails
	return proof, write(path, []byte(id+" "+hex.EncodeToString(proof)+"\n"), secret)
}

// secret is the mode of a file with a secret.
const secret fs.FileMode = 0o600

// writer writes files, and keeps the first error.
type writer struct {
	wrote, kept []string
	err         error
}

// file writes a file, unless it has that text already.
func (w *writer) file(path string, data []byte, mode fs.FileMode) {
	switch {
	case w.err != nil:
	case isSame(path, data) && !isOpen(path, mode):
		w.kept = append(w.kept, path)
	default:
		w.err = write(path, data, mode)
		w.wrote = append(w.wrote, path)
	}
}

// write replaces a file. It has its name after its bytes are on disk, and the name is on disk as well. A file that exists keeps its mode,
// but for secrets: others could read them.
func write(path string, data []byte, mode fs.FileMode) error {
	perm := []renameio.Option{renameio.WithStaticPermissions(mode)}
	if mode != secret {
		perm = append(perm, renameio.WithExistingPermissions())
	}
	err := replace(path, data, perm)
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return inventory.Errorf(inventory.Invalid,
			"cannot write %s: %w", path, err).WithHint("run this as root; is there space on the disk?")
	}
	return nil
}

func replace(path string, data []byte, perm []renameio.Option) error {
	f, err := renameio.NewPendingFile(path, append(perm, renameio.WithTempDir(filepath.Dir(path)))...)
	if err != nil {
		return err
	}
	defer f.Cleanup()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// isOpen reports whether others may read a file, although it shall have the mode of a secret.
func isOpen(path string, mode fs.FileMode) bool {
	info, err := os.Stat(path)
	return mode == secret && (err != nil || info.Mode().Perm()&0o077 != 0)
}

// isSame reports whether a file has that text. Line ends at its end do not count.
func isSame(path string, data []byte) bool {
	is, err := os.ReadFile(path)
	return err == nil && bytes.Equal(bytes.TrimRight(is, "\r\n"), bytes.TrimRight(data, "\r\n"))
}

// mayWrite refuses to replace a file that has something else.
func mayWrite(path string, data []byte) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || isSame(path, data) {
		return nil
	}
	return inventory.Errorf(inventory.Conflict, "%s exists, and is not what the other instances have", path).
		WithHint("move it away: mv %s %s.old. The code stays good for this machine", path, path)
}

// isWritable makes a directory if need be, and tries to write there.
func isWritable(dir string) error {
	err := os.MkdirAll(dir, 0o755)
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(dir, ".join-")
	}
	if err != nil {
		return inventory.Errorf(inventory.Invalid, "cannot write to the folder of the configuration: %w", err).
			WithHint("run this as root, or name another file with --config")
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
