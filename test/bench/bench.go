// Package bench owns the figures of make bench: Slipway beside the servers that people use today, on the same machine
// in the same run. It never quotes a figure of another run: only ratios mean anything.
//
// Each benchmark is a Benchmark; TestBench runs those whose name matches SLIPWAY_BENCH and prints one line for each.
// Everything happens in network namespaces of its own; nothing leaves them.
package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Figure is a result: ours and the peer's in the same unit.
type Figure struct {
	Name     string
	Ours     float64
	Peer     float64
	IsCost   bool // less is better, as for seconds
	Unit     string
	PeerName string
}

// Line is the figure as make bench prints it; a ratio above 1 means that we are better.
func (f Figure) Line() string {
	ratio := 0.0
	switch {
	case f.IsCost && f.Ours >= 0:
		ratio = f.Peer / max(f.Ours, 0.01) // nothing at all is as good as what is printed as 0.01
	case !f.IsCost && f.Peer > 0:
		ratio = f.Ours / f.Peer
	}
	return fmt.Sprintf("bench %s ours=%s peer=%s ratio=%.2f unit=%s peer_name=%s", f.Name, number(f.Ours), number(f.Peer), ratio, f.Unit, f.PeerName)
}

func number(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Benchmark measures one figure.
type Benchmark struct {
	Name     string
	Programs []string // what must be installed, beside Slipway
	Run      func(ctx context.Context, e *Env) (Figure, error)
}

// All lists the benchmarks in the order in which they run.
func All() []Benchmark {
	dhcp := []string{"ip", "taskset", "nice", "perfdhcp"}
	tftp := []string{"ip", "taskset", "nice", "in.tftpd"}
	config := []string{"ip", "taskset", "nice", "nginx"}
	stream := []string{"bash", "curl", "dd", "qemu-img", "zstd"}
	return slices.Concat([]Benchmark{
		{Name: "dhcp-kea", Programs: append(dhcp, "kea-dhcp4"), Run: dhcpBenchmark("dhcp-kea", keaServer, 1000, 16000, 500)},
		{Name: "dhcp-dnsmasq", Programs: append(dhcp, "dnsmasq"), Run: dhcpBenchmark("dhcp-dnsmasq", dnsmasqServer, 100, 900, 50)},
		{Name: "pg-dhcp", Programs: dhcp, Run: pgDHCP},
		{Name: "dhcp-kea-cpu", Programs: append(dhcp, "kea-dhcp4"), Run: dhcpCPU},
		{Name: "dhcp-latency-offer", Programs: append(dhcp, "kea-dhcp4"), Run: dhcpLatency("dhcp-latency-offer", 2, func(l latencies) float64 { return l.offer })},
		{Name: "dhcp-latency-ack", Programs: append(dhcp, "kea-dhcp4"), Run: dhcpLatency("dhcp-latency-ack", 5, func(l latencies) float64 { return l.ack })},
		{Name: "dhcp-10000", Programs: append(dhcp, "kea-dhcp4"), Run: avalanche},
		{Name: "dhcp-overload", Programs: dhcp, Run: dhcpOverload(
			Figure{Name: "dhcp-overload", Unit: "of-peak", Peer: 0.8, PeerName: "promised"}, func(o overloaded) float64 { return o.worst })},
		{Name: "dhcp-overload-median", Programs: dhcp, Run: dhcpOverload(
			Figure{Name: "dhcp-overload-median", Unit: "of-peak", Peer: 0.8, PeerName: "promised"}, func(o overloaded) float64 { return o.median })},
		{Name: "dhcp-overload-memory", Programs: dhcp, Run: dhcpOverload(
			Figure{Name: "dhcp-overload-memory", Unit: "MB", Peer: 64 * 1.048576, PeerName: "promised", IsCost: true}, func(o overloaded) float64 { return o.memory })},
		{Name: "tftp-tftpd-hpa", Programs: tftp, Run: tftpBenchmark("tftp-tftpd-hpa")},
		{Name: "tftp-window-4", Programs: tftp, Run: tftpBenchmark("tftp-window-4")},
		{Name: "tftp-window-16", Programs: tftp, Run: tftpBenchmark("tftp-window-16")},
		{Name: "tftp-1000", Programs: tftp, Run: tftpBenchmark("tftp-1000")},
		{Name: "tftp-loss", Programs: tftp, Run: tftpBenchmark("tftp-loss")},
		{Name: "render-butane", Run: renderButane},
		{Name: "render-flat", Run: renderFlat},
		{Name: "config-nginx", Programs: config, Run: configBenchmark("config-nginx", func(d *delivery) (ours, peer float64) { return d.plain, d.nginxPlain })},
		{Name: "config-secret", Programs: config, Run: configBenchmark("config-secret", func(d *delivery) (ours, peer float64) { return d.secret, d.nginxSecret })},
		{Name: "claims", Run: claims},
		{Name: "pg-claims", Run: pgClaims},
		{Name: "engine", Run: engineFlat},
		{Name: "kube-claims", Run: kubeBenchmark("kube-claims", "s", kubeClaims, func(k *kube) float64 { return k.claims })},
		{Name: "kube-claims-bare", Run: kubeBare("kube-claims-bare", func(k *kube) (float64, float64) { return k.together, k.bareTogether })},
		{Name: "kube-shown-bare", Run: kubeBare("kube-shown-bare", func(k *kube) (float64, float64) { return k.shown, k.bareShown })},
		{Name: "kube-memory", Run: kubeBenchmark("kube-memory", "MB", kubeMemory, func(k *kube) float64 { return k.memory })},
		{Name: "kube-manager", Run: managerBenchmark("kube-manager", func(m *manager) float64 { return m.resident })},
		{Name: "kube-manager-own", Run: managerBenchmark("kube-manager-own", func(m *manager) float64 { return m.own })},
		{Name: "kube-manager-peak", Run: managerBenchmark("kube-manager-peak", func(m *manager) float64 { return m.peak })},
		{Name: "kube-calls", Run: kubeBenchmark("kube-calls", "calls", kubeCalls, func(k *kube) float64 { return k.calls })},
		{Name: "pg-script", Programs: []string{"ip", "taskset", "nice"}, Run: withDatabases(
			Figure{Name: "pg-script", Unit: "scripts/s", PeerName: "slipway-sqlite"}, func(d *databaseFigures) (float64, float64) { return d.rate[1], d.rate[0] })},
		{Name: "pg-memory", Programs: []string{"ip", "taskset", "nice"}, Run: withDatabases(
			Figure{Name: "pg-memory", Unit: "MB", IsCost: true, PeerName: "promised"}, func(d *databaseFigures) (float64, float64) { return d.moreMB, moreMemory })},
		{Name: "failover-dhcp", Programs: []string{"ip", "go"}, Run: failover(
			Figure{Name: "failover-dhcp", Unit: "s", IsCost: true, Peer: 5, PeerName: "promised"}, func(f *failedOver) time.Duration { return f.dhcp })},
		{Name: "failover-engine", Programs: []string{"ip", "go"}, Run: failover(
			Figure{Name: "failover-engine", Unit: "s", IsCost: true, Peer: 30, PeerName: "promised"}, func(f *failedOver) time.Duration { return f.engine })},
		{Name: "image-three", Programs: []string{"ip", "tc"}, Run: imageThree},
		{Name: "install-48", Programs: []string{"ip", "taskset", "nice", "curl"}, Run: install48},
		{Name: "stream-dd", Programs: stream, Run: streamBenchmark("stream-dd", agentRaw, curlDD, "curl-dd")},
		{Name: "stream-zstd", Programs: stream, Run: streamBenchmark("stream-zstd", agentZstd, curlZstdDD, "curl-zstd-dd")},
		{Name: "stream-qemu", Programs: stream, Run: streamBenchmark("stream-qemu", agentRaw, qemuImg, "qemu-img-local-file")},
		{Name: "stream-wire", Programs: stream, Run: streamBenchmark("stream-wire", agentWire, wireAlone, "wire-2.5Gb/s")},
		{Name: "stream-path", Programs: stream, Run: streamBenchmark("stream-path", agentRaw, pathAlone, "slower-of-loopback-and-disk")},
	}, bootBenchmarks(), httpBenchmarks(), scriptBenchmarks(), uiBenchmarks())
}

// Env is where benchmarks run.
type Env struct {
	Slipway string    // path of the binary under test; "" measures the peers alone
	Dir     string    // scratch folder on the disk to measure
	Talk    io.Writer // what happens, for people
	Quick   bool      // shorter and less exact

	// Postgres makes an empty database on a PostgreSQL server of this machine, and returns its address, which is a socket file.
	Postgres func() string

	// Instances starts so many instances on one PostgreSQL database, each with its own link. It returns the megabytes of an
	// image that machines load in a second.
	Instances func(n int) (mbps float64, err error)

	ourRate    int                // highest DHCP rate of ours in this run; 0 until it is measured
	http       *httpFigures       // of image downloads in this run; nil until they are measured
	httpErr    error              // why they could not be
	boots      *bootFigures       // of a guest in this run; nil until they are measured
	scripts    *scriptFigures     // of boot scripts in this run; nil until they are measured
	scriptErr  error              // why they could not be
	databases  *databaseFigures   // of servers with both databases in this run; nil until they are measured
	failover   *failedOver        // from one instance to another in this run; nil until it is measured
	deliver    *delivery          // latencies of documents in this run; nil until they are measured
	kube       *kube              // with a Kubernetes control plane in this run; nil until it is measured
	manager    *manager           // the same with controllers in a process of their own
	ui         *uiRun             // with a browser in this run; nil until it is measured
	uiErr      error              // why it could not be
	streams    map[string]float64 // megabytes per second onto a disk, by way; nil until they are measured
	latency    *latencies         // of DHCP in this run; nil until they are measured
	overloaded *overloaded        // by twice the load; nil until it is measured
}

// say tells people what happens; benchmarks take minutes.
func (e *Env) say(format string, args ...any) { fmt.Fprintf(e.Talk, format+"\n", args...) }

// freshDir empties a folder below Dir and returns it.
func (e *Env) freshDir(name string) (string, error) {
	dir := filepath.Join(e.Dir, name)
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("empty %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make %s: %w", dir, err)
	}
	return dir, nil
}

