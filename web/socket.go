package web

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"slipway.dev/slipway/inventory"
)

// ListenSocket opens the Unix socket at path for its owner and group. It removes the file that a killed server left there.
// The socket of a running server is a Conflict.
func ListenSocket(path string) (net.Listener, error) {
	const pathMax = 107 // sockaddr_un, less its final zero
	if len(path) > pathMax {
		return nil, inventory.Errorf(inventory.Invalid, "the socket's path %s is too long", path).
			WithHint("the kernel takes %d bytes: choose a shorter data directory", pathMax)
	}
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return nil, inventory.Errorf(inventory.Conflict, "another server listens on %s", path).WithHint("stop it, or choose another data directory")
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, inventory.Errorf(inventory.Conflict, "%s is in the way: it is no socket", path).WithHint("move it away")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove old socket: %w", err)
	}
	// Anyone who may connect is an admin, so there must be no moment at which everybody may.
	old := syscall.Umask(0o117)
	l, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, inventory.Errorf(inventory.Unavailable, "cannot listen on %s: %v", path, err).WithHint("check the permissions of its directory")
	}
	return l, nil
}
