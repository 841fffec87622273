// Package netlab owns network namespaces of tests, and the programs that run in them. Nothing that they send leaves the
// namespaces. It never knows what a test is about.
package netlab

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

// Lab is a set of namespaces of one test.
type Lab struct {
	T      *testing.T
	Prefix string // begins the name of each namespace
	Dir    string // ends with the test
}

// New skips the test where it cannot run, naming the make target that runs it, and clears up after it.
func New(t *testing.T, target string, programs ...string) *Lab {
	t.Helper()
	if os.Getenv("SLIPWAY_NET") == "" || os.Geteuid() != 0 {
		t.Skip("needs root and network namespaces; run: " + target + " RUN=" + t.Name())
	}
	for _, p := range append(programs, "ip") {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("needs the program %s; run: make deps", p)
		}
	}
	return &Lab{T: t, Prefix: fmt.Sprintf("sw%d-", os.Getpid()%100000), Dir: t.TempDir()}
}

// NS makes a namespace with its loopback up.
func (l *Lab) NS(name string) string {
	l.T.Helper()
	full := l.Prefix + name
	l.Must("ip", "netns", "add", full)
	l.T.Cleanup(func() { _ = exec.Command("ip", "netns", "del", full).Run() })
	l.In(full, "ip", "link", "set", "lo", "up")
	return full
}

// Wire joins two namespaces by a cable; both ends are up.
func (l *Lab) Wire(nsA, ifA, nsB, ifB string) {
	l.T.Helper()
	l.Must("ip", "link", "add", ifA, "netns", nsA, "type", "veth", "peer", "name", ifB, "netns", nsB)
	l.In(nsA, "ip", "link", "set", ifA, "up")
	l.In(nsB, "ip", "link", "set", ifB, "up")
}

// Must runs a program that has to succeed and returns what it says.
func (l *Lab) Must(name string, args ...string) string {
	l.T.Helper()
	out, err := l.Try(30*time.Second, name, args...)
	if err != nil {
		l.T.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// In runs a program that has to succeed in a namespace.
func (l *Lab) In(ns string, args ...string) string {
	l.T.Helper()
	return l.Must("ip", append([]string{"netns", "exec", ns}, args...)...)
}

// Try runs a program for at most limit, and returns what it says.
func (l *Lab) Try(limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	return string(out), err
}

// Process is a program that runs beside the test; its lines are kept.
type Process struct {
	T    *testing.T
	Cmd  *exec.Cmd
	Done chan error

	mu    sync.Mutex
	lines []string
	news  chan struct{} // closed and renewed with every line
}

// Start runs a program in a namespace until the test ends. input may be nil.
func (l *Lab) Start(ns string, env []string, input io.Reader, args ...string) *Process {
	l.T.Helper()
	p := &Process{
		T: l.T, Cmd: exec.Command("ip", append([]string{"netns", "exec", ns}, args...)...), Done: make(chan error, 1),
		news: make(chan struct{}),
	}
	p.Cmd.Env, p.Cmd.Stdin = append(os.Environ(), env...), input
	read, write, err := os.Pipe()
	if err != nil {
		l.T.Fatal(err)
	}
	p.Cmd.Stdout, p.Cmd.Stderr = write, write
	if err := p.Cmd.Start(); err != nil {
		l.T.Fatal(err)
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
		p.Done <- p.Cmd.Wait()
	}()
	l.T.Cleanup(func() { p.Kill(syscall.SIGKILL) })
	return p
}

// Kill sends a signal and waits for the end.
func (p *Process) Kill(s syscall.Signal) {
	_ = p.Cmd.Process.Signal(s)
	select {
	case err := <-p.Done:
		p.Done <- err
	case <-time.After(10 * time.Second):
		_ = p.Cmd.Process.Kill()
		p.T.Errorf("%s does not end", p.Cmd.Path)
	}
}

// Text returns everything said so far.
func (p *Process) Text() string {
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

// WaitFor waits until the program has said something n times in all, and fails the test if it does not.
func (p *Process) WaitFor(what string, n int) {
	p.T.Helper()
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
			p.T.Fatalf("waited in vain for %q (%d of %d); it says:\n%s", what, found, n, p.Text())
		}
	}
}

// Inside runs fn in a namespace: sockets that fn opens itself stay there.
func (l *Lab) Inside(ns string, fn func() error) {
	l.T.Helper()
	if err := inside(ns, fn); err != nil {
		l.T.Fatal(err)
	}
}

func inside(ns string, fn func() error) error {
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
	return <-done
}

// Dial returns how a client of the test connects inside a namespace.
func (l *Lab) Dial(ns string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (c net.Conn, err error) {
		err = inside(ns, func() (err error) {
			var d net.Dialer
			c, err = d.DialContext(ctx, network, addr)
			return err
		})
		return c, err
	}
}

// Socket opens a UDP socket on an interface of a namespace, that may broadcast.
func (l *Lab) Socket(ns, iface string, port int) net.PacketConn {
	l.T.Helper()
	var conn net.PacketConn
	l.Inside(ns, func() (err error) {
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
	l.T.Cleanup(func() { conn.Close() })
	return conn
}
