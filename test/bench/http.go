package bench

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
)

const (
	httpLarge = 1 << 30  // bytes of the image that is compared
	httpSmall = 16 << 20 // of what 1,000 machines load
	httpMany  = 1000
	// httpManyMB is the promise: 64 kB for each of httpMany downloads.
	httpManyMB = 64.0
)

// httpFigures is what one run measures, by how many machines load at once: bytes per second and processor seconds per
// GiB, of each server.
type httpFigures struct {
	ours, nginx map[int]httpRate
	manyMB      float64 // how much the server grew while httpMany machines loaded
}

type httpRate struct{ mbps, cpu float64 }

// httpBenchmark measures image downloads from the boot door beside nginx. All benchmarks of a run share one measurement.
func httpBenchmark(f Figure, figure func(h *httpFigures) (ours, peer float64)) func(context.Context, *Env) (Figure, error) {
	return func(ctx context.Context, e *Env) (Figure, error) {
		if e.Slipway == "" {
			return f, skipped("compares with Slipway alone")
		}
		if e.http == nil && e.httpErr == nil {
			e.http, e.httpErr = e.measureHTTP(ctx)
		}
		if e.httpErr != nil {
			return f, e.httpErr
		}
		f.Ours, f.Peer = figure(e.http)
		return f, nil
	}
}

// httpClients are the numbers of machines that load at once.
var httpClients = []int{1, 8, 48}

func httpBenchmarks() (all []Benchmark) {
	add := func(f Figure, figure func(h *httpFigures) (ours, peer float64)) {
		all = append(all, Benchmark{Name: f.Name, Programs: []string{"ip", "taskset", "nice", "nginx"}, Run: httpBenchmark(f, figure)})
	}
	for _, n := range httpClients {
		suffix := fmt.Sprintf("-%d", n)
		if n == 1 {
			suffix = ""
		}
		add(Figure{Name: "http-nginx" + suffix, Unit: "MB/s", PeerName: "nginx"}, func(h *httpFigures) (float64, float64) { return h.ours[n].mbps, h.nginx[n].mbps })
		add(Figure{Name: "http-nginx-cpu" + suffix, Unit: "s/GiB", IsCost: true, PeerName: "nginx"}, func(h *httpFigures) (float64, float64) { return h.ours[n].cpu, h.nginx[n].cpu })
	}
	add(Figure{Name: "http-1000", Unit: "MB", IsCost: true, PeerName: "promised"}, func(h *httpFigures) (float64, float64) { return h.manyMB, httpManyMB })
	return all
}

func (e *Env) measureHTTP(ctx context.Context) (*httpFigures, error) {
	dir, err := e.freshDir("http")
	if err != nil {
		return nil, err
	}
	machines, large, small, err := httpFleet(ctx, dir)
	if err != nil {
		return nil, err
	}
	n, err := bootNet(ctx)
	if err != nil {
		return nil, err
	}
	defer n.Close()
	www := filepath.Join(dir, "nginx", "www")
	if err := os.MkdirAll(www, 0o755); err != nil {
		return nil, fmt.Errorf("make nginx's folder: %w", err)
	}
	for name, file := range map[string]string{"large": large, "small": small} {
		if err := os.Link(file, filepath.Join(www, name)); err != nil {
			return nil, fmt.Errorf("give nginx the file: %w", err)
		}
	}
	conf := filepath.Join(dir, "nginx", "nginx.conf")
	if err := os.WriteFile(conf, []byte(strings.ReplaceAll(nginxConfig, "@DIR@", filepath.Dir(conf))), 0o644); err != nil {
		return nil, fmt.Errorf("write nginx's configuration: %w", err)
	}
	nginx, err := startWhen(pinned(ctx, serverCPU, n.Server, "nginx", "-p", filepath.Dir(conf), "-c", conf), filepath.Dir(conf),
		fmt.Sprintf("TCP port %d", nginxPort), func(pid int) bool { return hasTCPPort(pid, nginxPort) })
	if err != nil {
		return nil, err
	}
	defer nginx.stop()
	ours, err := e.startBootServer(ctx, n, dir)
	if err != nil {
		return nil, err
	}
	defer ours.stop()
	rig := &scriptRig{env: e, net: n, server: ours}
	if err := rig.discover(machines); err != nil {
		return nil, err
	}
	h := &httpFigures{ours: map[int]httpRate{}, nginx: map[int]httpRate{}}
	if err := e.compareHTTP(ctx, rig, nginx, machines, h); err != nil {
		return nil, err
	}
	before := ours.residentMB()
	all, err := rig.download(ctx, ours, machines[:httpMany], slipwayPort, func(m *scriptMachine) string { return m.initrd }, httpSmall)
	if err != nil {
		return nil, fmt.Errorf("%d downloads at once: %w", httpMany, err)
	}
	h.manyMB = max(0, ours.statusMB("VmHWM:")-before)
	e.say("slipway, %d machines at once: %.0f MB/s, %.2f CPU s/GiB, resident %.1f MB before and at most %.1f MB", httpMany, all.mbps, all.cpu, before, ours.statusMB("VmHWM:"))
	return h, nil
}

