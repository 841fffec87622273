package netlab

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/web/client"
)

const (
	childEnv = "SLIPWAY_NET_CHILD" // names the program that the test binary turns into
	dataEnv  = "SLIPWAY_NET_DATA"  // the data directory of Serve
)

// Main runs the tests, or the child that Child named: a test binary starts itself inside a namespace.
func Main(m *testing.M, children map[string]func() error) {
	name := os.Getenv(childEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := children[name](); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// Child returns the environment that makes the test binary run a child of Main.
func Child(name string) string { return childEnv + "=" + name }

// Serve is a child: the whole appliance as "slipway serve --interface vs" starts it, with what alter changes.
func Serve(alter func(*serve.Config)) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg := serve.Default()
	cfg.Interfaces, cfg.DataDir, cfg.Unknown, cfg.LogTo = []string{"vs"}, os.Getenv(dataEnv), "wait", os.Stdout
	alter(&cfg)
	return serve.Run(ctx, cfg)
}

// Appliance is a running server and the network of its machines. Its server is the child "serve" of the test binary.
type Appliance struct {
	Lab     *Lab
	Net     *simulate.Net
	Data    string
	Process *Process
	API     *client.Client // over the Unix socket: an admin
	Env     []string       // more for the server
}

// NewAppliance starts a server on a network of its own. furnish may be nil; it makes the data directory.
func NewAppliance(l *Lab, furnish func(dir string), env ...string) *Appliance {
	l.T.Helper()
	n, err := simulate.NewNet(l.Prefix+"all", netip.MustParsePrefix("10.77.0.1/16"))
	if err != nil {
		l.T.Fatal(err)
	}
	l.T.Cleanup(n.Close)
	a := NewApplianceOn(l, n)
	a.Env = env
	if furnish != nil {
		furnish(a.Data)
	}
	a.Start()
	return a
}

// NewApplianceOn returns an appliance on a network that the test has made. Start starts its server.
func NewApplianceOn(l *Lab, n *simulate.Net) *Appliance {
	l.T.Helper()
	a := &Appliance{Lab: l, Net: n, Data: filepath.Join(l.Dir, "data")}
	a.Connect()
	return a
}

// NewAppliances returns a server for each name, on one network with the machines. Start starts each of them.
func NewAppliances(l *Lab, names ...string) (all []*Appliance) {
	l.T.Helper()
	hub, machines := l.NS("hub"), l.NS("cli")
	l.In(hub, "ip", "link", "add", "name", "bridge", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
	l.In(hub, "ip", "link", "set", "bridge", "up")
	l.Wire(machines, "vc", hub, "machines")
	l.In(hub, "ip", "link", "set", "machines", "master", "bridge")
	l.In(machines, "ip", "route", "add", "10.77.0.0/16", "dev", "vc")
	for i, name := range names {
		ns, port := l.NS(name), fmt.Sprint("server", i)
		l.Wire(ns, "vs", hub, port)
		l.In(hub, "ip", "link", "set", port, "master", "bridge")
		at := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}), 16)
		l.In(ns, "ip", "addr", "add", at.String(), "dev", "vs")
		a := &Appliance{
			Lab: l, Data: filepath.Join(l.Dir, name),
			Net: &simulate.Net{Server: ns, Client: machines, ServerIf: "vs", ClientIf: "vc", Address: at},
		}
		a.Connect()
		all = append(all, a)
	}
	return all
}

// Connect makes the client for the server of the data directory.
func (a *Appliance) Connect() {
	a.Lab.T.Helper()
	api, err := client.New(client.Config{Server: filepath.Join(a.Data, "slipway.sock")})
	if err != nil {
		a.Lab.T.Fatal(err)
	}
	a.API = api
}

// Start starts the server, once more after it was killed, and waits until it answers DHCP.
func (a *Appliance) Start() {
	a.Lab.T.Helper()
	a.Launch()
	a.Process.WaitFor("answering dhcp", 1)
}

// Launch starts the server, which may fail to start.
func (a *Appliance) Launch() {
	a.Lab.T.Helper()
	self, err := os.Executable()
	if err != nil {
		a.Lab.T.Fatal(err)
	}
	a.Process = a.Lab.Start(a.Net.Server, append([]string{Child("serve"), dataEnv + "=" + a.Data}, a.Env...), nil, self)
}

// Boot lets machines boot until they are where cfg expects them.
func (a *Appliance) Boot(ctx context.Context, cfg simulate.Config) simulate.Result {
	a.Lab.T.Helper()
	cfg.Interface, cfg.Namespace, cfg.Timeout = a.Net.ClientIf, a.Net.Client, cmp.Or(cfg.Timeout, 60*time.Second)
	if cfg.Firmware == nil {
		cfg.Firmware = simulate.Firmwares()
	}
	r, err := simulate.Run(ctx, cfg)
	if err != nil {
		a.Lab.T.Error(err)
	}
	return r
}

// Good fails the test if a machine is not where it should be, with what happened to it.
func (a *Appliance) Good(r simulate.Result) {
	a.Lab.T.Helper()
	if !r.IsGood() {
		var b strings.Builder
		_ = r.WriteSummary(&b)
		a.Lab.T.Fatalf("%s\nthe server said:\n%s", b.String(), a.Process.Text())
	}
}

// Hosts lists all hosts.
func (a *Appliance) Hosts() []inventory.Host {
	a.Lab.T.Helper()
	var all []inventory.Host
	for h, err := range a.API.Hosts.All(a.Lab.T.Context(), client.Query{}) {
		if err != nil {
			a.Lab.T.Fatal(err)
		}
		all = append(all, h)
	}
	return all
}

// ImportLive makes the image "live" of two files of ours, through the API.
func (a *Appliance) ImportLive(configs ...inventory.ImageConfig) {
	t := a.Lab.T
	t.Helper()
	if len(configs) == 0 {
		configs = []inventory.ImageConfig{{Format: "ignition", Version: "3.3.0", InitrdPath: "/config.ign"}, {Format: "cloud-init", Version: "22.4.2"}}
	}
	r := client.ImportRequest{
		Name: "live", KernelArgs: []string{"slipway.report=${report}"},
		Configs: configs, ConfigArgs: []string{"config=${config}"},
	}
	for role, name := range map[inventory.Role]string{inventory.RoleKernel: "linux", inventory.RoleInitrd: "initrd.gz"} {
		path := filepath.Join(a.Lab.Dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat(name, 50_000)), 0o644); err != nil {
			t.Fatal(err)
		}
		r.Files = append(r.Files, client.ImportFile{Role: role, Name: name, Source: path})
	}
	job, err := a.API.Import(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for j, err := range a.API.WatchJob(t.Context(), job.ID) {
		if err != nil {
			t.Fatal(err)
		}
		job = j
	}
	if job.State != "done" {
		t.Fatalf("import: %+v", job)
	}
}
