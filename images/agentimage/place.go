package agentimage

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"slipway.dev/slipway/inventory"
)

// place writes a file under another name and renames it when it is complete: nobody boots half an image.
func place(name string, fill func(io.Writer) error) (inventory.Digest, int64, error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".slipway-*")
	if err != nil {
		return "", 0, inventory.Errorf(inventory.Invalid, "the image cannot be written: %v", err).WithHint("give another folder with --out")
	}
	defer os.Remove(f.Name()) // it is not there any more when all went well
	defer f.Close()
	sum := sha256.New()
	if err := fill(io.MultiWriter(f, sum)); err != nil {
		return "", 0, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return "", 0, fmt.Errorf("write %s: %w", name, err)
	}
	return inventory.Digest("sha256:" + hex.EncodeToString(sum.Sum(nil))), size, nil
}
