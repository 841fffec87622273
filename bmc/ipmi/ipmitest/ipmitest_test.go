package ipmitest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/bmctest"
	"slipway.dev/slipway/bmc/ipmi"
	"slipway.dev/slipway/bmc/ipmi/ipmitest"
	"slipway.dev/slipway/inventory"
)

// chassis keeps power and boot device in files, writes down every order, and ignores or refuses orders when there is a
// file that says so.
const chassis = `#!/bin/sh
cd %DIR% || exit 1
op=$1; shift
echo "$op $*" >>orders
[ -e refuse ] && exit 1
if [ "$op" = get ]; then
	for name; do printf '%s:%s\n' "$name" "$(cat "$name")"; done
	exit 0
fi
[ -e ignore ] && exit 0
case $1 in
shutdown) echo 0 >power;;
reset) ;;
*) echo "$2" >"$1";;
esac
`

type lab struct {
	dir string
	sim *ipmitest.Sim
	d   bmc.Driver
}

// start runs ipmi_sim with a chassis that is kept in files.
func start(t *testing.T, o ipmitest.Options) lab {
	t.Helper()
	dir := t.TempDir()
	l := lab{dir: dir}
	l.put(t, "power", "0")
	l.put(t, "boot", "none")
	script := filepath.Join(dir, "chassis")
	if err := os.WriteFile(script, []byte(strings.ReplaceAll(chassis, "%DIR%", dir)), 0o700); err != nil {
		t.Fatal(err)
	}
	o.User, o.Password, o.Chassis = "slipway", "canary-7Q!", script
	l.sim = ipmitest.Start(t, o)
	var err error
	if l.d, err = ipmi.Open(l.sim.Target()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.d.Close() })
	return l
}

