package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rogpeppe/go-internal/testscript"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/cmd/slipway/serve/invite"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/live"
	"slipway.dev/slipway/inventory/secret"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/provision/duty"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/trace"
	"slipway.dev/slipway/web"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/clusters"
	"slipway.dev/slipway/web/wire"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"slipway": func() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the program as people do, against a server in this process: REST over a Unix socket, a real
// database, a real engine, real imports. Only machines are missing; the command discover plays one.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			r, err := startRig(env.WorkDir)
			if err != nil {
				return err
			}
			env.Defer(r.stop)
			env.Values[rigKey{}] = r
			env.Setenv("SLIPWAY_SERVER", r.socket)
			env.Setenv("TZ", "UTC")
			env.Setenv("GOGC", "1000") // a command ends before its garbage is worth a collection, which takes a third of its time
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"discover": cmdDiscover, "boot": cmdBoot, "jsonhas": cmdJSONHas, "inspected": cmdInspected, "step": cmdStep, "finish": cmdFinish,
			"leased": cmdLeased, "typed": cmdTyped, "onwire": cmdOnWire,
		},
	})
}

type rigKey struct{}

// rig is a server without doors for machines.
type rig struct {
	store  *sqlstore.Store
	wire   *trace.Ring
	bank   *fake.Bank
	socket string
	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	errs   []error
}

func startRig(dir string) (*rig, error) {
	log := slog.New(slog.DiscardHandler)
	r := &rig{socket: filepath.Join(dir, "s.sock"), wire: trace.NewRing(trace.Config{IsOurs: func(a netip.Addr) bool { return a == rigAddress }})}
	store, err := sqlstore.Open(context.Background(), sqlstore.Config{Path: filepath.Join(dir, "slipway.db")})
	if err != nil {
		return nil, err
	}
	r.store = store
	newID := func() inventory.HostID { return inventory.HostID(uuid.Must(uuid.NewV7()).String()) }
	hub := live.New(live.Config{Store: store, Log: log})
	store.OnCommit(hub.Wake)
	box, err := secret.NewBox(bytes.Repeat([]byte{1, 2}, secret.KeySize/2))
	if err != nil {
		return nil, err
	}
	r.bank = fake.New(fake.Options{Username: "admin", Password: "calvin"})
	engine := provision.New(provision.Config{
		OpenBMC: r.openBMC, Sealer: box, NewULID: func() string { return ulid.Make().String() },
		Pace:     bmc.Pace{Every: time.Millisecond, For: time.Second, Tries: 2, Backoff: time.Millisecond, Jitter: func() float64 { return 0 }},
		Renderer: render.New(serve.Parts()), Secrets: box,
		Store: store, Loaders: func(string) bool { return true }, Quirks: pxe.BuiltinQuirks(),
		Vendor: func(inventory.MAC) string { return "" }, Policy: func(string) inventory.UnknownPolicy { return inventory.UnknownDisk },
		Wire: r.wire, Ours: func() []netip.Addr { return []netip.Addr{rigAddress} }, BootPort: 8000,
		NewID: newID, Now: time.Now, Log: log,
	})
	catalogue, err := images.BuiltinCatalogue()
	if err != nil {
		return nil, err
	}
	cache, err := images.New(images.Config{Dir: filepath.Join(dir, "artefacts"), Store: store, Catalogue: catalogue, Now: time.Now})
	if err != nil {
		return nil, err
	}
	jobs := images.NewJobs(images.JobsConfig{Import: cache.Import, Check: catalogue.Check, Now: time.Now, Log: log})
	here := backend.NewLocal(backend.LocalConfig{Engine: engine, Store: store, Events: hub, Secrets: box, Now: time.Now})
	duties := duty.New(duty.Config{
		Store: store, IsAlone: true, Log: log,
		Instance: inventory.Instance{ID: "rig", Name: "rig", Addresses: []string{rigAddress.String()}, Version: "test"},
	})
	duties.Want(inventory.DutyEngine)
	if err := duties.Register(context.Background()); err != nil {
		return nil, err
	}
	srv := web.New(web.Config{
		Duties: duties, Invitations: invitations(), Store: store, Lifecycle: engine, Jobs: jobs, Artefacts: cache, Catalogue: catalogue.Entries(), Events: hub,
		SelfCheck: func(context.Context) []wire.Check {
			return []wire.Check{{Name: "clock", Status: "ok", Detail: "it ticks"}, {Name: "interface eno1", Status: "error", Detail: "is down", Hint: "ip link set eno1 up"}}
		},
		Scan: func(context.Context, string, []string) ([]wire.FoundBMC, error) {
			return []wire.FoundBMC{{IP: "10.0.0.9", Driver: inventory.IPMI, Address: "10.0.0.9:623", Vendor: "ACME", Warning: "accepts cipher suite 0"}}, nil
		},
		Appliance: here, ClusterView: func(uid string, namespaces []string) clusters.ClusterView {
			return backend.ForToken(here, backend.Scope{UID: uid, Namespaces: namespaces})
		},
		Configs: engine, Secrets: box, TargetRBAC: []byte("kind: ClusterRole\n"),
		CheckTarget: func(_ context.Context, t inventory.JoinTarget) wire.TargetCheck {
			return wire.TargetCheck{Target: t.Name, Results: []wire.TargetCheckResult{{Name: "reachable", Detail: "no answer", Hint: "start it"}}}
		},
		Probe: r.probe,
		Interfaces: func() []wire.Interface {
			return []wire.Interface{{Name: "eno1", IsUp: true, IsServed: true, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}}}
		},
		NewHostID: newID, BootBase: "http://10.0.0.1", Version: "test", Now: time.Now, Log: log,
	})
	socket, err := web.ListenSocket(r.socket)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.wg.Go(func() { _ = duties.Run(ctx) })
	for _, serve := range []func(context.Context) error{hub.Serve, engine.Serve, jobs.Serve, func(ctx context.Context) error { return srv.Serve(ctx, nil, socket) }} {
		r.wg.Go(func() {
			if err := serve(ctx); err != nil {
				r.mu.Lock()
				r.errs = append(r.errs, err)
				r.mu.Unlock()
			}
		})
	}
	return r, nil
}

