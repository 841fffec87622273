package ignition

import (
	"errors"
	"io/fs"
	"path"

	"slipway.dev/slipway/inventory"
)

// What a profile may have in addition to its document.
const (
	MaxFiles     = 64
	maxFileBytes = inventory.MaxConfigBytes
)

// WithFiles is WithLocal for files that came with a document, by their names in one folder. Each must be named by the
// document, and none of them may be outside of the folder.
func WithFiles(text string, files map[string][]byte) (string, error) {
	if len(files) > MaxFiles {
		return "", inventory.Errorf(inventory.Invalid, "%d files came with the document; at most %d are allowed", len(files), MaxFiles).
			WithHint("send only those that it names; let the machine fetch the others with a checksum")
	}
	n := 0
	for name, b := range files {
		if !fs.ValidPath(name) || name == "." {
			return "", inventory.Errorf(inventory.Invalid, "%q is no name of a file in the folder of the document", inventory.Clean(name, 100)).
				WithHint("write it as the document does, such as units/a.service, without .. and without a / at its beginning")
		}
		if n += len(b); n > maxFileBytes {
			return "", inventory.Errorf(inventory.Invalid, "the files of the document have more than %d bytes", maxFileBytes).
				WithHint("let the machine fetch large files: give them as remote with a checksum")
		}
	}
	used := map[string]bool{}
	text, err := WithLocal(text, func(name string) ([]byte, error) {
		clean := path.Clean(name)
		b, ok := files[clean]
		if !ok {
			return nil, errors.New("no file " + inventory.Clean(name, 100) + " came with the document")
		}
		used[clean] = true
		return b, nil
	})
	if err != nil {
		return "", err
	}
	for name := range files {
		if !used[name] {
			return "", inventory.Errorf(inventory.Invalid, "the document does not name the file %s", inventory.Clean(name, 100)).
				WithHint("leave it out, or name it as contents: {local: %s}", inventory.Clean(name, 100))
		}
	}
	return text, nil
}
