// Package postgres owns PostgreSQL servers for tests: programs of Debian or of npm as processes on loopback, each with a folder, a
// port and a password of its own. It never knows a schema, and nothing of it outlives the test process, not even when that is killed.
package postgres

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Env switches on the tests that need PostgreSQL.
const Env = "SLIPWAY_POSTGRES"

// Server is a PostgreSQL server. Its port, its password and its databases stay the same when it is stopped and started again.
type Server struct {
	dir      string // has all that follows, and the log
	bin      string
	as       *syscall.Credential // who runs it; nil for whoever runs the test
	port     int
	password string
	options  Options
	guard    *guard

	mu     sync.Mutex // databases are made one at a time
	filled map[string]bool
}

// Options are what a test may want of a server of its own.
type Options struct {
	TLS      bool              // connections over TCP are encrypted, others are refused; CA has the authority
	Settings map[string]string // lines of postgresql.conf
}

var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Shared returns the server that all tests of the process share. Each test makes its own databases there, and none stops it.
func Shared(t testing.TB) *Server {
	t.Helper()
	bin := programs(t)
	shared.once.Do(func() { shared.server, shared.err = start(bin, Options{}) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	shared.server.showLog(t)
	return shared.server
}

// Start starts a server for one test, which may stop it and start it again. It ends with the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := start(programs(t), o)
	if err != nil {
		t.Fatal(err)
	}
	s.endWith(t)
	return s
}

// endWith ends the server with the test.
func (s *Server) endWith(t testing.TB) {
	t.Cleanup(s.guard.end)
	s.showLog(t) // what is registered last runs first: the log is still there
}

func start(bin string, o Options) (*Server, error) {
	return newServer(bin, rand.Text(), o, func(s *Server) error {
		if err := s.write("password", s.password); err != nil {
			return err
		}
		// The folder is new, and lives for minutes: initdb need not wait for the disk. The server does, as it does at an admin's site.
		args := []string{
			"--pgdata=" + s.data(), "--username=slipway", "--pwfile=" + s.file("password"), "--auth=scram-sha-256", "--encoding=UTF8",
			"--locale=C.UTF-8", "--no-sync",
		}
		if major(bin) >= 15 {
			// As at most sites, text sorts as people sort it. Debian has no such locale before somebody makes it; ICU brings its own.
			args = append(args, "--locale-provider=icu", "--icu-locale=en-US")
		}
		if err := s.run("initdb", args...); err != nil {
			return err
		}
		if o.TLS {
			return s.writeCertificate()
		}
		return nil
	})
}

// newServer makes a folder, lets fill make what the server has, and starts it.
func newServer(bin, password string, o Options, fill func(*Server) error) (*Server, error) {
	s := &Server{bin: bin, password: password, options: o, filled: map[string]bool{}}
	var err error
	if s.as, err = runner(); err != nil {
		return nil, err
	}
	// The path of a socket may have 107 bytes: the folder of a test is too long for it.
	if s.dir, err = os.MkdirTemp("", "slipway-postgres-"); err != nil {
		return nil, err
	}
	if s.guard, err = newGuard(s.dir); err != nil {
		_ = os.RemoveAll(s.dir)
		return nil, err
	}
	for _, step := range []func() error{s.own, func() error { return fill(s) }, s.configure, s.firstStart} {
		if err := step(); err != nil {
			err = fmt.Errorf("%w\n%s", err, s.logSince(0))
			s.guard.end()
			return nil, err
		}
	}
	return s, nil
}

// own gives the folder to whoever runs the server.
func (s *Server) own() error {
	if s.as == nil {
		return nil
	}
	return os.Chown(s.dir, int(s.as.Uid), int(s.as.Gid))
}

func (s *Server) configure() error {
	conf := fmt.Sprintf("listen_addresses = '127.0.0.1'\nunix_socket_directories = '%s'\nlog_checkpoints = off\n"+
		"log_line_prefix = '%%m [%%p] %%d '\n", s.dir)
	hba := "local all all scram-sha-256\nlocal replication all scram-sha-256\n"
	host := "host"
	if s.options.TLS {
		conf += fmt.Sprintf("ssl = on\nssl_cert_file = '%s'\nssl_key_file = '%s'\n", s.file("server.crt"), s.file("server.key"))
		host = "hostssl"
	}
	hba += host + " all all 127.0.0.1/32 scram-sha-256\n" + host + " replication all 127.0.0.1/32 scram-sha-256\n"
	for key, value := range s.options.Settings {
		conf += fmt.Sprintf("%s = '%s'\n", key, strings.ReplaceAll(value, "'", "''"))
	}
	has, err := os.ReadFile(filepath.Join(s.data(), "postgresql.conf"))
	if err != nil {
		return err
	}
	if err := s.write("data/postgresql.conf", string(has)+conf); err != nil {
		return err
	}
	return s.write("data/pg_hba.conf", hba)
}

// firstStart starts the server on a free port. Another program may take the port before the server does: then it takes another one.
func (s *Server) firstStart() (err error) {
	for range 5 {
		var l net.Listener
		if l, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
			return err
		}
		s.port = l.Addr().(*net.TCPAddr).Port
		l.Close()
		if err = s.control("start"); err == nil || !strings.Contains(s.logSince(0), "Address already in use") {
			return err
		}
	}
	return err
}

