package rig

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"k8s.io/apimachinery/pkg/runtime"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/webhook"
	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/secret"
	infra "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/join"
	metal "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web"
)

// The profiles that a rig has.
const (
	DiskProfile = "debian12" // a disk image that our agent writes, configured by cloud-init
	LiveProfile = "live"     // an image that stays in memory
	OtherImage  = "debian13" // a disk image that no profile names, for os.version
)

// boot is the boot server's URL as machines know it.
const boot = "http://10.0.0.1"

func addOurs(s *runtime.Scheme) error { return errors.Join(metal.AddToScheme(s), infra.AddToScheme(s)) }

func addAll(s *runtime.Scheme, more []func(*runtime.Scheme) error) error {
	errs := []error{addOurs(s)}
	for _, add := range more {
		errs = append(errs, add(s))
	}
	return errors.Join(errs...)
}

func (r *Rig) newEngine(joiner delivery.Minter) *provision.Engine {
	cfg := provision.Config{
		Store: r.Store, Loaders: func(string) bool { return true }, Quirks: pxe.BuiltinQuirks(), Site: r.o.Site,
		Vendor: func(inventory.MAC) string { return "ACME" },
		Policy: func(string) inventory.UnknownPolicy { return inventory.UnknownWait },
		NewID:  newHostID, Now: r.Now, NewULID: func() string { return ulid.Make().String() }, Log: r.o.Log,
		Renderer: render.New(serve.Parts()), Secrets: r.box, Sealer: r.box, Join: joiner, ReportKey: []byte("the key of a rig's reports"),
		OpenBMC: r.openBMC, Pace: bmc.Pace{Every: 10 * time.Millisecond, For: 2 * time.Second, Tries: 3, Backoff: 20 * time.Millisecond},
		InstallsPerHour: 1000,
	}
	if r.o.Nodes != nil {
		cfg.Nodes = r.o.Nodes(r)
	}
	return provision.New(cfg)
}

func newHostID() inventory.HostID { return inventory.HostID(uuid.Must(uuid.NewV7()).String()) }

// openBMC takes every controller as that of the robot with the host's name, whatever driver it is said to have. Webhooks are
// called: who names one serves it.
func (r *Rig) openBMC(t bmc.Target) (bmc.Driver, error) {
	if t.Driver == inventory.Webhook {
		return webhook.Open(t)
	}
	if t.BMC.System == "" {
		t.BMC.System = t.HostName
	}
	return r.bank.Open(t)
}

// vault opens stored secrets by name, as package join wants it.
type vault struct {
	*secret.Box
	store inventory.Store
}

func (v vault) Open(ctx context.Context, name string) (plain []byte, err error) {
	err = v.store.Read(ctx, func(tx inventory.Tx) error {
		s, err := tx.Secrets().Find(name)
		if err != nil {
			return err
		}
		plain, err = v.Box.Open(name, s.Sealed)
		return err
	})
	return plain, err
}

func (v vault) Unseal(label string, sealed []byte) ([]byte, error) { return v.Box.Open(label, sealed) }

