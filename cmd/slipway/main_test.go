package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rogpeppe/go-internal/testscript"

	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/live"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/render"
	"slipway.dev/slipway/secret"
	"slipway.dev/slipway/web"
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
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"discover": cmdDiscover, "boot": cmdBoot, "jsonhas": cmdJSONHas,
		},
	})
}

type rigKey struct{}

// rig is a server without doors for machines.
type rig struct {
	store  *sqlstore.Store
	socket string
	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	errs   []error
}

func startRig(dir string) (*rig, error) {
	log := slog.New(slog.DiscardHandler)
	r := &rig{socket: filepath.Join(dir, "s.sock")}
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
	engine := provision.New(provision.Config{
		Renderer: render.New(serve.Parts()), Secrets: box,
		Store: store, Loaders: func(string) bool { return true }, Quirks: pxe.BuiltinQuirks(),
		Vendor: func(inventory.MAC) string { return "" }, Policy: func(string) inventory.UnknownPolicy { return inventory.UnknownDisk },
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
	srv := web.New(web.Config{
		Store: store, Lifecycle: engine, Jobs: jobs, Artefacts: cache, Catalogue: catalogue.Entries(), Events: hub,
		SelfCheck: func(context.Context) []web.Check {
			return []web.Check{{Name: "clock", Status: "ok", Detail: "it ticks"}, {Name: "interface eno1", Status: "error", Detail: "is down", Hint: "ip link set eno1 up"}}
		},
		Configs: engine, Secrets: box, TargetRBAC: []byte("kind: ClusterRole\n"),
		CheckTarget: func(_ context.Context, t inventory.JoinTarget) web.TargetCheck {
			return web.TargetCheck{Target: t.Name, Results: []web.TargetCheckResult{{Name: "reachable", Detail: "no answer", Hint: "start it"}}}
		},
		NewHostID: newID, BootBase: "http://10.0.0.1", Version: "test", Now: time.Now, Log: log,
	})
	socket, err := web.ListenSocket(r.socket)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
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
		{"an unknown noun", []string{"machine", "list"}, 2, "unexpected argument machine"},
		{"an unknown verb", []string{"host", "lst"}, 2, "hint: slipway host --help"},
		{"an unknown flag", []string{"host", "list", "--colour", "red"}, 2, "unknown flag --colour"},
		{"a missing argument", []string{"host", "show"}, 2, `expected "<host>"`},
		{"an unknown format", []string{"host", "list", "-o", "xml"}, 2, "--output must be one of"},
		{"a duration that is none", []string{"token", "create", "x", "--expires-in", "soon"}, 2, "--expires-in"},
		{"a range that is none", []string{"range", "add", "a", "ten"}, 2, "is not a range"},
		{"accept without saying whom", []string{"host", "accept"}, 2, "in one way"},
		{"accept in two ways", []string{"host", "accept", "a", "--all"}, 2, "in one way"},
		{"a label that is none", []string{"host", "label", "a", "b"}, 2, "is not a label"},
		{"set without anything", []string{"host", "set", "a"}, 2, "nothing to change"},
		{"an import of nothing", []string{"image", "import", "a"}, 2, "say what to import"},
		{"a file of unknown format", []string{"import", "hosts.txt"}, 2, "--format csv"},
		{"a reservation for nobody", []string{"reservation", "create", "10.0.0.1"}, 2, "--mac"},
		{"a server that is not there", []string{"host", "list"}, 1, "hint: start one with"},
		{"a server that is none", []string{"host", "list", "--server", "ftp://x"}, 1, "is not the address of a server"},
		{"flags before the noun", []string{"-o", "json", "host", "list"}, 1, "hint: start one with"},
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
