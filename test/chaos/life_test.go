package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/web/client"
)

const (
	lifeKills   = 6 // at least 5 while machines come and go
	lifeSeed    = 11
	powerDoor   = "127.0.0.1:8991" // where the controllers answer, in the server's namespace
	faultChance = 0.1
	lifeFor     = 4 * time.Minute
)

// TestARackIsInstalledAndWipedWhileTheServerIsKilled sends a rack through machine create and delete while the server is
// killed at random and controllers fail at random. No claim is installed on twice, nothing protected or unclaimed is
// touched, no machine is lost, and everything settles.
func TestARackIsInstalledAndWipedWhileTheServerIsKilled(t *testing.T) {
	if os.Getenv("SLIPWAY_NET") != "1" {
		t.Skip("needs root and makes network namespaces; run: make test-net")
	}
	if _, err := os.Stat("/usr/lib/ipxe/snponly.efi"); err != nil {
		t.Skip("needs the boot loaders; run: apt-get install ipxe")
	}
	n, err := simulate.NewNet(fmt.Sprintf("slipway-life-%d", os.Getpid()), netip.MustParsePrefix("10.77.0.1/16"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	k := &rack{t: t, hosts: hostsWanted(), seed: lifeSeed, power: powerDoor, acts: map[string][]simulate.Act{}}
	k.victim = &victim{t: t, net: n, binary: build(t), data: filepath.Join(t.TempDir(), "data")}
	k.store = k.victim.store()
	prepare(t, k.victim.data, k.store)
	k.furnish()
	k.victim.start()
	t.Cleanup(k.victim.kill)
	if k.api, err = client.New(client.Config{Server: "unix:" + filepath.Join(k.victim.data, "slipway.sock")}); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), lifeFor)
	over := make(chan simulate.Result, 1)
	go func() {
		r, err := simulate.Run(ctx, simulate.Config{
			Interface: n.ClientIf, Namespace: n.Client, Hosts: k.hosts, Seed: lifeSeed, Firmware: []simulate.Firmware{simulate.FirmwareUEFI, simulate.FirmwareBIOS},
			Expect: simulate.StageBooted, Timeout: lifeFor, Pace: 0.1, Download: true, Acted: k.acted,
			Power: simulate.PowerConfig{Listen: powerDoor, Namespace: n.Server, Faults: faultChance},
		})
		if err != nil {
			t.Error(err)
		}
		over <- r
	}()
	killed := make(chan struct{})
	go func() { defer close(killed); k.torment(ctx) }()

	begin := time.Now()
	k.createAll(ctx)
	k.await(ctx, "every machine runs or says why not", k.areUp)
	t.Logf("%d machines are up after %s, with %d kills", len(k.names), time.Since(begin).Round(time.Second), k.killN())
	k.deleteAll(ctx)
	k.await(ctx, "every machine is gone and every host at rest", k.areGone)
	<-killed
	t.Logf("all gone after %s, with %d kills", time.Since(begin).Round(time.Second), k.killN())
	cancel()
	r := <-over
	var summary strings.Builder
	_ = r.WriteSummary(&summary)
	t.Log(summary.String())
	k.victim.kill()
	k.check()
	if k.killN() < lifeKills-1 {
		t.Errorf("only %d kills: the test proves too little", k.killN())
	}
	if t.Failed() {
		t.Logf("the server said at last:\n%s", k.victim.said())
	}
}

// hostsWanted is how many hosts the rack has: make test-long has time for three racks.
func hostsWanted() int {
	if os.Getenv("SLIPWAY_LONG") == "1" {
		return 200
	}
	return 80
}

// rack is the hosts, and what was seen of them.
type rack struct {
	t      *testing.T
	hosts  int
	seed   uint64 // of the machines
	power  string // where their controllers answer
	store  sqlstore.Config
	victim *victim
	api    *client.Client
	names  []string // of machines

	mu    sync.Mutex
	acts  map[string][]simulate.Act // by MAC
	kills int
	own   map[string]bool // MACs of hosts that may not be touched: protected, or not accepted
}

func (k *rack) acted(a simulate.Act) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.acts[a.MAC] = append(k.acts[a.MAC], a)
}

func (k *rack) killN() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kills
}

