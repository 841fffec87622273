// Package chaos owns the tests that kill the server: the real program in a network namespace, under synthetic machines
// that boot, ended with SIGKILL at random moments and started again. It never looks inside the process; it looks at
// what machines were told and at what is on disk.
package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/lab/simulate"
)

const (
	machines   = 200
	killsAtMin = 6  // while machines boot; fewer prove too little
	killsAtMax = 12 // then the server may live, so that every machine can arrive
	// The range is hardly larger than the rack: an address that is forgotten is soon given to another machine.
	leaseRange = "10.77.1.1-10.77.1.210"
)

// TestKilledServerLosesNothing kills the server again and again while a rack boots. Every lease that a machine was told
// of must be on disk at each kill, no address may be held by two machines, and every machine must arrive.
func TestKilledServerLosesNothing(t *testing.T) {
	if os.Getenv("SLIPWAY_NET") != "1" {
		t.Skip("needs root and makes network namespaces; run: make test-net")
	}
	if _, err := os.Stat("/usr/lib/ipxe/snponly.efi"); err != nil {
		t.Skip("needs the boot loaders; run: apt-get install ipxe")
	}
	n, err := simulate.NewNet(fmt.Sprintf("slipway-chaos-%d", os.Getpid()), netip.MustParsePrefix("10.77.0.1/16"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	v := &victim{t: t, net: n, binary: build(t), data: filepath.Join(t.TempDir(), "data")}
	prepare(t, v.data, v.store())
	v.start()
	t.Cleanup(v.kill)

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
	told := &ledger{by: map[netip.Addr]simulate.Lease{}}
	done, over := make(chan simulate.Result, 1), make(chan struct{})
	t.Cleanup(func() { cancel(); <-over })
	go func() {
		defer close(over)
		r, err := simulate.Run(ctx, simulate.Config{
			Interface: n.ClientIf, Namespace: n.Client, Hosts: machines, Seed: 9,
			Concurrency: 50, Firmware: simulate.Firmwares(), Expect: simulate.StageBooted, Timeout: 90 * time.Second, Pace: 0.1,
			Faults:       simulate.Faults{simulate.FaultReboot: 0.3, simulate.FaultDrop: 0.002, simulate.FaultDuplicate: 0.02},
			Acknowledged: told.add,
		})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	r := v.torment(told, done)

	var summary strings.Builder
	_ = r.WriteSummary(&summary)
	t.Logf("%d kills; %s", v.kills, summary.String())
	if !r.IsGood() {
		t.Error("machines did not arrive, or an address was given twice; see above")
	}
	if t.Failed() {
		t.Fatalf("the server said at last:\n%s", v.said())
	}
	if v.kills < killsAtMin {
		t.Errorf("only %d kills before the rack had booted; the test proves too little", v.kills)
	}
	v.kill()
	v.checkLeases(told)
}

// victim is the server process.
type victim struct {
	t      *testing.T
	net    *simulate.Net
	binary string
	data   string
	cmd    *exec.Cmd
	log    *os.File
	kills  int
	flags  []string // more for slipway serve
}

func (v *victim) start() {
	v.t.Helper()
	if v.log == nil {
		var err error
		if v.log, err = os.Create(filepath.Join(v.t.TempDir(), "slipway.log")); err != nil {
			v.t.Fatal(err)
		}
	}
	flags := append([]string{
		"serve", "--interface", v.net.ServerIf, "--data-dir", v.data, "--mode", "full", "--range", leaseRange, "--log-level", "warn", "--egress-allow", "127.0.0.0/8",
	}, v.flags...)
	v.cmd = v.net.Command(context.Background(), v.net.Server, v.binary, flags...)
	v.cmd.Stdout, v.cmd.Stderr = v.log, v.log
	if err := v.cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
}

// kill ends the server without a chance to tidy up. Killing it twice is once.
func (v *victim) kill() {
	if v.cmd == nil {
		return
	}
	_ = v.cmd.Process.Kill()
	_ = v.cmd.Wait()
	v.cmd = nil
}

// torment kills and restarts the server until the machines are done. One kill in three hits it while it starts.
func (v *victim) torment(told *ledger, done <-chan simulate.Result) simulate.Result {
	v.t.Helper()
	dice := rand.New(rand.NewPCG(4, 2))
	for v.kills < killsAtMax {
		pause := time.Duration(2500+dice.IntN(3000)) * time.Millisecond
		if dice.IntN(3) == 0 {
			pause = time.Duration(dice.IntN(2500)) * time.Millisecond
		}
		select {
		case r := <-done:
			return r
		case <-time.After(pause):
		}
		v.kill()
		v.kills++
		time.Sleep(100 * time.Millisecond) // ACKs that are on the cable arrive
		v.checkLeases(told)
		v.start()
	}
	return <-done
}

func (v *victim) said() string {
	b, _ := os.ReadFile(v.log.Name())
	return string(b[max(0, len(b)-4000):])
}

// store is the database of the server.
func (v *victim) store() sqlstore.Config {
	return sqlstore.Config{Path: filepath.Join(v.data, "slipway.db")}
}

// checkLeases compares what machines were told with what is on disk while no server runs.
func (v *victim) checkLeases(told *ledger) {
	v.t.Helper()
	for _, missing := range missingLeases(v.t, v.store(), told) {
		v.t.Errorf("after kill %d: %s", v.kills, missing)
	}
	if v.t.Failed() {
		v.t.Fatalf("the server said at last:\n%s", v.said())
	}
}

// missingLeases says which leases machines were told of, and the database has not as they were told.
func missingLeases(t *testing.T, of sqlstore.Config, told *ledger) (missing []string) {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), of)
	if err != nil {
		t.Fatalf("the database does not open: %v", err)
	}
	defer store.Close()
	stored := map[netip.Addr]inventory.Lease{}
	err = store.Read(t.Context(), func(tx inventory.Tx) error {
		all, err := tx.ListLeases("", inventory.Page{})
		for _, l := range all {
			stored[l.Address] = l
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range told.all() {
		got, ok := stored[l.Address]
		switch {
		case !ok:
			missing = append(missing, fmt.Sprintf("%s was told that it has %s, which is not stored", l.MAC, l.Address))
		case string(got.MAC) != l.MAC:
			missing = append(missing, fmt.Sprintf("%s was told that it has %s, which is stored as that of %s", l.MAC, l.Address, got.MAC))
		case got.ExpiresAt.Before(l.Until.Add(-2 * time.Second)):
			missing = append(missing, fmt.Sprintf("%s may use %s until %s, and it is stored until %s", l.MAC, l.Address,
				l.Until.UTC().Format(time.DateTime), got.ExpiresAt.UTC().Format(time.DateTime)))
		}
	}
	return missing
}

// ledger is what machines were told, the latest for each address.
type ledger struct {
	mu sync.Mutex
	by map[netip.Addr]simulate.Lease
}

func (g *ledger) add(l simulate.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.by[l.Address] = l
}

func (g *ledger) all() (out []simulate.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.by {
		out = append(out, l)
	}
	return out
}

// build returns the program under test: the one that SLIPWAY_BIN names, or one that is made once for all tests here.
func build(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv("SLIPWAY_BIN"); bin != "" {
		return bin
	}
	made.once.Do(func() {
		out := filepath.Join(made.dir, "slipway")
		cmd := exec.Command("go", "build", "-tags", "netgo osusergo sqlite_omit_load_extension", "-ldflags", "-w", "-o", out, "slipway.dev/slipway/cmd/slipway")
		if b, err := cmd.CombinedOutput(); err != nil {
			made.err = fmt.Errorf("build slipway: %w\n%s", err, b)
		}
	})
	if made.err != nil {
		t.Fatal(made.err)
	}
	return filepath.Join(made.dir, "slipway")
}

// made is the program that build made, in a folder that ends with all tests.
var made struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	var err error
	if made.dir, err = os.MkdirTemp("", "slipway-chaos-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(made.dir)
	os.Exit(code)
}

// prepare fills a data directory as an admin would before a rack is switched on: an image, a profile for everyone, and
// a rule that accepts every machine.
func prepare(t *testing.T, data string, to sqlstore.Config) {
	t.Helper()
	if err := os.MkdirAll(data, 0o750); err != nil {
		t.Fatal(err)
	}
	store, err := sqlstore.Open(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	catalogue, err := images.BuiltinCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := images.New(images.Config{Dir: filepath.Join(data, "artefacts"), Store: store, Catalogue: catalogue, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	var files []images.ImportFile
	for role, size := range map[inventory.Role]int{inventory.RoleKernel: 200_000, inventory.RoleInitrd: 900_000} {
		name := filepath.Join(t.TempDir(), string(role))
		if err := os.WriteFile(name, []byte(strings.Repeat(string(role)+"\n", size/7)), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, images.ImportFile{Role: role, Name: string(role), Source: name})
	}
	if _, err := cache.Import(t.Context(), images.ImportRequest{
		Name: "toy", Files: files, AllowLocal: true,
		KernelArgs: []string{"quiet", "slipway.report=${report}"},
	}, nil); err != nil {
		t.Fatal(err)
	}
	err = store.Write(t.Context(), func(tx inventory.Tx) error {
		now := time.Now()
		if err := tx.Profiles().Create(&inventory.Profile{Name: "toy", Image: "toy", Selector: "mac"}, now); err != nil {
			return err
		}
		return tx.AcceptRules().Create(&inventory.AcceptRule{Name: "all", Selector: "mac"}, now)
	})
	if err != nil {
		t.Fatal(err)
	}
}
