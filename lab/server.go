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
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// server is the `slipway serve` that boots a rack. The process runs in the network of the rack, but its admin
// listener is in the network of the user.
type server struct {
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	dataDir string
	logPath string
	admin   net.Addr // of the admin door, as the user reaches it
}

const adminPort = 8067

// startServer starts the server and waits until its socket answers. It opens the admin listener itself and passes it
// on as file descriptor 3, since the server runs in another network namespace.
func startServer(ctx context.Context, r *Rack, executable string) (*server, error) {
	s := &server{ended: make(chan struct{}), dataDir: filepath.Join(r.Dir(), "data"), logPath: filepath.Join(r.Dir(), "serve.log")}
	listener, err := listenAdmin()
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	s.admin = listener.Addr()
	door, err := listener.File()
	if err != nil {
		return nil, fmt.Errorf("pass on the admin listener: %w", err)
	}
	defer door.Close()
	out, err := os.Create(s.logPath)
	if err != nil {
		return nil, fmt.Errorf("make the server's log: %w", err)
	}
	defer out.Close()
	s.cmd = exec.Command(executable, "serve", "--interface", r.Interface(), "--data-dir", s.dataDir,
		"--admin-listen", "fd:3", "--mode", "full", "--unknown", string(inventory.UnknownWait),
		"--egress-allow", "127.0.0.0/8") // the libvirt that runs the rack, and controllers of tests
	s.cmd.Stdout, s.cmd.Stderr = out, out
	s.cmd.ExtraFiles = []*os.File{door}
	s.cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true} // Ctrl-C reaches the lab, which stops it in its turn
	if err := r.Do(s.cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s serve: %w", executable, err)
	}
	go func() {
		_ = s.cmd.Wait() // how it ended is in its log
		close(s.ended)
	}()
	pidFile := filepath.Join(r.Dir(), "serve.pid")
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(s.cmd.Process.Pid)), 0o644); err != nil {
		s.stop()
		return nil, fmt.Errorf("note the server's process: %w", err)
	}
	if err := s.await(ctx); err != nil {
		s.stop()
		return nil, inventory.Errorf(inventory.Unavailable, "the server does not start: %w\n%s", err, tailFile(s.logPath, 15)).
			WithHint("a program on port 53, 67, 69 or 80 of %s would be in its way", r.Address().Addr())
	}
	return s, nil
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
	select {
	case <-s.ended:
		return
	default:
	}
	_ = stopProcess(s.cmd.Process.Pid)
	<-s.ended
}