func (r *rig) stop() {
	r.cancel()
	r.wg.Wait()
	_ = r.bank.Close()
	if err := errors.Join(append(r.errs, r.store.Close())...); err != nil {
		panic(err)
	}
}

// cmdDiscover adds a discovered host: discover NAME MAC [MANUFACTURER].
func cmdDiscover(ts *testscript.TestScript, _ bool, args []string) {
	r := ts.Value(rigKey{}).(*rig)
	now := time.Now()
	h := inventory.Host{
		ID: inventory.HostID(uuid.Must(uuid.NewV7()).String()), Name: args[0], State: inventory.Discovered, StateSinceAt: now,
		Arch: inventory.X8664, Firmware: inventory.UEFI, NICs: []inventory.NIC{{MAC: inventory.MAC(args[1]), IsBoot: true}}, LastSeenAt: now,
	}
	if len(args) > 2 {
		h.Manufacturer = strings.ReplaceAll(args[2], "ESC", "\x1b")
	}
	ts.Check(r.store.Write(context.Background(), func(tx inventory.Tx) error {
		h := h
		if err := tx.CreateHost(&h, now); err != nil {
			return err
		}
		return tx.AddEvent(&inventory.Event{At: now, Kind: inventory.EventHostDiscovered, HostID: h.ID, MAC: h.NICs[0].MAC, Detail: h.Name + " heard"})
	}))
}

