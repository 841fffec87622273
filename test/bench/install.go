package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/client"
)

const (
	installedN  = 48
	installSeed = 21
	installSize = 128 << 20 // bytes of the disk image
	quickSize   = 32 << 20
	powerDoor   = "127.0.0.1:8992" // of the machines' controllers, in the server's namespace
	installFor  = 5 * time.Minute
)

// install48 measures the bytes per second that reach 48 machines which our agent installs at once, against 48 curl that
// fetch the same file from the same server: what the server does for an installation must not show on the wire.
func install48(ctx context.Context, e *Env) (f Figure, err error) {
	f = Figure{Name: "install-48", Unit: "MB/s", PeerName: "curl"}
	if e.Slipway == "" {
		return f, nil // the file comes from our server
	}
	dir, err := e.freshDir("install")
	if err != nil {
		return f, err
	}
	i := &installation{dir: dir, size: installSize}
	if e.Quick {
		i.size = quickSize
	}
	if err := i.furnish(ctx); err != nil {
		return f, err
	}
	n, err := simulate.NewNet("slipway-bench", netip.MustParsePrefix(serverAddress+"/8"))
	if err != nil {
		return f, err
	}
	defer n.Close()
	if err := connectMachines(ctx, n, dir, nil); err != nil {
		return f, err
	}
	cmd := pinned(ctx, bothCPUs, n.Server, e.Slipway, "serve", "--interface", "vs", "--data-dir", dir, "--mode", "full", "--range", "10.2.0.10-10.2.0.200", "--log-level", "warn", "--egress-allow", "127.0.0.0/8")
	p, err := startWhen(cmd, dir, fmt.Sprintf("TCP port %d", slipwayPort), func(pid int) bool { return hasTCPPort(pid, slipwayPort) })
	if err != nil {
		return f, err
	}
	defer p.stop()
	if f.Peer, err = i.curl(ctx, n); err != nil {
		return f, err
	}
	if f.Ours, err = i.install(ctx, n); err != nil {
		return f, fmt.Errorf("%w; the server said: %s", err, p.tail())
	}
	again, err := i.curl(ctx, n)
	e.say("48 curl: %.0f MB/s before and %.0f MB/s after; 48 installations: %.0f MB/s; %d MB each", f.Peer, again, f.Ours, i.size>>20)
	f.Peer = (f.Peer + again) / 2
	return f, err
}

// installation is one run.
type installation struct {
	dir   string
	size  int64
	file  inventory.Digest
	boots []boot // of machines that run, as which curl asks

	mu   sync.Mutex
	acts []simulate.Act
}

// furnish fills a data directory: the images, 48 hosts to install, and 48 that have booted a system to which the same
// file belongs.
func (i *installation) furnish(ctx context.Context) (err error) {
	s := &site{bank: fake.New(fake.Options{})}
	if s.store, err = sqlstore.Open(ctx, sqlstore.Config{Path: filepath.Join(i.dir, "slipway.db")}); err != nil {
		return err
	}
	if err := i.importFiles(ctx, s.store); err != nil {
		return err
	}
	now := time.Now()
	if err := s.store.Write(ctx, func(tx inventory.Tx) error { return i.fill(tx, now) }); err != nil {
		return err
	}
	s.start(ctx)
	defer s.close()
	for n := range installedN {
		b, err := i.bootOne(ctx, s, n)
		if err != nil {
			return err
		}
		i.boots = append(i.boots, b)
	}
	return nil
}

// importFiles makes a file that does not shrink, and imports it beside a kernel.
func (i *installation) importFiles(ctx context.Context, store *sqlstore.Store) error {
	catalogue, err := images.BuiltinCatalogue()
	if err != nil {
		return err
	}
	cache, err := images.New(images.Config{Dir: filepath.Join(i.dir, "artefacts"), Store: store, Catalogue: catalogue, Now: time.Now})
	if err != nil {
		return err
	}
	noise := rand.NewChaCha8([32]byte{1})
	var files []images.ImportFile
	for role, size := range map[inventory.Role]int64{inventory.RoleKernel: 200_000, inventory.RoleRootfs: i.size} {
		name, data := filepath.Join(i.dir, string(role)), make([]byte, size)
		_, _ = noise.Read(data)
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return fmt.Errorf("write a file to import: %w", err)
		}
		files = append(files, images.ImportFile{Role: role, Name: string(role), Source: name})
	}
	_, err = cache.Import(ctx, images.ImportRequest{Name: "live", Files: files, AllowLocal: true, KernelArgs: []string{"slipway.report=${report}"}}, nil)
	return err
}

