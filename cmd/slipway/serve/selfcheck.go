package serve

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/cmd/slipway/doctor"
)

// Check is one line of the self-check.
type Check = doctor.Check

const (
	ok      = doctor.OK
	warning = doctor.Warning
	failed  = doctor.Failed
)

// printChecks writes the checks for a terminal.
func printChecks(c Config, checks []Check) {
	for _, k := range checks {
		fmt.Fprintf(c.Out, "%-8s %-22s %s\n", k.Status, k.Name, k.Detail)
		if k.Hint != "" {
			fmt.Fprintf(c.Out, "%-8s %-22s → %s\n", "", "", k.Hint)
		}
	}
}

// lockDataDir makes sure that one process at a time uses a data directory; the lock goes with the process.
func lockDataDir(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, errInUse(dir)
	}
	return func() { f.Close() }, nil
}
