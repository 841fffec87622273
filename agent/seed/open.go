package seed

import (
	"context"
	"io"
	"os"
	"path"
	"strings"

	"slipway.dev/slipway/inventory"
)

// ReadRoot copies a file of the disk's root file system, or of the one that is mounted at /boot there, to w. The disk is
// not changed.
func ReadRoot(ctx context.Context, c Config, name, file string, w io.Writer) error {
	all, err := c.volumes(ctx, name)
	if err != nil {
		return err
	}
	file = strings.TrimPrefix(path.Clean("/"+file), "/")
	m, root, err := c.findRoot(all, true)
	if err != nil {
		return err
	}
	found, err := m.copyOut(file, w)
	if cerr := m.close(); err == nil {
		err = cerr
	}
	if found || err != nil {
		return err
	}
	inBoot, ok := strings.CutPrefix(file, "boot/")
	for _, v := range all {
		if !ok || v.device == root.device || v.kind == "iso9660" {
			continue
		}
		m, err := c.mount(v.device, v.kind, true)
		if err != nil {
			continue
		}
		found, err := m.copyOut(inBoot, w)
		if cerr := m.close(); err == nil {
			err = cerr
		}
		if found || err != nil {
			return err
		}
	}
	return inventory.Errorf(inventory.NotFound, "the system on %s has no file /%s", name, inventory.Clean(file, 200))
}

// copyOut follows links only inside of the file system.
func (m *mounted) copyOut(file string, w io.Writer) (bool, error) {
	f, err := m.root.Open(file)
	if err != nil {
		return false, nil //nolint:nilerr // it is not here; another file system may have it
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeType != 0 {
		return false, err
	}
	_, err = io.Copy(w, f)
	return true, err
}