// cmdBoot adds a boot session of a host with its events: boot NAME SESSION.
func cmdBoot(ts *testscript.TestScript, _ bool, args []string) {
	r := ts.Value(rigKey{}).(*rig)
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ts.Check(r.store.Write(context.Background(), func(tx inventory.Tx) error {
		h, err := tx.FindHostByName(args[0])
		if err != nil {
			return err
		}
		s := inventory.BootSession{
			ID: inventory.SessionID(args[1]), HostID: h.ID, MAC: h.NICs[0].MAC, Firmware: inventory.UEFI, Boot: "image", Reason: "profile worker gives it image tiny",
			Step: inventory.EventSessionEnded, Outcome: inventory.OutcomeArrived, StartedAt: at, LastAt: at.Add(6 * time.Second), EndedAt: at.Add(6 * time.Second),
		}
		if err := tx.SaveSession(s); err != nil {
			return err
		}
		for i, kind := range []string{inventory.EventSessionStarted, inventory.EventDHCPDiscover, inventory.EventBootDecided, inventory.EventSessionEnded} {
			e := inventory.Event{At: at.Add(time.Duration(i) * 2 * time.Second), Kind: kind, HostID: h.ID, SessionID: s.ID, MAC: s.MAC, Detail: fmt.Sprint("step ", i+1)}
			if err := tx.AddEvent(&e); err != nil {
				return err
			}
		}
		return nil
	}))
}

// cmdLeased stores a lease of a host: leased NAME ADDRESS SUBNET.
func cmdLeased(ts *testscript.TestScript, _ bool, args []string) {
	r := ts.Value(rigKey{}).(*rig)
	ts.Check(r.store.Write(context.Background(), func(tx inventory.Tx) error {
		h, err := tx.FindHostByName(args[0])
		if err != nil {
			return err
		}
		now := time.Now()
		return tx.SaveLease(inventory.Lease{
			Address: netip.MustParseAddr(args[1]), Subnet: args[2], MAC: h.NICs[0].MAC, State: inventory.LeaseBound, StartsAt: now, ExpiresAt: now.Add(time.Hour),
		})
	}))
}

// cmdTyped types a line into the console of a host, and waits until that has answered: typed NAME ANSWER.
func cmdTyped(ts *testscript.TestScript, _ bool, args []string) {
	api, err := client.New(client.Config{Server: ts.Value(rigKey{}).(*rig).socket})
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	line, err := api.Hosts.Console(ctx, args[0])
	ts.Check(err)
	defer func() { _ = line.Close() }()
	defer context.AfterFunc(ctx, func() { _ = line.Close() })()
	_, err = io.WriteString(line, "hello\n")
	ts.Check(err)
	said, err := bufio.NewReader(line).ReadString('\n')
	ts.Check(err)
	if !strings.Contains(said, args[1]) {
		ts.Fatalf("the console says %q", said)
	}
}

// openBMC opens simulated controllers only.
func (r *rig) openBMC(t bmc.Target) (bmc.Driver, error) {
	if t.Driver != inventory.FakeBMC {
		return nil, inventory.Errorf(inventory.Invalid, "only fake controllers here")
	}
	return r.bank.Open(t)
}

// cmdInspected stores an inspection of a host: inspected NAME DISK-SERIAL.
func cmdInspected(ts *testscript.TestScript, _ bool, args []string) {
	r := ts.Value(rigKey{}).(*rig)
	ts.Check(r.store.Write(context.Background(), func(tx inventory.Tx) error {
		h, err := tx.FindHostByName(args[0])
		if err != nil {
			return err
		}
		i := inventory.Inspection{HostID: h.ID, At: time.Now(), Hardware: inventory.Hardware{
			CollectedAt: time.Now(), Source: "agent", System: inventory.System{Manufacturer: "ACME", Product: "S1"}, MemoryBytes: 64 << 30,
			CPU:   inventory.CPU{Arch: inventory.X8664, Model: "Xeon 6338", Sockets: 2, Cores: 32, Threads: 64},
			Disks: []inventory.Disk{{Name: "sda", Serial: args[1], SizeBytes: 480e9, Transport: "sata", Contents: "empty\x1b[31m"}},
			Ports: []inventory.Port{{Name: "eno1", MAC: h.NICs[0].MAC, HasLink: true, SpeedMbps: 25000}},
		}}
		if last, err := tx.FindInspection(h.ID, 0); err == nil {
			i.Changes = []inventory.HardwareChange{{Kind: "removed", What: "disk " + last.Hardware.Disks[0].Serial}, {Kind: "added", What: "disk " + args[1]}}
		}
		return tx.SaveInspection(&i)
	}))
}

