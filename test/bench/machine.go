package bench

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/lab/simulate"
)

// onClientCPU runs f in a namespace on a thread of its own, on the load's processor and before other work, as pinned
// does for processes. The thread ends with f.
func onClientCPU(ns string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: nobody else gets a thread that was changed
		var cpus unix.CPUSet
		cpus.Set(int(clientCPU[0] - '0'))
		if err := errors.Join(unix.SchedSetaffinity(0, &cpus), unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -10)); err != nil {
			done <- fmt.Errorf("pin a client: %w", err)
			return
		}
		done <- simulate.InNamespace(ns, f)
	}()
	return <-done
}

// getLimit is how long a machine waits for an answer.
const getLimit = 10 * time.Second

// get asks for a document over a connection of its own, as the first-boot tools do, and returns the whole answer. It
// calls the kernel directly, so that what is measured is the server and not a scheduler on our side.
func get(from netip.Addr, to netip.AddrPort, path string) ([]byte, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	defer unix.Close(fd)
	limit := unix.NsecToTimeval(int64(getLimit))
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit),
		unix.Bind(fd, &unix.SockaddrInet4{Addr: from.As4()}),
	)
	if err != nil {
		return nil, fmt.Errorf("prepare a socket: %w", err)
	}
	if err := again(func() error {
		return unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())})
	}); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", to, err)
	}
	request := "GET " + path + " HTTP/1.1\r\nHost: " + to.String() + "\r\nUser-Agent: Cloud-Init/24.4\r\nConnection: close\r\n\r\n"
	if err := again(func() error { _, err := unix.Write(fd, []byte(request)); return err }); err != nil {
		return nil, fmt.Errorf("ask %s: %w", to, err)
	}
	var answer []byte
	buf := make([]byte, 64<<10)
	for {
		n := 0
		err := again(func() (err error) { n, err = unix.Read(fd, buf); return err })
		if err != nil {
			return nil, fmt.Errorf("read the answer of %s: %w", to, err)
		}
		if n == 0 {
			return answer, nil
		}
		answer = append(answer, buf[:n]...)
	}
}

// again repeats a call that a signal has interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
