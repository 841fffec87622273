package chaos

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"slipway.dev/slipway/test/postgres"
)

// site is three servers, the network of the machines, and the database. Each server and each member of the database has a namespace, with a
// cable to the network that it needs.
type site struct {
	t       *testing.T
	prefix  string
	rack    string // namespace of the switch that the machines and the servers are plugged into
	clients string // of the machines
	core    string // of the switch between servers and database; etcd and the controllers of the machines are there, too
	cluster *postgres.Cluster
	url     string // of the database, for servers
	inside  string // for the test, which is not in the network
	servers []*server
}

const coreAddress = "10.88.0.254"

func newSite(t *testing.T) *site {
	s := &site{t: t, prefix: fmt.Sprintf("sd%d", os.Getpid()%10000)}
	s.rack, s.clients, s.core = s.namespace("rack"), s.namespace("cli"), s.namespace("core")
	for ns, bridge := range map[string]string{s.rack: "sw", s.core: "sw"} {
		s.ip("-n", ns, "link", "add", bridge, "type", "bridge")
		s.ip("-n", ns, "link", "set", bridge, "up")
	}
	s.ip("-n", s.core, "addr", "add", coreAddress+"/24", "dev", "sw")
	s.cable(s.rack, "machines", s.clients, "vc")
	s.ip("-n", s.clients, "route", "add", "10.77.0.0/16", "dev", "vc")
	binary := build(t)
	for i, name := range []string{"one", "two", "three"} {
		v := &server{site: s, name: name, ns: s.namespace(name), binary: binary, data: filepath.Join(t.TempDir(), name)}
		s.cable(s.rack, name, v.ns, "vs")
		s.cable(s.core, name, v.ns, "db")
		s.ip("-n", v.ns, "addr", "add", serverAddress(i)+"/16", "dev", "vs")
		s.ip("-n", v.ns, "addr", "add", fmt.Sprintf("10.88.0.%d/24", 1+i), "dev", "db")
		s.servers = append(s.servers, v)
	}
	return s
}

// patroni starts three members of a database under Patroni, each with a namespace.
func (s *site) patroni() {
	var members []postgres.Place
	for i := range 3 {
		ns := s.namespace(fmt.Sprintf("db%d", i))
		s.cable(s.core, fmt.Sprintf("db%d", i), ns, "db")
		members = append(members, postgres.Place{Namespace: ns, Address: fmt.Sprintf("10.88.0.%d", 11+i)})
		s.ip("-n", ns, "addr", "add", members[i].Address+"/24", "dev", "db")
	}
	s.cluster = postgres.StartCluster(s.t, postgres.Place{Namespace: s.core, Address: coreAddress}, members...)
	name := s.cluster.Database(s.t)
	s.url, s.inside = s.cluster.URL(name), s.cluster.SocketURL(name)
}

