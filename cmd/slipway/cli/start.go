package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/web/client"
)

// startsWithin is how long a command waits for a server that is starting: it opens its socket last.
const startsWithin = 20 * time.Second

// awaitSocket waits for the socket of a server that is starting. Where no server holds the data directory it returns at once.
func awaitSocket(ctx context.Context, server string) {
	path := strings.TrimPrefix(server, "unix:")
	if !filepath.IsAbs(path) {
		return
	}
	for end := time.Now().Add(startsWithin); time.Now().Before(end) && ctx.Err() == nil; _ = sleep.For(ctx, 100*time.Millisecond) {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || !isHeld(filepath.Dir(path)) {
			return
		}
	}
}

// isHeld reports whether a server has locked a data directory.
func isHeld(dir string) bool {
	f, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// AwaitServer waits until a server answers, at most for some time.
func AwaitServer(ctx context.Context, api *client.Client, within time.Duration) error {
	for end := time.Now().Add(within); ; {
		_, err := api.Version(ctx)
		var e *inventory.Error
		isAway := errors.As(err, &e) && e.Kind == inventory.Unavailable
		if err == nil || !isAway || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
		_ = sleep.For(ctx, 200*time.Millisecond)
	}
}
