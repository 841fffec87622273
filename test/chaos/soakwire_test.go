package chaos

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// broadcasts lets a socket send to all on an interface.
func broadcasts(raw syscall.RawConn, iface string) error {
	var err error
	if e := raw.Control(func(fd uintptr) {
		if err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err == nil {
			err = unix.BindToDevice(int(fd), iface)
		}
	}); e != nil {
		return e
	}
	return err
}
