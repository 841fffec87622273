package postgres

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cluster is a primary with its synchronous standby, and further standbys, under Patroni, which keeps in etcd who the primary is.
type Cluster struct {
	dir      string // has a folder for etcd and for each member
	bin      string
	as       *syscall.Credential
	password string
	etcd     Place
	etcdPort int
	peerPort int
	members  []*Member
	guard    *guard
}

// Place is where a program runs: a network namespace, and the address that it has there. The namespace "" is that of the test.
type Place struct{ Namespace, Address string }

// Here is the loopback of the test.
var Here = Place{"", "127.0.0.1"}

// StartCluster starts etcd, and a member at each place. It returns when one member is the primary, and another one has each commit. All
// ends with the test.
func StartCluster(t testing.TB, etcd Place, members ...Place) *Cluster {
	t.Helper()
	if os.Getenv("SLIPWAY_LONG") == "" {
		t.Skip("waits for Patroni; run: make test-long RUN=" + t.Name())
	}
	c := &Cluster{bin: programs(t), password: rand.Text(), etcd: etcd}
	for _, name := range []string{"etcd", "patroni", "patronictl", "nsenter", filepath.Join(c.bin, "pg_basebackup")} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%s is not installed; run: tools/deps.sh install test-patroni", name)
		}
	}
	var err error
	if c.as, err = runner(); err != nil {
		t.Fatal(err)
	}
	if c.dir, err = os.MkdirTemp("", "slipway-postgres-"); err != nil {
		t.Fatal(err)
	}
	if c.guard, err = newGuard(c.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.guard.end)
	t.Cleanup(func() { c.showLogs(t) })
	if err := c.begin(members); err != nil {
		t.Fatal(err)
	}
	c.Await(t, "each commit has a second disk", func() bool { return c.Synchronous(t.Context()) != nil })
	return c
}

