package net_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/test/netlab"
)

const fixEnv = "SLIPWAY_NET_FIX"

// runDoctor is a child: slipway doctor with the flags on its standard input, and its checks as JSON.
func runDoctor() error {
	var c serve.Cmd
	if os.Getenv(fixEnv) != "" {
		if _, err := doctor.Fix(doctor.Changes(doctor.ReadSysctl())); err != nil {
			return err
		}
	}
	if err := json.NewDecoder(os.Stdin).Decode(&c); err != nil {
		return err
	}
	_, checks, _, err := c.Doctor(context.Background(), "test")
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(checks)
}

// patient is a machine that the doctor looks at: a namespace with the interface eth0 on a switch.
type patient struct {
	*rack
	t     *testing.T
	ns    string
	flags serve.Cmd
	user  string // runs the doctor as somebody else than root
	mount string // shell commands that run before it, in a mount namespace of its own
	env   []string
}

// look runs the doctor and returns the check with a name.
func (p *patient) look(name string) doctor.Check {
	p.t.Helper()
	input, err := json.Marshal(p.flags)
	if err != nil {
		p.t.Fatal(err)
	}
	var args []string
	if p.ns != "" {
		args = []string{"ip", "netns", "exec", p.ns}
	}
	if p.mount != "" {
		args = append(args, "unshare", "-m", "sh", "-ec", p.mount+`; exec "$@"`, "sh")
	}
	if p.user != "" {
		args = append(args, "setpriv", "--reuid", p.user, "--clear-groups", "--no-new-privs")
	}
	self := selfPath(p.t)
	if p.user != "" { // go test keeps its own to whoever runs it
		self = filepath.Join(p.t.TempDir(), "doctor")
		p.rack.Must("cp", selfPath(p.t), self)
	}
	args = append(args, self)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stderr = append(append(os.Environ(), netlab.Child("doctor")), p.env...), strings.NewReader(string(input)), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
	var checks []doctor.Check
	if err := json.Unmarshal(out, &checks); err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
	for _, k := range checks {
		if k.Name == name {
			return k
		}
	}
	p.t.Fatalf("no check %q in %+v", name, checks)
	return doctor.Check{}
}

// ip configures the patient.
func (p *patient) ip(args ...string) { p.In(p.ns, append([]string{"ip"}, args...)...) }

func (p *patient) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// disk mounts something as the data directory.
func (p *patient) disk(options string) {
	p.t.Helper()
	p.rack.Must("mount", "-t", "tmpfs", "-o", options, "none", p.flags.DataDir)
	p.t.Cleanup(func() { p.rack.Must("umount", p.flags.DataDir) })
}

// store makes the database, as a server that has ended leaves it; isOpen keeps it open, as one that runs does.
func (p *patient) store(isOpen bool) (path string) {
	p.t.Helper()
	path = filepath.Join(p.flags.DataDir, "slipway.db")
	s, err := sqlstore.Open(p.t.Context(), sqlstore.Config{Path: path})
	p.must(err)
	if !isOpen {
		p.must(s.Close())
		return path
	}
	p.t.Cleanup(func() { s.Close() })
	return path
}