func (i *installation) fill(tx inventory.Tx, now time.Time) error {
	live, err := tx.Images().Find("live")
	if err != nil {
		return err
	}
	kernel := slices.IndexFunc(live.Files, func(f inventory.ImageArtefact) bool { return f.Role == inventory.RoleKernel })
	i.file = live.Files[1-kernel].Digest
	for _, image := range []inventory.Image{
		{
			Name: inventory.AgentImage(inventory.X8664), OS: inventory.AgentOS, Release: "1", Files: live.Files[kernel : kernel+1],
			KernelArgs: []string{"slipway.session=${base}/boot/${session}"},
		},
		{Name: "disk", OS: "debian", Release: "12", DiskFormat: "raw", Files: []inventory.ImageArtefact{{Role: inventory.RoleDisk, Name: "disk.raw", Digest: i.file}}},
	} {
		image.Arch = inventory.X8664
		if err := tx.Images().Create(&image, now); err != nil {
			return err
		}
	}
	for name, image := range map[string]string{"installed": "disk", "live": "live"} {
		if err := tx.Profiles().Create(&inventory.Profile{Name: name, Image: image}, now); err != nil {
			return err
		}
	}
	for n := range installedN {
		running := fleetHost(n, now)
		running.Profile, running.Labels = "live", map[string]string{"use": "curl"}
		if err := tx.CreateHost(&running, now); err != nil {
			return err
		}
		id := simulate.NewIdentity(installSeed, n)
		h := fleetHost(n+1000, now)
		h.NICs, h.UUID = []inventory.NIC{{MAC: inventory.MAC(id.MACText())}}, ""
		if err := tx.CreateHost(&h, now); err != nil {
			return err
		}
		b := inventory.BMC{HostID: h.ID, Driver: inventory.Webhook, Address: "http://" + powerDoor, System: id.MACText(), Options: simulate.PowerOptions()}
		if err := tx.SaveBMC(&b, now); err != nil {
			return err
		}
		if err := tx.SaveInspection(&inventory.Inspection{HostID: h.ID, At: now, Hardware: simulate.HardwareOf(installSeed, n)}); err != nil {
			return err
		}
	}
	return nil
}

var bootRE = regexp.MustCompile(`/boot/([0-9a-f]{32})/artefact/`)

// bootOne plays a host up to the script that boots its system.
func (i *installation) bootOne(ctx context.Context, s *site, n int) (boot, error) {
	h := fleetHost(n, time.Now())
	c := pxe.Client{
		Stage: pxe.StageIPXE, MAC: h.NICs[0].MAC, Arch: h.Arch, Firmware: h.Firmware, ArchCode: pxe.Arch93(7), UUID: h.UUID,
		Address: address(n + 1), Server: netip.MustParseAddr(serverAddress),
		Identity: &pxe.Identity{UUID: h.UUID, Serial: h.Serial, Manufacturer: h.Manufacturer, Product: h.Product, MemoryMiB: h.MemoryMiB},
	}
	script, err := s.engine.Script(ctx, "", c, "http://"+serverAddress)
	if err != nil {
		return boot{}, err
	}
	m := bootRE.FindSubmatch(script)
	if m == nil {
		return boot{}, fmt.Errorf("host %s is given nothing to boot:\n%s", h.Name, script)
	}
	return boot{source: c.Address, mac: c.MAC, session: inventory.SessionID(m[1])}, nil
}

// curl fetches the file 48 times at once and returns megabytes per second.
func (i *installation) curl(ctx context.Context, n *simulate.Net) (float64, error) {
	begin := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	for _, b := range i.boots {
		g.Go(func() error {
			url := pxe.ArtefactURL("http://"+serverAddress, b.session, inventory.ImageArtefact{Name: "rootfs", Digest: i.file})
			return run(gctx, "ip", "netns", "exec", n.Client, "curl", "-sS", "--fail", "--retry", "100", "--interface", b.source.String(), "-o", "/dev/null", url)
		})
	}
	err := g.Wait()
	return float64(installedN*i.size) / 1e6 / time.Since(begin).Seconds(), err
}

// install wants 48 machines and returns the megabytes per second while at least one of them was being written.
func (i *installation) install(ctx context.Context, n *simulate.Net) (float64, error) {
	api, err := client.New(client.Config{Server: "unix:" + filepath.Join(i.dir, "slipway.sock")})
	if err != nil {
		return 0, err
	}
	defer api.Close()
	ctx, cancel := context.WithTimeout(ctx, installFor)
	defer cancel()
	over := make(chan error, 1)
	go func() {
		_, err := simulate.Run(ctx, simulate.Config{
			Interface: n.ClientIf, Namespace: n.Client, Hosts: installedN, Seed: installSeed, Firmware: []simulate.Firmware{simulate.FirmwareUEFI},
			Expect: simulate.StageBooted, Timeout: installFor, Pace: 0, Download: true, Acted: i.acted,
			Power: simulate.PowerConfig{Listen: powerDoor, Namespace: n.Server},
		})
		over <- err
	}()
	for m := range installedN {
		if _, err := api.Machines.Create(ctx, inventory.Machine{Name: fmt.Sprintf("m%02d", m), Profile: "installed", Placement: inventory.Placement{Selector: "use!=curl"}}); err != nil {
			cancel()
			return 0, errors.Join(err, <-over)
		}
	}
	rate := 0.0
	for ctx.Err() == nil && rate == 0 {
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
			rate = i.rate()
		}
	}
	err = ctx.Err()
	cancel()
	return rate, errors.Join(err, <-over)
}

func (i *installation) acted(a simulate.Act) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.acts = append(i.acts, a)
}

// rate is the bytes of all machines over the time in which at least one was being written; 0 until all are.
func (i *installation) rate() float64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	written, under := 0, 0
	var since time.Time
	var busy time.Duration
	slices.SortStableFunc(i.acts, func(a, b simulate.Act) int { return a.At.Compare(b.At) })
	for _, a := range i.acts {
		switch a.What {
		case "write":
			if under++; under == 1 {
				since = a.At
			}
		case "written":
			written++
			if under--; under == 0 {
				busy += a.At.Sub(since)
			}
		}
	}
	if written < installedN {
		return 0
	}
	return float64(installedN*i.size) / 1e6 / busy.Seconds()
}
