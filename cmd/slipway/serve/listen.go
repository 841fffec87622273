package serve

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
)

// socketName is the local admins' door in the data directory.
const socketName = "slipway.sock"

// listenAdmin opens the admin door: an address, or a listener that the parent process has opened as file N (fd:N).
func listenAdmin(ctx context.Context, at string) (net.Listener, error) {
	if n, ok := strings.CutPrefix(at, "fd:"); ok {
		fd, err := strconv.Atoi(n)
		if err != nil || fd < 3 {
			return nil, inventory.Errorf(inventory.Invalid, "--admin-listen %s names no open listener", at).WithHint("fd:3 is the first that a parent can pass")
		}
		f := os.NewFile(uintptr(fd), at)
		defer f.Close()
		l, err := net.FileListener(f)
		if err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "--admin-listen %s: %w", at, err)
		}
		return l, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", at)
	if err != nil {
		return nil, &inventory.Error{
			Kind: inventory.Conflict, Msg: "cannot open the admin listener: " + err.Error(),
			Hint: "choose another address with --admin-listen, for example 127.0.0.1:8068", Err: err,
		}
	}
	return l, nil
}