func (l lab) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, name), []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (l lab) get(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(l.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

var quick = bmc.Pace{Every: 50 * time.Millisecond, For: 400 * time.Millisecond, Tries: 2, Backoff: 20 * time.Millisecond}

func TestSimulatorPowersWhatItsProgramSays(t *testing.T) {
	l := start(t, ipmitest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, step := range []struct {
		a    bmc.Action
		want inventory.PowerState
		file string
	}{
		{bmc.On, inventory.PowerOn, "1"},
		{bmc.On, inventory.PowerOn, "1"},
		{bmc.Reset, inventory.PowerOn, "1"},
		{bmc.Shutdown, inventory.PowerOff, "0"},
		{bmc.Cycle, inventory.PowerOn, "1"},
		{bmc.Off, inventory.PowerOff, "0"},
	} {
		if err := bmc.Converge(ctx, l.d, step.a, step.want, clock{}, quick); err != nil {
			t.Fatalf("%s: %v", step.a, err)
		}
		if got := l.get(t, "power"); got != step.file {
			t.Fatalf("%s: the program has power %s, want %s", step.a, got, step.file)
		}
	}
	if err := l.d.SetPower(ctx, bmc.On); err != nil {
		t.Fatal(err)
	}
	if err := l.d.SetPower(ctx, bmc.Reset); err != nil {
		t.Fatal(err)
	}
	if orders := l.get(t, "orders"); !strings.Contains(orders, "set reset 1") || strings.Count(orders, "set power 1") != 3 {
		t.Errorf("orders:\n%s", orders)
	}
}

func TestDriverConformsAgainstTheSimulator(t *testing.T) {
	bmctest.Run(t, bmctest.Case{
		Open: func(t *testing.T, is inventory.PowerState) bmc.Driver {
			l := start(t, ipmitest.Options{})
			if is == inventory.PowerOn {
				l.put(t, "power", "1")
			}
			return l.d
		},
		Password:     "canary-7Q!",
		Boots:        []bmc.Boot{{Device: bmc.PXE, Mode: ""}, {Device: bmc.Disk}, {Device: bmc.Virtual}, {Device: bmc.Setup}},
		RefusedBoots: []bmc.Boot{{Device: bmc.HTTP, URI: "http://10.0.0.1/boot.efi"}},
		SkipsConsole: true,
		Unauthorized: func(t *testing.T) bmc.Driver {
			target := start(t, ipmitest.Options{}).sim.Target()
			target.Password = "another"
			d, err := ipmi.Open(target)
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
	})
}

func TestSimulatorWhoseProgramFailsStopsWithTheReason(t *testing.T) {
	l := start(t, ipmitest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l.put(t, "ignore", "")
	err := bmc.Converge(ctx, l.d, bmc.On, inventory.PowerOn, clock{}, quick)
	if bmc.KindOf(err) != inventory.Unavailable || !strings.Contains(err.Error(), "still off") {
		t.Errorf("orders that are ignored: %v", err)
	}
	os.Remove(filepath.Join(l.dir, "ignore"))
	l.put(t, "refuse", "")
	err = bmc.Converge(ctx, l.d, bmc.On, inventory.PowerOn, clock{}, quick)
	if bmc.KindOf(err) != inventory.Unavailable || !strings.Contains(err.Error(), "0xFF") {
		t.Errorf("orders that are refused: %v", err)
	}
	os.Remove(filepath.Join(l.dir, "refuse"))
	if err := bmc.Converge(ctx, l.d, bmc.On, inventory.PowerOn, clock{}, quick); err != nil {
		t.Errorf("after the repair: %v", err)
	}
}

func TestSimulatorTellsEverythingElse(t *testing.T) {
	l := start(t, ipmitest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	for device, name := range map[bmc.Device]string{bmc.PXE: "pxe", bmc.Virtual: "cdrom", bmc.Setup: "bios", bmc.Disk: "default", bmc.None: "none"} {
		if err := l.d.(bmc.Booter).SetBoot(ctx, bmc.Boot{Device: device, Mode: inventory.UEFI}); err != nil {
			t.Fatalf("%s: %v", device, err)
		}
		if got := l.get(t, "boot"); got != name {
			t.Errorf("the program has boot %s, want %s", got, name)
		}
		if got, err := l.d.(bmc.Booter).Boot(ctx); err != nil || got.Device != device {
			t.Errorf("read back %v, %v; want %s", got, err, device)
		}
	}
	if err := l.d.(bmc.Locator).Locate(ctx, true); err != nil || l.get(t, "identify") != "0 1" {
		t.Errorf("identify: %v, %s", err, l.get(t, "identify"))
	}
	sensors, err := l.d.(bmc.SensorReader).Sensors(ctx)
	want := []bmc.Sensor{{Name: "MBTemp", Kind: "temperature", Value: 54, Unit: "°C", Status: "ok"}}
	if diff := cmp.Diff(want, sensors); err != nil || diff != "" {
		t.Errorf("sensors: %v %s", err, diff)
	}
	inv, err := l.d.(bmc.InventoryReader).Inventory(ctx)
	if err != nil || inv.Vendor != "OpenIPMI" || inv.Firmware != "9.08" || inv.Model != "0x0f02" {
		t.Errorf("inventory: %+v, %v", inv, err)
	}
	log, err := l.d.(bmc.LogReader).Log(ctx, 10)
	if err != nil || len(log) != 1 || !strings.Contains(log[0].Message, "Temperature") {
		t.Errorf("log: %+v, %v", log, err)
	}
	if err := l.d.(bmc.LogReader).ClearLog(ctx); err != nil {
		t.Error(err)
	}
	if log, err := l.d.(bmc.LogReader).Log(ctx, 10); err != nil || len(log) != 0 {
		t.Errorf("log after it was cleared: %+v, %v", log, err)
	}
}

func TestSimulatorLooksAfterUsers(t *testing.T) {
	l := start(t, ipmitest.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m := l.d.(bmc.UserManager)
	if err := m.CreateUser(ctx, "helper", "first-Pass1"); err != nil {
		t.Fatal(err)
	}
	users, err := m.Users(ctx)
	i := slices.IndexFunc(users, func(u bmc.User) bool { return u.Name == "helper" })
	if err != nil || i < 0 || users[i].Role != "administrator" || !users[i].Enabled {
		t.Fatalf("users: %+v, %v", users, err)
	}
	if err := m.SetPassword(ctx, "helper", "second-Pass2"); err != nil {
		t.Fatal(err)
	}
	for password, kind := range map[string]inventory.Kind{"first-Pass1": inventory.Unauthorized, "second-Pass2": ""} {
		target := l.sim.Target()
		target.Username, target.Password = "helper", password
		d, err := ipmi.Open(target)
		if err != nil {
			t.Fatal(err)
		}
		err = d.(bmc.UserManager).CheckCredentials(ctx)
		d.Close()
		if kind == "" && err != nil || kind != "" && bmc.KindOf(err) != kind {
			t.Errorf("%s: %v", password, err)
		}
	}
	if err := m.DeleteUser(ctx, "helper"); err != nil {
		t.Fatal(err)
	}
	if err := m.SetPassword(ctx, "slipway", "rotated-Pass3"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.d.Power(ctx); err != nil {
		t.Errorf("after our own password was changed: %v", err)
	}
}

func TestSimulatorLivesInANetworkNamespace(t *testing.T) {
	if os.Getenv("SLIPWAY_NET") != "1" || os.Geteuid() != 0 {
		t.Skip("makes a network namespace; run it as root with SLIPWAY_NET=1")
	}
	ns := fmt.Sprintf("slipway-ipmi-%d", os.Getpid())
	for _, args := range [][]string{{"netns", "add", ns}, {"-n", ns, "link", "set", "lo", "up"}} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	t.Cleanup(func() { exec.Command("ip", "netns", "del", ns).Run() })
	l := start(t, ipmitest.Options{NetNS: ns, Addr: "127.0.0.1:623"})

	runtime.LockOSThread() // never given back: the thread stays in the namespace, and ends with the test
	f, err := os.Open("/run/netns/" + ns)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	if err := bmc.Converge(t.Context(), l.d, bmc.On, inventory.PowerOn, clock{}, quick); err != nil || l.get(t, "power") != "1" {
		t.Errorf("power is %s: %v", l.get(t, "power"), err)
	}
}

func TestSimulatorLeadsToASerialConsole(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	l := start(t, ipmitest.Options{Serial: "tcp:" + ln.Addr().String()})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { // the machine: a greeting, then an echo in capitals
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, 512)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			c.Write([]byte(strings.ToUpper(string(buf[:n]))))
		}
	}()
	cons, err := l.d.(bmc.Console).Console(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer cons.Close()
	text := strings.Repeat("all work and no play ", 40) + "end"
	got := make(chan string, 1)
	go func() {
		b := make([]byte, len(text))
		n, err := io.ReadFull(cons, b)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("read: %v", err)
		}
		got <- string(b[:n])
	}()
	if _, err := cons.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	select {
	case s := <-got:
		if diff := cmp.Diff(strings.ToUpper(text), s); diff != "" {
			t.Error(diff)
		}
	case <-ctx.Done():
		t.Fatal("the console did not answer")
	}
}