// seed stores a network, our agent, two disk images and a live one, with profiles.
func (r *Rig) seed(tx inventory.Tx) error {
	now := time.Now()
	subnet := inventory.Subnet{
		Name: "rack", CIDR: netip.MustParsePrefix("10.0.0.0/16"), Unknown: inventory.UnknownWait,
		Ranges: []inventory.Range{{First: netip.MustParseAddr("10.0.1.0"), Last: netip.MustParseAddr("10.0.255.250")}},
	}
	subnet.FillDefaults()
	errs := []error{tx.Subnets().Create(&subnet, now)}
	file := func(mark string, role inventory.Role, name string) []inventory.ImageArtefact {
		d := inventory.Digest("sha256:" + strings.Repeat(mark, 32))
		errs = append(errs, tx.SaveArtefact(inventory.Artefact{Digest: d, SizeBytes: 1, Source: "rig", CreatedAt: now}))
		return []inventory.ImageArtefact{{Role: role, Name: name, Digest: d}}
	}
	for _, i := range []inventory.Image{
		{
			Name: inventory.AgentImage(inventory.X8664), OS: inventory.AgentOS, Release: "1",
			Files: file("aa", inventory.RoleKernel, "linux"), KernelArgs: []string{"slipway.session=${base}/boot/${session}"},
		},
		{
			Name: "debian-disk", OS: "debian", Release: "12", DiskFormat: "raw.zst", Files: file("dd", inventory.RoleDisk, "disk.raw.zst"),
			Configs: []inventory.ImageConfig{{Format: "cloud-init", Version: "22.4.2"}},
		},
		{
			Name: OtherImage, OS: "debian", Release: "13", DiskFormat: "raw.zst", Files: file("d3", inventory.RoleDisk, "disk.raw.zst"),
			Configs: []inventory.ImageConfig{{Format: "cloud-init", Version: "25.1"}},
		},
		{Name: "live-image", OS: "custom", Release: "1", Files: file("11", inventory.RoleKernel, "linux")},
	} {
		i.Arch = inventory.X8664
		errs = append(errs, tx.Images().Create(&i, now))
	}
	for _, p := range []inventory.Profile{
		{Name: DiskProfile, Image: "debian-disk", Config: "host: {timezone: Etc/UTC}\n"},
		{Name: LiveProfile, Image: "live-image"},
	} {
		errs = append(errs, tx.Profiles().Create(&p, now))
	}
	return errors.Join(errs...)
}

// AddHosts adds machines to the inventory, accepted and inspected, each with a controller, and returns what plays them.
func (r *Rig) AddHosts(n int, labels map[string]string) []*Robot {
	r.t.Helper()
	var added []*Robot
	for range n {
		added = append(added, r.newRobot())
	}
	r.must(r.Store.Write(context.Background(), func(tx inventory.Tx) error {
		for _, b := range added {
			if err := b.store(tx, labels); err != nil {
				return err
			}
		}
		return nil
	}))
	return added
}

// AddStranger adds a machine that the inventory does not know; it is off, and has a controller that nobody knows either.
func (r *Rig) AddStranger() *Robot { return r.newRobot() }

func (b *Robot) store(tx inventory.Tx, labels map[string]string) error {
	now := time.Now()
	h := inventory.Host{
		ID: b.id, Name: b.name, State: inventory.Available, StateSinceAt: now, Arch: inventory.X8664, Firmware: inventory.UEFI,
		UUID: b.uuid, Serial: fmt.Sprintf("SN%d", b.n), Manufacturer: "ACME", Product: "R640", MemoryMiB: 8192,
		Place: inventory.Place{Site: "hall", Row: fmt.Sprintf("row-%d", (b.n-1)/160+1), Rack: fmt.Sprintf("rack-%d", (b.n-1)%4+1), Unit: (b.n-1)/4%40 + 1},
		NICs:  []inventory.NIC{{MAC: b.mac, IsBoot: true}}, Labels: labels,
	}
	if err := tx.CreateHost(&h, now); err != nil {
		return err
	}
	if err := tx.SaveBMC(&inventory.BMC{HostID: h.ID, Driver: inventory.FakeBMC, System: b.name, Power: inventory.PowerOff, IsReachable: true, CheckedAt: now}, now); err != nil {
		return err
	}
	if err := tx.SaveInspection(&inventory.Inspection{HostID: h.ID, At: now, Hardware: b.hardware()}); err != nil {
		return err
	}
	return tx.AddEvent(&inventory.Event{At: now, Kind: inventory.EventHostChanged, HostID: h.ID, Detail: "host " + h.Name + " added by the rig"})
}

// Secrets opens what is stored sealed, by name.
func (r *Rig) Secrets() join.Secrets { return vault{r.box, r.Store} }

// API returns the REST API of the server of the moment, as its socket answers it.
func (r *Rig) API() http.Handler {
	return web.New(web.Config{
		Store: r.Store, Lifecycle: r.Engine(), Configs: r.Engine(), Events: r.hub.Load(), Secrets: r.box, Appliance: r.local.Load(),
		NewHostID: newHostID, Vendor: func(inventory.MAC) string { return "ACME" }, BootBase: boot, Version: "test", Now: r.Now, Log: r.o.Log,
	}).SocketHandler()
}
