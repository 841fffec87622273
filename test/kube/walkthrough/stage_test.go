package walkthrough

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/bmc/redfish/redfishtest"
	infra "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/test/kube/cluster"
)

// longEnv runs what takes longer than make test-kube has time for.
const longEnv = "SLIPWAY_LONG"

const (
	patience = 6 * time.Minute // with a page as a whole; one takes a minute or two
	rackSeed = 1               // which machines they are; their MACs stand on the pages
	outlets  = "127.0.0.1:8991"
)

// stage is what a page runs on: a cluster that holds what is wanted, a rack with controllers, and a folder with the
// programs that people have.
type stage struct {
	t      *testing.T
	kube   *cluster.Cluster
	client client.Client
	home   string
	env    []string
	ctx    context.Context
}

// newStage makes a stage; all of it ends with the test.
func newStage(t *testing.T, hosts int) *stage {
	t.Helper()
	cluster.Skip(t)
	rack := os.Getenv(insideEnv)
	if rack == "" {
		t.Skip("makes network namespaces, which needs root; run: make test-kube RUN=" + t.Name())
	}
	_, err := build() // before the time runs
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, home: t.TempDir(), kube: cluster.Start(t)}
	var stop context.CancelFunc
	s.ctx, stop = context.WithTimeout(t.Context(), patience)
	t.Cleanup(stop)
	s.client = s.newClient(s.kube.Admin())
	s.programs()
	s.plugIn(rack, hosts)
	return s
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) newClient(kubeconfig []byte) client.Client {
	s.t.Helper()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	s.must(err)
	cfg.QPS = -1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, metalv1.AddToScheme, infra.AddToScheme, clusterv1.AddToScheme} {
		s.must(add(scheme))
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	s.must(err)
	return c
}

// programEnv names a slipway that is built already, for people who look for a fault.
const programEnv = "SLIPWAY_PROGRAM"

// build makes the program once, without a tag, as people do who have the source.
var build = sync.OnceValues(func() (string, error) {
	if program := os.Getenv(programEnv); program != "" {
		return program, nil
	}
	dir, err := os.MkdirTemp("", "slipway-walkthrough-")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "slipway")
	b, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", out, "slipway.dev/slipway/cmd/slipway").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build slipway: %w\n%s", err, b)
	}
	return out, nil
})

// programs fills a folder with the programs that the pages call. That the server keeps its data elsewhere than in
// /var/lib/slipway is all that differs.
func (s *stage) programs() {
	s.t.Helper()
	program, err := build()
	s.must(err)
	data, err := os.MkdirTemp("", "slipway-") // short: the path of a socket has 108 bytes
	s.must(err)
	s.t.Cleanup(func() { _ = os.RemoveAll(data) })
	bin := filepath.Join(s.home, "bin")
	s.must(os.MkdirAll(filepath.Join(s.home, ".kube"), 0o700))
	s.must(os.WriteFile(filepath.Join(s.home, ".kube", "config"), s.kube.Admin(), 0o600))
	s.must(os.Mkdir(bin, 0o700))
	s.must(os.WriteFile(filepath.Join(bin, "slipway"), fmt.Appendf(nil,
		"#!/bin/sh\nif [ \"$1\" = serve ]; then shift; exec %[1]s serve --data-dir %[2]s/data --log-level warn --egress-allow 127.0.0.0/8 --egress-allow 10.0.0.0/8 \"$@\" 2>>%[2]s/log; fi\nexec %[1]s \"$@\"\n", program, data), 0o700))
	s.must(os.Symlink(program, filepath.Join(bin, "kubectl-slipway")))
	for _, name := range []string{"kubectl", "clusterctl"} {
		s.must(os.Symlink(cluster.Part(s.t, name), filepath.Join(bin, name)))
	}
	s.env = []string{
		"PATH=" + bin + ":/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + s.home, "XDG_CONFIG_HOME=" + s.home, "SLIPWAY_SERVER=" + data + "/data/slipway.sock",
		"CLUSTERCTL_DISABLE_VERSIONCHECK=true", "GOPROXY=off", "KUBECTL_KUBERC=false",
	}
	s.t.Cleanup(func() {
		if s.t.Failed() {
			log, _ := os.ReadFile(data + "/log")
			s.t.Logf("slipway serve:\n%s", log[max(0, len(log)-6000):])
		}
	})
}

