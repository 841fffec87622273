package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/secret"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/pxe"
)

// fleet is a site in a real database: hosts in racks, layers, a secret, and images of two formats.
type fleet struct {
	store *sqlstore.Store
	box   *secret.Box
	hosts []inventory.Host
}

// The names in a fleet. The profile is for all hosts; it starts with the bare image and without a configuration.
const (
	fleetProfile  = "web"
	fleetSubnet   = "bench"
	bareImage     = "bare"
	ignitionImage = "flatcar"
	cloudImage    = "debian"
)

const fleetGlobal = `
host: {timezone: Etc/UTC, locale: C.UTF-8}
users:
- name: admin
  sshKeys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl admin@site]
  sudo: ALL=(ALL) NOPASSWD:ALL
`

const fleetSite = "time: {ntpServers: [ntp1.site.example, ntp2.site.example]}\n"

// fleetConfig is what a web server of a site becomes: a template, a unit, a network, tuning and a secret.
const fleetConfig = fleetFiles + fleetSecret + fleetTuning

// fleetOpenConfig is the same without the secret. A running host that nobody has restarted gets no secret before a person or its
// controller confirms the boot, so that benchmarks of repeated boots cannot have one.
const fleetOpenConfig = fleetFiles + fleetTuning

const fleetFiles = `
network: {interfaces: [{name: eno1, mac: boot, dhcp4: true, routes: [{to: 10.200.0.0/16, via: 10.0.0.1}], dns: [10.0.0.2]}]}
files:
- {path: /etc/motd, text: "This is {{ .Host.Name }} in {{ .Host.Place.Rack }}\n"}
`

const fleetSecret = `- {path: /etc/app/key, mode: "0600", secret: secret://app-key}
`

const fleetTuning = `- {path: /etc/app/conf, text: "listen = 0.0.0.0:8080\n"}
units: [{name: app.service, enabled: true, contents: "[Service]\nExecStart=/opt/app/bin/app\n[Install]\nWantedBy=multi-user.target\n"}]
kernel: {sysctl: {net.ipv4.ip_forward: "1"}, modules: [br_netfilter]}
commands: [{shell: "systemctl restart systemd-sysctl"}]
`

// newFleet is newFleetIn with SQLite.
func newFleet(ctx context.Context, dataDir string, n int) (*fleet, error) {
	return newFleetIn(ctx, dataDir, inFolder(dataDir), n)
}

// newFleetIn makes the database of a data directory, with n hosts. The secret's value is sealed with a key that slipway
// serve finds there.
func newFleetIn(ctx context.Context, dataDir string, at sqlstore.Config, n int) (_ *fleet, err error) {
	key, err := secret.NewKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dataDir, "secret.key"), []byte(key+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("write the key of secrets: %w", err)
	}
	f := &fleet{}
	raw, err := secret.ParseKey(key)
	if err != nil {
		return nil, err
	}
	if f.box, err = secret.NewBox(raw); err != nil {
		return nil, err
	}
	if f.store, err = sqlstore.Open(ctx, at); err != nil {
		return nil, err
	}
	if err := f.store.Write(ctx, func(tx inventory.Tx) error { return f.fill(tx, n, time.Now()) }); err != nil {
		_ = f.store.Close()
		return nil, err
	}
	return f, nil
}