// authority writes a certificate as the site's own, which the machines' boot loaders are to trust.
func (p *patient) authority(key any, public any) {
	p.t.Helper()
	p.flags.BootTLSPort = 8443
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0)}
	c.IsCA = true
	der, err := x509.CreateCertificate(rand.Reader, c, c, public, key)
	p.must(err)
	p.must(os.WriteFile(filepath.Join(p.flags.DataDir, "ca.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
}

// limits gives the doctor other limits of the kernel, in files that lie over the real ones. It looks at the host's own
// network then, because the neighbour table has its limits there only.
func (p *patient) limits(rmem, neighbours int) {
	p.t.Helper()
	p.ns, p.flags.Interface = "", nil
	for name, n := range map[string]int{
		"core/rmem_max": rmem, "ipv4/neigh/default/gc_thresh1": neighbours / 8, "ipv4/neigh/default/gc_thresh2": neighbours / 2,
		"ipv4/neigh/default/gc_thresh3": neighbours,
	} {
		file := filepath.Join(p.flags.DataDir, filepath.Base(name))
		p.must(os.WriteFile(file, []byte(strconv.Itoa(n)+"\n"), 0o644))
		p.mount += "mount --bind " + file + " /proc/sys/net/" + name + "\n"
	}
	p.mount += "true"
}

// TestTheDoctorSeesWhatIsWrong makes each thing wrong that slipway doctor knows, and shows it the same thing in order.
func TestTheDoctorSeesWhatIsWrong(t *testing.T) {
	r := newRack(t, "dnsmasq", "setpriv", "unshare", "chattr")
	if _, err := os.Stat("/usr/lib/ipxe/snponly.efi"); err != nil {
		t.Skip("needs the boot loaders; run: apt-get install ipxe")
	}
	beside := r.machine(9) // where another DHCP server may run
	r.In(beside, "ip", "addr", "add", "10.77.1.2/24", "dev", "eth0")
	for i, c := range []struct {
		check        string
		do           func(p *patient)
		status       string
		detail, hint string
	}{
		{"interface eth0", func(p *patient) { p.ip("addr", "flush", "dev", "eth0", "scope", "global") }, doctor.Failed, "no IPv4 address", "ip addr add"},
		{"interface eth0", func(p *patient) { p.ip("link", "set", "eth0", "down") }, doctor.Failed, "is down", "ip link set eth0 up"},
		{"interface eth0", func(p *patient) { p.In(p.sw, "ip", "link", "set", fmt.Sprintf("p%d", p.n), "down") }, doctor.Warning, "no link", "cable"},
		{"interface eth0", func(p *patient) { p.ip("link", "set", "eth0", "name", "eth7") }, doctor.Failed, "does not exist", "eth7"},
		{"interface eth0", func(p *patient) { p.ip("link", "set", "eth0", "mtu", "1450") }, doctor.Warning, "MTU 1450", "blocks of 1418"},
		{"interface eth0", func(p *patient) { p.ip("link", "set", "eth0", "mtu", "9000") }, doctor.Warning, "MTU 9000", "mtu 1500"},
		{"interface eth0", func(p *patient) { p.ip("link", "set", "eth0", "mtu", "576") }, doctor.Failed, "MTU 576", "mtu 1500"},
		{"interface eth0", func(*patient) {}, doctor.OK, "MTU 1500", ""},
		{"IPv6 on eth0", func(p *patient) { p.In(p.ns, "sysctl", "-qw", "net.ipv6.conf.eth0.disable_ipv6=1") }, doctor.Warning, "no link-local", "disable_ipv6=0"},
		{"IP forwarding", func(p *patient) { p.In(p.ns, "sysctl", "-qw", "net.ipv4.ip_forward=1") }, doctor.OK, "on:", ""},
		{"IP forwarding", func(p *patient) { p.In(p.ns, "sysctl", "-qw", "net.ipv4.ip_forward=0") }, doctor.OK, "off:", ""},
		{"other DHCP on eth0", func(p *patient) { p.dnsmasq(beside, "10.77.1.10,10.77.1.20,255.255.255.0,1h", "") }, doctor.Warning, "10.77.1.2", "--mode full"},
		{"other DHCP on eth0", func(*patient) {}, doctor.OK, "none heard", ""},
		{"port udp 67", func(p *patient) { p.dnsmasq(p.ns, "10.77.1.10,10.77.1.20,255.255.255.0,1h", "") }, doctor.Failed, "dnsmasq (pid ", "systemctl status"},
		{"port udp 69", func(p *patient) {
			p.dnsmasq(p.ns, "10.77.1.10,10.77.1.20,255.255.255.0,1h", "enable-tftp\ntftp-root=/usr/lib/ipxe\n")
		}, doctor.Failed, "dnsmasq (pid ", "systemctl status"},
		{"port udp 67", func(*patient) {}, doctor.OK, "free", ""},
		{"data directory", func(p *patient) { p.disk("size=8m") }, doctor.Failed, "8 MiB free", "leases cannot be stored"},
		{"data directory", func(p *patient) { p.disk("size=500m") }, doctor.Warning, "500 MiB free", "slipway image prune"},
		{"data directory", func(p *patient) { p.disk("size=4g,ro") }, doctor.Failed, "read-only", "remount,rw"},
		{"data directory", func(p *patient) { p.disk("size=4g,nr_inodes=10") }, doctor.Failed, "no more files", "remove some"},
		{"data directory", func(p *patient) { p.disk("size=4g") }, doctor.OK, "4096 MiB free", ""},
		{"data directory", func(p *patient) { p.flags.DataDir += "/none" }, doctor.OK, "made by the first slipway serve", ""},
		{"database", func(*patient) {}, doctor.OK, "made by the first slipway serve", ""},
		{"database", func(p *patient) { p.store(true) }, doctor.OK, "slipway.db", ""},
		{"database", func(p *patient) {
			path := p.store(false)
			p.rack.Must("chattr", "+i", path)
			p.t.Cleanup(func() { p.rack.Must("chattr", "-i", path) })
		}, doctor.Failed, "not permitted", "lsattr"},
		{"database", func(p *patient) {
			db, err := sql.Open("sqlite3", "file:"+p.store(true))
			p.must(err)
			conn, err := db.Conn(p.t.Context())
			p.must(err)
			_, err = conn.ExecContext(p.t.Context(), "BEGIN IMMEDIATE")
			p.must(err)
			p.t.Cleanup(func() { conn.Close(); db.Close() })
		}, doctor.Failed, fmt.Sprintf("(pid %d)", os.Getpid()), fmt.Sprintf("kill %d", os.Getpid())},
		{"clock", func(p *patient) {
			later := time.Now().Add(26*time.Hour + 10*time.Minute)
			p.must(os.Chtimes(p.store(false), later, later))
		}, doctor.Failed, "written 26h", "timedatectl"},
		{"clock", func(p *patient) { p.store(false) }, doctor.OK, time.Now().UTC().Format("2006-01"), ""}, // without the day: midnight may pass
		{"boot loaders", func(*patient) {}, doctor.OK, "snponly.efi", ""},
		{"loader snponly.efi", func(p *patient) { p.mount = "mount -t tmpfs none /usr/lib/ipxe" }, doctor.Warning, "not installed", "apt"},
		{"certificate ca.crt", func(p *patient) {
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			p.must(err)
			p.authority(key, key.Public())
		}, doctor.Failed, "ECDSA", "RSA"},
		{"certificate ca.crt", func(p *patient) {
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			p.must(err)
			p.authority(key, key.Public())
		}, doctor.OK, "SHA256-RSA", ""},
		{"socket buffers", func(*patient) {}, doctor.OK, "by privilege", ""},
		{"socket buffers", func(p *patient) { p.user = "65534"; p.limits(212992, 1024) }, doctor.Warning, "net.core.rmem_max is 212992 bytes", "sysctl -w"},
		{"socket buffers", func(p *patient) { p.user = "65534"; p.limits(4<<20, 1024) }, doctor.OK, "net.core.rmem_max is 4194304 bytes", ""},
		{"neighbour table", func(p *patient) { p.limits(212992, 512) }, doctor.Warning, "space for 512", "gc_thresh3=4096"},
		{"neighbour table", func(p *patient) { p.limits(212992, 1024) }, doctor.OK, "space for 1024", ""},
		{"neighbour table", func(p *patient) { p.limits(212992, 512); p.env = []string{fixEnv + "=1"} }, doctor.OK, "space for 4096", ""},
	} {
		t.Run(fmt.Sprintf("%s %s", c.check, c.detail), func(t *testing.T) {
			p := &patient{rack: r, t: t, ns: r.machine(20 + i), flags: serve.Cmd{Interface: []string{"eth0"}, DataDir: t.TempDir()}}
			if !strings.Contains(c.check, "eth0") && !strings.HasPrefix(c.check, "port") {
				p.flags.Interface = nil // to ask eth0 for other DHCP servers takes four seconds
			}
			p.must(os.Chmod(p.flags.DataDir, 0o755)) // somebody else than root may look
			p.must(os.Chmod(filepath.Dir(p.flags.DataDir), 0o755))
			p.ip("addr", "add", fmt.Sprintf("10.77.1.%d/24", 30+i), "dev", "eth0")
			ns := p.ns
			t.Cleanup(func() { r.Must("ip", "netns", "del", ns) })
			p.rack = &rack{lab: r.lab.of(t), server: r.server, sw: r.sw, n: r.n}
			c.do(p)
			if k := p.look(c.check); k.Status != c.status || !strings.Contains(k.Detail, c.detail) || !strings.Contains(k.Hint, c.hint) || c.status != doctor.OK && c.hint != "" && k.Hint == "" {
				t.Errorf("got %+v, want %s, %q and %q", k, c.status, c.detail, c.hint)
			}
		})
	}
}

// TestTheServerSeesRelaysAndArtefacts asks a running server, which alone knows of them.
func TestTheServerSeesRelaysAndArtefacts(t *testing.T) {
	a := newAppliance(t)
	ctx := t.Context()
	look := func(name string) (found doctor.Check) {
		t.Helper()
		p, err := a.API.SelfCheck(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range p.Items {
			if k.Name == name {
				return doctor.Check(k)
			}
		}
		return found
	}
	is := func(k doctor.Check, status, detail, hint string) {
		t.Helper()
		if k.Status != status || !strings.Contains(k.Detail, detail) || !strings.Contains(k.Hint, hint) {
			t.Errorf("got %+v, want %s, %q and %q", k, status, detail, hint)
		}
	}
	a.ImportLive()
	is(look("artefacts"), doctor.OK, "2 files", "")
	s := &sufferer{appliance: a}
	undo := s.lose()
	is(look("artefacts"), doctor.Failed, "missing, which live needs", "import the image again")
	undo()
	is(look("artefacts"), doctor.OK, "2 files", "")

	gateway := netip.MustParseAddr("10.88.0.1")
	if _, err := a.API.Subnets.Create(ctx, inventory.Subnet{Name: "far", CIDR: netip.MustParsePrefix("10.88.0.0/24"), Mode: inventory.ModeFull, Gateway: gateway, Unknown: inventory.UnknownDisk}); err != nil {
		t.Fatal(err)
	}
	is(look("relay of far"), doctor.Failed, "no route to 10.88.0.0/24", "ip route add 10.88.0.0/24")
	s.ip("route", "add", "10.88.0.0/24", "dev", "vs")
	is(look("relay of far"), doctor.Warning, "10.88.0.1 answers no ping", "ip route get 10.88.0.1")
	a.lab.In(a.Net.Client, "ip", "addr", "add", "10.88.0.1/32", "dev", "lo")
	is(look("relay of far"), doctor.OK, "10.88.0.1", "")
}

// TestOthersMayReadTheDatabaseBesideTheServer opens the database of a running server as sqlite3(1) does, and closes it: the
// server's locks must keep that from taking the write-ahead log away, with everything that comes afterwards.
func TestOthersMayReadTheDatabaseBesideTheServer(t *testing.T) {
	a := newAppliance(t)
	if _, err := a.API.SelfCheck(t.Context()); err != nil { // looks at the database's file, too
		t.Fatal(err)
	}
	wal := filepath.Join(a.Data, "slipway.db-wal")
	before, err := os.Stat(wal)
	if err != nil {
		t.Fatal(err)
	}
	a.lab.Must("sqlite3", filepath.Join(a.Data, "slipway.db"), "SELECT COUNT(*) FROM subnets")
	after, err := os.Stat(wal)
	if err != nil || !os.SameFile(before, after) {
		t.Fatalf("the write-ahead log that the server writes is not there any more: %v", err)
	}
}
