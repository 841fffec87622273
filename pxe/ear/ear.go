// Package ear owns sockets that are read in batches. It never looks at what they carry.
//
// The runtime watches each of its sockets for readability and writability. It wakes up for each packet that comes, and for
// each that has left. At thousands per second that costs more than the packets. So an Ear is watched by an epoll instance
// of its own, for one packet and only while its reader waits; the runtime watches that.
package ear

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Ear is a socket that does not block.
type Ear struct {
	mu   sync.RWMutex // held while fd is in use; Close takes it alone
	fd   int          // -1 after Close
	poll *os.File
	wait syscall.RawConn // of poll
}

// New takes a socket that does not block; on an error it is the caller's to close.
func New(fd int) (*Ear, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make an epoll instance: %w", err)
	}
	_ = unix.SetNonblock(poll, true)
	e := &Ear{fd: fd, poll: os.NewFile(uintptr(poll), "epoll")}
	// Nothing is watched before the reader waits.
	if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLONESHOT}); err != nil {
		e.poll.Close()
		return nil, fmt.Errorf("watch a socket: %w", err)
	}
	if e.wait, err = e.poll.SyscallConn(); err != nil {
		e.poll.Close()
		return nil, fmt.Errorf("watch a socket: %w", err)
	}
	return e, nil
}

// Close ends a Wait.
func (e *Ear) Close() error {
	err := e.poll.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fd >= 0 {
		err = errors.Join(err, unix.Close(e.fd))
		e.fd = -1
	}
	return err
}

// Use calls fn with the socket, which stays open meanwhile, so fn must not wait for long. After Close it is
// net.ErrClosed.
func (e *Ear) Use(fn func(fd int) (int, error)) (int, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.fd < 0 {
		return 0, net.ErrClosed
	}
	return fn(e.fd)
}

// Wait returns when there is something to read, if only an error, or the socket was closed.
func (e *Ear) Wait() error {
	_, err := e.Use(func(fd int) (int, error) {
		var arm error
		err := e.wait.Control(func(poll uintptr) {
			arm = unix.EpollCtl(int(poll), unix.EPOLL_CTL_MOD, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT})
		})
		return 0, errors.Join(err, arm)
	})
	if err != nil {
		return err
	}
	return e.wait.Read(func(poll uintptr) bool {
		var events [1]unix.EpollEvent
		n, err := unix.EpollWait(int(poll), events[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}
