package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Where SQLite puts its locks: of a database with a write-ahead log the writer's is a byte of the shared memory's file
// (https://sqlite.org/walformat.html), of every database the last step before writing without others is in its own.
const (
	writerByte  = 120
	pendingByte = 0x40000000
)

// lockedFor is how long another process has to hold the database before that is worth a word: transactions are short.
const lockedFor = 2 * time.Second

// WaitLocker looks whether one and the same process, other than the server, keeps the database locked for seconds. It
// opens the database's files and so is not for the process of the server: see readDatabase.
func (d *Database) WaitLocker(server int) {
	first := 0
	for until := time.Now().Add(lockedFor); ; time.Sleep(lockedFor / 20) {
		pid := locker(d.Path)
		if pid == 0 || pid == server || first != 0 && pid != first {
			return
		}
		if first = pid; time.Now().After(until) {
			break
		}
	}
	name, _ := os.ReadFile(filepath.Join("/proc", fmt.Sprint(first), "comm"))
	d.LockedBy, d.Locker = first, strings.TrimSpace(string(name))
}

// locker returns the process that keeps others from writing a database now, 0 for none.
func locker(path string) int {
	for _, at := range []struct {
		file string
		byte int64
	}{{path + "-shm", writerByte}, {path, pendingByte}} {
		f, err := os.OpenFile(at.file, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return 0
		}
		l := unix.Flock_t{Type: unix.F_WRLCK, Start: at.byte, Len: 1}
		err = unix.FcntlFlock(f.Fd(), unix.F_GETLK, &l)
		f.Close()
		if err == nil && l.Type != unix.F_UNLCK {
			return int(l.Pid)
		}
	}
	return 0
}
