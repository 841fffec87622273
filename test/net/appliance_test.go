package net_test

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/cmd/slipway/simulate"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

const (
	dataEnv = "SLIPWAY_NET_DATA"
	tlsEnv  = "SLIPWAY_NET_TLS" // secrets go over TLS only
)

// serveAll is a child: the whole appliance as "slipway serve --interface vs" starts it.
func serveAll() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg := serve.Default()
	cfg.Interfaces, cfg.DataDir, cfg.Unknown, cfg.LogTo = []string{"vs"}, os.Getenv(dataEnv), "wait", os.Stdout
	if os.Getenv(tlsEnv) != "" {
		cfg.BootTLSPort, cfg.Confidential = 8443, true
	}
	return serve.Run(ctx, cfg)
}

// appliance is a running server and the network of its machines.
type appliance struct {
	lab     *lab
	net     *simulate.Net
	data    string
	process *process
	api     *client.Client
	env     []string // more for the server
}

func newAppliance(t *testing.T, env ...string) *appliance {
	t.Helper()
	return newApplianceOn(t, func(string) {}, env...)
}

// newApplianceOn lets the test make the data directory.
func newApplianceOn(t *testing.T, furnish func(dir string), env ...string) *appliance {
	t.Helper()
	l := newLab(t)
	n, err := simulate.NewNet(l.prefix+"all", netip.MustParsePrefix("10.77.0.1/16"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	a := &appliance{lab: l, net: n, data: filepath.Join(l.dir, "data"), env: env}
	furnish(a.data)
	if a.api, err = client.New(client.Config{Server: filepath.Join(a.data, "slipway.sock")}); err != nil {
		t.Fatal(err)
	}
	a.start()
	return a
}

func (a *appliance) start() {
	a.lab.t.Helper()
	self, err := os.Executable()
	if err != nil {
		a.lab.t.Fatal(err)
	}
	a.process = a.lab.start(a.net.Server, append([]string{childEnv + "=serve", dataEnv + "=" + a.data}, a.env...), nil, self)
	a.process.waitFor("answering dhcp", 1)
}

// boot lets machines boot until they are where they should be.
func (a *appliance) boot(ctx context.Context, cfg simulate.Config) simulate.Result {
	a.lab.t.Helper()
	cfg.Interface, cfg.Namespace, cfg.Timeout = a.net.ClientIf, a.net.Client, cmp.Or(cfg.Timeout, 60*time.Second)
	if cfg.Firmware == nil {
		cfg.Firmware = simulate.Firmwares()
	}
	r, err := simulate.Run(ctx, cfg)
	if err != nil {
		a.lab.t.Error(err)
	}
	return r
}

// good fails the test if a machine is not where it should be, with what happened to it.
func (a *appliance) good(r simulate.Result) {
	a.lab.t.Helper()
	if !r.IsGood() {
		var b strings.Builder
		_ = r.WriteSummary(&b)
		a.lab.t.Fatalf("%s\nthe server said:\n%s", b.String(), a.process.text())
	}
}

func (a *appliance) hosts() []inventory.Host {
	a.lab.t.Helper()
	var all []inventory.Host
	for h, err := range a.api.Hosts.All(a.lab.t.Context(), client.Query{}) {
		if err != nil {
			a.lab.t.Fatal(err)
		}
		all = append(all, h)
	}
	return all
}

func TestTheTokenIsShownOnceAndOpensTheDoor(t *testing.T) {
	a := newAppliance(t)
	_, rest, found := strings.Cut(a.process.text(), "admin token, shown only now: ")
	if !found {
		t.Fatalf("no token in:\n%s", a.process.text())
	}
	token, _, _ := strings.Cut(rest, "\n")
	for auth, want := range map[string]int{"Bearer " + token: http.StatusOK, "Bearer " + token + "x": http.StatusUnauthorized, "": http.StatusUnauthorized} {
		code := a.lab.in(a.net.Server, "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Authorization: "+auth, "http://127.0.0.1:8067/api/v1/hosts")
		if code != strconv.Itoa(want) {
			t.Errorf("Authorization %.20q is answered %s, want %d", auth, code, want)
		}
	}
	a.process.kill(syscall.SIGTERM)
	a.start()
	if strings.Contains(a.process.text(), "admin token") {
		t.Error("the second start shows a token again")
	}
}

func TestAnUnknownMachineIsListedWithinTwoSecondsAndLeftAlone(t *testing.T) {
	a := newAppliance(t)
	var once sync.Once
	first := make(chan time.Time, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan simulate.Result, 1)
	began := time.Now() // before the first packet: what is measured is longer than what is promised
	go func() {
		done <- a.boot(ctx, simulate.Config{Hosts: 5, Seed: 3, Expect: simulate.StageWaiting, Pace: 1})
	}()
	for range 200 {
		if hosts := a.hosts(); len(hosts) > 0 {
			once.Do(func() { first <- hosts[0].CreatedAt })
			if h := hosts[0]; h.State != inventory.Discovered || h.NICs[0].Vendor == "" || h.Firmware == "" || h.Arch == "" {
				t.Errorf("listed as %+v", h)
			}
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	select {
	case at := <-first:
		t.Logf("listed %s after the first machine was switched on", at.Sub(began).Round(time.Millisecond))
		if at.Sub(began) > 2*time.Second {
			t.Errorf("listed only %s after power on", at.Sub(began))
		}
	default:
		t.Fatal("no machine was listed within four seconds")
	}
	a.good(<-done)
	cancel()
	for _, h := range a.hosts() {
		if h.State != inventory.Discovered || h.Serial == "" || h.Product == "" {
			t.Errorf("%s: state %s, serial %q, product %q", h.Name, h.State, h.Serial, h.Product)
		}
	}
}

func TestARackIsAcceptedInBulkAndByRuleAndBootsAcrossAKill(t *testing.T) {
	a := newAppliance(t)
	ctx := t.Context()
	a.importLive()
	if _, err := a.api.Profiles.Create(ctx, inventory.Profile{Name: "live", Image: "live", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
	a.good(a.boot(ctx, simulate.Config{Hosts: 8, Seed: 4, Expect: simulate.StageWaiting, Pace: 0}))
	if _, err := a.api.Hosts.Bulk(ctx, client.BulkRequest{Verb: "accept", Selector: "state=discovered"}, false); err != nil {
		t.Fatal(err)
	}
	a.process.kill(syscall.SIGKILL)
	a.start()
	a.good(a.boot(ctx, simulate.Config{Hosts: 8, Seed: 4, Expect: simulate.StageBooted, Pace: 0}))
	if _, err := a.api.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "all", Selector: "manufacturer"}); err != nil {
		t.Fatal(err)
	}
	a.good(a.boot(ctx, simulate.Config{Hosts: 4, Seed: 5, Expect: simulate.StageBooted, Pace: 0}))
	hosts := a.hosts()
	if len(hosts) != 12 {
		t.Errorf("%d hosts listed, want 12", len(hosts))
	}
	for _, h := range hosts {
		if h.State != inventory.Active {
			t.Errorf("%s is %s (%s) after it has reported up", h.Name, h.State, h.StateReason)
		}
	}
}

// importLive makes an image of two files of ours, through the API.
func (a *appliance) importLive(configs ...inventory.ImageConfig) {
	t := a.lab.t
	t.Helper()
	if len(configs) == 0 {
		configs = []inventory.ImageConfig{{Format: "ignition", Version: "3.3.0", InitrdPath: "/config.ign"}, {Format: "cloud-init", Version: "22.4.2"}}
	}
	r := client.ImportRequest{
		Name: "live", KernelArgs: []string{"slipway.report=${report}"},
		Configs: configs, ConfigArgs: []string{"config=${config}"},
	}
	for role, name := range map[inventory.Role]string{inventory.RoleKernel: "linux", inventory.RoleInitrd: "initrd.gz"} {
		path := filepath.Join(a.lab.dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat(name, 50_000)), 0o644); err != nil {
			t.Fatal(err)
		}
		r.Files = append(r.Files, client.ImportFile{Role: role, Name: name, Source: path})
	}
	job, err := a.api.Import(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for j, err := range a.api.WatchJob(t.Context(), job.ID) {
		if err != nil {
			t.Fatal(err)
		}
		job = j
	}
	if job.State != "done" {
		t.Fatalf("import: %+v", job)
	}
}
