package burn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

const (
	blockBytes = 4 << 20
	alignBytes = 4096 // direct I/O wants buffers and offsets to be multiples
)

// disk reads a disk from front to back, over and over, for the time it has; with mayWrite every pass writes a pattern of
// its own first and compares. Reads bypass the page cache, which would answer instead of the disk.
func (s *Source) disk(ctx context.Context, d inventory.Disk, mayWrite bool) inventory.BurnInTest {
	mayWrite = mayWrite && !d.IsReadOnly
	f, err := openDirect(filepath.Join(s.Root, "dev", d.Name), mayWrite)
	if err != nil {
		return inventory.BurnInTest{Detail: err.Error()}
	}
	defer f.Close()
	size := d.SizeBytes
	if s.RegionBytes > 0 {
		size = min(size, s.RegionBytes)
	}
	size -= size % alignBytes
	x := exercise{f: f, size: size, buf: aligned(blockBytes)}
	began, passes := time.Now(), 0
	for ctx.Err() == nil && err == nil && size > 0 {
		if err = x.pass(ctx, uint64(passes)+1, mayWrite); err == nil {
			passes++
		}
	}
	seconds := max(time.Since(began).Seconds(), 0.001)
	t := inventory.BurnInTest{Rate: float64(x.bytes) / 1e6 / seconds, Unit: "MB/s"}
	word := "read"
	if mayWrite {
		word = "written and compared"
	}
	switch {
	case err != nil && !isOver(err):
		t.Detail = err.Error()
	case x.bytes == 0:
		t.Detail = "nothing was read in the time"
	default:
		t.Passed = true
		t.Detail = fmt.Sprintf("%d MB %s, %d full passes, no error", x.bytes/1e6, word, passes)
	}
	return t
}

// openDirect opens a disk so that the cache is passed by, where the kernel can do that. O_EXCL refuses a disk that is
// mounted.
func openDirect(name string, mayWrite bool) (*os.File, error) {
	flags := os.O_RDONLY
	if mayWrite {
		flags = os.O_RDWR | unix.O_EXCL
	}
	f, err := os.OpenFile(name, flags|unix.O_DIRECT, 0)
	// Some file systems and virtual disks know no direct I/O. The test is weaker then, and better than none.
	if errors.Is(err, unix.EINVAL) {
		f, err = os.OpenFile(name, flags, 0)
	}
	if errors.Is(err, unix.EBUSY) {
		return nil, inventory.Errorf(inventory.Conflict, "%s is in use", filepath.Base(name)).WithHint("is it part of a RAID that the kernel has started?")
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", filepath.Base(name), err)
	}
	return f, nil
}

// exercise is the work on one disk.
type exercise struct {
	f     *os.File
	size  int64
	buf   []byte
	bytes int64 // read or written
}

// pass goes over the disk once. It writes everything before it reads anything, so that the disk's own cache does not
// answer.
func (x *exercise) pass(ctx context.Context, n uint64, mayWrite bool) error {
	if mayWrite {
		err := x.blocks(ctx, func(b []byte, at int64) error {
			stamp(b, at, n)
			if _, err := x.f.WriteAt(b, at); err != nil {
				return fmt.Errorf("write at %d MiB: %w", at>>20, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		// Direct I/O passes the kernel's cache, but not the disk's own. The flush makes the disk answer from its medium later.
		if err := x.f.Sync(); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
	}
	return x.blocks(ctx, func(b []byte, at int64) error {
		if _, err := x.f.ReadAt(b, at); err != nil { // io.EOF too: a disk that ends before its size is not well
			return fmt.Errorf("read at %d MiB: %w", at>>20, err)
		}
		if mayWrite {
			if wrong := stampedWrong(b, at, n); wrong >= 0 {
				return inventory.Errorf(inventory.Invalid, "at byte %d something else was read than was written", at+int64(wrong))
			}
		}
		return nil
	})
}

func (x *exercise) blocks(ctx context.Context, work func(b []byte, at int64) error) error {
	for at := int64(0); at < x.size; at += blockBytes {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := x.buf[:min(blockBytes, x.size-at)]
		if err := work(b, at); err != nil {
			return err
		}
		x.bytes += int64(len(b))
	}
	return nil
}

// stamp fills a block with words that tell where and in which pass they were written: a write that went to the wrong
// place is found, too.
func stamp(b []byte, at int64, n uint64) {
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], word(at+int64(i), n))
	}
}

// stampedWrong returns the offset of the first wrong word, or -1.
func stampedWrong(b []byte, at int64, n uint64) int {
	for i := 0; i+8 <= len(b); i += 8 {
		if binary.LittleEndian.Uint64(b[i:]) != word(at+int64(i), n) {
			return i
		}
	}
	return -1
}

// word mixes place and pass. Multiplying by an odd number loses nothing, and spreads neighbours over all 64 bits.
func word(at int64, n uint64) uint64 { return (uint64(at) + n<<56) * 0x9e3779b97f4a7c15 }

// aligned returns a buffer that direct I/O accepts.
func aligned(n int) []byte {
	b := make([]byte, n+alignBytes)
	skip := (alignBytes - int(uintptr(unsafe.Pointer(&b[0]))%alignBytes)) % alignBytes
	return b[skip : skip+n]
}
