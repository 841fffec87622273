package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/bmc/webhook"
	"slipway.dev/slipway/bmc/wol"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/live"
	"slipway.dev/slipway/inventory/secret"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/inventory/storetest"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/provision/duty"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/clusters"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

var update = flag.Bool("update", false, "rewrite golden files")

var testStart = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// rig is a server with a real store and engine behind it, and a clock that the test moves.
type rig struct {
	t       *testing.T
	store   *sqlstore.Store
	srv     *Server
	hub     *live.Hub
	jobs    *fakeJobs
	log     *lockedBuffer
	box     *secret.Box
	bank    *fake.Bank
	account error // what simulated controllers say of the account

	engine    *provision.Engine
	under     *switched // the engine's store
	operation string    // id of one that furnish has started

	mu  sync.Mutex
	now time.Time
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// newRig returns a running rig; edit changes its configuration.
func newRig(t *testing.T, edit func(*Config)) *rig {
	t.Helper()
	r := newRigFor(t, edit)
	r.t = t
	return r
}

// newRigFor returns a running rig for a test or a fuzz target; only with a test can it send requests itself.
func newRigFor(t testing.TB, edit func(*Config)) *rig {
	t.Helper()
	r := &rig{now: testStart, log: &lockedBuffer{}, jobs: &fakeJobs{}}
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	r.store = store
	r.hub = live.New(live.Config{Store: store, Log: log})
	store.OnCommit(r.hub.Wake)
	n := 0
	newID := func() inventory.HostID {
		r.mu.Lock()
		defer r.mu.Unlock()
		n++
		return inventory.HostID(fmt.Sprintf("00000000-0000-7000-8000-%012d", n))
	}
	key, err := secret.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := secret.ParseKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if r.box, err = secret.NewBox(raw); err != nil {
		t.Fatal(err)
	}
	r.bank = fake.New(fake.Options{})
	t.Cleanup(func() { _ = r.bank.Close() })
	r.under = &switched{Store: store}
	engine := provision.New(provision.Config{
		OpenBMC: r.open, Sealer: r.box, NewULID: func() string {
			return strings.Replace(string(newID()), "00000000-0000-7000-8000-", "01JD0000000000", 1)
		},
		Renderer: render.New(render.Parts{Provisioners: []machineconfig.Provisioner{plainFormat{}}}), Secrets: r.box,
		Store: r.under, Loaders: func(string) bool { return true }, Quirks: pxe.BuiltinQuirks(),
		Vendor: func(inventory.MAC) string { return "" }, Policy: func(string) inventory.UnknownPolicy { return inventory.UnknownDisk },
		NewID: newID, Now: r.clock, Log: log,
	})
	r.engine = engine
	here := backend.NewLocal(backend.LocalConfig{Engine: engine, Store: store, Events: r.hub, Secrets: r.box, Now: r.clock})
	catalogue, err := images.BuiltinCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Store: store, Lifecycle: engine, Jobs: r.jobs, Artefacts: fakeArtefacts{}, Catalogue: catalogue.Entries(), Events: r.hub,
		SelfCheck: func(context.Context) []wire.Check {
			return []wire.Check{{Name: "clock", Status: "ok", Detail: "it ticks"}}
		},
		Metrics:   http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "slipway_up 1\n") }),
		Appliance: here, ClusterView: func(uid string, namespaces []string) clusters.ClusterView {
			return backend.ForToken(here, backend.Scope{UID: uid, Namespaces: namespaces})
		},
		Configs: engine, Secrets: r.box, TargetRBAC: []byte("kind: ClusterRole\n"),
		CheckTarget: func(_ context.Context, t inventory.JoinTarget) wire.TargetCheck {
			return wire.TargetCheck{Target: t.Name, Results: []wire.TargetCheckResult{{Name: "reachable", Detail: "no answer", Hint: "start it"}}}
		},
		NewHostID: newID, Vendor: func(inventory.MAC) string { return "QEMU" }, BootBase: "http://10.0.0.1", Version: "test", Now: r.clock, Log: log,
	}
	duties := duty.New(duty.Config{Store: store, Instance: inventory.Instance{ID: "rig", Name: "rig", Version: "test"}, IsAlone: true})
	if err := duties.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg.Duties = duties
	if edit != nil {
		edit(&cfg)
	}
	r.srv = New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.hub.Serve(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		storetest.CheckRefs(t, store)
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// open opens simulated controllers, and the drivers whose options may hold secrets.
func (r *rig) open(t bmc.Target) (bmc.Driver, error) {
	switch t.Driver {
	case inventory.Webhook:
		return webhook.Open(t)
	case inventory.WoL:
		return wol.Opener(wol.Options{})(t)
	}
	d, err := r.bank.Open(t)
	if err == nil && r.account != nil {
		return plainUser{d, d.(bmc.UserManager), r.account}, nil
	}
	return d, err
}

// plainUser is a controller whose account is no administrator's.
type plainUser struct {
	bmc.Driver
	bmc.UserManager
	why error
}

func (p plainUser) CheckCredentials(context.Context) error { return p.why }

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buf.Len() > 1<<20 {
		l.buf.Reset() // fuzzing writes for hours
	}
	return l.buf.Write(b)
}

func (r *rig) logged() string {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return r.log.buf.String()
}

// fakeJobs knows one import, called job1.
type fakeJobs struct {
	mu      sync.Mutex
	started []images.ImportRequest
}

func (f *fakeJobs) Start(r images.ImportRequest) (images.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = append(f.started, r)
	return images.Job{ID: "job1", Image: r.Name, State: images.JobWaiting, CreatedAt: testStart, Revision: 1}, nil
}

