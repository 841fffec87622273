package httpboot

import (
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// mostAtOnce is the most bytes that one call of sendfile(2) moves on Linux.
const mostAtOnce = 0x7ffff000

// sendByKernel sends n bytes of a file from its position, or fewer when the file ends, and moves the position. The
// machine may be slow. But when the send buffer is full, it must take some bytes within stallFor; otherwise the error
// is os.ErrDeadlineExceeded.
//
// net.TCPConn.ReadFrom does the same in pieces of 4 MiB. The end of each piece costs a packet that is not full. That
// is several percent of the rate when many machines load at once.
func sendByKernel(to *net.TCPConn, f *os.File, n int64) (sent int64, err error) {
	out, err := to.SyscallConn()
	if err != nil {
		return 0, err
	}
	in, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	for sent < n {
		if err := to.SetWriteDeadline(time.Now().Add(stallFor)); err != nil {
			return sent, err
		}
		var moved int
		var failed error
		// The runtime calls this function again when the socket has room: false means "not yet" (EAGAIN).
		waited := out.Write(func(outFD uintptr) (isDone bool) {
			closed := in.Control(func(inFD uintptr) {
				for failed = unix.EINTR; failed == unix.EINTR; {
					moved, failed = unix.Sendfile(int(outFD), int(inFD), nil, int(min(n-sent, mostAtOnce)))
				}
			})
			if closed != nil {
				failed = closed
			}
			return failed != unix.EAGAIN
		})
		if waited != nil {
			return sent, waited
		}
		if failed != nil || moved == 0 {
			return sent, os.NewSyscallError("sendfile", failed)
		}
		sent += int64(moved)
	}
	return sent, nil
}

// isUnsupported reports whether the file system of a file has no sendfile(2).
func isUnsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP)
}
