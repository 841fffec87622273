package door

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Budget is how many connections each listener may have, so that the rest of the process never lacks a file descriptor.
type Budget struct {
	Limit    int // of the process
	Reserved int // for DHCP, the database, files of images, and what the server opens itself
	Boot     int // boot door over HTTP; each connection may have a file open next to it
	BootTLS  int
	Admin    int
	Socket   int
	Link     int // for other instances; 0 without them
}

// The most connections that the doors are given, whatever the limit of the process is.
const (
	mostBoot   = 8192
	mostAdmin  = 2048
	mostSocket = 256
	mostLink   = 4096
	// leastReserved is what the rest of the process needs: sockets of DHCP on some interfaces, SQLite with its readers, desks
	// of TFTP, connections to controllers and clusters.
	leastReserved = 256
)

// Share divides the file descriptors of a process among the listeners. hasLink says that there are other instances. Then this one may pass
// requests of people on, each over a second connection.
func Share(limit int, hasBootTLS, hasLink bool) Budget {
	b := Budget{Limit: limit, Reserved: max(leastReserved, limit/8)}
	free := max(limit-b.Reserved, 64)
	admin, socket := 3, 8 // parts of what is free
	if hasLink {
		b.Link = min(free/8, mostLink)
		free -= b.Link
		admin, socket = 6, 12
	}
	boot := free / 2 / 2 // a connection and its file
	if hasBootTLS {
		b.BootTLS = min(boot/2, mostBoot)
		boot -= boot / 2
	}
	b.Boot = min(boot, mostBoot)
	b.Admin = min(free/admin, mostAdmin)
	b.Socket = min(free/socket, mostSocket)
	return b
}

// RaiseFiles raises the limit of open files of this process to the most that the system allows, and returns it.
func RaiseFiles() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 1024
	}
	if l.Cur < l.Max {
		if l.Cur = l.Max; syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
			_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
		}
	}
	const most = 1 << 20
	return int(min(l.Cur, most))
}

// IsOutOfFiles reports whether an error says that this process, or the system, cannot open another file.
func IsOutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// outOfFiles is when a door met that last, in nanoseconds of Unix time.
var outOfFiles atomic.Int64

// OutOfFilesAt returns when a listener last had no file descriptor for a connection; the zero time means never.
func OutOfFilesAt() time.Time {
	if at := outOfFiles.Load(); at > 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// Files counts the open files of this process. It holds a descriptor of its own open, so that it works also when none is
// left.
type Files struct {
	mu  sync.Mutex
	dir *os.File
}

// OpenFiles returns a counter.
func OpenFiles() (*Files, error) {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return nil, fmt.Errorf("count open files: %w", err)
	}
	return &Files{dir: dir}, nil
}

// Count returns how many files are open.
func (f *Files) Count() (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.dir.Seek(0, 0); err != nil {
		return 0, err
	}
	names, err := f.dir.Readdirnames(-1)
	return len(names), err
}

// Close implements io.Closer.
func (f *Files) Close() error { return f.dir.Close() }
