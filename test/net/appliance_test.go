package net_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/web/wire"
)

const (
	tlsEnv      = "SLIPWAY_NET_TLS"      // secrets go over TLS only
	databaseEnv = "SLIPWAY_NET_DATABASE" // the URL of a PostgreSQL database
	instanceEnv = "SLIPWAY_NET_INSTANCE" // the name of the server among those of the database
	configEnv   = "SLIPWAY_NET_CONFIG"   // a configuration file, in place of all other settings
	adminTLSEnv = "SLIPWAY_NET_ADMINTLS" // the certificate of the admin listener and its key, without .crt and .key
)

// serveAll is a child: the whole appliance as "slipway serve --interface vs" starts it.
func serveAll() error {
	return netlab.Serve(func(cfg *serve.Config) {
		if path := os.Getenv(configEnv); path != "" {
			*cfg = serve.Default()
			if err := cfg.ReadFile(path); err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
			return
		}
		cfg.Database, cfg.Instance = os.Getenv(databaseEnv), os.Getenv(instanceEnv)
		if path := os.Getenv(adminTLSEnv); path != "" {
			cfg.AdminTLSCert, cfg.AdminTLSKey = path+".crt", path+".key"
		}
		if os.Getenv(tlsEnv) != "" {
			cfg.BootTLSPort, cfg.Confidential = 8443, true
		}
	})
}

// appliance is a running server and the network of its machines.
type appliance struct {
	*netlab.Appliance
	lab *lab
}

func newAppliance(t *testing.T, env ...string) *appliance {
	t.Helper()
	return newApplianceOn(t, nil, env...)
}

// newApplianceOn lets the test make the data directory.
func newApplianceOn(t *testing.T, furnish func(dir string), env ...string) *appliance {
	t.Helper()
	l := newLab(t)
	return &appliance{netlab.NewAppliance(l.Lab, furnish, env...), l}
}

// firstToken reads the token of the first start, as root does.
func (a *appliance) firstToken() string {
	a.Lab.T.Helper()
	b, err := os.ReadFile(filepath.Join(a.Data, "admin.token"))
	if err != nil {
		a.Lab.T.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func TestTheFirstTokenLiesInAFileAndOpensTheDoor(t *testing.T) {
	a := newAppliance(t)
	token := a.firstToken()
	for path, want := range map[string]os.FileMode{a.Data: 0o700, filepath.Join(a.Data, "admin.token"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v: %v", path, info.Mode(), want, err)
		}
	}
	if strings.Contains(a.Process.Text(), token) || !strings.Contains(a.Process.Text(), "admin.token") {
		t.Errorf("the log has the token, or not where it is:\n%s", a.Process.Text())
	}
	code := func(args ...string) string {
		return a.lab.In(a.Net.Server, append([]string{"curl", "-s", "-o", "/dev/null", "-w", "%{http_code}"}, args...)...)
	}
	const hosts = "http://127.0.0.1:8067/api/v1/hosts"
	for range 30 { // none of which keeps the right one out
		code("-H", "Authorization: Bearer "+token+"x", hosts)
	}
	for auth, want := range map[string]int{"Bearer " + token: http.StatusOK, "": http.StatusUnauthorized} {
		if got := code("-H", "Authorization: "+auth, hosts); got != strconv.Itoa(want) {
			t.Errorf("Authorization %.20q is answered %s, want %d", auth, got, want)
		}
	}
	if got := code("-H", "Authorization: Bearer "+token, "-H", "Host: evil.example", hosts); got != "421" {
		t.Errorf("another name is answered %s", got)
	}
	if got := code("http://127.0.0.1:8067/readyz/dhcp"); got != "200" {
		t.Errorf("DHCP is ready: %s", got)
	}
	if got := code("--path-as-is", "http://127.0.0.1:8067//api/v1/hosts"); got == "200" {
		t.Errorf("//api is answered %s", got)
	}
	a.Process.Kill(syscall.SIGTERM)
	if err := os.Chmod(a.Data, 0o755); err != nil {
		t.Fatal(err)
	}
	a.Start()
	if strings.Contains(a.Process.Text(), "admin.token") {
		t.Error("the second start makes a token again")
	}
	if info, err := os.Stat(a.Data); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the data directory stays open: %v, %v", info.Mode(), err)
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
		done <- a.Boot(ctx, simulate.Config{Hosts: 5, Seed: 3, Expect: simulate.StageWaiting, Pace: 1})
	}()
	for range 200 {
		if hosts := a.Hosts(); len(hosts) > 0 {
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
	a.Good(<-done)
	cancel()
	for _, h := range a.Hosts() {
		if h.State != inventory.Discovered || h.Serial == "" || h.Product == "" {
			t.Errorf("%s: state %s, serial %q, product %q", h.Name, h.State, h.Serial, h.Product)
		}
	}
}

func TestARackIsAcceptedInBulkAndByRuleAndBootsAcrossAKill(t *testing.T) {
	a := newAppliance(t)
	ctx := t.Context()
	a.ImportLive()
	if _, err := a.API.Profiles.Create(ctx, inventory.Profile{Name: "live", Image: "live", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
	a.Good(a.Boot(ctx, simulate.Config{Hosts: 8, Seed: 4, Expect: simulate.StageWaiting, Pace: 0}))
	if _, err := a.API.Hosts.Bulk(ctx, wire.BulkRequest{Verb: "accept", Selector: "state=discovered"}, false); err != nil {
		t.Fatal(err)
	}
	a.Process.Kill(syscall.SIGKILL)
	a.Start()
	a.Good(a.Boot(ctx, simulate.Config{Hosts: 8, Seed: 4, Expect: simulate.StageBooted, Pace: 0}))
	if _, err := a.API.AcceptRules.Create(ctx, inventory.AcceptRule{Name: "all", Selector: "manufacturer"}); err != nil {
		t.Fatal(err)
	}
	a.Good(a.Boot(ctx, simulate.Config{Hosts: 4, Seed: 5, Expect: simulate.StageBooted, Pace: 0}))
	hosts := a.Hosts()
	if len(hosts) != 12 {
		t.Errorf("%d hosts listed, want 12", len(hosts))
	}
	for _, h := range hosts {
		if h.State != inventory.Active {
			t.Errorf("%s is %s (%s) after it has reported up", h.Name, h.State, h.StateReason)
		}
	}
}
