// Package lab owns the virtual rack: machines on libvirt with empty disks and real firmware, plugged into an isolated
// bridge, and booted, installed and wiped by a real `slipway serve`; the same rack carries the tests on real firmware. It
// never boots anything by itself and has no way into the server but its REST API.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// Config says which lab to run. Zero values mean the defaults.
type Config struct {
	RackConfig
	// Executable is the slipway whose `serve` boots the machines; this program itself by default.
	Executable string
	// Out is where the lab talks to the user.
	Out io.Writer
}

// Lab is a rack with the server that boots it. No machine runs until it is started.
type Lab struct {
	Rack   *Rack
	API    *client.Client
	System System
	server *server
}

// ProfileName and ImageName are what the lab's machines boot, by the names they have in the server.
const (
	ProfileName = "lab"
	ImageName   = "lab-debian-12"
)

// Open builds the rack and starts a server for it that has the lab's image, and a profile for all machines whose
// manufacturer is the lab. Machines that nobody has accepted wait.
func Open(ctx context.Context, cfg Config) (*Lab, error) {
	if cfg.Executable == "" {
		own, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		cfg.Executable = own
	}
	if err := checkPackages(); err != nil {
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
	if l.server, err = startServer(ctx, l.Rack, cfg.Executable); err != nil {
		return err
	}
	if l.API, err = client.New(client.Config{Server: l.server.socket(), Agent: "slipway-lab"}); err != nil {
		return err
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
		return l.prepareLife(ctx, cfg)
	}
	return nil
}

// filesN is how many artefacts a machine fetches in a boot.
const filesN = 3

// URL returns the address of the API for programs of the user, and the admin token for it.
func (l *Lab) URL() (url, token string) { return l.server.url(), l.server.token() }

// Socket returns the API's unix socket, which needs no token.
func (l *Lab) Socket() string { return l.server.socket() }

// Log returns the last lines of the server's log.
func (l *Lab) Log(lines int) string { return tailFile(l.server.logPath, lines) }

// Close switches the machines off, stops the server and removes everything that Open has made.
func (l *Lab) Close() error {
	_ = l.Rack.Stop() // Close tries again and says what is wrong
	if l.server != nil {
		l.server.stop()
	}
	return l.Rack.Close()
}

// Down removes everything that labs have left on this machine, ending the one that runs. It is harmless where there
// is nothing. dir is the lab's folder, "" for the default.
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
	removed, err := sweep(RackConfig{Dir: dir}.withDefaults())
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

func say(w io.Writer, format string, args ...any) {
	if w != nil {
		fmt.Fprintf(w, format+"\n", args...)
	}
}