// database starts one PostgreSQL server, which all reach over its Unix socket.
func (s *site) database() {
	pg := postgres.Start(s.t, postgres.Options{})
	u, err := url.Parse(pg.Database(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	s.inside = pg.SocketURL(strings.TrimPrefix(u.Path, "/"))
	s.url = s.inside
}

func (s *site) ip(args ...string) {
	s.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		s.t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (s *site) namespace(name string) string {
	full := s.prefix + "-" + name
	s.ip("netns", "add", full)
	s.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", full).Run() })
	s.ip("-n", full, "link", "set", "lo", "up")
	return full
}

// cable joins a port of a switch with an interface.
func (s *site) cable(sw, port, ns, iface string) {
	s.ip("link", "add", port, "netns", sw, "type", "veth", "peer", "name", iface, "netns", ns)
	s.ip("-n", sw, "link", "set", port, "master", "sw", "up")
	s.ip("-n", ns, "link", "set", iface, "up")
}

// startServers starts the first one, and gives the others what it has made: the key of secrets and the images.
func (s *site) startServers(ctx context.Context) {
	s.t.Cleanup(s.stopServers)
	first := s.servers[0]
	first.keepUp(ctx)
	for end := time.Now().Add(time.Minute); s.leader() == nil; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("the first server does not serve:\n%s", first.said())
		}
	}
	for _, v := range s.servers[1:] {
		if out, err := exec.Command("cp", "-a", first.data, v.data).CombinedOutput(); err != nil {
			s.t.Fatalf("%v\n%s", err, out)
		}
		for _, own := range []string{"instance.id", "slipway.sock"} {
			if err := os.RemoveAll(filepath.Join(v.data, own)); err != nil {
				s.t.Fatal(err)
			}
		}
		v.keepUp(ctx)
	}
}

// named puts the names of servers in place of their addresses.
func (s *site) named(line string) string {
	for i, v := range s.servers {
		line = strings.ReplaceAll(line, serverAddress(i)+":", v.name+":")
	}
	return line
}

func serverAddress(i int) string { return fmt.Sprintf("10.77.0.%d", 1+i) }

func (s *site) stopServers() {
	for _, v := range s.servers {
		v.down()
	}
}

func (s *site) restarts() (n int64) {
	for _, v := range s.servers {
		n += v.starts.Load() - 1
	}
	return n
}

func (s *site) showLogs() {
	for _, v := range s.servers {
		s.t.Logf("server %s said at last:\n%s", v.name, v.said())
	}
}

// leader returns the server that has the duty of the engine, nil for none.
func (s *site) leader() *server {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, s.inside)
	if err != nil {
		return nil
	}
	defer c.Close(ctx)
	var name string
	_ = c.QueryRow(ctx, `SELECT i.name FROM duties d JOIN instances i ON i.id = d.holder WHERE d.name = 'engine'`).Scan(&name)
	for _, v := range s.servers {
		if v.name == name {
			return v
		}
	}
	return nil
}

// anyServer returns a socket behind which one of the servers answers. Each connection goes to the next one that takes it.
func (s *site) anyServer(ctx context.Context) (path string) {
	dir, err := os.MkdirTemp("", "slipway-drill-") // the path of a socket is short
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { os.RemoveAll(dir) })
	path = filepath.Join(dir, "any.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		s.t.Fatal(err)
	}
	context.AfterFunc(ctx, func() { l.Close() })
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.pass(c, n)
		}
	}()
	return path
}

func (s *site) pass(c net.Conn, n int) {
	defer c.Close()
	for i := range s.servers {
		to, err := net.Dial("unix", filepath.Join(s.servers[(n+i)%len(s.servers)].data, "slipway.sock"))
		if err != nil {
			continue
		}
		defer to.Close()
		go func() { _, _ = io.Copy(to, c); to.Close() }()
		_, _ = io.Copy(c, to)
		return
	}
}

// fault is something that fails for some time. begin returns what it is, because it chooses the part that has most to do then.
type fault struct {
	begin func() (what string)
	lasts time.Duration
	end   func()
}

