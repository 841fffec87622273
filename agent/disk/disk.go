// Package disk owns the block devices of the machine that the agent runs on. It opens one whole disk for large
// aligned writes, and reads and writes its partition table. It finds the signatures of its contents, and stops what
// is built on it. It never decides which disk is touched, and never fetches anything.
//
// A regular file takes the place of a device, without the parts that only a device has. Images are examined that way.
package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// Align is what offsets, lengths and memory of direct reads and writes are multiples of. It suits sectors of 512 and
// 4096 bytes.
const Align = 4096

// Tree is where the kernel shows its devices.
type Tree struct {
	Sys string // /sys when empty
	Dev string // /dev when empty
}

// SysPath returns a path below /sys.
func (t Tree) SysPath(parts ...string) string {
	return filepath.Join(append([]string{cmp.Or(t.Sys, "/sys")}, parts...)...)
}

// DevPath returns the path of a device node by its kernel name.
func (t Tree) DevPath(name string) string {
	return filepath.Join(cmp.Or(t.Dev, "/dev"), filepath.Base(name))
}

// Device is one open disk. ReadAt and WriteAt take any offset and length; only aligned ones are fast. Several
// goroutines may use it, as long as their unaligned writes do not meet in one block of Align bytes.
type Device struct {
	Name   string // sda
	Bytes  int64
	Sector int // logical, bytes

	file    *os.File
	isBlock bool
	path    string
}

// Mode is what a disk is opened for.
type Mode int

// The modes.
const (
	Read Mode = iota
	// Write opens a device exclusively: it is refused while anything is mounted from it or built on it.
	Write
)

// Open opens a disk by its kernel name.
func (t Tree) Open(name string, mode Mode) (*Device, error) { return OpenPath(t.DevPath(name), mode) }

// OpenPath opens a device node or a regular file. The errors are Conflict (in use), Invalid (read-only, no medium)
// and NotFound (gone).
func OpenPath(path string, mode Mode) (*Device, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, openError(path, err)
	}
	d := &Device{Name: filepath.Base(path), path: path, Sector: 512, isBlock: info.Mode()&os.ModeDevice != 0}
	flags := os.O_RDONLY | syscall.O_CLOEXEC
	if mode == Write {
		flags = os.O_RDWR | syscall.O_CLOEXEC
		if d.isBlock {
			flags |= syscall.O_EXCL // without O_CREAT, the kernel refuses it while anything else has claimed the device
		}
	}
	// Direct: an image of gigabytes would push everything else out of the memory of a RAM disk. Errors of the disk
	// would show at a later sync, without their place.
	d.file, err = os.OpenFile(path, flags|unix.O_DIRECT, 0)
	if errors.Is(err, syscall.EINVAL) { // a file system without direct input and output, such as tmpfs
		d.file, err = os.OpenFile(path, flags, 0)
	}
	if err != nil {
		return nil, openError(path, err)
	}
	// For a device, stat knows no size; measure asks the driver.
	d.Bytes = info.Size()
	if d.isBlock {
		if err := d.measure(); err != nil {
			d.file.Close()
			return nil, err
		}
	}
	return d, nil
}

func openError(path string, err error) error {
	name := filepath.Base(path)
	switch {
	case errors.Is(err, syscall.EBUSY):
		return inventory.Errorf(inventory.Conflict, "disk %s is in use: a file system of it is mounted, or an array or volume is built on it", name)
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EACCES):
		return inventory.Errorf(inventory.Invalid, "disk %s is read-only", name).WithHint("look for a write-protect switch, or a drive that has worn out")
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENODEV):
		return inventory.Errorf(inventory.NotFound, "disk %s is gone", name).WithHint("look at its cable, its bay and the kernel's log")
	case errors.Is(err, syscall.ENOMEDIUM):
		return inventory.Errorf(inventory.Invalid, "disk %s has no medium", name)
	}
	return fmt.Errorf("open disk %s: %w", name, err)
}

func (d *Device) measure() error {
	var size uint64
	if err := d.ioctl(unix.BLKGETSIZE64, unsafe.Pointer(&size)); err != nil {
		return fmt.Errorf("read the size of %s: %w", d.Name, err)
	}
	var sector int32
	if err := d.ioctl(unix.BLKSSZGET, unsafe.Pointer(&sector)); err != nil {
		return fmt.Errorf("read the sector size of %s: %w", d.Name, err)
	}
	d.Bytes, d.Sector = int64(size), int(sector)
	return nil
}

// Ioctl runs a command that only one kind of disk knows. arg points to the command's structure, which must not hold
// pointers to memory that may move: see Buffer.
func (d *Device) Ioctl(command uint, arg unsafe.Pointer) error { return d.ioctl(command, arg) }

func (d *Device) ioctl(command uint, arg unsafe.Pointer) error {
	raw, err := d.file.SyscallConn()
	if err != nil {
		return err
	}
	var errno syscall.Errno
	if err := raw.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, uintptr(command), uintptr(arg))
	}); err != nil {
		return err
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// Close closes the device without waiting for its cache; Sync does that.
func (d *Device) Close() error { return d.file.Close() }

// Sync waits until everything written is on the medium, the disk's own cache included.
func (d *Device) Sync() error { return d.file.Sync() }

// IsBlock reports whether this is a block device and not a regular file.
func (d *Device) IsBlock() bool { return d.isBlock }

// ReadAt reads past the page cache.
func (d *Device) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= d.Bytes {
		return 0, io.EOF
	}
	if isAligned(p, off) {
		return d.file.ReadAt(p, off)
	}
	// A direct read takes whole blocks only: the blocks around are read, and the piece is copied out.
	want := p[:min(int64(len(p)), d.Bytes-off)]
	from := off &^ (Align - 1)
	span := Buffer(int(min((off+int64(len(want))+Align-1)&^(Align-1), d.Bytes) - from))
	n, err := d.file.ReadAt(span, from)
	if int64(n) < off-from {
		return 0, orEOF(err)
	}
	n = copy(want, span[off-from:n])
	if n < len(p) {
		return n, orEOF(err)
	}
	return n, nil
}