// furnish adds the agent, a disk image with a profile, and the hosts with their controllers: one in twenty is protected,
// and one in twenty not accepted.
func (k *rack) furnish() {
	k.t.Helper()
	store, err := sqlstore.Open(k.t.Context(), k.store)
	if err != nil {
		k.t.Fatal(err)
	}
	defer store.Close()
	k.own = map[string]bool{}
	err = store.Write(k.t.Context(), func(tx inventory.Tx) error {
		now := time.Now()
		if err := tx.AcceptRules().Delete("all"); err != nil {
			return err
		}
		toy, err := tx.Images().Find("toy")
		if err != nil {
			return err
		}
		agent := inventory.Image{
			Name: inventory.AgentImage(inventory.X8664), OS: inventory.AgentOS, Release: "1", Arch: inventory.X8664, Files: toy.Files,
			KernelArgs: []string{"slipway.session=${base}/boot/${session}"},
		}
		disk := inventory.Image{
			Name: "debian-disk", OS: "debian", Release: "12", Arch: inventory.X8664, DiskFormat: "raw",
			Files:   []inventory.ImageArtefact{{Role: inventory.RoleDisk, Name: "disk.raw", Digest: toy.Files[0].Digest}},
			Configs: []inventory.ImageConfig{{Format: "cloud-init", Version: "24.4"}},
		}
		for _, i := range []*inventory.Image{&agent, &disk} {
			if err := tx.Images().Create(i, now); err != nil {
				return err
			}
		}
		if err := tx.Profiles().Create(&inventory.Profile{Name: "debian12", Image: disk.Name, Config: "host: {timezone: Etc/UTC}\n"}, now); err != nil {
			return err
		}
		for i := range k.hosts {
			if err := k.furnishHost(tx, i, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *rack) furnishHost(tx inventory.Tx, i int, now time.Time) error {
	id := simulate.NewIdentity(k.seed, i)
	mac := id.MACText()
	h := inventory.Host{
		ID: inventory.HostID(fmt.Sprintf("01930000-0000-7000-8000-%012d", i)), Name: fmt.Sprintf("h%03d", i), State: inventory.Available,
		Arch: inventory.X8664, NICs: []inventory.NIC{{MAC: inventory.MAC(mac)}},
	}
	switch i % 20 {
	case 7:
		h.IsProtected = true
	case 13:
		h.State = inventory.Discovered
	}
	k.own[mac] = i%20 == 7 || i%20 == 13
	if err := tx.CreateHost(&h, now); err != nil {
		return err
	}
	b := inventory.BMC{HostID: h.ID, Driver: inventory.Webhook, Address: "http://" + k.power, System: mac, Options: simulate.PowerOptions()}
	if err := tx.SaveBMC(&b, now); err != nil {
		return err
	}
	return tx.SaveInspection(&inventory.Inspection{HostID: h.ID, At: now, Hardware: simulate.HardwareOf(k.seed, i)})
}

// torment kills the server and starts it again.
func (k *rack) torment(ctx context.Context) {
	dice := rand.New(rand.NewPCG(8, 15))
	for range lifeKills {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(4000+dice.IntN(8000)) * time.Millisecond):
		}
		k.mu.Lock()
		k.victim.kill()
		k.kills++
		k.victim.start()
		k.mu.Unlock()
	}
}

// insist repeats a call until the server has answered it: it is killed now and then. What is done already counts.
func (k *rack) insist(ctx context.Context, what string, call func(context.Context) error) {
	for ctx.Err() == nil {
		cctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := call(cctx)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			k.t.Errorf("%s: %v", what, err)
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// createAll wants a machine for four hosts of five.
func (k *rack) createAll(ctx context.Context) {
	for i := range k.hosts * 4 / 5 {
		name := fmt.Sprintf("m%03d", i)
		k.names = append(k.names, name)
		k.insist(ctx, "create "+name, func(ctx context.Context) error {
			_, err := k.api.Machines.Create(ctx, inventory.Machine{Name: name, Profile: "debian12", Owner: "chaos/" + name})
			return err
		})
	}
}

func (k *rack) deleteAll(ctx context.Context) {
	for _, name := range k.names {
		k.insist(ctx, "delete "+name, func(ctx context.Context) error {
			_, _, err := k.api.Machines.Remove(ctx, name, false)
			if isNotFound(err) {
				return nil
			}
			return err
		})
	}
}
