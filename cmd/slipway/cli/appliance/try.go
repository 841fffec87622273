package appliance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// TryCommand is slipway try: a server with a rack of simulated machines, in network namespaces of their own. Nothing of it
// meets a real machine: the namespaces hold one cable between server and machines, and nothing leaves them. Only the admin
// listener is here, on a loopback address.
type TryCommand struct {
	Hosts  int     `default:"12" help:"How many machines, 1 to 200."`
	Listen string  `default:"127.0.0.1:8067" help:"Loopback address of the web UI and the API." placeholder:"ADDR"`
	Pace   float64 `default:"0.2" help:"1: the timers of real firmware; 0: as fast as possible."`
	Name   string  `default:"slipway-try" help:"Namespaces are called NAME-srv and NAME-cli."`
}

// tryPower is where the machines' controllers listen, in the server's namespace.
const tryPower = "127.0.0.1:8991"

// tryName is what namespaces may be called: they are files, and ip takes a dash in front for a flag.
var tryName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// tryFor is longer than anybody tries.
const tryFor = 365 * 24 * time.Hour

// check refuses what would be seen from other machines, or cannot be.
func (c *TryCommand) check(uid int) error {
	a, err := netip.ParseAddrPort(c.Listen)
	switch {
	case err != nil || !a.Addr().IsLoopback():
		return cli.Usage("write it as 127.0.0.1:8067", "--listen %q is not a loopback address with a port", c.Listen)
	case c.Hosts < 1 || c.Hosts > 200:
		return cli.Usage("12 fill a small rack", "--hosts %d is not between 1 and 200", c.Hosts)
	case !tryName.MatchString(c.Name):
		return cli.Usage("letters, digits and dashes, at most 40", "--name %q cannot be a namespace", c.Name)
	case c.Pace < 0:
		return cli.Usage("0 is as fast as possible", "--pace %g is negative", c.Pace)
	case uid != 0:
		return inventory.Errorf(inventory.Forbidden, "network namespaces are made by root only").WithHint("run it with sudo")
	}
	return nil
}

// Run tries Slipway until it is interrupted, and leaves nothing behind.
func (c *TryCommand) Run(s *cli.Session) (err error) {
	if err := c.check(os.Geteuid()); err != nil {
		return err
	}
	door, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return &inventory.Error{Kind: inventory.Conflict, Msg: "cannot open the admin listener: " + err.Error(), Hint: "choose another address with --listen, for example 127.0.0.1:8068", Err: err}
	}
	defer door.Close()
	dir, err := os.MkdirTemp("", "slipway-try-")
	if err != nil {
		return fmt.Errorf("make a data directory: %w", err)
	}
	defer os.RemoveAll(dir)
	n, err := simulate.NewNet(c.Name, netip.MustParsePrefix("10.77.0.1/16"))
	if err != nil {
		return inventory.Errorf(inventory.Unavailable, "the namespaces were not made: %v", err).WithHint("left over from before? slipway simulate net-down --name %s", c.Name)
	}
	defer n.Close()
	g, ctx := errgroup.WithContext(s.Ctx)
	server, err := c.server(ctx, n, dir, door, s.Out)
	if err != nil {
		return err
	}
	g.Go(func() error {
		err := server.Wait()
		if s.Ctx.Err() != nil {
			return nil // it was told to stop
		}
		return inventory.Errorf(inventory.Unavailable, "the server has ended: %v", err).WithHint("what it said stands above")
	})
	api, err := client.New(client.Config{Server: "unix:" + filepath.Join(dir, "slipway.sock")})
	if err != nil {
		return err
	}
	defer api.Close()
	g.Go(func() error { return c.machines(ctx, n) })
	g.Go(func() error { return stopped(s.Ctx, c.furnish(ctx, api, dir, s)) })
	return g.Wait()
}

// stopped forgets an error that only says that somebody has stopped us.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// server starts a server in its namespace. It answers at the door, which was opened outside.
func (c *TryCommand) server(ctx context.Context, n *simulate.Net, dir string, door net.Listener, out io.Writer) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	f, err := door.(*net.TCPListener).File()
	if err != nil {
		return nil, fmt.Errorf("hand over the admin listener: %w", err)
	}
	defer f.Close()
	cmd := n.Command(ctx, n.Server, self, "serve", "--interface", n.ServerIf, "--data-dir", dir, "--admin-listen", "fd:3", "--mode", "full", "--unknown", "wait", "--log-level", "warn", "--egress-allow", "127.0.0.0/8")
	cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = []*os.File{f}, out, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 15 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal comes through us alone
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	return cmd, nil
}

