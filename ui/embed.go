// Package ui holds the web UI as it was built: make ui puts it into dist. A binary that was built without the UI reports
// that.
package ui

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var built embed.FS

// Files returns what was built; IsBuilt reports whether that is more than nothing.
func Files() fs.FS {
	sub, err := fs.Sub(built, "dist")
	if err != nil {
		panic(err) // dist is in the tree
	}
	return sub
}

// IsBuilt reports whether the UI was built into this program.
func IsBuilt() bool {
	_, err := fs.Stat(built, "dist/index.html")
	return err == nil
}
