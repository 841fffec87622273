package lab

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// lockName is an abstract unix socket (unix(7)). It leaves no file, and the kernel closes it when the process dies,
// so no stale lock is possible.
const lockName = "@slipway-lab"

// takeLock takes the lock of the only lab on this machine. The error is Conflict when another lab has it.
func takeLock() (io.Closer, error) {
	l, err := net.Listen("unix", lockName)
	if err != nil {
		return nil, inventory.Errorf(inventory.Conflict, "another lab runs on this machine").
			WithHint("end it with Ctrl-C where it runs, or with: slipway lab down")
	}
	return l, nil
}

// stopOther sends SIGINT to a running lab, waits until it has cleaned up, and takes the lock. After patience it sends
// SIGKILL.
func stopOther(ctx context.Context, patience time.Duration) (lock io.Closer, stopped bool, err error) {
	deadline := time.Now().Add(patience)
	for {
		if lock, err = takeLock(); err == nil {
			return lock, stopped, nil
		}
		pid, dialErr := listener(lockName)
		switch {
		case dialErr != nil || pid <= 1:
		case time.Now().After(deadline):
			_ = unix.Kill(pid, unix.SIGKILL)
			deadline = deadline.Add(patience)
		case !stopped:
			if err := unix.Kill(pid, unix.SIGINT); err != nil {
				return nil, false, fmt.Errorf("stop the lab with process id %d: %w", pid, err)
			}
			stopped = true
		}
		if sleep.For(ctx, 200*time.Millisecond) != nil {
			return nil, stopped, ctx.Err()
		}
	}
}
