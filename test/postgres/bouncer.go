package postgres

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Bouncer starts PgBouncer before the server, and returns the address of the same database over it. Mode is its pool_mode; more are lines
// of its configuration. It ends with the test, which is skipped without Debian's package pgbouncer.
func (s *Server) Bouncer(t testing.TB, database, mode string, more ...string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; !isThere(program) {
			t.Skip("PgBouncer is not installed; run: apt-get install pgbouncer")
		}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().(*net.TCPAddr)
	l.Close()
	name := fmt.Sprintf("bouncer-%d", at.Port)
	conf := append([]string{
		"[databases]", fmt.Sprintf("* = host=127.0.0.1 port=%d", s.port), "[pgbouncer]", "listen_addr = 127.0.0.1",
		fmt.Sprintf("listen_port = %d", at.Port), "unix_socket_dir =", "auth_type = scram-sha-256", "auth_file = " + s.file(name+".users"),
		"logfile = " + s.file(name+".log"), "pool_mode = " + mode,
	}, more...)
	users := fmt.Sprintf("%q %q\n", "slipway", s.password)
	for file, text := range map[string]string{name + ".ini": strings.Join(conf, "\n") + "\n", name + ".users": users} {
		if err := s.write(file, text); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "-q", s.file(name+".ini"))
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(s.file(name + ".log")); err == nil && t.Failed() {
			t.Logf("the log of PgBouncer:\n%s", text)
		}
	})
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp4", at.String())
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(until) {
			t.Fatalf("PgBouncer does not listen: %v", err)
		}
	}
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = at.String()
	return u.String()
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
