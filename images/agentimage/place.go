package agentimage

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"

	"github.com/google/renameio/v2"

	"slipway.dev/slipway/inventory"
)

// place writes a file under another name and renames it when it is complete: nobody boots half an image.
func place(name string, fill func(io.Writer) error) (inventory.Digest, int64, error) {
	f, err := renameio.NewPendingFile(name, renameio.WithTempDir(filepath.Dir(name)), renameio.WithStaticPermissions(0o644))
	if err != nil {
		return "", 0, inventory.Errorf(inventory.Invalid, "the image cannot be written: %v", err).WithHint("give another folder with --out")
	}
	defer func() { _ = f.Cleanup() }() // nothing is left of it when all went well
	sum := sha256.New()
	if err := fill(io.MultiWriter(f, sum)); err != nil {
		return "", 0, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		err = f.CloseAtomicallyReplace()
	}
	if err != nil {
		return "", 0, fmt.Errorf("write %s: %w", name, err)
	}
	return inventory.Digest("sha256:" + hex.EncodeToString(sum.Sum(nil))), size, nil
}
