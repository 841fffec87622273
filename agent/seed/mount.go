package seed

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// modules are what must be loaded before a file system can be mounted.
var modules = map[string][]string{
	"ext2": {"ext4"}, "ext3": {"ext4"}, "ext4": {"ext4"}, "xfs": {"xfs"}, "btrfs": {"btrfs"}, "vfat": {"vfat", "nls_cp437", "nls_iso8859-1", "nls_utf8"},
}

// mounted is a mounted file system. Its files are reached through root, which no link of the image leads out of.
type mounted struct {
	dir  string
	root *os.Root
}

// Mount mounts a device below a folder of its own. A name in one of its own files must not run anything here.
func (c Config) mount(device, kind string, isReadOnly bool) (*mounted, error) {
	if c.LoadModule != nil {
		for _, m := range modules[kind] {
			_ = c.LoadModule(m) // it may be built in; the mount says what is missing
		}
	}
	base := cmp.Or(c.MountDir, "/run/slipway")
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(base, "mount-")
	if err != nil {
		return nil, err
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME)
	if isReadOnly {
		flags |= unix.MS_RDONLY
	}
	data := ""
	if kind == "xfs" {
		data = "nouuid" // a copy of the same image may be on another disk
	}
	if kind == "ext2" || kind == "ext3" {
		kind = "ext4"
	}
	if err := unix.Mount(device, dir, kind, flags, data); err != nil {
		os.Remove(dir)
		return nil, mountError(device, kind, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		_ = unix.Unmount(dir, 0)
		os.Remove(dir)
		return nil, err
	}
	return &mounted{dir: dir, root: root}, nil
}

func mountError(device, kind string, err error) error {
	e := inventory.Errorf(inventory.Unavailable, "the %s file system of %s cannot be mounted: %w", kind, filepath.Base(device), err)
	if errors.Is(err, syscall.ENODEV) {
		return e.WithHint("the agent's kernel has no driver for %s: build the agent image with it", kind)
	}
	return e.WithHint("the kernel's log says why; the image may be damaged")
}

// close makes what was written durable and unmounts.
func (m *mounted) close() error {
	f, err := m.root.Open(".")
	if err == nil {
		err = unix.Syncfs(int(f.Fd()))
		f.Close()
	}
	m.root.Close()
	if uerr := unix.Unmount(m.dir, 0); err == nil && uerr != nil {
		err = uerr
	}
	os.Remove(m.dir)
	return err
}

// write writes a file that only root may read, and its folders.
func (m *mounted) write(path string, content []byte) error {
	path = strings.TrimPrefix(filepath.Clean("/"+path), "/")
	if dir := filepath.Dir(path); dir != "." {
		if err := m.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	// Written under another name and renamed: a link of the image in its place must not be followed.
	beside := path + ".slipway"
	f, err := m.root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(content); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return m.root.Rename(beside, path)
}

func (m *mounted) has(path string) bool {
	_, err := m.root.Stat(path)
	return err == nil
}
