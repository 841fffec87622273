package instances

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/inventory/sqlstore/postgres"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
	testserver "slipway.dev/slipway/test/postgres"
)

// bootsAtOnce is how many machines of each kind ask for their scripts at the same time.
const bootsAtOnce = 16

// What a boot may cost.
const (
	mostWays       = 1.0
	mostStatements = 13.5
)

// fleet is an engine on PostgreSQL with machines of three kinds, as benchmark pg-script has them.
type fleet struct {
	t        *testing.T
	store    *sqlstore.Store
	engine   *provision.Engine
	machines []booting
	strange  int
}

// booting is a machine that boots. Its script has to contain want.
type booting struct {
	pxe.Client
	want string
	url  string
}

func newFleet(t *testing.T) *fleet {
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: testserver.Shared(t).Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	f := &fleet{t: t, store: store}
	if err := store.Write(t.Context(), f.fill); err != nil {
		t.Fatal(err)
	}
	f.engine = provision.New(provision.Config{
		Store: store, Loaders: func(string) bool { return true }, Quirks: pxe.BuiltinQuirks(), Vendor: func(inventory.MAC) string { return "ACME" },
		Policy: func(string) inventory.UnknownPolicy { return inventory.UnknownDisk }, NewID: func() inventory.HostID { return inventory.HostID(rand.Text()) },
		Now: time.Now, Log: slog.New(slog.DiscardHandler), ReportKey: []byte("the key of a fleet's reports"),
		Renderer: render.New(render.Parts{Provisioners: []machineconfig.Provisioner{cloudinit.New()}}),
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- f.engine.Serve(ctx) }()
	t.Cleanup(func() { cancel(); <-served })
	return f
}

// fill makes machines whose disk has a system, and machines that get an image with a configuration.
func (f *fleet) fill(tx inventory.Tx) error {
	now := time.Now()
	kernel := inventory.Artefact{Digest: inventory.Digest("sha256:" + strings.Repeat("ab", 32)), SizeBytes: 1, Source: "test", CreatedAt: now}
	if err := tx.SaveArtefact(kernel); err != nil {
		return err
	}
	subnet := inventory.Subnet{Name: "rack", CIDR: netip.MustParsePrefix("10.0.0.0/16"), Interface: "eth0"}
	subnet.FillDefaults()
	if err := tx.Subnets().Create(&subnet, now); err != nil {
		return err
	}
	for _, name := range []string{"installed", "web"} {
		i := inventory.Image{
			Name: name, OS: "debian", Release: "12", Arch: inventory.X8664, IsInstaller: name == "installed", ConfigArgs: []string{"config=${config}"},
			Files: []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "linux", Digest: kernel.Digest}},
		}
		p := inventory.Profile{Name: name, Image: name}
		if name == "web" {
			i.Configs = []inventory.ImageConfig{{Format: "cloud-init", Version: "24.4"}}
			p.Config = "files:\n- {path: /etc/motd, text: \"This is {{ .Host.Name }}\\n\"}\n"
		}
		if err := tx.Images().Create(&i, now); err != nil {
			return err
		}
		if err := tx.Profiles().Create(&p, now); err != nil {
			return err
		}
	}
	for n := range 2 * bootsAtOnce {
		h := inventory.Host{
			ID: inventory.HostID(fmt.Sprintf("01930000-0000-7000-8000-%012d", n)), Name: fmt.Sprintf("web-%02d", n), State: inventory.Active, StateSinceAt: now.Add(-time.Hour),
			Profile: []string{"installed", "web"}[n%2], Arch: inventory.X8664, Firmware: inventory.UEFI, Manufacturer: "ACME", Product: "R640",
			NICs: []inventory.NIC{{MAC: f.macOf(0, n), IsBoot: true}, {MAC: f.macOf(1, n)}},
		}
		if err := tx.CreateHost(&h, now); err != nil {
			return err
		}
		f.machines = append(f.machines, f.machine(0, n, []string{"it boots from its own disk", "profile web gives it image web"}[n%2]))
	}
	return nil
}

func (f *fleet) macOf(kind, n int) inventory.MAC {
	return inventory.MAC(fmt.Sprintf("52:54:00:%02x:00:%02x", kind, n))
}

func (f *fleet) machine(kind, n int, want string) booting {
	return booting{want: want, Client: pxe.Client{
		Stage: pxe.StageIPXE, MAC: f.macOf(kind, n), Arch: inventory.X8664, Firmware: inventory.UEFI, ArchCode: pxe.Arch93(7),
		Address: netip.AddrFrom4([4]byte{10, 0, byte(kind), byte(n + 1)}), Subnet: "rack", Server: netip.MustParseAddr("10.0.255.1"),
	}}
}

