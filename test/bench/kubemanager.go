package bench

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// manager is what `slipway manager` needs, as a process of its own beside a server that it asks over REST.
type manager struct {
	resident float64 // MB once nothing happens any more, with what the kernel has mapped of the program's file
	own      float64 // MB of that which are not the program's file
	peak     float64 // MB resident at most, from its start
}

// managerBenchmark is a figure of a run of the manager, which is made once.
func managerBenchmark(name string, of func(*manager) float64) func(context.Context, *Env) (Figure, error) {
	return func(ctx context.Context, e *Env) (Figure, error) {
		f := Figure{Name: name, IsCost: true, Unit: "MB", PeerName: "promised", Peer: kubeMemory}
		if e.Slipway == "" {
			return f, nil // there is no other peer
		}
		if e.manager == nil {
			m, err := managerRun(ctx, e)
			if err != nil {
				return f, err
			}
			e.manager = m
		}
		f.Ours = of(e.manager)
		return f, nil
	}
}

// managerRun lets the manager bring 1,000 MetalMachines up on 1,000 hosts that robots play.
func managerRun(ctx context.Context, e *Env) (m *manager, err error) {
	r, end, err := kubeRig(e, nil)
	if err != nil {
		return nil, err
	}
	defer end(&err)
	door := httptest.NewServer(r.API())
	defer door.Close()
	defer door.CloseClientConnections()
	p, err := startManager(ctx, e, door.URL, r.Kubeconfig)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	n := kubeSize(e)
	if err := until(ctx, "all hosts are shown", func() (bool, error) {
		var list v1alpha1.MetalHostList
		err := r.Client.List(ctx, &list)
		return len(list.Items) == n && list.Items[n-1].Status.Phase != "", err
	}); err != nil {
		return nil, fmt.Errorf("%w: %s", err, p.tail())
	}
	empty, err := memoryOf(p.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	if err := kubeApply(ctx, r.Client, "bench", n); err != nil {
		return nil, err
	}
	if err := until(ctx, "all machines run", func() (bool, error) {
		running, err := inPhase(ctx, r.Client, v1alpha1.PhaseRunning)
		return running == n, err
	}); err != nil {
		return nil, fmt.Errorf("%w: %s", err, p.tail())
	}
	time.Sleep(kubeQuiet)
	if m, err = memoryOf(p.cmd.Process.Pid); err != nil {
		return nil, err
	}
	e.say("slipway manager with %d hosts and no machine: %.0f MB resident, %.0f MB without the program's file; when %d machines run: %.0f MB, %.0f MB; at most %.0f MB",
		n, empty.resident, empty.own, n, m.resident, m.own, m.peak)
	return m, nil
}

func startManager(ctx context.Context, e *Env, server string, kubeconfig []byte) (*process, error) {
	dir, err := e.freshDir("manager")
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(conf, kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("write a kubeconfig: %w", err)
	}
	// Its own --health-addr is the door that says that it has started.
	const port = 18081
	cmd := exec.CommandContext(ctx, e.Slipway, "manager", "--server", server, "--kubeconfig", conf, "--sets", "standalone",
		"--leader-elect", "--health-addr", fmt.Sprintf("127.0.0.1:%d", port))
	return startWhen(cmd, dir, fmt.Sprintf("TCP port %d", port), func(pid int) bool { return hasTCPPort(pid, port) })
}

// memoryOf is how much memory a process has, and had at most.
func memoryOf(pid int) (*manager, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, fmt.Errorf("the manager has ended: %w", err)
	}
	m := &manager{}
	fields := map[string]*float64{"VmRSS": &m.resident, "RssAnon": &m.own, "VmHWM": &m.peak}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if to := fields[name]; to != nil {
			if _, err := fmt.Sscan(value, to); err != nil {
				return nil, fmt.Errorf("read %q: %w", line, err)
			}
			*to *= 1024 / 1e6
		}
	}
	return m, nil
}

// kubeSize is how many machines a run has.
func kubeSize(e *Env) int {
	if e.Quick {
		return 100
	}
	return kubeN
}