// work waits until the engine has begun something with a machine, and changes that in one transaction.
func (r *rig) work(ts *testscript.TestScript, machine string, fn func(tx inventory.Tx, m *inventory.Machine, o *inventory.Operation) error) {
	for end := time.Now().Add(20 * time.Second); ; {
		isDone := false
		ts.Check(r.store.Write(context.Background(), func(tx inventory.Tx) error {
			m, err := tx.FindMachine(machine)
			if err != nil || m.HostID == "" {
				return nil // not yet
			}
			o, err := tx.FindOpenOperation(m.HostID)
			if err != nil {
				return nil
			}
			isDone = true
			return fn(tx, &m, &o)
		}))
		if isDone {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("nothing is being done for machine %s", machine)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// cmdStep plays the engine with an agent: the machine's operation is at that step, and has come so far:
// step MACHINE STEP BYTES TOTAL.
func cmdStep(ts *testscript.TestScript, _ bool, args []string) {
	r := ts.Value(rigKey{}).(*rig)
	r.work(ts, args[0], func(tx inventory.Tx, _ *inventory.Machine, o *inventory.Operation) error {
		o.Step, o.State, o.DeadlineAt, o.NextAt = inventory.Step(args[1]), inventory.OpWaiting, time.Time{}, time.Time{}
		if _, err := fmt.Sscan(args[2]+" "+args[3], &o.Progress.Bytes, &o.Progress.Total); err != nil {
			return err
		}
		o.Progress.BytesPerSecond = 100e6
		if err := tx.UpdateOperation(o, time.Now()); err != nil {
			return err
		}
		return tx.AddEvent(&inventory.Event{
			At: time.Now(), Kind: inventory.EventOperation, HostID: o.HostID, Subject: "machine/" + args[0], Detail: "install of " + args[0] + ": " + args[1],
			Data: map[string]any{"operation": o.ID, "hint": "look at it"},
		})
	})
}

// cmdFinish ends what is being done for a machine: finish MACHINE PHASE [REASON HINT].
func cmdFinish(ts *testscript.TestScript, _ bool, args []string) {
	r := ts.Value(rigKey{}).(*rig)
	r.work(ts, args[0], func(tx inventory.Tx, m *inventory.Machine, o *inventory.Operation) error {
		now := time.Now()
		o.State, o.EndedAt, o.DeadlineAt, o.NextAt = inventory.OpDone, now, time.Time{}, time.Time{}
		m.Phase, m.Reason, m.Hint = inventory.MachinePhase(args[1]), "", ""
		if m.Phase == inventory.MachineFailed {
			o.State, m.Reason, m.Hint = inventory.OpFailed, args[2], args[3]
		}
		if err := tx.UpdateOperation(o, now); err != nil {
			return err
		}
		return tx.UpdateMachine(m, now)
	})
}

// cmdJSONHas checks that standard output is JSON, and that a path in it has a value: jsonhas 0.place.rack r1.
func cmdJSONHas(ts *testscript.TestScript, neg bool, args []string) {
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	dec.UseNumber()
	var v any
	ts.Check(dec.Decode(&v))
	for _, key := range strings.Split(args[0], ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			i := 0
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(x) {
				ts.Fatalf("%s: no %s in %v", args[0], key, x)
			}
			v = x[i]
		default:
			v = nil
		}
	}
	if got := fmt.Sprint(v); (got == args[1]) == neg {
		ts.Fatalf("%s is %s", args[0], got)
	}
}

func TestExitCodesAndUsage(t *testing.T) {
	t.Setenv("SLIPWAY_SERVER", filepath.Join(t.TempDir(), "none.sock"))
	for _, tc := range []struct {
		name string
		args []string
		code int
		want string // in standard error, or output for 0
	}{
		{"no command", nil, 2, "hint: slipway --help"},
		{"an unknown noun", []string{"server", "list"}, 2, "unexpected argument server"},
		{"an unknown verb", []string{"host", "lst"}, 2, "hint: slipway host --help"},
		{"an unknown flag", []string{"host", "list", "--colour", "red"}, 2, "unknown flag --colour"},
		{"a missing argument", []string{"host", "show"}, 2, `expected "<host>"`},
		{"an unknown format", []string{"host", "list", "-o", "xml"}, 2, "--output must be one of"},
		{"a duration that is none", []string{"token", "create", "x", "--expires-in", "soon"}, 2, "--expires-in"},
		{"a duration that is none, with a way out", []string{"token", "create", "x", "--expires-in", "soon"}, 2, `"soon" is not a duration: write it as 90s, 10m, 12h or 30d`},
		{"a duration in days", []string{"token", "create", "x", "--expires-in", "30d"}, 1, "no server runs on this machine"},
		{"a workbook", []string{"import", "rack.xlsx"}, 2, "save the sheet as CSV"},
		{"a preset that nobody knows", []string{"import", "rack.csv", "--preset", "nebtox"}, 2, "use one of netbox, maas, ansible, device42"},
		{"a head of the audit that is none", []string{"audit", "verify", "--noted", "deadbeef"}, 2, "64 hex digits"},
		{"help as a word", []string{"help", "host", "accept"}, 0, "--selector"},
		{"help as the only word", []string{"help"}, 0, "Nouns (slipway NOUN VERB)"},
		{"a range that is none", []string{"range", "add", "a", "ten"}, 2, "is not a range"},
		{"accept without saying whom", []string{"host", "accept"}, 2, "in one way"},
		{"accept in two ways", []string{"host", "accept", "a", "--all"}, 2, "in one way"},
		{"a label that is none", []string{"host", "label", "a", "b"}, 2, "is not a label"},
		{"set without anything", []string{"host", "set", "a"}, 2, "nothing to change"},
		{"an import of nothing", []string{"image", "import", "a"}, 2, "say what to import"},
		{"a file of unknown format", []string{"import", "hosts.txt"}, 2, "--format csv"},
		{"a machine of no profile", []string{"machine", "create", "a"}, 2, "--profile"},
		{"a requirement that is none", []string{"machine", "create", "a", "--profile", "p", "--require", "cpu"}, 2, "has no value"},
		{"a requirement that nobody knows", []string{"machine", "create", "a", "--profile", "p", "--require", "colour=red"}, 2, "use cpu, memory"},
		{"a size that is none", []string{"machine", "create", "a", "--profile", "p", "--require", "memory=much"}, 2, `"much" is not a size`},
		{"a preference without weight", []string{"machine", "create", "a", "--profile", "p", "--prefer", "rack=r1"}, 2, "50:rack=r1"},
		{"a toleration without key", []string{"machine", "create", "a", "--profile", "p", "--tolerate", "=x"}, 2, "has no key"},
		{"a hook without owner", []string{"machine", "create", "a", "--profile", "p", "--hook", "pre-fence"}, 2, "pre-fence:storage"},
		{"a disk to keep that is none", []string{"machine", "create", "a", "--profile", "p", "--keep-disk", "S4XY"}, 2, "has no value"},
		{"a disk to keep that is any", []string{"host", "set", "a", "--keep-disk", ""}, 2, "names no disk"},
		{"a root disk of no size", []string{"host", "set", "a", "--root-min-size=-3G"}, 2, "is not a size"},
		{"a taint without key", []string{"host", "set", "a", "--taint", "=x"}, 2, "has no key"},
		{"a wait without end", []string{"machine", "delete", "a", "--wait=soon"}, 2, "such as 30m"},
		{"a hook of no step", []string{"machine", "ack", "a", "pre-lunch", "b"}, 2, "must be one of"},
		{"a change of power that is none", []string{"host", "power", "a", "explode"}, 2, "must be one of"},
		{"power changed and confirmed at once", []string{"host", "power", "a", "on", "--confirm", "off"}, 2, "either change the power or confirm it"},
		{"a wipe of no mode", []string{"host", "clean", "a", "--mode", "acid"}, 2, "must be one of"},
		{"writing without a burn-in", []string{"host", "inspect", "a", "--may-write"}, 2, "--burn-in 10m"},
		{"a password on the command line", []string{"host", "bmc", "a", "--password", "x"}, 2, "unknown flag --password"},
		{"a controller set and forgotten at once", []string{"host", "bmc", "a", "--delete", "--user", "x"}, 2, "give --delete alone"},
		{"two accounts at once", []string{"host", "bmc-users", "a", "--add", "x", "--remove", "y"}, 2, "either add"},
		{"a boot device left out", []string{"bmc", "boot", "a", "--persistent"}, 2, "say the device"},
		{"golden hardware of no hosts", []string{"golden", "create", "a"}, 2, "--selector"},
		{"golden firmware without version", []string{"golden", "create", "a", "-l", "rack=r1", "--firmware", "bios"}, 2, "NAME=VERSION"},
		{"an import of two disks", []string{"image", "import", "a", "--disk", "a.raw", "--remote", "oci://x/y@sha256:0"}, 2, "one disk image"},
		{"a disk format without a disk", []string{"image", "import", "a", "--kernel", "k", "--disk-format", "raw"}, 2, "--disk WHERE"},
		{"an agent image for a server far away", []string{"agent-image", "build", "--server", "http://10.0.0.1:8067"}, 2, "--out DIR"},
		{"a reservation for nobody", []string{"reservation", "create", "10.0.0.1"}, 2, "--mac"},
		{"a server that is not there", []string{"host", "list"}, 1, "no server runs on this machine"},
		{"a server that is none", []string{"host", "list", "--server", "ftp://x"}, 1, "is not the address of a server"},
		{"flags before the noun", []string{"-o", "json", "host", "list"}, 1, "no server runs on this machine"},
		{"a token file that is not there", []string{"host", "list", "--token-file", "/none"}, 1, "cannot read the token"},
		{"help", []string{"host", "accept", "--help"}, 0, "--selector"},
		{"the version without a server", []string{"version"}, 0, "dev"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(tc.args, strings.NewReader(""), &stdout, &stderr)
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			talk := &stderr
			if tc.code == 0 {
				talk = &stdout
			} else if stdout.Len() > 0 {
				t.Errorf("talk on standard output: %s", stdout.String())
			}
			if !strings.Contains(talk.String(), tc.want) {
				t.Errorf("%q is not in %s", tc.want, talk.String())
			}
			if tc.code == 2 && !(strings.HasPrefix(stderr.String(), "error: ") && strings.Contains(stderr.String(), "\nhint: ")) {
				t.Errorf("no error with a hint: %s", stderr.String())
			}
		})
	}
}

// invitations are those of a rig. Nobody can use them, because the rig has no link.
func invitations() *invite.Book {
	return invite.NewBook(invite.Config{
		Pack:  func() (invite.HandOver, error) { return invite.HandOver{}, nil },
		Pin:   strings.Repeat("5", 64),
		Links: func(context.Context) ([]string, error) { return []string{"192.0.2.11:8069"}, nil },
		MayBe: func(_ context.Context, name string) error {
			if name == "rig" {
				return inventory.Errorf(inventory.Conflict, "an instance with the name rig runs").WithHint("choose another name: --name NAME")
			}
			return nil
		},
		Keep: func(context.Context, string, *invite.Note) error { return nil },
		Now:  time.Now, Log: slog.New(slog.DiscardHandler),
	})
}