func (f *fleet) fill(tx inventory.Tx, n int, now time.Time) error {
	kernel := inventory.Artefact{Digest: "sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b", SizeBytes: 1, Source: "bench", CreatedAt: now}
	if err := tx.SaveArtefact(kernel); err != nil {
		return err
	}
	for _, i := range []inventory.Image{
		{Name: bareImage, OS: "custom", Release: "1"},
		{Name: ignitionImage, OS: "flatcar", Release: "stable", Configs: []inventory.ImageConfig{{Format: "ignition", Version: "3.4.0"}}},
		{Name: cloudImage, OS: "debian", Release: "12", Configs: []inventory.ImageConfig{{Format: "cloud-init", Version: "24.4"}}},
	} {
		i.Arch = inventory.X8664
		i.Files = []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "linux", Digest: kernel.Digest}}
		i.ConfigArgs = []string{"config=${config}"}
		if err := tx.Images().Create(&i, now); err != nil {
			return err
		}
	}
	sealed, err := f.box.Seal("app-key", []byte("the key of an application, 32 by"))
	if err != nil {
		return err
	}
	if err := tx.Secrets().Create(&inventory.Secret{Name: "app-key", Consumers: inventory.Consumers{Profiles: []string{fleetProfile}}, Sealed: sealed}, now); err != nil {
		return err
	}
	subnet := inventory.Subnet{Name: fleetSubnet, CIDR: netip.MustParsePrefix("10.0.0.0/8"), Interface: "vs", Mode: inventory.ModeOff}
	subnet.FillDefaults()
	if err := tx.Subnets().Create(&subnet, now); err != nil {
		return err
	}
	if err := tx.Profiles().Create(&inventory.Profile{Name: fleetProfile, Image: bareImage, Selector: "arch=x86_64"}, now); err != nil {
		return err
	}
	for _, l := range []inventory.Layer{
		{Scope: inventory.ScopeGlobal, Config: fleetGlobal}, {Scope: inventory.ScopeSite, Name: "north", Config: fleetSite},
	} {
		l.SavedByAdmin = true
		if err := tx.Layers().Create(&l, now); err != nil {
			return err
		}
	}
	for i := range n {
		h := fleetHost(i, now)
		if err := tx.CreateHost(&h, now); err != nil {
			return err
		}
		f.hosts = append(f.hosts, h)
	}
	return nil
}

func fleetHost(i int, now time.Time) inventory.Host {
	return inventory.Host{
		ID: inventory.HostID(fmt.Sprintf("01930000-0000-7000-8000-%012d", i)), Name: fmt.Sprintf("web-%05d", i), State: inventory.Available, StateSinceAt: now,
		UUID: fmt.Sprintf("4c4c4544-0000-4000-8000-%012d", i), Serial: fmt.Sprintf("SN%06d", i), Manufacturer: "ACME", Product: "R640",
		Arch: inventory.X8664, Firmware: inventory.UEFI, MemoryMiB: 4096,
		Place:  inventory.Place{Site: "north", Rack: fmt.Sprintf("r%d", i/40), Unit: i%40 + 1},
		Labels: map[string]string{"role": "web", "stage": "production"},
		NICs:   []inventory.NIC{{MAC: fleetMAC(i, 0), IsBoot: true}, {MAC: fleetMAC(i, 1)}},
	}
}

func fleetMAC(i, port int) inventory.MAC {
	return inventory.MAC(fmt.Sprintf("52:54:%02x:%02x:%02x:%02x", port, i>>16&0xff, i>>8&0xff, i&0xff))
}

// address is what our DHCP has given to a host.
func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}) }

// engine is one that nothing is known to yet, as after a start.
func (f *fleet) engine() *provision.Engine {
	return provision.New(provision.Config{
		Store: f.store, Loaders: func(string) bool { return true }, Quirks: pxe.BuiltinQuirks(),
		Vendor: func(inventory.MAC) string { return "ACME" },
		Policy: func(string) inventory.UnknownPolicy { return inventory.UnknownWait },
		NewID:  func() inventory.HostID { panic("every host of a fleet is known") },
		Now:    time.Now, Log: slog.New(slog.DiscardHandler),
		Renderer: render.New(serve.Parts()), Secrets: f.box, ReportKey: []byte("reports of the benchmark"),
	})
}

// draft is the profile as it would be with an image and a configuration.
func (f *fleet) draft(ctx context.Context, image, config string) (p inventory.Profile, err error) {
	err = f.store.Read(ctx, func(tx inventory.Tx) error {
		p, err = tx.Profiles().Find(fleetProfile)
		return err
	})
	p.Image, p.Config = image, config
	return p, err
}

// save stores a draft.
func (f *fleet) save(ctx context.Context, p inventory.Profile) error {
	return f.store.Write(ctx, func(tx inventory.Tx) error { return tx.Profiles().Update(&p, time.Now()) })
}