// control runs pg_ctl, which returns when it is done: a server that has started answers.
func (s *Server) control(command string, args ...string) error {
	args = append([]string{command, "--pgdata=" + s.data(), "--wait", "--timeout=60", "--silent"}, args...)
	if command == "start" {
		args = append(args, "--log="+s.file("log"), fmt.Sprintf("--options=-p %d", s.port))
	}
	return s.run("pg_ctl", args...)
}

func (s *Server) file(name string) string { return filepath.Join(s.dir, name) }
func (s *Server) data() string            { return s.file("data") }

// write writes a file that belongs to whoever runs the server, and that nobody else may read.
func (s *Server) write(name, text string) error {
	path := s.file(name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil || s.as == nil {
		return err
	}
	return os.Chown(path, int(s.as.Uid), int(s.as.Gid))
}

// Mode is how a server stops.
type Mode string

// The modes. With Fast it ends its connections, and writes what it has. With Immediate it ends as after a power cut, and recovers when it
// starts again.
const (
	Fast      Mode = "fast"
	Immediate Mode = "immediate"
)

// Stop stops the server of a test.
func (s *Server) Stop(t testing.TB, mode Mode) {
	t.Helper()
	if err := s.control("stop", "--mode="+string(mode)); err != nil {
		t.Fatal(err)
	}
}

// StartAgain starts a server that was stopped, and waits until it answers.
func (s *Server) StartAgain(t testing.TB) {
	t.Helper()
	if err := s.control("start"); err != nil {
		t.Fatalf("%v\n%s", err, s.logSince(0))
	}
}

// URL returns the address of a database over TCP.
func (s *Server) URL(database string) string {
	u := s.address(database)
	u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
	q := url.Values{"sslmode": {"disable"}}
	if s.options.TLS {
		q = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {s.CA()}}
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// SocketURL returns the address of a database over the UNIX socket.
func (s *Server) SocketURL(database string) string {
	u := s.address(database)
	u.RawQuery = url.Values{"host": {s.dir}, "port": {strconv.Itoa(s.port)}}.Encode()
	return u.String()
}

func (s *Server) address(database string) *url.URL {
	return &url.URL{Scheme: "postgres", User: url.UserPassword("slipway", s.password), Path: "/" + database}
}

// Address returns host and port, for what stands between a client and the server.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// CA returns the file with the authority that has signed the certificate of a server with TLS.
func (s *Server) CA() string { return s.file("ca.crt") }

// showLog shows what the server logs from now on, when the test has failed.
func (s *Server) showLog(t testing.TB) {
	var since int64
	if i, err := os.Stat(s.file("log")); err == nil {
		since = i.Size()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of PostgreSQL:\n%s", s.logSince(since))
		}
	})
}

// mostLog is how much of a log is shown: its end says most.
const mostLog = 32 << 10

func (s *Server) logSince(offset int64) string {
	text, err := os.ReadFile(s.file("log"))
	if errors.Is(err, fs.ErrNotExist) { // it has not started yet
		return ""
	}
	if err != nil {
		return err.Error()
	}
	text = text[min(offset, int64(len(text))):]
	return string(text[max(0, len(text)-mostLog):])
}