// packages names the Debian package of each program, for the message that one is missing.
var packages = map[string]string{
	"ip": "iproute2", "go": "golang-go", "taskset": "util-linux", "nice": "coreutils", "perfdhcp": "kea-admin", "kea-dhcp4": "kea-dhcp4-server",
	"dnsmasq": "dnsmasq-base", "nginx": "nginx-light", "curl": "curl", "qemu-system-x86_64": "qemu-system-x86",
	"in.tftpd": "tftpd-hpa", "bash": "bash", "dd": "coreutils", "qemu-img": "qemu-utils", "zstd": "zstd",
}

// Missing lists the Debian packages that a benchmark lacks on this machine.
func (b *Benchmark) Missing() []string {
	var out []string
	for _, p := range b.Programs {
		if _, err := exec.LookPath(p); err != nil {
			out = append(out, packages[p])
		}
	}
	if strings.HasPrefix(b.Name, "boot-ovmf") {
		for file, pkg := range map[string]string{ovmfCode: "ovmf", loaderDir + "/ipxe.efi": "ipxe", signedGRUB: "grub-efi-amd64-signed"} {
			if _, err := os.Stat(file); err != nil {
				out = append(out, pkg)
			}
		}
	}
	return out
}

// run runs a command to its end; its output is part of the error.
func run(ctx context.Context, program string, args ...string) error {
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