// compareHTTP lets machines load the large file from both servers, in turns, and keeps the turn whose ratio is the median:
// the machine below may be slower for seconds, and then is so for both.
func (e *Env) compareHTTP(ctx context.Context, rig *scriptRig, nginx *process, machines []scriptMachine, h *httpFigures) error {
	for i := range machines {
		if i == httpClients[len(httpClients)-1] {
			break
		}
		if err := rig.decide(&machines[i]); err != nil {
			return err
		}
	}
	for _, n := range httpClients {
		rounds := map[int]int{1: 21, 8: 15, 48: 5}[n]
		if e.Quick {
			rounds = 3
		}
		var rates, costs [][2]float64
		for range rounds {
			peer, err := rig.download(ctx, nginx, machines[:n], nginxPort, func(*scriptMachine) string { return "/large" }, httpLarge)
			if err != nil {
				return fmt.Errorf("nginx: %w", err)
			}
			ours, err := rig.download(ctx, rig.server, machines[:n], slipwayPort, func(m *scriptMachine) string { return m.kernel }, httpLarge)
			if err != nil {
				return fmt.Errorf("slipway: %w", err)
			}
			e.say("%d at once: nginx %.0f MB/s, %.3f CPU s/GiB; slipway %.0f MB/s, %.3f CPU s/GiB", n, peer.mbps, peer.cpu, ours.mbps, ours.cpu)
			rates, costs = append(rates, [2]float64{ours.mbps, peer.mbps}), append(costs, [2]float64{ours.cpu, peer.cpu})
		}
		rate, cost := medianTurn(rates), medianTurn(costs)
		h.ours[n], h.nginx[n] = httpRate{rate[0], cost[0]}, httpRate{rate[1], cost[1]}
	}
	return nil
}

// medianTurn returns the turn of two servers whose ratio is the median.
func medianTurn(turns [][2]float64) [2]float64 {
	slices.SortFunc(turns, func(a, b [2]float64) int { return cmp.Compare(a[0]/a[1], b[0]/b[1]) })
	return turns[len(turns)/2]
}

// httpFleet makes the database of a data directory whose hosts boot an image with a large and a small file, which are
// there.
func httpFleet(ctx context.Context, dir string) (machines []scriptMachine, large, small string, err error) {
	fl, err := newFleet(ctx, dir, httpMany)
	if err != nil {
		return nil, "", "", err
	}
	defer fl.store.Close()
	files := []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "large"}, {Role: inventory.RoleInitrd, Name: "small"}}
	var paths []string
	var artefacts []inventory.Artefact
	for i, size := range []int{httpLarge, httpSmall} {
		path, digest, err := writeArtefact(filepath.Join(dir, "artefacts"), size)
		if err != nil {
			return nil, "", "", err
		}
		files[i].Digest, paths = digest, append(paths, path)
		artefacts = append(artefacts, inventory.Artefact{Digest: digest, SizeBytes: int64(size), Source: "bench", CreatedAt: time.Now()})
	}
	err = fl.store.Write(ctx, func(tx inventory.Tx) error {
		for _, a := range artefacts {
			if err := tx.SaveArtefact(a); err != nil {
				return err
			}
		}
		i, err := tx.Images().Find(bareImage)
		if err != nil {
			return err
		}
		i.Files = files
		if err := tx.Images().Update(&i, time.Now()); err != nil {
			return err
		}
		for i := range fl.hosts {
			m := fl.hosts[i].NICs
			machines = append(machines, newScriptMachine(bootsImage, i, m[0].MAC, m[1].MAC, address(i)))
			machines[i].image = bareImage
		}
		return serveFleet(tx, fl)
	})
	return machines, paths[0], paths[1], err
}

