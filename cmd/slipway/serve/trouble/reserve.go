package trouble

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/inventory"
)

// Reserve is a file that takes space on the disk of the database. Keep deletes it when the disk is nearly full, so that Slipway
// still stores leases, and makes it again when there is space. Release is called from the DHCP servers' goroutines.
type Reserve struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	bytes  int64 // how large it is, or was; 0: there never was one
	isHeld bool
}

const (
	reserveBytes = 64 << 20
	reserveLeast = 1 << 20
	// reservePart is the part of the free space that the reserve takes at most, as one of so many.
	reservePart = 8
	shedToldFor = 10 * time.Minute
)

// OpenReserve makes the reserve, or takes over that of an earlier run. A disk without room has none.
func OpenReserve(dir string, log *slog.Logger) *Reserve {
	r := &Reserve{path: filepath.Join(dir, "reserve"), log: log}
	if info, err := os.Stat(r.path); err == nil && info.Size() >= reserveLeast {
		r.bytes, r.isHeld = info.Size(), true
		return r
	}
	disk := doctor.ReadDisk(dir)
	r.take(min(int64(min(disk.FreeBytes, 1<<50))/reservePart, reserveBytes)) //#nosec G115 -- at most 1 << 50
	return r
}

// NoReserve is for a server whose database is on another machine: its leases need no room here. A move from SQLite may have left a reserve.
func NoReserve(dir string, log *slog.Logger) *Reserve {
	r := &Reserve{path: filepath.Join(dir, "reserve"), log: log}
	if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("the reserve of the time with SQLite stays on the disk", "err", err)
	}
	return r
}

// take makes the file.
func (r *Reserve) take(bytes int64) {
	if bytes < reserveLeast {
		return
	}
	r.bytes = bytes
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		err = errors.Join(fill(f, bytes), f.Close())
	}
	if err != nil {
		_ = os.Remove(r.path)
		r.log.Warn("no reserve on the disk", "bytes", bytes, "err", err)
		return
	}
	r.isHeld = true
}

// fill takes the room of a file from the disk.
func fill(f *os.File, bytes int64) error {
	// Fallocate takes the blocks at once. A sparse file would reserve nothing.
	err := unix.Fallocate(int(f.Fd()), 0, 0, bytes) //#nosec G115 -- a descriptor
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	zeros := make([]byte, 1<<20)
	for ; bytes > 0; bytes -= int64(len(zeros)) {
		if _, err := f.Write(zeros[:min(int64(len(zeros)), bytes)]); err != nil {
			return err
		}
	}
	return f.Sync()
}

// Keep gives the reserve up on a disk that is nearly full, and makes it again when there is room. It reports whether room is short,
// so that nothing but leases and states may be stored.
func (r *Reserve) Keep(disk doctor.Disk) (isTight bool) {
	if disk.Err != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	free := int64(min(disk.FreeBytes, 1<<50)) //#nosec G115 -- at most 1 << 50
	switch {
	// The disk never had space for a reserve.
	case r.bytes == 0:
		return free < reserveLeast
	// The thresholds lie far apart, so that a disk at the edge does not make and delete the file at every look.
	case r.isHeld && free < r.bytes/4:
		r.giveUp()
	case !r.isHeld && free > 3*r.bytes:
		r.take(r.bytes)
	}
	return !r.isHeld || free < r.bytes/2
}

// Release gives the reserve up at once: the disk has just refused a lease.
func (r *Reserve) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.giveUp()
}

func (r *Reserve) giveUp() {
	if !r.isHeld {
		return
	}
	r.isHeld = false
	if err := os.Remove(r.path); err != nil {
		r.log.Error("reserve on the disk not given up", "err", err)
		return
	}
	r.log.Warn("the disk is nearly full: its reserve was given up, so that leases are still stored", "bytes", r.bytes)
}

// GivenUp returns how large the reserve was that was given up; 0 when it is there.
func (r *Reserve) GivenUp() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isHeld {
		return 0
	}
	return r.bytes
}

// IsDiskFull reports whether the store could not write because the disk is full.
func IsDiskFull(err error) bool {
	var e *inventory.Error
	return errors.As(err, &e) && e.Kind == inventory.Unavailable && strings.Contains(e.Msg, "is full")
}
