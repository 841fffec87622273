package disk

import (
	"cmp"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// Commands of the md and device-mapper drivers: linux/raid/md_u.h and linux/dm-ioctl.h.
// They are called here, because the RAM disk has neither mdadm nor dmsetup.
const (
	mdStopArray  = 0x932
	dmDevRemove  = 0xc138fd04
	dmStructSize = 312
)

// Release stops the md arrays and device-mapper volumes that are built on a disk or its partitions, the topmost
// first. The error is Conflict, and names what cannot be stopped. Release also refuses a volume that is built on a
// disk to be kept: stopping it would write to that disk.
func (t Tree) Release(name string, kept ...string) error { return t.release(name, kept, 0) }

func (t Tree) release(name string, kept []string, depth int) error {
	// Volumes on volumes on arrays: four levels are usual. The bound is against a circle in a broken /sys.
	if depth > 8 {
		return inventory.Errorf(inventory.Conflict, "the volumes on %s are nested too deeply to be stopped", name)
	}
	for _, holder := range t.holders(name) {
		// Checked before anything of the holder is stopped, so that a refusal changes nothing of it.
		for _, d := range t.disksBelow(holder, 0) {
			if slices.Contains(kept, d) {
				return inventory.Errorf(inventory.Conflict, "%s is built on %s and on %s, which is to be kept", holder, name, d).
					WithHint("keep both, or neither")
			}
		}
		if err := t.release(holder, kept, depth+1); err != nil {
			return err
		}
		err := t.stop(holder)
		if errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.ENODEV) || errors.Is(err, os.ErrNotExist) {
			continue // gone meanwhile, by way of another of its disks
		}
		if err != nil {
			return inventory.Errorf(inventory.Conflict, "%s is built on %s and cannot be stopped: %w", holder, name, err)
		}
	}
	return nil
}

// disksBelow names the whole disks that a volume is built on.
func (t Tree) disksBelow(holder string, depth int) []string {
	links, _ := filepath.Glob(t.SysPath("block", holder, "slaves", "*"))
	if len(links) == 0 || depth > 8 {
		return nil
	}
	var all []string
	for _, l := range links {
		below := filepath.Base(l)
		if path, err := filepath.EvalSymlinks(t.SysPath("class", "block", below)); err == nil {
			if _, err := os.Stat(filepath.Join(path, "partition")); err == nil {
				// A slave may be a partition; the disk is the folder above it.
				below = filepath.Base(filepath.Dir(path))
			}
		}
		all = append(append(all, below), t.disksBelow(below, depth+1)...)
	}
	return all
}

// holders names the devices that are built on a disk, on one of its partitions, or on another such device.
func (t Tree) holders(name string) []string {
	var all []string
	for _, pattern := range []string{t.SysPath("block", name, "holders", "*"), t.SysPath("block", name, name+"*", "holders", "*")} {
		links, _ := filepath.Glob(pattern)
		for _, l := range links {
			if h := filepath.Base(l); !slices.Contains(all, h) {
				all = append(all, h)
			}
		}
	}
	return all
}

func (t Tree) stop(holder string) error {
	switch {
	// An array stops by an order to its own device, a volume by its name at the control device.
	case strings.HasPrefix(holder, "md"):
		f, err := os.Open(t.DevPath(holder))
		if err != nil {
			return err
		}
		defer f.Close()
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), mdStopArray, 0); errno != 0 {
			return errno
		}
		return nil
	case strings.HasPrefix(holder, "dm-"):
		f, err := os.OpenFile(filepath.Join(cmp.Or(t.Dev, "/dev"), "mapper", "control"), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		request := dmRequest(t.attribute("block", holder, "dm", "name"))
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), dmDevRemove, uintptr(unsafe.Pointer(&request[0]))); errno != 0 {
			return errno
		}
		return nil
	}
	return inventory.Errorf(inventory.Conflict, "it is neither an md array nor a device-mapper volume")
}

// dmRequest makes a struct dm_ioctl that names a volume: version 4.0.0, its own size, where data would start, the name.
func dmRequest(name string) []byte {
	b := make([]byte, dmStructSize)
	binary.NativeEndian.PutUint32(b[0:], 4)
	binary.NativeEndian.PutUint32(b[12:], dmStructSize)
	binary.NativeEndian.PutUint32(b[16:], dmStructSize)
	copy(b[48:48+127], name)
	return b
}
