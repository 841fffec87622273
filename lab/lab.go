// Package lab runs a virtual rack: machines on libvirt with empty disks and real firmware, connected to an isolated
// bridge. A real `slipway serve` boots, installs and wipes them. The tests on real firmware use the same rack. The
// package boots nothing itself, and uses nothing of the server but its REST API.
//
// A lab changes the machine that it runs on: libvirt domains, a bridge, a network namespace, processes and a folder.
// Close removes all of it. After a crash the next Build does so, or Down. Names and MACs begin with fixed prefixes,
// so that neither touches what an admin made.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// Config describes a lab. A zero value means the default.
type Config struct {
	RackConfig
	// Executable is the path of the slipway whose `serve` boots the machines; "" means this program.
	Executable string
	// Out gets the messages for the user; nil means none.
	Out io.Writer
}

// Lab is a rack with the server that boots it. Machines are off until Machine.Start.
type Lab struct {
	Rack   *Rack
	API    *client.Client
	System System
	servers
}

// Open builds the rack, and starts a server with the image of the lab and a profile for all machines of its
// manufacturer. Hosts wait until somebody accepts them.
//
// Open needs root and the packages of Packages; its error names what is missing. After an error it has removed what
// it made. The caller ends a lab with Close.
func Open(ctx context.Context, cfg Config) (*Lab, error) {
	if cfg.Executable == "" {
		own, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		cfg.Executable = own
	}
	if err := checkPackages(cfg.Instances); err != nil {
		return nil, err
	}
	if err := needRoot(); err != nil {
		return nil, err
	}
	if cfg.Accel == "" || cfg.Accel == AccelAuto {
		say(cfg.Out, "Trying /dev/kvm ...")
		var why string
		cfg.Accel, why = chooseAccel(ctx, filepath.Join(installerDir, "linux"))
		say(cfg.Out, "Machines run under %s: %s.", cfg.Accel, why)
	}
	r, err := Build(ctx, cfg.RackConfig)
	if err != nil {
		return nil, err
	}
	say(cfg.Out, "Rack of %d machines on %s, bridge %s with %s.", len(r.Machines()), r.Where(), r.Interface(), r.Address())
	l := &Lab{Rack: r}
	if err := l.open(ctx, cfg); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) open(ctx context.Context, cfg Config) (err error) {
	if l.System, err = writeSystem(l.Rack.Dir()); err != nil {
		return err
	}
	if l.servers, err = startServers(ctx, l.Rack, cfg.Executable); err != nil {
		return err
	}
	if l.API, err = client.New(client.Config{Server: l.asked().socket(), Agent: "slipway-lab"}); err != nil {
		return err
	}
	if n := len(l.all); n > 1 {
		if _, err := l.await(ctx, 30*time.Second, "all servers are alive", areAlive(n)); err != nil {
			return err
		}
		say(cfg.Out, "%d servers share a PostgreSQL database:\n%s", n, l.list(ctx, cfg.Executable))
	}
	say(cfg.Out, "Server runs; importing Debian 12 from package %s ...", installerPackage)
	err = importImage(ctx, l.API, client.ImportRequest{
		Name: ImageName, Release: "12", Arch: inventory.X8664, KernelArgs: l.System.Args, MemoryMiB: memoryMiB,
		Files: []client.ImportFile{
			{Role: inventory.RoleKernel, Name: "linux", Source: l.System.Kernel},
			{Role: inventory.RoleInitrd, Name: "initrd.gz", Source: l.System.RAMDisk},
			{Role: inventory.RoleInitrd, Name: "slipway-init.gz", Source: l.System.Script},
		},
	})
	if err != nil {
		return err
	}
	profile := inventory.Profile{Name: ProfileName, Image: ImageName, Selector: "manufacturer=" + Manufacturer + ",label:" + useLabel + "!=" + useInstalled}
	if _, err := l.API.Profiles.Put(ctx, ProfileName, profile); err != nil {
		return fmt.Errorf("save the lab's profile: %w", err)
	}
	if slices.ContainsFunc(l.Rack.cfg.Specs, func(s Spec) bool { return s.IsInstalled }) {
		return prepareLife(ctx, l.API, l.Rack.Dir(), cfg.Executable, cfg.Out)
	}
	return nil
}

// filesN is how many artefacts a machine fetches in one boot.
const filesN = 3

// URL returns the address of the API for programs of the user, and the admin token for it.
func (l *Lab) URL() (url, token string) { return l.asked().url(), l.all[0].token() }

// Socket returns the path of the unix socket of the API, which needs no token.
func (l *Lab) Socket() string { return l.asked().socket() }

// logs returns the paths of the logs of the servers.
func (l *Lab) logs() (paths []string) {
	for _, s := range l.all {
		paths = append(paths, s.logPath)
	}
	return paths
}

// Log returns the last lines of the log of each server.
func (l *Lab) Log(lines int) string {
	var all []string
	for _, s := range l.all {
		text := tailFile(s.logPath, lines)
		if s.name != "" {
			text = "server " + s.name + ":\n" + text
		}
		all = append(all, text)
	}
	return strings.Join(all, "\n")
}

// await waits until the API says of the instances what is wanted, and returns them.
func (l *Lab) await(ctx context.Context, limit time.Duration, what string, isSo func([]wire.Instance) bool) ([]wire.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		all, err := l.instances(ctx)
		if err == nil && isSo(all) {
			return all, nil
		}
		if sleep.For(ctx, 200*time.Millisecond) != nil {
			return all, inventory.Errorf(inventory.Unavailable, "not within %s: %s: %w", limit, what, errors.Join(err, ctx.Err()))
		}
	}
}

func (l *Lab) instances(ctx context.Context) (all []wire.Instance, err error) {
	for i, err := range l.API.Instances.All(ctx, client.Query{}) {
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}

// list returns what "slipway instance list" prints.
func (l *Lab) list(ctx context.Context, executable string) string {
	cmd := exec.CommandContext(ctx, executable, "instance", "list", "--server", l.servers.asked().socket())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s%s", out, err)
	}
	return string(out)
}

// Close switches the machines off, stops the server, and removes everything that Open made. A second call does
// nothing.
func (l *Lab) Close() error {
	_ = l.Rack.Stop() // Close tries again and says what is wrong
	l.servers.stop()
	return l.Rack.Close()
}

// Down removes everything that labs left on this machine, and ends a running lab first: with SIGINT, and after a
// minute with SIGKILL. It is no error when there is no lab. dir is the folder of the lab, "" for the default; out
// gets a line for each thing removed.
func Down(ctx context.Context, dir string, out io.Writer) error {
	if err := needRoot(); err != nil {
		return err
	}
	lock, stopped, err := stopOther(ctx, time.Minute)
	if err != nil {
		return err
	}
	defer lock.Close()
	if stopped {
		say(out, "Ended the lab that was running.")
	}
	left := RackConfig{Dir: dir}.withDefaults()
	removed, err := sweep(left.Dir, left.Bridge)
	if os.Remove(verdictPath) == nil {
		removed = append(removed, "note "+verdictPath)
	}
	for _, what := range removed {
		say(out, "Removed %s.", what)
	}
	if err == nil && len(removed) == 0 && !stopped {
		say(out, "There is no lab on this machine.")
	}
	return err
}