// writeArtefact puts a file of random bytes into an artefact folder.
func writeArtefact(dir string, size int) (path string, d inventory.Digest, err error) {
	tmp := filepath.Join(filepath.Dir(dir), "artefact.tmp")
	f, err := os.Create(tmp)
	if err != nil {
		return "", "", fmt.Errorf("write a file: %w", err)
	}
	defer f.Close()
	sum, r, b := sha256.New(), rand.NewChaCha8([32]byte{7}), make([]byte, 1<<20)
	for range size / len(b) {
		_, _ = r.Read(b)
		_, _ = sum.Write(b)
		if _, err := f.Write(b); err != nil {
			return "", "", fmt.Errorf("write a file: %w", err)
		}
	}
	digits := hex.EncodeToString(sum.Sum(nil))
	path = filepath.Join(dir, "sha256", digits[:2], digits)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", "", fmt.Errorf("make the artefact folder: %w", err)
	}
	return path, inventory.Digest("sha256:" + digits), os.Rename(tmp, path)
}

// decide boots a machine up to the script that names its files.
func (r *scriptRig) decide(m *scriptMachine) error {
	return onClientCPU(r.net.Client, func() error { return m.decide(netip.AddrPortFrom(netip.MustParseAddr(serverAddress), slipwayPort)) })
}

// download lets every machine load a file of that size at the same time, and waits for all. A machine that is told to
// come later does so.
func (r *scriptRig) download(ctx context.Context, server *process, machines []scriptMachine, port uint16, path func(*scriptMachine) string, size int64) (httpRate, error) {
	for i := range machines {
		if port == slipwayPort && machines[i].kernel == "" {
			if err := r.decide(&machines[i]); err != nil {
				return httpRate{}, err
			}
		}
	}
	var (
		wait  sync.WaitGroup
		first atomic.Pointer[error]
	)
	to := netip.AddrPortFrom(netip.MustParseAddr(serverAddress), port)
	before, began := server.cpuExact(), time.Now()
	for i := range machines {
		wait.Go(func() {
			err := onClientCPU(r.net.Client, func() error { return machines[i].load(ctx, to, path(&machines[i]), size) })
			if err != nil {
				err = fmt.Errorf("machine %d: %w", i, err)
				first.CompareAndSwap(nil, &err)
			}
		})
	}
	wait.Wait()
	elapsed, cpu := time.Since(began), server.cpuExact()-before
	if err := first.Load(); err != nil {
		return httpRate{}, *err
	}
	total := float64(size) * float64(len(machines))
	return httpRate{mbps: total / 1e6 / elapsed.Seconds(), cpu: cpu.Seconds() / (total / (1 << 30))}, nil
}

// bootNet is the network of machines whose addresses are 10.1.0.0/16 and 10.2.0.0/16, as behind a router: the server
// has one neighbour. Its TCP is Reno, which every kernel lets a namespace choose and which, as Debian's CUBIC, has no
// timers: where the machine's own is BBR, which paces each connection, a wire this fast shows the timers and not the
// servers.
func bootNet(ctx context.Context) (*simulate.Net, error) {
	n, err := simulate.NewNet("slipway-bench", netip.MustParsePrefix(serverAddress+"/8"))
	if err != nil {
		return nil, err
	}
	for _, c := range [][]string{
		{"-n", n.Client, "addr", "add", clientAddress + "/8", "dev", n.ClientIf},
		{"-n", n.Client, "link", "set", "lo", "up"},
		{"-n", n.Client, "route", "add", "local", "10.1.0.0/16", "dev", "lo"}, // sockets may be bound to any of them
		{"-n", n.Client, "route", "add", "local", "10.2.0.0/16", "dev", "lo"},
		{"-n", n.Server, "route", "add", "10.1.0.0/16", "via", clientAddress},
		{"-n", n.Server, "route", "add", "10.2.0.0/16", "via", clientAddress},
		{"netns", "exec", n.Server, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"},
		{"netns", "exec", n.Client, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"},
	} {
		if err := run(ctx, "ip", c...); err != nil {
			n.Close()
			return nil, err
		}
	}
	return n, nil
}

// startBootServer starts Slipway on one processor with a data directory that is made.
func (e *Env) startBootServer(ctx context.Context, n *simulate.Net, dir string, flags ...string) (*process, error) {
	cmd := pinned(ctx, serverCPU, n.Server, append([]string{
		e.Slipway, "serve", "--interface", "vs", "--data-dir", dir, "--mode", "off", "--no-check-conflict", "--log-level", "warn",
	}, flags...)...)
	return startWhen(cmd, dir, fmt.Sprintf("TCP port %d", slipwayPort), func(pid int) bool { return hasTCPPort(pid, slipwayPort) })
}
