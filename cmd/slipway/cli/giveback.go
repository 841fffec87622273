package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// giveBackAfter is when a server or a manager has started, and giveBackEvery how often it gives back after that.
	giveBackAfter = 20 * time.Second
	giveBackEvery = time.Minute
)

// GiveBackMemory returns memory to the system until ctx ends: after the start, and later after a peak. It returns what the
// collector has freed, and calls giveBack. A kernel that does not let it costs memory and nothing else.
func GiveBackMemory(ctx context.Context) {
	for wait := giveBackAfter; ; wait = giveBackEvery {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		debug.FreeOSMemory()
		if giveBack() != nil {
			return
		}
	}
}

// giveBack unmaps the pages of the program's own file that nothing was ever written to. Most were read once, at the start:
// code that sets tables up, and those tables. What is needed again is mapped again from the file, which the kernel keeps in
// memory as long as it has some to spare. No address changes, and nothing is lost.
func giveBack() error {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find the program's file: %w", err)
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("read what is mapped: %w", err)
	}
	defer f.Close()
	parts, err := readOnly(f, exe)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if _, _, no := unix.Syscall(unix.SYS_MADVISE, p.start, p.end-p.start, unix.MADV_DONTNEED); no != 0 {
			return fmt.Errorf("unmap pages: %w", no)
		}
	}
	return nil
}

type span struct{ start, end uintptr }

// readOnly finds the mappings of a file that cannot be written to and never were: a page that was written to, such as by
// the linker's loader, exists nowhere else.
func readOnly(smaps io.Reader, path string) (all []span, err error) {
	var now span
	isOurs := false
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			_, err := fmt.Sscanf(fields[0], "%x-%x", &now.start, &now.end)
			isOurs = err == nil && len(fields) == 6 && fields[5] == path && !strings.Contains(fields[1], "w")
		case len(fields) >= 2 && fields[0] == "Anonymous:" && isOurs:
			if fields[1] == "0" {
				all = append(all, now)
			}
			isOurs = false
		}
	}
	return all, lines.Err()
}
