package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// server is a `slipway serve` that boots a rack. The process runs in the network of its seat, but its admin
// listener is in the network of the user.
type server struct {
	name       string // of the instance; "" for a server alone
	executable string
	args       []string
	seat       seat
	dataDir    string
	logPath    string
	pidPath    string
	admin      net.Addr      // of the admin listener, as the user reaches it
	door       *os.File      // that listener, for each process
	ended      chan struct{} // closed when the process has ended, and is not started again
	over       chan struct{} // closed by stop

	mu     sync.Mutex
	cmd    *exec.Cmd
	again  time.Duration // how long a process that ended stays away before it is started again; 0: it is not
	isOver bool          // the lab ends: nothing is started any more
}

const adminPort = 8067

// newServer describes a server in the folder of the rack; name is part of the names of its files.
func newServer(r *Rack, i int, name, executable string) *server {
	file := func(of string) string {
		if name != "" {
			of = name + "-" + of
		}
		return filepath.Join(r.Dir(), of)
	}
	return &server{
		name: name, executable: executable, seat: r.seats[i], ended: make(chan struct{}), over: make(chan struct{}),
		dataDir: file("data"), logPath: file("serve.log"), pidPath: file("serve.pid"),
		args: []string{
			"serve", "--interface", r.Interface(), "--data-dir", file("data"),
			"--admin-listen", "fd:3", "--mode", "full", "--unknown", string(inventory.UnknownWait),
			"--egress-allow", "127.0.0.0/8", // the libvirt that runs the rack, and controllers of tests
		},
	}
}

// start starts the server and waits until its socket answers. It opens the admin listener itself and passes it
// on as file descriptor 3, since the server runs in another network namespace.
func (s *server) start(ctx context.Context) error {
	listener, err := listenAdmin()
	if err != nil {
		return err
	}
	defer listener.Close()
	s.admin = listener.Addr()
	if s.door, err = listener.File(); err != nil {
		return fmt.Errorf("pass on the admin listener: %w", err)
	}
	if err := os.WriteFile(s.logPath, nil, 0o644); err != nil {
		s.door.Close()
		return fmt.Errorf("make the server's log: %w", err)
	}
	if err := s.launch(); err != nil {
		s.door.Close()
		return err
	}
	go s.keep()
	if err := s.await(ctx); err != nil {
		s.stop()
		return inventory.Errorf(inventory.Unavailable, "the server does not start: %w\n%s", err, tailFile(s.logPath, 15)).
			WithHint("a program on port 53, 67, 69 or 80 of %s would be in its way", s.seat.address.Addr())
	}
	return nil
}

// launch starts a process of the server. The caller has mu, or is alone.
func (s *server) launch() error {
	out, err := os.OpenFile(s.logPath, os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the server's log: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(s.executable, s.args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{s.door}
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true} // Ctrl-C reaches the lab, which stops it in its turn
	if err := s.seat.net.do(cmd.Start); err != nil {
		return fmt.Errorf("start %s serve: %w", s.executable, err)
	}
	s.cmd = cmd
	if err := os.WriteFile(s.pidPath, []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("note the server's process: %w", err)
	}
	return nil
}

// keep waits for the end of the process. It starts the server again after a while if it is to be kept running, as systemd does.
func (s *server) keep() {
	defer close(s.ended)
	defer s.door.Close()
	for {
		_ = s.cmd.Wait() // how it ended is in its log
		s.mu.Lock()
		again := s.again
		s.mu.Unlock()
		if again == 0 {
			return
		}
		select {
		case <-s.over:
		case <-time.After(again):
		}
		if !s.relaunch() {
			return
		}
	}
}

// relaunch starts a process unless the lab ends.
func (s *server) relaunch() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.isOver && s.launch() == nil
}

// keepRunning makes the server start again whenever it ends, after that while.
func (s *server) keepRunning(again time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again = again
}

// kill ends the process as a crash does.
func (s *server) kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Kill()
}

// pid returns the id of the process.
func (s *server) pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Pid
}

// listenAdmin listens on the usual admin port on loopback, or on any free port when that is taken.
func listenAdmin() (*net.TCPListener, error) {
	loopback := net.IPv4(127, 0, 0, 1)
	if l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: loopback, Port: adminPort}); err == nil {
		return l, nil
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: loopback})
	if err != nil {
		return nil, fmt.Errorf("open a port for the API: %w", err)
	}
	return l, nil
}

// socket returns the path of the API socket for local admins.
func (s *server) socket() string { return filepath.Join(s.dataDir, "slipway.sock") }

// url returns the address of the API for the user.
func (s *server) url() string { return "http://" + s.admin.String() }

// token returns the admin token that the server made at its first start, or "" when it is gone.
func (s *server) token() string {
	b, _ := os.ReadFile(filepath.Join(s.dataDir, "admin.token"))
	return strings.TrimSpace(string(b))
}

func (s *server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		if c, err := net.DialTimeout("unix", s.socket(), time.Second); err == nil {
			return c.Close()
		}
		select {
		case <-s.ended:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return errors.New("its socket does not answer within 30 s")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends the server and waits for its end. A second call does nothing.
func (s *server) stop() {
	s.mu.Lock()
	if !s.isOver {
		close(s.over)
	}
	s.isOver, s.again = true, 0
	process := s.cmd.Process
	s.mu.Unlock()
	_ = process.Signal(unix.SIGTERM) // of a process that has ended already it says so
	late := time.AfterFunc(5*time.Second, func() { _ = process.Kill() })
	defer late.Stop()
	<-s.ended
}
