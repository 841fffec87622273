package disk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"slipway.dev/slipway/inventory"
)

// Queue holds what the kernel says of a disk's abilities.
type Queue struct {
	// CanZero says that the disk has a command after which a range reads as zeroes.
	CanZero bool
	// CanDiscard says that the disk takes discards; IsZeroAfterDiscard that such ranges then read as zeroes.
	// Kernels since 4.12 never say the latter: CanZero took its place.
	CanDiscard, IsZeroAfterDiscard bool
	IsReadOnly                     bool
}

// Queue reads the abilities of a disk.
func (t Tree) Queue(name string) Queue {
	n := func(file ...string) int64 {
		v, _ := strconv.ParseInt(t.attribute(append([]string{"block", name}, file...)...), 10, 64)
		return v
	}
	return Queue{
		CanZero:            n("queue", "write_zeroes_max_bytes") > 0,
		CanDiscard:         n("queue", "discard_max_bytes") > 0,
		IsZeroAfterDiscard: n("queue", "discard_zeroes_data") == 1,
		IsReadOnly:         n("ro") == 1,
	}
}

func (t Tree) attribute(parts ...string) string {
	b, err := os.ReadFile(t.SysPath(parts...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Has reports whether the kernel still knows the disk.
func (t Tree) Has(name string) bool {
	_, err := os.Stat(t.SysPath("block", name))
	return err == nil
}

// Extent is a part of a disk in bytes.
type Extent struct {
	Name       string // of the partition's device
	Off, Bytes int64
}

// Partitions lists the partitions that the kernel knows on a disk. sysfs counts in 512 bytes for every sector size.
func (t Tree) Partitions(name string) []Extent {
	files, _ := filepath.Glob(t.SysPath("block", name, name+"*", "partition"))
	var all []Extent
	for _, f := range files {
		part := filepath.Base(filepath.Dir(f))
		start, err1 := strconv.ParseInt(t.attribute("block", name, part, "start"), 10, 64)
		size, err2 := strconv.ParseInt(t.attribute("block", name, part, "size"), 10, 64)
		if err1 == nil && err2 == nil {
			all = append(all, Extent{Name: part, Off: start * 512, Bytes: size * 512})
		}
	}
	return all
}

// PartitionDevice waits up to 15 seconds for the device of a partition, and returns its path. It announces the
// partition to a kernel that has not found it by itself, such as one without support for GPT.
func (t Tree) PartitionDevice(ctx context.Context, disk string, p Partition, sector int) (string, error) {
	ctx, stop := context.WithTimeout(ctx, 15*time.Second)
	defer stop()
	name := PartitionName(disk, p.Number)
	if _, err := os.Stat(t.SysPath("block", disk, name)); err != nil {
		if err := t.addPartition(disk, p, sector); err != nil {
			return "", inventory.Errorf(inventory.Unavailable, "the kernel does not take partition %d of %s: %w", p.Number, disk, err).
				WithHint("the kernel's log says why")
		}
	}
	for {
		if info, err := os.Stat(t.DevPath(name)); err == nil && info.Mode()&os.ModeDevice != 0 {
			return t.DevPath(name), nil
		}
		select {
		case <-ctx.Done():
			return "", inventory.Errorf(inventory.Unavailable, "the device of partition %d of %s has not appeared", p.Number, disk).
				WithHint("is devtmpfs mounted at /dev?")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Commands of linux/blkpg.h.
const (
	blkpg             = 0x1269
	blkpgAddPartition = 1
)

type blkpgArgument struct {
	op, flags, length int32
	data              unsafe.Pointer
}

type blkpgPartition struct {
	start, length int64 // bytes
	number        int32
	_             [64 + 64 + 4]byte // names, which the kernel does not read
}

func (t Tree) addPartition(disk string, p Partition, sector int) error {
	dev, err := t.Open(disk, Read)
	if err != nil {
		return err
	}
	defer dev.Close()
	part := &blkpgPartition{start: p.First * int64(sector), length: p.Sectors * int64(sector), number: int32(p.Number)}
	arg := &blkpgArgument{op: blkpgAddPartition, length: int32(unsafe.Sizeof(*part)), data: unsafe.Pointer(part)}
	err = dev.ioctl(blkpg, unsafe.Pointer(arg))
	if errors.Is(err, syscall.EBUSY) { // it overlaps one that the kernel knows: an extended partition
		return nil
	}
	return err
}