// plugIn switches a rack on. Each machine has a controller that speaks Redfish, at https://10.0.9.1 and so on.
func (s *stage) plugIn(namespace string, hosts int) {
	s.t.Helper()
	for i := range hosts {
		id := simulate.NewIdentity(rackSeed, i)
		service := redfishtest.New(redfishtest.Options{User: "admin", Password: "secret", Systems: []redfishtest.System{{Machine: &box{id.MACText()}}}})
		srv := httptest.NewUnstartedServer(service.Handler())
		_ = srv.Listener.Close()
		l, err := net.Listen("tcp", fmt.Sprintf("10.0.9.%d:443", i+1))
		s.must(err)
		srv.Listener = l
		srv.StartTLS()
		s.t.Cleanup(srv.Close)
	}
	ctx, off := context.WithCancel(context.Background())
	over := make(chan error, 1)
	var r simulate.Result
	go func() {
		var err error
		r, err = simulate.Run(ctx, simulate.Config{
			Interface: cable, Namespace: namespace, Hosts: hosts, Seed: rackSeed, Firmware: []simulate.Firmware{simulate.FirmwareUEFI, simulate.FirmwareBIOS},
			Expect: simulate.StageBooted, Timeout: 2 * patience, Pace: 0.1, Download: true, Power: simulate.PowerConfig{Listen: outlets, IsOn: true},
		})
		over <- err
	}()
	s.t.Cleanup(func() {
		off()
		if err := <-over; err != nil {
			s.t.Errorf("the rack: %v", err)
		}
		if s.t.Failed() {
			var text strings.Builder
			_ = r.WriteSummary(&text)
			s.t.Logf("the rack:\n%s", text.String())
		}
	})
}

// box is a machine behind a Redfish controller: its power is the simulator's outlet.
type box struct{ mac string }

func (b *box) ask(method, what string) (*http.Response, error) {
	q, err := http.NewRequest(method, "http://"+outlets+"/"+b.mac+"/"+what, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(q)
	if err == nil && resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s %s: %s", b.mac, what, resp.Status)
	}
	return resp, err
}

// IsOn implements redfishtest.Machine.
func (b *box) IsOn() (bool, error) {
	resp, err := b.ask(http.MethodGet, "power")
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	var said struct{ Power string }
	err = json.NewDecoder(resp.Body).Decode(&said)
	return said.Power == "on", err
}

// Do implements redfishtest.Machine.
func (b *box) Do(o redfishtest.Order) error {
	what := map[redfishtest.Order]string{redfishtest.On: "on", redfishtest.Off: "off", redfishtest.Shutdown: "off", redfishtest.Cycle: "cycle", redfishtest.Reset: "cycle"}[o]
	resp, err := b.ask(http.MethodPost, what)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

// SetBoot implements redfishtest.Machine: firmware of the rack tries the network first anyway.
func (b *box) SetBoot(redfishtest.Boot) error { return nil }

// Insert implements redfishtest.Machine.
func (b *box) Insert(string) error { return nil }

// chapter is a page of docs, up to a heading.
type chapter struct{ page, until string }

// walk runs pages, one behind the other in one shell.
func (s *stage) walk(chapters ...chapter) {
	s.t.Helper()
	shell, err := NewShell(s.home, s.env)
	s.must(err)
	s.t.Cleanup(shell.Close)
	for _, c := range chapters {
		name := c.page
		text, err := os.ReadFile(filepath.Join("../../../docs", name))
		s.must(err)
		page := string(text)
		if c.until != "" {
			var found bool
			if page, _, found = strings.Cut(page, "\n"+c.until); !found {
				s.t.Fatalf("docs/%s has no %q", name, c.until)
			}
		}
		blocks, err := Parse(page)
		s.must(err)
		for _, b := range blocks {
			where := fmt.Sprintf("docs/%s:%d", name, b.Line)
			if b.Skip != "" {
				s.t.Logf("%s: not run: %s", where, b.Skip)
				continue
			}
			began := time.Now()
			out, err := shell.Run(s.ctx, b)
			if err != nil {
				s.t.Fatalf("%s: %v\n%s\nprinted:\n%s\n%s", where, err, b.Shell, out, s.trouble())
			}
			s.t.Logf("%s: %s\n%s", where, time.Since(began).Round(100*time.Millisecond), out)
		}
	}
}

// trouble is what people would look at.
func (s *stage) trouble() string {
	var out strings.Builder
	for _, words := range []string{
		"kubectl get metalhosts,metalmachines,jointargets -A -o wide", "kubectl get events -A --sort-by=.lastTimestamp", "slipway machine list", "slipway host list", "slipway issue list",
		"slipway event list", "kubectl get machines -A", "kubectl slipway why worker-1",
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		cmd := exec.CommandContext(ctx, "bash", "-c", words)
		cmd.Env, cmd.Dir = s.env, s.home
		b, _ := cmd.CombinedOutput()
		cancel()
		fmt.Fprintf(&out, "$ %s\n%s\n", words, b)
	}
	return out.String()
}