// machines keeps the rack running until ctx is done.
func (c *TryCommand) machines(ctx context.Context, n *simulate.Net) error {
	_, err := simulate.Run(ctx, simulate.Config{
		Interface: n.ClientIf, Namespace: n.Client, Hosts: c.Hosts, Seed: 1, Firmware: []simulate.Firmware{simulate.FirmwareUEFI, simulate.FirmwareBIOS},
		Expect: simulate.StageBooted, Timeout: tryFor, Pace: c.Pace, Download: true, Log: slog.New(slog.DiscardHandler),
		Power: simulate.PowerConfig{Listen: tryPower, Namespace: n.Server, IsOn: true},
	})
	return stopped(ctx, err)
}

// furnish gives the server something to install, and the machines their controllers and places as they are heard.
func (c *TryCommand) furnish(ctx context.Context, api *client.Client, dir string, s *cli.Session) error {
	if err := cli.AwaitServer(ctx, api, time.Minute); err != nil {
		return err
	}
	if err := tryImages(ctx, api, dir); err != nil {
		return err
	}
	s.Say("open http://%s with the token in %s; commands: SLIPWAY_SERVER=%s slipway host list", c.Listen, filepath.Join(dir, "admin.token"), filepath.Join(dir, "slipway.sock"))
	s.Say("Ctrl-C ends it and takes everything away")
	placed := map[inventory.HostID]bool{}
	for len(placed) < c.Hosts && ctx.Err() == nil {
		_ = sleep.For(ctx, 500*time.Millisecond)
		for h, err := range api.Hosts.All(ctx, client.Query{}) {
			if err != nil {
				break // asked again
			}
			if !placed[h.ID] && len(h.NICs) > 0 {
				if err := tryPlace(ctx, api, h, len(placed)); err != nil {
					return stopped(ctx, err)
				}
				placed[h.ID] = true
			}
		}
	}
	return nil
}

// tryImages imports an agent and a disk image of random bytes, for the simulated agent does not look into them, and makes
// a profile of it.
func tryImages(ctx context.Context, api *client.Client, dir string) error {
	file := func(name string, size int) (string, error) {
		b := make([]byte, size)
		_, _ = rand.Read(b) // it never fails
		path := filepath.Join(dir, name)
		return path, os.WriteFile(path, b, 0o600)
	}
	kernel, err1 := file("try-kernel", 300_000)
	initrd, err2 := file("try-initrd", 900_000)
	disk, err3 := file("try-disk.raw", 20_000_000)
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("write files to boot: %w", err)
	}
	for _, r := range []client.ImportRequest{
		{Name: "agent-x86-64", OS: inventory.AgentOS, Release: "1", KernelArgs: []string{"slipway.session=${base}/boot/${session}"}, Files: []client.ImportFile{{Role: inventory.RoleKernel, Source: kernel}, {Role: inventory.RoleInitrd, Source: initrd}}},
		{Name: "try-debian", OS: "debian", Release: "12", Files: []client.ImportFile{{Role: inventory.RoleDisk, Source: disk}}, Configs: []inventory.ImageConfig{{Format: "cloud-init", Version: "24.1"}}},
	} {
		job, err := api.Import(ctx, r)
		if err != nil {
			return err
		}
		for job, err = range api.WatchJob(ctx, job.ID) {
			if err != nil {
				return err
			}
		}
		if job.Error != "" {
			return inventory.Errorf(inventory.Internal, "image %s: %s", r.Name, job.Error).WithHint("%s", job.Hint)
		}
	}
	// The machines share one network card, and would be refused secrets like thieves.
	_, err := api.Profiles.Create(ctx, inventory.Profile{Name: "try-debian", Image: "try-debian", Isolated: true})
	return err
}

// tryPlace gives a machine its controller and a place in a rack.
func tryPlace(ctx context.Context, api *client.Client, h inventory.Host, n int) error {
	mac := h.NICs[0].MAC
	if _, err := api.Hosts.SetBMC(ctx, string(h.ID), client.SetBMC{
		Driver: inventory.Webhook, Address: "http://" + tryPower, System: string(mac), Options: simulate.PowerOptions(),
	}); err != nil {
		return fmt.Errorf("give %s its controller: %w", h.Name, err)
	}
	site, row, rack, unit := "try", "a", fmt.Sprintf("r%d", n/20+1), 2*(n%20)+1
	place := &wire.PlacePatch{Site: &site, Row: &row, Rack: &rack, Unit: &unit}
	if _, err := api.Hosts.Patch(ctx, string(h.ID), wire.HostPatch{Place: place}); err != nil {
		return fmt.Errorf("place %s: %w", h.Name, err)
	}
	return nil
}
