// Package host owns what the agent's RAM disk needs of Linux before it can reach a server: mounts, consoles, kernel modules
// and a network address. It also owns the end: reboot and power off. It never decides what the machine is for.
package host

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// mounts are the file systems that an empty RAM disk lacks, in order.
var mounts = []struct{ kind, at, options string }{
	{"devtmpfs", "/dev", "mode=0755"},
	{"proc", "/proc", ""},
	{"sysfs", "/sys", ""},
	{"tmpfs", "/run", "mode=0755"},
	{"tmpfs", "/tmp", "mode=1777"},
}

// Mount mounts them. It is called once.
func Mount() error {
	for _, m := range mounts {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return fmt.Errorf("make %s: %w", m.at, err)
		}
		// EBUSY says that the kernel did it already, as some do with /dev.
		err := unix.Mount(m.kind, m.at, m.kind, unix.MS_NOSUID|unix.MS_NOEXEC, m.options)
		if err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.at, err)
		}
	}
	return nil
}

// MountEFI mounts the variables of UEFI on a machine that it started. The kernel loads efivarfs for that.
func MountEFI() error {
	const at = "/sys/firmware/efi/efivars"
	if _, err := os.Stat(at); err != nil {
		return nil // a BIOS started it
	}
	err := unix.Mount("efivarfs", at, "efivarfs", unix.MS_NOSUID|unix.MS_NOEXEC|unix.MS_NODEV, "")
	if err != nil && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("mount efivarfs: %w", err)
	}
	return nil
}

// CommandLine returns the kernel's arguments.
func CommandLine() string {
	b, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Release returns the version of the running kernel, such as 6.1.0-56-amd64.
func Release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// Uptime returns the time since the kernel started.
func Uptime() time.Duration {
	b, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), " ")
	s, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

// LinkModprobe puts this program at /sbin/modprobe. The kernel calls that when it needs a module by itself: for a file
// system, a protocol, a cipher.
func LinkModprobe() error {
	if err := os.MkdirAll("/sbin", 0o755); err != nil {
		return fmt.Errorf("make /sbin: %w", err)
	}
	if err := os.Symlink("/proc/1/exe", "/sbin/modprobe"); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("link modprobe: %w", err)
	}
	return nil
}

// Modprobe is what this program does when the kernel calls it as modprobe: "modprobe -q -- fs-vfat".
func Modprobe(args []string) error {
	m, err := OpenModules(filepath.Join("/lib/modules", Release()), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	for _, name := range args {
		if strings.HasPrefix(name, "-") {
			continue
		}
		return m.Load(name) // of the rest, all are parameters
	}
	return nil
}