func (f *fakeJobs) List() []images.Job { return nil }

func (f *fakeJobs) Next(ctx context.Context, id string, revision int64) (images.Job, error) {
	if id != "job1" {
		return images.Job{}, inventory.Errorf(inventory.NotFound, "there is no import job %q", id)
	}
	if revision > 0 {
		<-ctx.Done()
		return images.Job{}, ctx.Err()
	}
	return images.Job{
		ID: id, Image: "debian", State: images.JobRunning, Revision: 7, CreatedAt: testStart,
		Progress: images.Progress{Step: images.StepFetch, File: "linux", FileN: 1, FilesN: 2, Bytes: 10, TotalBytes: 100},
	}, nil
}

func (f *fakeJobs) Cancel(string) error { return nil }

func (f *fakeJobs) Retry(id string, allowLocal, isAdmin bool) (images.Job, error) {
	if id != "job1" {
		return images.Job{}, inventory.Errorf(inventory.NotFound, "there is no import job %q", id)
	}
	return f.Start(images.ImportRequest{Name: "again", AllowLocal: allowLocal})
}

type fakeArtefacts struct{}

func (fakeArtefacts) Verify(context.Context) ([]images.Fault, error) { return nil, nil }
func (fakeArtefacts) Prune(_ context.Context, isDryRun bool) (images.Pruned, error) {
	return images.Pruned{IsDryRun: isDryRun}, nil
}

func (fakeArtefacts) Take(_ context.Context, in io.Reader, name string, size int64) (inventory.Artefact, error) {
	n, err := io.Copy(io.Discard, in)
	if err == nil && size >= 0 && n != size {
		err = io.ErrUnexpectedEOF
	}
	return inventory.Artefact{Digest: inventory.Digest("sha256:" + strings.Repeat("a", 64)), SizeBytes: n, Source: "upload:" + name, CreatedAt: testStart}, err
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// problem reads the body as a problem.
func (a answer) problem(t *testing.T) rest.Problem {
	t.Helper()
	var p rest.Problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || p.Detail == "" {
		t.Fatalf("status %d without a problem body: %s", a.status, a.body)
	}
	return p
}

// ask sends a request through the socket's handler. Headers are given as key, value.
func (r *rig) ask(method, path, body string, headers ...string) answer {
	r.t.Helper()
	return ask(r.t, r.srv.SocketHandler(), method, path, body, headers...)
}

func ask(t *testing.T, h http.Handler, method, path, body string, headers ...string) answer {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if body == "" {
		req = httptest.NewRequestWithContext(t.Context(), method, path, nil)
	}
	if method != http.MethodGet && !strings.Contains(path, "/transfer") {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return serveOnce(h, req)
}

func serveOnce(h http.Handler, req *http.Request) answer {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return answer{rec.Code, rec.Header(), rec.Body.String()}
}

// must fails the test unless the status is as wanted, and reads the body into out.
func (r *rig) must(want int, out any, method, path, body string, headers ...string) answer {
	r.t.Helper()
	a := r.ask(method, path, body, headers...)
	if a.status != want {
		r.t.Fatalf("%s %s: status %d, want %d: %s", method, path, a.status, want, a.body)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(a.body), out); err != nil {
			r.t.Fatalf("%s %s: %v in %s", method, path, err, a.body)
		}
	}
	return a
}

// seed adds a subnet, an image, a profile and a few hosts, one of them discovered.
func (r *rig) seed() {
	r.t.Helper()
	digest := inventory.Digest("sha256:" + strings.Repeat("a", 64))
	err := r.store.Write(r.t.Context(), func(tx inventory.Tx) error {
		found := inventory.Host{
			ID: "00000000-0000-7000-8000-00000000000a", Name: "host-525400aa000a", State: inventory.Discovered,
			StateSinceAt: testStart, Manufacturer: "QEMU", Product: "Standard PC", Arch: inventory.X8664, Firmware: inventory.UEFI,
			NICs: []inventory.NIC{{MAC: "52:54:00:aa:00:0a", IsBoot: true, Vendor: "QEMU"}},
		}
		i := inventory.Image{
			Name: "debian", OS: "debian", Release: "12", Arch: inventory.X8664,
			Configs: []inventory.ImageConfig{{Format: "plain", Version: "1"}}, ConfigArgs: []string{"config=${config}"},
			Files: []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "linux", Digest: digest}},
		}
		return errors.Join(tx.CreateHost(&found, testStart),
			tx.SaveArtefact(inventory.Artefact{Digest: digest, SizeBytes: 3, Source: "http://example.com/linux", CreatedAt: testStart}),
			tx.Images().Create(&i, testStart))
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.must(201, nil, "POST", "/api/v1/subnets", `{"name":"rack1","cidr":"10.0.0.0/24","gateway":"10.0.0.1","ranges":[{"first":"10.0.0.100","last":"10.0.0.199"}]}`)
	r.must(201, nil, "POST", "/api/v1/profiles", `{"name":"worker","image":"debian","selector":"rack=r1"}`)
	r.must(201, nil, "POST", "/api/v1/hosts", `{"name":"r1-u01","nics":[{"mac":"52:54:00:AA:00:01"}],"place":{"rack":"r1","unit":1},"labels":{"role":"db"}}`)
	r.must(201, nil, "POST", "/api/v1/hosts", `{"name":"r2-u01","nics":[{"mac":"5254.00aa.0002"}],"place":{"rack":"r2"}}`)
}

func TestTheDescriptionIsUpToDate(t *testing.T) {
	got, err := Spec()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("openapi.yaml", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("openapi.yaml differs from the handlers; look at the change with: go test ./web -run Description -update && git diff web/openapi.yaml")
	}
}
