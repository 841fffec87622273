// Package kexec owns starting another kernel without the firmware in between. It never decides that this should
// happen, and never ends this program by itself: Handler loads the kernel, and Start jumps into it.
//
// The two are apart because the agent has to report the result before the jump: no report comes after it.
package kexec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/seed"
	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/agent/write/fetch"
	"slipway.dev/slipway/inventory"
)

// A task's files lie in memory, and twice while the kernel copies them. The bounds keep a wrong URL from filling it.
const (
	maxKernel  = 512 << 20
	maxInitrd  = 4 << 30
	maxInitrds = 16
	maxLine    = 4095 // of kernel arguments; the least that a supported architecture takes is 2048
)

// Config holds what loading needs. Root returns the disk of the last written system, for paths in it.
type Config struct {
	Client     *http.Client
	Tree       disk.Tree
	LoadModule func(name string) error
	Wait       func(ctx context.Context, d time.Duration) error
	MountDir   string
	// Root is the disk that was written last, for paths; nil or "" when there is none.
	Root func() string
}

// Loader loads kernels.
type Loader struct {
	cfg  Config
	load func(kernel, initrd *os.File, args string) error
}

// New returns a Loader.
func New(cfg Config) *Loader { return &Loader{cfg: cfg, load: load} }

// Handler does a wire.Kexec task up to the jump, which Start makes. The errors are Invalid (no kernel, arguments too
// long), Forbidden (Secure Boot, lockdown) and those of the fetch. After an error nothing is loaded, or the kernel
// loaded before.
func (l *Loader) Handler(ctx context.Context, t wire.Task, say func(string, wire.Progress)) (wire.Report, error) {
	k := t.Kexec
	if k == nil || k.Kernel == "" || len(k.Initrd) > maxInitrds {
		return wire.Report{}, inventory.Errorf(inventory.Internal, "the task does not say which kernel to start")
	}
	args := strings.Join(k.Args, " ")
	if len(args) > maxLine || inventory.CheckText("kernel arguments", args, maxLine) != nil || strings.Contains(args, "\n") {
		return wire.Report{}, inventory.Errorf(inventory.Invalid, "the kernel arguments are too long, or have control characters")
	}
	say("fetching the kernel", wire.Progress{})
	// Everything is fetched before the first call: a kernel that was loaded earlier stays until the new one is complete.
	kernel, err := l.file(ctx, maxKernel, k.Kernel)
	if err != nil {
		return wire.Report{}, err
	}
	// The kernel has its own copy after load, so that the file can go.
	defer kernel.Close()
	var initrd *os.File
	if len(k.Initrd) > 0 {
		say("fetching its RAM disk", wire.Progress{})
		if initrd, err = l.file(ctx, maxInitrd, k.Initrd...); err != nil {
			return wire.Report{}, err
		}
		defer initrd.Close()
	}
	if err := l.load(kernel, initrd, args); err != nil {
		return wire.Report{}, explain(err)
	}
	return wire.Report{Detail: "the kernel is loaded"}, nil
}

func explain(err error) error {
	switch {
	case errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EINVAL):
		return inventory.Errorf(inventory.Invalid, "what was given is not a kernel that can be started here").WithHint("give the file that the boot loader starts, such as vmlinuz")
	// EPERM comes from lockdown or a sysctl, the others from the check of the signature.
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EKEYREJECTED), errors.Is(err, syscall.ENOKEY), errors.Is(err, syscall.EBADMSG):
		return inventory.Errorf(inventory.Forbidden, "this kernel may not start another one: %w", err).
			WithHint("with Secure Boot only signed kernels are started; use a reboot instead")
	case errors.Is(err, syscall.ENOSYS):
		return inventory.Errorf(inventory.Invalid, "the agent's kernel cannot start another one").WithHint("use a reboot instead")
	}
	return fmt.Errorf("load the kernel: %w", err)
}

// file joins sources into one file in memory: the kernel takes several RAM disks as one. A memfd has no name, so that
// nothing is left when this process dies.
func (l *Loader) file(ctx context.Context, limit int64, sources ...string) (*os.File, error) {
	fd, err := unix.MemfdCreate("slipway-kexec", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make room in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "slipway-kexec")
	// The limit counts for all sources together: they become one file.
	w := &bounded{w: f, left: limit}
	for _, s := range sources {
		if err = l.append(ctx, w, s); err != nil {
			f.Close()
			return nil, err
		}
		// Archives after the first begin at a multiple of four, which the kernel's own reader expects.
		n, err := f.Seek(0, io.SeekCurrent)
		if err == nil && len(sources) > 1 {
			_, err = f.Write(make([]byte, (4-n%4)%4))
		}
		if err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

func (l *Loader) append(ctx context.Context, w io.Writer, source string) error {
	if !strings.HasPrefix(source, "http://") && !strings.HasPrefix(source, "https://") {
		root := ""
		if l.cfg.Root != nil {
			root = l.cfg.Root()
		}
		if root == "" {
			return inventory.Errorf(inventory.Invalid, "no system was written, from which %s could be started", inventory.Clean(source, 200))
		}
		c := seed.Config{Tree: l.cfg.Tree, LoadModule: l.cfg.LoadModule, MountDir: l.cfg.MountDir}
		return seed.ReadRoot(ctx, c, root, source, w)
	}
	from := &fetch.Source{Client: l.cfg.Client, URL: source, Name: "the file " + inventory.Clean(filepath.Base(source), 80), Wait: l.cfg.Wait}
	st, err := from.Stream(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	_, err = io.Copy(w, st)
	return err
}

type bounded struct {
	w    io.Writer
	left int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, inventory.Errorf(inventory.Invalid, "a kernel or RAM disk is too large to be started")
	}
	return b.w.Write(p)
}

// load calls kexec_file_load(2). Unlike kexec_load(2) it lets the kernel check signatures, which Secure Boot demands.
func load(kernel, initrd *os.File, args string) error {
	flags, fd := uintptr(0), ^uintptr(0)
	if initrd == nil {
		flags = unix.KEXEC_FILE_NO_INITRAMFS
	} else {
		fd = initrd.Fd()
	}
	line, err := unix.BytePtrFromString(args)
	if err != nil {
		return err
	}
	// The length counts the zero byte at the end, without which the kernel refuses the line.
	_, _, errno := unix.Syscall6(unix.SYS_KEXEC_FILE_LOAD, kernel.Fd(), fd, uintptr(len(args)+1), uintptr(unsafe.Pointer(line)), flags, 0)
	// Fd keeps no reference to its File: the collector could close it during the call.
	runtime.KeepAlive(kernel)
	runtime.KeepAlive(initrd)
	if errno != 0 {
		return errno
	}
	return nil
}

// Start jumps into the loaded kernel. Nothing is shut down: no process ends in order, and only the file systems are
// synced. The agent calls it after the server has the report of the task. It returns only when the jump is not possible.
func Start() error {
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_KEXEC); err != nil {
		return fmt.Errorf("start the loaded kernel: %w", err)
	}
	return nil
}