func orEOF(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

// WriteAt writes past the page cache. For an unaligned piece it reads the blocks around it, changes them, and writes
// them back. It never writes beyond the end of the disk.
func (d *Device) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > d.Bytes {
		return 0, inventory.Errorf(inventory.Invalid, "disk %s ends at byte %d, and byte %d was to be written", d.Name, d.Bytes, off+int64(len(p)))
	}
	if isAligned(p, off) {
		return d.file.WriteAt(p, off)
	}
	from := off &^ (Align - 1)
	span := Buffer(int(min((off+int64(len(p))+Align-1)&^(Align-1), d.Bytes) - from))
	if len(p) < len(span) {
		if _, err := d.file.ReadAt(span, from); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
	copy(span[off-from:], p)
	if _, err := d.file.WriteAt(span, from); err != nil {
		return 0, err
	}
	return len(p), nil
}

func isAligned(p []byte, off int64) bool {
	return len(p) > 0 && off%Align == 0 && len(p)%Align == 0 && uintptr(unsafe.Pointer(&p[0]))%Align == 0
}

// Buffer returns memory that direct reads and writes take. It lies on the heap, where nothing moves it while the kernel
// has its address.
//
//go:noinline
func Buffer(n int) []byte {
	if n == 0 {
		return nil
	}
	b := make([]byte, n+Align)
	skip := Align - int(uintptr(unsafe.Pointer(&b[0]))%Align)
	return b[skip : skip+n : skip+n]
}

// Discard tells the disk that a range is not needed. The content of the range is then undefined.
func (d *Device) Discard(off, n int64) error { return d.ranged(unix.BLKDISCARD, off, n) }

// ZeroOut makes a range read as zeroes, by the fastest way that the kernel knows. A disk without a command for that
// is written. Offset and length are multiples of the sector.
func (d *Device) ZeroOut(off, n int64) error {
	if d.isBlock {
		return d.ranged(unix.BLKZEROOUT, off, n)
	}
	return d.onFile(func(fd int) error {
		return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
	})
}

func (d *Device) onFile(do func(fd int) error) error {
	raw, err := d.file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return err
	}
	return inner
}

func (d *Device) ranged(command uint, off, n int64) error {
	if n == 0 {
		return nil
	}
	if !d.isBlock {
		return syscall.ENOTTY
	}
	r := [2]uint64{uint64(off), uint64(n)}
	return d.ioctl(command, unsafe.Pointer(&r))
}

// Forget makes the kernel drop its cache of the disk and read the partition table again. Conflict means that a
// partition of the old table is in use.
func (d *Device) Forget() error {
	if !d.isBlock {
		return nil
	}
	_ = d.ioctl(unix.BLKFLSBUF, nil) // what is left in the cache is clean; a driver may not know the command
	err := d.ioctl(unix.BLKRRPART, nil)
	// Right after writes another opener, such as a driver's own scan, may hold a partition for a moment.
	for try := 0; errors.Is(err, syscall.EBUSY) && try < 20; try++ {
		<-time.After(100 * time.Millisecond)
		err = d.ioctl(unix.BLKRRPART, nil)
	}
	switch {
	case errors.Is(err, syscall.EINVAL): // a device that has no partitions, such as a loop device without partscan
		return nil
	case errors.Is(err, syscall.EBUSY):
		return inventory.Errorf(inventory.Conflict, "the kernel keeps the old partitions of %s: one of them is in use", d.Name)
	}
	return err
}

// PartitionName returns the kernel's name of a partition: sda1, but nvme0n1p1.
func PartitionName(disk string, number int) string {
	if last := disk[len(disk)-1]; strings.ContainsRune("0123456789", rune(last)) {
		return fmt.Sprintf("%sp%d", disk, number)
	}
	return fmt.Sprintf("%s%d", disk, number)
}

// IsZero reports whether all bytes are zero.
func IsZero(p []byte) bool {
	for len(p) >= 8 && uintptr(unsafe.Pointer(&p[0]))%8 == 0 {
		words := unsafe.Slice((*uint64)(unsafe.Pointer(&p[0])), len(p)/8)
		for len(words) >= 8 {
			w := words[:8]
			if w[0]|w[1]|w[2]|w[3]|w[4]|w[5]|w[6]|w[7] != 0 {
				return false
			}
			words = words[8:]
		}
		for _, w := range words {
			if w != 0 {
				return false
			}
		}
		p = p[len(p)/8*8:]
	}
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// IoctlValue runs a command whose answer is the return value of the call.
func (d *Device) IoctlValue(command uint) (uint32, error) {
	var value uint32
	err := d.onFile(func(fd int) error {
		v, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(command), 0)
		if errno != 0 {
			return errno
		}
		value = uint32(v)
		return nil
	})
	return value, err
}
