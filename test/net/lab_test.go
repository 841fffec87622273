// Package net_test owns the tests that run real clients against our doors in network namespaces. They need root and
// are switched on by SLIPWAY_NET=1, as make test-net does; nothing they send leaves the namespaces.
package net_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// children are the programs that this test binary turns into when it starts itself inside a namespace.
func children() map[string]func() error {
	return map[string]func() error{"dhcp": serveDHCP, "dhcp6": serveDHCP6, "boot": serveBoot, "serve": serveAll, "flood": sendFlood, "doctor": runDoctor}
}

const childEnv = "SLIPWAY_NET_CHILD"

func TestMain(m *testing.M) {
	name := os.Getenv(childEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := children()[name](); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// lab is a set of namespaces of one test.
type lab struct {
	t      *testing.T
	prefix string
	dir    string
}

// newLab skips the test where it cannot run, and clears up after it.
func newLab(t *testing.T, programs ...string) *lab {
	t.Helper()
	if os.Getenv("SLIPWAY_NET") == "" || os.Geteuid() != 0 {
		t.Skip("needs root and network namespaces; run: make test-net RUN=" + t.Name())
	}
	for _, p := range append(programs, "ip") {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("needs the program %s; run: tools/deps.sh install test-net", p)
		}
	}
	return &lab{t: t, prefix: fmt.Sprintf("sw%d-", os.Getpid()%100000), dir: t.TempDir()}
}

// ns makes a namespace with its loopback up.
func (l *lab) ns(name string) string {
	l.t.Helper()
	full := l.prefix + name
	l.must("ip", "netns", "add", full)
	l.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", full).Run() })
	l.in(full, "ip", "link", "set", "lo", "up")
	return full
}

// wire joins two namespaces by a cable; both ends are up.
func (l *lab) wire(nsA, ifA, nsB, ifB string) {
	l.t.Helper()
	l.must("ip", "link", "add", ifA, "netns", nsA, "type", "veth", "peer", "name", ifB, "netns", nsB)
	l.in(nsA, "ip", "link", "set", ifA, "up")
	l.in(nsB, "ip", "link", "set", ifB, "up")
}

// must runs a program that has to succeed and returns what it says.
func (l *lab) must(name string, args ...string) string {
	l.t.Helper()
	out, err := l.try(30*time.Second, name, args...)
	if err != nil {
		l.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// in runs a program that has to succeed in a namespace.
func (l *lab) in(ns string, args ...string) string {
	l.t.Helper()
	return l.must("ip", append([]string{"netns", "exec", ns}, args...)...)
}

func (l *lab) try(limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	return string(out), err
}

// process is a program that runs beside the test; its lines are kept.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan error

	mu    sync.Mutex
	lines []string
	news  chan struct{} // closed and renewed with every line
}

// start runs a program in a namespace until the test ends. input may be nil.
func (l *lab) start(ns string, env []string, input io.Reader, args ...string) *process {
	l.t.Helper()
	p := &process{
		t: l.t, cmd: exec.Command("ip", append([]string{"netns", "exec", ns}, args...)...), done: make(chan error, 1),
		news: make(chan struct{}),
	}
	p.cmd.Env, p.cmd.Stdin = append(os.Environ(), env...), input
	read, write, err := os.Pipe()
	if err != nil {
		l.t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = write, write
	if err := p.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	write.Close()
	go func() {
		for s := bufio.NewScanner(read); s.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, s.Text())
			close(p.news)
			p.news = make(chan struct{})
			p.mu.Unlock()
		}
		read.Close()
		p.done <- p.cmd.Wait()
	}()
	l.t.Cleanup(func() { p.kill(syscall.SIGKILL) })
	return p
}

// kill sends a signal and waits for the end.
func (p *process) kill(s syscall.Signal) {
	_ = p.cmd.Process.Signal(s)
	select {
	case err := <-p.done:
		p.done <- err
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		p.t.Errorf("%s does not end", p.cmd.Path)
	}
}

// text returns everything said so far.
func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// says reports whether a line holds what, whose parts may be apart where it has " ... ".
func says(line, what string) bool {
	for _, part := range strings.Split(what, " ... ") {
		_, rest, ok := strings.Cut(line, part)
		if !ok {
			return false
		}
		line = rest
	}
	return true
}

// waitFor waits until the program has said something n times in all, and fails the test if it does not.
func (p *process) waitFor(what string, n int) {
	p.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		p.mu.Lock()
		news, found := p.news, 0
		for _, line := range p.lines {
			if says(line, what) {
				found++
			}
		}
		p.mu.Unlock()
		if found >= n {
			return
		}
		select {
		case <-news:
		case <-deadline:
			p.t.Fatalf("waited in vain for %q (%d of %d); it says:\n%s", what, found, n, p.text())
		}
	}
}

// inside runs fn in a namespace: sockets that fn opens itself stay there.
func (l *lab) inside(ns string, fn func() error) {
	l.t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		f, err := os.Open("/run/netns/" + ns)
		if err != nil {
			done <- err
			return
		}
		defer f.Close()
		if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- fn()
	}()
	if err := <-done; err != nil {
		l.t.Fatal(err)
	}
}

// socket opens a UDP socket on an interface of a namespace, that may broadcast.
func (l *lab) socket(ns, iface string, port int) net.PacketConn {
	l.t.Helper()
	var conn net.PacketConn
	l.inside(ns, func() (err error) {
		lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			if e := c.Control(func(fd uintptr) {
				if err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err == nil {
					err = unix.BindToDevice(int(fd), iface)
				}
			}); e != nil {
				return e
			}
			return err
		}}
		conn, err = lc.ListenPacket(context.Background(), "udp4", fmt.Sprintf("0.0.0.0:%d", port))
		return err
	})
	l.t.Cleanup(func() { conn.Close() })
	return conn
}
