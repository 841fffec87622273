// Command slipway-agent is the init of Slipway's RAM disk: it gets the machine onto the network and does the tasks of the
// boot listener. It never decides anything; and as PID 1 it never ends, because a machine whose init ends panics.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"slipway.dev/slipway/agent"
	"slipway.dev/slipway/agent/host"
	"slipway.dev/slipway/inventory"
)

// version is set by the linker.
var version = "dev"

// retryAfter is how long a machine shows what is wrong before it starts over.
const retryAfter = 30 * time.Second

func main() {
	// The kernel calls /sbin/modprobe, which is this program, for modules that it needs by itself.
	if filepath.Base(os.Args[0]) == "modprobe" {
		if err := host.Modprobe(os.Args[1:]); err != nil {
			os.Exit(1)
		}
		return
	}
	session := flag.String("session", "", "URL of the boot session, instead of the kernel argument")
	notInit := flag.Bool("not-init", false, "run as an ordinary program: no mounts, modules or network set-up, no restart of the machine")
	isVersion := flag.Bool("version", false, "show the version")
	if os.Getpid() != 1 { // an init is given what the kernel did not understand, not flags
		flag.Parse()
	}
	switch {
	case *isVersion:
		fmt.Println(version)
	case os.Getpid() == 1:
		runInit()
	default:
		os.Exit(runProgram(*session, *notInit))
	}
}

// runProgram runs the agent next to an operating system, for tests and for looking at a running machine.
func runProgram(session string, notInit bool) int {
	if session == "" || !notInit {
		fmt.Fprintln(os.Stderr, "slipway-agent is the init of a RAM disk; to try it here: slipway-agent --not-init --session URL")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	lines := &agent.Lines{}
	log := newLog(io.MultiWriter(os.Stderr, lines), true)
	m := &machine{version: version, log: log, lines: lines, args: host.Arguments{Session: session}, settled: make(chan struct{})}
	close(m.settled) // anyone who runs this system has seen to it
	if err := m.serve(ctx); err != nil {
		log.Error(err.Error())
		return 1
	}
	return 0
}

// runInit is PID 1: it never returns.
func runInit() {
	mountErr := host.Mount()
	consoles := host.OpenConsoles()
	lines := &agent.Lines{}
	args := host.ParseArguments(host.CommandLine())
	log := newLog(io.MultiWriter(consoles, lines), args.HasDebug)
	m := &machine{version: version, log: log, lines: lines, args: args, isInit: true}
	log.Info("Slipway's agent", "version", version, "kernel", host.Release())
	for {
		err := mountErr
		if err == nil {
			err = guard(m.run)
		}
		var e *inventory.Error
		hint := ""
		if errors.As(err, &e) {
			hint = e.Hint
		}
		log.Error("the agent cannot go on; the machine restarts", "in", retryAfter, "err", err, "hint", hint)
		time.Sleep(retryAfter)
		if err := host.Reboot(); err != nil {
			log.Error("the machine does not restart", "err", err)
		}
	}
}

// guard turns a panic into an error: an init must not end.
func guard(run func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the agent broke: %v", p)
		}
	}()
	return run(context.Background())
}

// run brings the machine up and serves its session.
func (m *machine) run(ctx context.Context) error {
	if m.args.Session == "" {
		return inventory.Errorf(inventory.Invalid, "the kernel arguments do not name the boot session").
			WithHint("this image is started by Slipway's boot script, with slipway.session=URL")
	}
	ctx, cancel := context.WithCancel(ctx)
	var crew sync.WaitGroup
	defer crew.Wait()
	defer cancel()
	crew.Go(func() { host.Reap(ctx) })
	host.Stir(m.args.Session, m.log)
	if err := host.LinkModprobe(); err != nil {
		m.log.Warn("the kernel cannot load modules by itself", "err", err)
	}
	modules, err := host.OpenModules(filepath.Join("/lib/modules", host.Release()), m.log)
	if err != nil {
		return err
	}
	m.modules, m.settled = modules, make(chan struct{})
	if modules.Count() == 0 {
		m.log.Warn("the image has no modules for this kernel", "kernel", host.Release(), "hint", "build it again with the modules of the kernel it is booted with")
	}
	devices := &host.Devices{Modules: modules, Choices: m.args.Drivers, Sys: "/sys"}
	ready := make(chan struct{})
	crew.Go(func() { devices.Hotplug(ctx, ready) })
	<-ready
	crew.Go(func() {
		defer close(m.settled)
		n := devices.Coldplug(ctx)
		if err := host.MountEFI(); err != nil {
			m.log.Warn("the variables of UEFI cannot be read", "err", err)
		}
		m.log.Info("drivers are loaded", "devices", n, "modules", modules.Count())
		devices.Settle(ctx)
	})
	if m.args.HasShell {
		crew.Go(func() { host.Shell(ctx, m.log) })
	}
	network := &host.Network{BootMAC: m.args.BootMAC, Addresses: m.args.Addresses, Log: m.log, Sys: "/sys", Etc: "/etc"}
	if err := network.Up(ctx); err != nil {
		return err
	}
	crew.Go(func() { network.Keep(ctx) })
	return m.serve(ctx)
}

// newLog writes lines for people.
func newLog(out io.Writer, isDebug bool) *slog.Logger {
	level := slog.LevelInfo
	if isDebug {
		level = slog.LevelDebug
	}
	return slog.New(&host.LineHandler{Out: out, Level: level, Since: host.Uptime})
}
