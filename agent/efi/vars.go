// Package efi owns the firmware's boot entries and their order, as efibootmgr does, through the kernel's efivarfs. It
// reads nothing from disks except an EFI system partition, and does nothing on machines that a BIOS started.
//
// Each change is one variable. The order of the changes is such that a power failure between two leaves an order that
// starts something.
package efi

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// globalGUID is EFI_GLOBAL_VARIABLE, whose variables the boot manager reads.
const globalGUID = "8be4df61-93ca-11d2-aa0d-00e098032b8c"

// attributes are those of boot variables: non-volatile, seen by boot services and at run time.
const attributes = 7

const isImmutable = 0x10 // FS_IMMUTABLE_FL

// Vars gives access to the variables of this machine's firmware.
type Vars struct {
	Dir string // /sys/firmware/efi/efivars when empty
}

func (v Vars) dir() string {
	return cmp.Or(v.Dir, "/sys/firmware/efi/efivars")
}

// Present reports whether UEFI started this machine and its variables are accessible. It mounts efivarfs when that is
// missing.
func (v Vars) Present() bool {
	if files, err := os.ReadDir(v.dir()); err == nil && len(files) > 0 {
		return true
	}
	// A test's folder is not to be mounted over.
	if v.Dir != "" {
		return false
	}
	if _, err := os.Stat(v.dir()); err != nil {
		return false
	}
	return unix.Mount("efivarfs", v.dir(), "efivarfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "") == nil
}

func (v Vars) path(name string) string { return filepath.Join(v.dir(), name+"-"+globalGUID) }

// read returns the data of a variable; os.ErrNotExist when there is none.
func (v Vars) read(name string) ([]byte, error) {
	f, err := os.Open(v.path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxVariable))
	if err != nil {
		return nil, fmt.Errorf("read the firmware's %s: %w", name, err)
	}
	// The attributes alone would be four bytes. Less is a file that the kernel made for a variable that was never set.
	if len(b) < 4 {
		return nil, fmt.Errorf("read the firmware's %s: %w", name, os.ErrNotExist)
	}
	return b[4:], nil
}

// write sets a variable. efivarfs takes attributes and data in one write(2), and refuses them in two.
func (v Vars) write(name string, data []byte) error {
	old, err := v.read(name)
	if err == nil && string(old) == string(data) {
		return nil // each write wears the flash
	}
	if err := v.thaw(name); err != nil {
		return err
	}
	f, err := os.OpenFile(v.path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return v.explain(name, err)
	}
	_, err = f.Write(append(binary.LittleEndian.AppendUint32(nil, attributes), data...))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return v.explain(name, err)
}

func (v Vars) remove(name string) error {
	if err := v.thaw(name); err != nil {
		return err
	}
	err := os.Remove(v.path(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return v.explain(name, err)
}

func (v Vars) explain(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC):
		return inventory.Errorf(inventory.Unavailable, "the firmware has no space for %s", name).WithHint("delete boot entries in the firmware's setup, or reset it")
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EPERM):
		return inventory.Errorf(inventory.Unavailable, "the firmware does not take a new %s: %w", name, err).WithHint("look for a lock of boot settings in the firmware's setup")
	}
	return fmt.Errorf("set the firmware's %s: %w", name, err)
}

// thaw removes the immutable flag, by which the kernel protects variables from rm -r: some firmware does not start
// after the loss of a variable.
func (v Vars) thaw(name string) error {
	f, err := os.Open(v.path(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return v.explain(name, err)
	}
	defer f.Close()
	var flags int32
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.FS_IOC_GETFLAGS, uintptr(unsafe.Pointer(&flags))); errno != 0 || flags&isImmutable == 0 {
		return nil // the file system knows no flags, or it is not set
	}
	flags &^= isImmutable
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.FS_IOC_SETFLAGS, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		return v.explain(name, errno)
	}
	return nil
}

// Boot is the boot manager's state.
type Boot struct {
	Entries []Entry // by number
	Order   []uint16
	Current int // -1 when not known
}

// Read returns all boot entries and their order. It leaves out an entry that it cannot read.
func (v Vars) Read() (Boot, error) {
	b := Boot{Current: -1}
	files, err := os.ReadDir(v.dir())
	if err != nil {
		return b, fmt.Errorf("list the firmware's variables: %w", err)
	}
	for _, f := range files {
		number, ok := entryNumber(f.Name())
		if !ok {
			continue
		}
		data, err := v.read(fmt.Sprintf("Boot%04X", number))
		if err != nil {
			continue
		}
		if e, err := parseEntry(number, data); err == nil {
			b.Entries = append(b.Entries, e)
		}
	}
	slices.SortFunc(b.Entries, func(a, c Entry) int { return int(a.Number) - int(c.Number) })
	if data, err := v.read("BootOrder"); err == nil {
		b.Order = parseOrder(data)
	}
	if data, err := v.read("BootCurrent"); err == nil && len(data) >= 2 {
		b.Current = int(binary.LittleEndian.Uint16(data))
	}
	return b, nil
}

// entryNumber reads Boot0004-8be4df61-...: four upper-case hex digits, so that BootOrder and BootNext are none.
func entryNumber(name string) (uint16, bool) {
	name, isGlobal := strings.CutSuffix(name, "-"+globalGUID)
	digits, isBoot := strings.CutPrefix(name, "Boot")
	n, err := strconv.ParseUint(digits, 16, 16)
	return uint16(n), isGlobal && isBoot && len(digits) == 4 && err == nil
}

func parseOrder(b []byte) []uint16 {
	var order []uint16
	for ; len(b) >= 2; b = b[2:] {
		order = append(order, binary.LittleEndian.Uint16(b))
	}
	return order
}

func (v Vars) setOrder(order []uint16) error {
	var b []byte
	for _, n := range order {
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	if len(b) == 0 {
		return v.remove("BootOrder")
	}
	return v.write("BootOrder", b)
}
