package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory/sleep"
)

// Reboot restarts the machine; it does not return unless it cannot.
func Reboot() error { return leave("restart", unix.LINUX_REBOOT_CMD_RESTART) }

// PowerOff switches the machine off; it does not return unless it cannot.
func PowerOff() error { return leave("power off", unix.LINUX_REBOOT_CMD_POWER_OFF) }

// leave writes what is still in memory to the disks first: reboot(2) does not, and an image that was just written would be
// incomplete. PID 1 must not return either, because the kernel panics when it ends.
func leave(what string, cmd int) error {
	unix.Sync()
	if err := unix.Reboot(cmd); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Reap takes in dead children, as PID 1 must for orphans, until ctx ends. It takes all: a program that the agent starts
// itself loses its exit status, and the only one is the debugging shell.
func Reap(ctx context.Context) {
	died := make(chan os.Signal, 16)
	signal.Notify(died, unix.SIGCHLD)
	defer signal.Stop(died)
	for {
		select {
		case <-ctx.Done():
			return
		case <-died:
		}
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if pid <= 0 && !errors.Is(err, unix.EINTR) {
				break
			}
		}
	}
}

// shells are where a shell may be in an image.
var shells = [][]string{{"/bin/sh"}, {"/bin/busybox", "sh"}, {"/usr/bin/busybox", "sh"}, {"/bin/bash"}}

// Shell keeps a shell on the console until ctx ends, for an admin who asked for one. If the image has no shell, it reports
// that.
func Shell(ctx context.Context, log *slog.Logger) {
	for _, argv := range shells {
		if _, err := os.Stat(argv[0]); err != nil {
			continue
		}
		for ctx.Err() == nil {
			if err := runShell(ctx, argv); err != nil && ctx.Err() == nil {
				log.Warn("the shell ended", "err", err)
			}
			_ = sleep.For(ctx, time.Second)
		}
		return
	}
	log.Warn("no shell is in the image: the debugging shell needs busybox", "hint", "slipway agent-image build --shell FILE")
}

func runShell(ctx context.Context, argv []string) error {
	tty, err := os.OpenFile("/dev/console", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open the console: %w", err)
	}
	defer tty.Close()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.Env = []string{"PATH=/bin:/sbin:/usr/bin:/usr/sbin", "HOME=/", "TERM=linux", "PS1=slipway-agent# "}
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	// Reap may have been faster than Wait: then nobody knows how the shell ended.
	if err := cmd.Wait(); err != nil && !errors.Is(err, unix.ECHILD) {
		return fmt.Errorf("run %s: %w", argv[0], err)
	}
	return nil
}