// withStrangers adds machines that nobody has heard of.
func (f *fleet) withStrangers() (all []booting) {
	all = append(all, f.machines...)
	for range bootsAtOnce {
		all = append(all, f.machine(2, f.strange, "not accepted"))
		f.strange++
	}
	return all
}

// discover begins the boots of known machines.
func (f *fleet) discover(all []booting) {
	for i := range all {
		if m := &all[i]; m.want != "not accepted" {
			reply := f.engine.Offer(f.t.Context(), m.Client, "http://10.0.255.1")
			f.engine.Note(f.t.Context(), m.Client, inventory.EventDHCPDiscover, "")
			m.url = reply.File
		}
	}
	time.Sleep(300 * time.Millisecond) // the recorder writes behind the packets
}

// boot lets machines ask for their scripts at the same time, and returns the ways to the server and the statements that it takes.
func (f *fleet) boot(all []booting) (ways, statements int64) {
	f.discover(all)
	db := f.store.DB.(*postgres.DB)
	wasWays, wasStatements := db.Traffic()
	var g sync.WaitGroup
	for _, m := range all {
		g.Go(func() {
			c := m.Client
			c.Identity = &pxe.Identity{
				UUID: "4c4c4544-0000-4000-8000-" + strings.ReplaceAll(string(c.MAC), ":", ""), Serial: "SN" + c.MAC.Hyphens(),
				Manufacturer: "ACME", Product: "R640", MemoryMiB: 4096,
			}
			var session inventory.SessionID
			if parts := strings.Split(m.url, "/"); len(parts) > 4 {
				session = inventory.SessionID(parts[4])
			}
			script, err := f.engine.Script(f.t.Context(), session, c, "http://10.0.255.1")
			if err != nil || !strings.Contains(string(script), m.want) {
				f.t.Errorf("%s: %v; instead of %q its script says:\n%s", c.MAC, err, m.want, script)
			}
		})
	}
	g.Wait()
	ways, statements = db.Traffic()
	return ways - wasWays, statements - wasStatements
}

// Machines that boot at the same time share the ways to the server. A way costs both sides more than most statements. The writer commits
// 48 boots in some three transactions.
func TestPostgreSQLBootsTakeFewWays(t *testing.T) {
	f := newFleet(t)
	f.boot(f.withStrangers()) // then their reports are known, and their configurations are rendered
	all := f.withStrangers()
	ways, statements := f.boot(all)
	each := func(n int64) float64 { return float64(n) / float64(len(all)) }
	t.Logf("%d boots: %.1f ways and %.1f statements each", len(all), each(ways), each(statements))
	if each(ways) > mostWays || each(statements) > mostStatements {
		t.Errorf("%.1f ways and %.1f statements for each boot, want at most %v and %v", each(ways), each(statements), mostWays, mostStatements)
	}
}

// A start looks at the names and addresses of all hosts. It asks for some fifty of them in one way.
func TestPostgreSQLAStartTakesFewWays(t *testing.T) {
	f := newFleet(t)
	const n = 200
	err := f.store.Write(t.Context(), func(tx inventory.Tx) (err error) {
		for i := range n - len(f.machines) {
			err = errors.Join(err, tx.CreateHost(&inventory.Host{
				ID: inventory.HostID(fmt.Sprintf("01930000-0000-7000-8001-%012d", i)), Name: fmt.Sprintf("db-%03d", i), State: inventory.Available, StateSinceAt: time.Now(),
				NICs: []inventory.NIC{{MAC: f.macOf(3, i), IsBoot: true}},
			}, time.Now()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // its own start
	c := &configuration.Configurer{}
	now := &ledger.Ledger{}
	now.Configure(ledger.Config{Base: ledger.Base{Store: f.store, Now: time.Now, Log: slog.New(slog.DiscardHandler)}})
	c.Configure(configuration.Config{Ledger: now})
	clashes := configuration.Clashes{Configurer: c}
	c.HeldElsewhere()
	db := f.store.DB.(*postgres.DB)
	was, _ := db.Traffic()
	if err := clashes.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	is, _ := db.Traffic()
	t.Logf("%d ways for %d hosts", is-was, n)
	if is-was > n/4 {
		t.Errorf("%d ways for %d hosts, want at most %d", is-was, n, n/4)
	}
}
