// Package backendtest is an appliance for tests of what asks one: a real engine, a real database and the REST API, without
// machines. It brings package testing, so only tests import it.
package backendtest

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/live"
	"slipway.dev/slipway/inventory/secret"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/capisecret"
	"slipway.dev/slipway/machineconfig/kubeadm"
	"slipway.dev/slipway/machineconfig/none"
	"slipway.dev/slipway/machineconfig/osadapter"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/clusters"
)

// Rig is an appliance, asked in two ways.
type Rig struct {
	Store  inventory.Store
	Engine *provision.Engine
	Box    *secret.Box
	Local  contract.Appliance
	Remote contract.Appliance
	API    *client.Client
	door   string // the server's door for those who bring a token
}

// With returns a client that brings a token.
func (r *Rig) With(t testing.TB, token string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Server: r.door, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// New starts an appliance with an image debian and a profile worker; it ends with the test.
func New(t testing.TB) *Rig {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	r := &Rig{Store: store}
	hub := live.New(live.Config{Store: store, Log: log})
	store.OnCommit(hub.Wake)
	if r.Box, err = secret.NewBox(bytes.Repeat([]byte{1, 2}, secret.KeySize/2)); err != nil {
		t.Fatal(err)
	}
	bank := fake.New(fake.Options{Username: "admin", Password: "calvin"})
	newID := func() inventory.HostID { return inventory.HostID(uuid.Must(uuid.NewV7()).String()) }
	r.Engine = provision.New(provision.Config{
		OpenBMC: bank.Open, Sealer: r.Box, Secrets: r.Box, Site: "fra", NewULID: func() string { return ulid.Make().String() },
		Pace:     bmc.Pace{Every: time.Millisecond, For: time.Second, Tries: 2, Backoff: time.Millisecond, Jitter: func() float64 { return 0 }},
		Renderer: render.New(parts()), Store: store, Loaders: func(string) bool { return true }, Quirks: pxe.BuiltinQuirks(),
		Vendor: func(inventory.MAC) string { return "" }, Policy: func(string) inventory.UnknownPolicy { return inventory.UnknownDisk },
		NewID: newID, Now: time.Now, Log: log,
	})
	here := backend.NewLocal(backend.LocalConfig{Engine: r.Engine, Store: store, Events: hub, Secrets: r.Box, Site: "fra", Now: time.Now})
	r.Local = here
	srv := web.New(web.Config{
		Store: store, Lifecycle: r.Engine, Events: hub, Configs: r.Engine, Secrets: r.Box, Appliance: here,
		ClusterView: func(uid string, namespaces []string) clusters.ClusterView {
			return backend.ForToken(here, backend.Scope{UID: uid, Namespaces: namespaces})
		},
		NewHostID: newID, Vendor: func(inventory.MAC) string { return "" }, Version: "test", Now: time.Now, Log: log,
	})
	door := httptest.NewServer(srv.SocketHandler())
	guarded := httptest.NewServer(srv.Handler())
	r.door = guarded.URL
	if r.API, err = client.New(client.Config{Server: door.URL}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, serve := range []func(context.Context) error{hub.Serve, r.Engine.Serve} {
		wg.Go(func() { _ = serve(ctx) })
	}
	t.Cleanup(func() {
		r.API.Close()
		cancel()
		for _, d := range []*httptest.Server{door, guarded} {
			d.CloseClientConnections()
			d.Close()
		}
		wg.Wait()
		_ = bank.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if r.Remote, err = backend.NewRemote(t.Context(), r.API); err != nil {
		t.Fatal(err)
	}
	r.seed(t)
	return r
}

// seed adds what machines are installed with.
func (r *Rig) seed(t testing.TB) {
	digest := inventory.Digest("sha256:" + strings.Repeat("a", 64))
	now := time.Now()
	err := r.Store.Write(t.Context(), func(tx inventory.Tx) error {
		i := inventory.Image{
			Name: "debian", OS: "debian", Release: "12", Arch: inventory.X8664,
			Files: []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "linux", Digest: digest}},
		}
		if err := tx.SaveArtefact(inventory.Artefact{Digest: digest, SizeBytes: 3, Source: "http://example.com/linux", CreatedAt: now}); err != nil {
			return err
		}
		if err := tx.Images().Create(&i, now); err != nil {
			return err
		}
		p := inventory.Profile{Name: "worker", Image: "debian"}
		return tx.Profiles().Create(&p, now)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// parts are the formats and bootstrappers that machines of custom resources need.
func parts() render.Parts {
	return render.Parts{
		Provisioners:  []machineconfig.Provisioner{ignition.New(), cloudinit.New()},
		Bootstrappers: []machineconfig.Bootstrapper{kubeadm.New(), capisecret.New(), none.New()},
		Adapt:         osadapter.Apply,
	}
}
