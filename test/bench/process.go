package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process is a server under test.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan error
}

// CPUs of the two sides. On two cores the load has one and the server the other.
const (
	clientCPU = "0"
	serverCPU = "1"
	bothCPUs  = "0,1" // for a server whose latency counts
)

// pinned is a command on one CPU in a namespace. Every program in the chain replaces itself by the next, so that the
// process id is that of the last.
func pinned(ctx context.Context, cpu, ns string, argv ...string) *exec.Cmd {
	full := append([]string{"-n", "-10", "taskset", "-c", cpu, "ip", "netns", "exec", ns}, argv...)
	return exec.CommandContext(ctx, "nice", full...)
}

// start starts a server with its output in a file and waits until it has a socket on a UDP port.
func start(cmd *exec.Cmd, dir string, port uint16) (*process, error) {
	return startWhen(cmd, dir, fmt.Sprintf("UDP port %d", port), func(pid int) bool { return hasUDPPort(pid, port) })
}

// startWhen starts a server and waits until it has opened its door.
func startWhen(cmd *exec.Cmd, dir, door string, isOpen func(pid int) bool) (*process, error) {
	p := &process{cmd: cmd, log: filepath.Join(dir, "output.txt"), done: make(chan error, 1)}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("keep the output of %s: %w", cmd.Path, err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	go func() { p.done <- cmd.Wait() }()
	for range 200 {
		select {
		case err := <-p.done:
			p.done <- err
			return nil, fmt.Errorf("%s ended: %w: %s", strings.Join(cmd.Args, " "), err, p.tail())
		case <-time.After(50 * time.Millisecond):
		}
		if isOpen(cmd.Process.Pid) {
			time.Sleep(500 * time.Millisecond) // what it still does after opening its port
			return p, nil
		}
	}
	p.stop()
	return nil, fmt.Errorf("%s did not open %s within 10 s: %s", cmd.Path, door, p.tail())
}

// hasUDPPort looks into the namespace of a process for a bound port.
func hasUDPPort(pid int, port uint16) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/udp", pid))
	return err == nil && bytes.Contains(b, fmt.Appendf(nil, ":%04X 00000000:0000", port))
}

// hasTCPPort looks into the namespace of a process for a port that somebody listens on.
func hasTCPPort(pid int, port uint16) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	return err == nil && bytes.Contains(b, fmt.Appendf(nil, ":%04X 00000000:0000 0A", port))
}

// tail is the end of what the process wrote.
func (p *process) tail() string {
	b, _ := os.ReadFile(p.log)
	return strings.TrimSpace(string(b[max(0, len(b)-1000):]))
}

// stop ends the process and waits for it.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(unix.SIGTERM)
	select {
	case err := <-p.done:
		p.done <- err
	case <-time.After(8 * time.Second):
		_ = p.cmd.Process.Kill()
		p.done <- <-p.done
	}
}

// cpuTime is the processor time the process has used, in the kernel and outside.
func (p *process) cpuTime() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / 100 // USER_HZ is 100 on every Linux that Go supports
}

// cpuExact is the processor time of all threads of the process and its children, in nanoseconds and not in ticks.
func (p *process) cpuExact() time.Duration { return cpuOf(p.cmd.Process.Pid) }

func cpuOf(pid int) (sum time.Duration) {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var files []string
	for _, id := range append(strings.Fields(string(children)), strconv.Itoa(pid)) {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%s/task/*/schedstat", id))
		files = append(files, threads...)
	}
	for _, f := range files {
		b, _ := os.ReadFile(f) // a thread may end
		on, _, _ := strings.Cut(string(b), " ")
		n, _ := strconv.ParseInt(on, 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

// ownMB is the memory of the process that nobody else can use: not what is mapped of its file.
func (p *process) ownMB() float64 { return p.statusMB("RssAnon:") }

// residentMB is the memory of the process, with what is mapped of its file.
func (p *process) residentMB() float64 { return p.statusMB("VmRSS:") }

// statusMB is a line of /proc/PID/status in megabytes.
func (p *process) statusMB(key string) float64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(b), key)
	text, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, _ := strconv.ParseFloat(text, 64)
	return kib * 1024 / 1e6
}

// receiveBufferFile is the default size of socket buffers. It is one value for the whole system.
const receiveBufferFile = "/proc/sys/net/core/rmem_default"

// withReceiveBuffer runs f while new sockets get a larger receive buffer, and puts the old size back.
func withReceiveBuffer(size int, f func() error) (err error) {
	old, err := os.ReadFile(receiveBufferFile)
	if err != nil {
		return fmt.Errorf("read the size of receive buffers: %w", err)
	}
	if err := os.WriteFile(receiveBufferFile, []byte(strconv.Itoa(size)), 0o644); err != nil {
		return fmt.Errorf("raise the size of receive buffers: %w", err)
	}
	defer func() { err = errors.Join(err, os.WriteFile(receiveBufferFile, old, 0o644)) }()
	return f()
}

// inNamespace is a command in the guest's namespace, on any CPU.
func inNamespace(ctx context.Context, argv ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", guestNamespace}, argv...)...)
}