func (c *Cluster) begin(places []Place) error {
	if err := c.own(c.dir); err != nil {
		return err
	}
	if err := c.startEtcd(); err != nil {
		return err
	}
	for i, place := range places {
		m := &Member{Name: string(rune('a' + i)), cluster: c, place: place, port: 5432, restPort: 8008}
		if place.Namespace == "" {
			m.port, m.restPort = freePort(), freePort()
		}
		c.members = append(c.members, m)
		if err := m.prepare(); err != nil {
			return err
		}
	}
	for _, m := range c.members {
		if err := m.start(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startEtcd() error {
	dir := filepath.Join(c.dir, "etcd")
	if err := c.mkdir(dir); err != nil {
		return err
	}
	c.etcdPort, c.peerPort = 2379, 2380
	if c.etcd.Namespace == "" {
		c.etcdPort, c.peerPort = freePort(), freePort()
	}
	client, peer := c.etcd.web(c.etcdPort), c.etcd.web(c.peerPort)
	_, err := c.run(c.etcd, dir, "etcd", "--name=etcd", "--data-dir="+filepath.Join(dir, "data"), "--listen-client-urls="+client,
		"--advertise-client-urls="+client, "--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=etcd="+peer)
	return err
}

// run starts a program at a place. Its output is in the file log of the folder, and its process id in the file pid, for the guard.
func (c *Cluster) run(at Place, dir, name string, args ...string) (*exec.Cmd, error) {
	cmd := c.command(context.Background(), at, name, args...)
	cmd.Dir = dir
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = cmd.Wait() }()
	return cmd, os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o600)
}

// command is a program at a place, as the user who runs PostgreSQL.
func (c *Cluster) command(ctx context.Context, at Place, name string, args ...string) *exec.Cmd {
	attr := &syscall.SysProcAttr{Credential: c.as, Setsid: true}
	if at.Namespace != "" {
		enter := []string{"--net=/run/netns/" + at.Namespace}
		if c.as != nil { // nsenter needs root to enter, and changes the user then
			enter = append(enter, fmt.Sprintf("--setuid=%d", c.as.Uid), fmt.Sprintf("--setgid=%d", c.as.Gid))
		}
		args, name, attr.Credential = append(append(enter, name), args...), "nsenter", nil
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.SysProcAttr = c.dir, attr
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "HOME="+c.dir)
	return cmd
}

// Switchover lets Patroni make the synchronous standby the primary, as an admin does before work on the primary. It returns the new one.
func (c *Cluster) Switchover(t testing.TB) *Member {
	t.Helper()
	was, next := c.Primary(t.Context()), c.Synchronous(t.Context())
	if was == nil || next == nil {
		t.Fatal("there is no primary with a synchronous standby")
	}
	args := []string{"-c", was.file("patroni.yml"), "switchover", "--force", "--candidate", next.Name, "slipway"}
	if out, err := c.command(t.Context(), was.place, "patronictl", args...).CombinedOutput(); err != nil {
		t.Fatalf("switchover: %v\n%s", err, out)
	}
	c.Await(t, "the standby is the primary", func() bool { return c.Primary(t.Context()) == next })
	return next
}

// Primary returns the member that takes writes, nil for none.
func (c *Cluster) Primary(ctx context.Context) *Member {
	for _, m := range c.members {
		if m.ask(ctx, `SELECT pg_is_in_recovery()::text`) == "false" {
			return m
		}
	}
	return nil
}

// Synchronous returns the member that takes over when the primary is lost, because it has each commit; nil for none. PostgreSQL waits for
// that member already some moments before Patroni has noted it. A primary that is lost meanwhile has no successor.
func (c *Cluster) Synchronous(ctx context.Context) *Member {
	out, err := c.command(ctx, c.etcd, "patronictl", "-c", c.members[0].file("patroni.yml"), "list", "--format", "json").Output()
	var all []struct{ Member, Role string }
	if err != nil || json.Unmarshal(out, &all) != nil {
		return nil
	}
	for _, is := range all {
		if is.Role == "Sync Standby" {
			return c.member(is.Member)
		}
	}
	return nil
}

func (c *Cluster) member(name string) *Member {
	for _, m := range c.members {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// Database makes an empty database, and returns its name.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text())
	c.Await(t, "a database is made", func() bool {
		p := c.Primary(t.Context())
		return p != nil && p.exec(t.Context(), `CREATE DATABASE `+name+` TEMPLATE template0`) == nil
	})
	for _, m := range c.members {
		// A client that meets a member without the database looks no further.
		c.Await(t, "member "+m.Name+" has the database", func() bool {
			return m.ask(t.Context(), `SELECT datname FROM pg_database WHERE datname = '`+name+`'`) != ""
		})
	}
	return name
}

// URL returns the address of a database, which names all members.
func (c *Cluster) URL(database string) string {
	var hosts []string
	for _, m := range c.members {
		hosts = append(hosts, m.place.at(m.port))
	}
	return c.address(strings.Join(hosts, ","), database, url.Values{"sslmode": {"disable"}})
}

// SocketURL returns the address of a database over the UNIX sockets of all members, which work from each network namespace.
func (c *Cluster) SocketURL(database string) string {
	var folders, ports []string
	for _, m := range c.members {
		folders, ports = append(folders, m.dir()), append(ports, strconv.Itoa(m.port))
	}
	return c.address("", database, url.Values{"host": {strings.Join(folders, ",")}, "port": {strings.Join(ports, ",")}})
}

func (c *Cluster) address(hosts, database string, more url.Values) string {
	more.Set("target_session_attrs", "read-write")
	u := url.URL{Scheme: "postgres", User: url.UserPassword("slipway", c.password), Host: hosts, Path: "/" + database, RawQuery: more.Encode()}
	return u.String()
}

// Await waits for a minute until something is so.
func (c *Cluster) Await(t testing.TB, what string, isSo func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !isSo(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// showLogs shows the ends of all logs when the test has failed.
func (c *Cluster) showLogs(t testing.TB) {
	if !t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(c.dir, "*/log"))
	for _, name := range logs {
		text, _ := os.ReadFile(name)
		t.Logf("%s:\n%s", name, text[max(0, len(text)-mostLog/4):])
	}
}

func (c *Cluster) own(path string) error {
	if c.as == nil {
		return nil
	}
	return os.Chown(path, int(c.as.Uid), int(c.as.Gid))
}

func (c *Cluster) mkdir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return c.own(path)
}

func (p Place) at(port int) string  { return net.JoinHostPort(p.Address, strconv.Itoa(port)) }
func (p Place) web(port int) string { return "http://" + p.at(port) }

// freePort is one that nobody has on loopback now.
func freePort() int {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// ask returns the first value of a query, "" if the member does not answer or has none.
func (m *Member) ask(ctx context.Context, query string) (value string) {
	_ = m.with(ctx, func(ctx context.Context, c *pgx.Conn) error { return c.QueryRow(ctx, query).Scan(&value) })
	return value
}

func (m *Member) exec(ctx context.Context, sql string) error {
	return m.with(ctx, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, sql)
		return err
	})
}

// with connects over the socket, which works from each network namespace.
func (m *Member) with(ctx context.Context, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	q := url.Values{"host": {m.dir()}, "port": {strconv.Itoa(m.port)}}
	u := url.URL{Scheme: "postgres", User: url.UserPassword("slipway", m.cluster.password), Path: "/postgres", RawQuery: q.Encode()}
	c, err := pgx.Connect(ctx, u.String())
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	return do(ctx, c)
}