func (s *site) faults() []fault {
	var v *server
	leads := func() *server {
		for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			if v := s.leader(); v != nil {
				return v
			}
			if time.Now().After(end) {
				s.t.Error("nobody has the engine")
				return s.servers[0]
			}
		}
	}
	follows := func() *server {
		leader := leads()
		for _, v := range s.servers {
			if v != leader {
				return v
			}
		}
		return nil
	}
	killed := func(what string, choose func() *server) fault {
		begin := func() string { v = choose(); v.down(); return what }
		return fault{begin, 20 * time.Second, func() { v.keepUp(v.ctx) }}
	}
	cut := func(what string, port func() (sw, name string), lasts time.Duration) fault {
		var sw, name string
		return fault{
			func() string { sw, name = port(); s.ip("-n", sw, "link", "set", name, "down"); return what }, lasts,
			func() { s.ip("-n", sw, "link", "set", name, "up") },
		}
	}
	paused := fault{
		func() string { v = leads(); v.signal(syscall.SIGSTOP); return "the leader is paused for a minute" }, time.Minute,
		func() { v.signal(syscall.SIGCONT) },
	}
	var m *postgres.Member
	primary := func() *postgres.Member {
		ctx := s.t.Context()
		s.cluster.Await(s.t, "the primary has a synchronous standby", func() bool { return s.cluster.Synchronous(ctx) != nil })
		return s.cluster.Primary(ctx)
	}
	lost := fault{
		func() string { m = primary(); m.Kill(s.t); return "the primary loses power, back after 40 s" }, 40 * time.Second,
		func() { m.StartAgain(s.t) },
	}
	toMachines := func() (string, string) { return s.rack, leads().name }
	toDatabase := func() (string, string) { return s.core, leads().name }
	ofPrimary := func() (string, string) { return s.core, fmt.Sprintf("db%d", primary().Name[0]-'a') }
	return []fault{
		killed("kill -9 of the leader, back after 20 s", leads),
		killed("kill -9 of another server, back after 20 s", follows),
		paused,
		cut("the cable from the leader to the machines is cut for 30 s", toMachines, 30*time.Second),
		cut("the cable from the leader to the database is cut for 30 s", toDatabase, 30*time.Second),
		lost,
		cut("the cable of the primary is cut for 40 s", ofPrimary, 40*time.Second),
	}
}

// server is slipway serve, which is started again when it ends, as systemd does.
type server struct {
	site           *site
	name, ns, data string
	binary         string
	ctx            context.Context
	starts         atomic.Int64

	mu     sync.Mutex
	cmd    *exec.Cmd
	isDown bool
	ended  chan struct{} // closed when nobody starts it any more
}

func (v *server) keepUp(ctx context.Context) {
	v.site.t.Helper()
	if err := os.MkdirAll(v.data, 0o700); err != nil {
		v.site.t.Fatal(err)
	}
	conf := filepath.Join(v.data, "drill.yaml")
	if err := os.WriteFile(conf, []byte("database: "+v.site.url+"\ninstance: "+v.name+"\n"), 0o600); err != nil {
		v.site.t.Fatal(err)
	}
	log, err := os.OpenFile(v.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		v.site.t.Fatal(err)
	}
	ended := make(chan struct{})
	v.mu.Lock()
	v.ctx, v.isDown, v.ended = ctx, false, ended
	v.mu.Unlock()
	go func() {
		defer close(ended)
		defer log.Close()
		for v.start(log, conf) {
			_ = v.cmd.Wait()
			time.Sleep(time.Second)
		}
	}()
}

func (v *server) start(log *os.File, conf string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.isDown || v.ctx.Err() != nil {
		return false
	}
	v.cmd = exec.Command("ip", "netns", "exec", v.ns, v.binary, "serve", "--config", conf, "--interface", "vs", "--data-dir", v.data,
		"--mode", "full", "--range", "10.77.1.1-10.77.2.254", "--log-level", "info", "--egress-allow", "10.88.0.0/24")
	v.cmd.Stdout, v.cmd.Stderr = log, log
	v.starts.Add(1)
	if err := v.cmd.Start(); err != nil {
		v.site.t.Error(err)
		return false
	}
	return true
}

// down kills the server, which stays down. Once more is nothing.
func (v *server) down() {
	v.mu.Lock()
	v.isDown = true
	if v.cmd != nil {
		_ = v.cmd.Process.Kill()
	}
	ended := v.ended
	v.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// end stops the server as systemd does, and leaves it off.
func (v *server) end() {
	v.mu.Lock()
	v.isDown = true
	_ = v.cmd.Process.Signal(syscall.SIGTERM)
	ended := v.ended
	v.mu.Unlock()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		v.site.t.Errorf("%s does not end", v.name)
		v.down()
	}
}

func (v *server) signal(s syscall.Signal) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.cmd.Process.Signal(s)
}

func (v *server) log() string { return filepath.Join(filepath.Dir(v.data), v.name+".log") }

func (v *server) said() string {
	b, _ := os.ReadFile(v.log())
	return string(b[max(0, len(b)-8000):])
}
