package net_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"slipway.dev/slipway/inventory"
)

// other is another DHCP server at 10.77.1.2.
type other struct {
	name string
	run  func(r *lab, ns, more string) *process
	// isHeard: its answer to a machine that cannot be reached otherwise goes to all. Kea's goes to the machine's MAC alone.
	isHeard bool
}

// others are the servers that we stand beside; more is added to their configuration.
var others = []other{
	{"dnsmasq", func(l *lab, ns, more string) *process {
		return l.dnsmasq(ns, "10.77.1.10,10.77.1.20,255.255.255.0,1h", more)
	}, true},
	{"kea-dhcp4", func(l *lab, ns, more string) *process {
		return l.kea(ns, "10.77.1.0/24", "10.77.1.10-10.77.1.20", more)
	}, false},
}

func (l *lab) dnsmasq(ns, rng, more string) *process {
	l.T.Helper()
	return l.pingingDnsmasq(ns, rng, "no-ping\n"+more)
}

// pingingDnsmasq is one that pings an address for three seconds before it offers it, as it does unless it is told not to.
func (l *lab) pingingDnsmasq(ns, rng, more string) *process {
	l.T.Helper()
	conf := filepath.Join(l.T.TempDir(), "dnsmasq.conf")
	if err := os.WriteFile(conf, []byte("port=0\nlog-dhcp\nuser=root\npid-file=\nlog-facility=-\ndhcp-leasefile="+conf+".leases\ndhcp-range="+rng+"\n"+more), 0o644); err != nil {
		l.T.Fatal(err)
	}
	p := l.Start(ns, nil, nil, "dnsmasq", "-k", "--conf-file="+conf)
	p.WaitFor("DHCP, IP range", 1)
	return p
}

// kea runs Kea without a control socket; classes is a list of client classes in JSON, or "".
func (l *lab) kea(ns, cidr, pool, classes string) *process {
	l.T.Helper()
	dir := l.T.TempDir()
	if classes != "" {
		classes = `"client-classes": ` + classes + ", "
	}
	conf := `{"Dhcp4": {"interfaces-config": {"interfaces": ["eth0"], "dhcp-socket-type": "raw"}, "lease-database": {"type": "memfile", "persist": false},
 "valid-lifetime": 3600, ` + classes + `"subnet4": [{"subnet": "` + cidr + `", "pools": [{"pool": "` + pool + `"}]}],
 "loggers": [{"name": "kea-dhcp4", "severity": "INFO", "output_options": [{"output": "stdout"}]}]}}`
	path := filepath.Join(dir, "kea.json")
	if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
		l.T.Fatal(err)
	}
	p := l.Start(ns, []string{"KEA_PIDFILE_DIR=" + dir, "KEA_LOCKFILE_DIR=" + dir}, nil, "kea-dhcp4", "-c", path)
	p.WaitFor("DHCP4_STARTED", 1)
	return p
}

// dhcpd runs ISC's server; more stands outside of its subnet.
func (l *lab) dhcpd(ns, more string) *process {
	l.T.Helper()
	dir := l.T.TempDir()
	conf, leases := filepath.Join(dir, "dhcpd.conf"), filepath.Join(dir, "dhcpd.leases")
	text := "authoritative;\nsubnet 10.77.1.0 netmask 255.255.255.0 { range 10.77.1.10 10.77.1.200; }\n" + more
	if err := errors.Join(os.WriteFile(conf, []byte(text), 0o644), os.WriteFile(leases, nil, 0o644)); err != nil {
		l.T.Fatal(err)
	}
	p := l.Start(ns, nil, nil, "dhcpd", "-4", "-f", "-d", "--no-pid", "-cf", conf, "-lf", leases, "eth0")
	p.WaitFor("Server starting service", 1)
	return p
}

func firmware(t *testing.T, hw, class string, arch byte) *dhcpv4.DHCPv4 {
	return message(t, dhcpv4.MessageTypeDiscover, hw, dhcpv4.WithBroadcast(true), dhcpv4.WithOption(dhcpv4.OptClassIdentifier(class)),
		dhcpv4.WithGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{0, arch}))
}

// offers sends a DISCOVER and returns the offers of a second, by server.
func offers(t *testing.T, conn net.PacketConn, m *dhcpv4.DHCPv4) map[string]*dhcpv4.DHCPv4 {
	t.Helper()
	if _, err := conn.WriteTo(m.ToBytes(), &net.UDPAddr{IP: net.IPv4bcast, Port: 67}); err != nil {
		t.Fatal(err)
	}
	all := map[string]*dhcpv4.DHCPv4{}
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
	for buf := make([]byte, 2048); len(all) < 2; {
		n, _, err := conn.ReadFrom(buf)
		if err != nil {
			break
		}
		r, err := dhcpv4.FromBytes(buf[:n])
		if err != nil {
			t.Fatal(err)
		}
		if r.TransactionID == m.TransactionID {
			all[r.ServerIdentifier().String()] = r
		}
	}
	return all
}

// TestProxyBesideAnotherServer has the other server give the address, and us what to boot.
func TestProxyBesideAnotherServer(t *testing.T) {
	for _, o := range others {
		t.Run(o.name, func(t *testing.T) {
			r := newRack(t, o.name, "udhcpc", "dhclient", "dhcpcd", "unshare", "perfdhcp")
			ns := r.machine(9)
			r.In(ns, "ip", "addr", "add", "10.77.1.2/24", "dev", "eth0")
			o.run(r.lab, ns, "")
			setup := r.setup()
			setup.Subnets[0].Mode, setup.Subnets[0].Ranges = inventory.ModeProxy, nil
			s := r.serve(r.server, setup)

			m := r.machine(1)
			conn := r.Socket(m, "eth0", 68)
			all := offers(t, conn, firmware(t, mac(1), "PXEClient:Arch:00007:UNDI:003000", 7))
			theirs, ours := all["10.77.1.2"], all["10.77.1.1"]
			if theirs == nil || ours == nil {
				t.Fatalf("offers of %v", all)
			}
			if theirs.YourIPAddr.IsUnspecified() || !ours.YourIPAddr.IsUnspecified() || ours.BootFileName != "snponly.efi" || !ours.ServerIPAddr.Equal(net.IPv4(10, 77, 1, 1)) || ours.ClassIdentifier() != "PXEClient" {
				t.Errorf("theirs: %s\nours: %s", theirs.Summary(), ours.Summary())
			}
			if o.isHeard {
				s.WaitFor("foreign rack1 10.77.1.2 "+mac(9)+" true false", 1)
			}

			take := message(t, dhcpv4.MessageTypeRequest, mac(1), dhcpv4.WithBroadcast(true), dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(theirs.YourIPAddr)),
				dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 77, 1, 2))))
			if ask(t, conn, "255.255.255.255:67", take, dhcpv4.MessageTypeAck) == nil {
				t.Fatal("the other server does not acknowledge")
			}
			s.WaitFor("beside "+mac(1)+" "+theirs.YourIPAddr.String()+" false", 1) // the machine says so
			if o.isHeard {
				s.WaitFor("beside "+mac(1)+" "+theirs.YourIPAddr.String()+" true", 1) // the server was heard
			} else {
				s.WaitFor("foreign rack1 10.77.1.2  false false", 1) // the machine named it
			}
			conn.Close()

			c := r.udhcpc(m, "-q", "-n") // an operating system gets its address from the other server, and nothing from us
			c.WaitFor("server=10.77.1.2", 1)
			r.takesFromOther(10)
			if leases := s.bound(); len(leases) != 0 {
				t.Errorf("we leased %v", leases)
			}
		})
	}
}

// takesFromOther lets the clients of operating systems, and a load of machines, get their addresses from 10.77.1.2; n is
// the first machine that is free.
func (r *rack) takesFromOther(n int) {
	r.T.Helper()
	type client struct {
		says string
		run  func(ns string) *process
	}
	running := map[*process]string{}
	for i, c := range []client{
		{"BOUND ip=10.77.1.", func(ns string) *process { return r.dhclient(ns, "c", "") }},
		{"leased 10.77.1.", r.dhcpcd},
		{"DHCPv4 address 10.77.1.", r.networkd},
	} {
		running[c.run(r.machine(n+i))] = c.says
	}
	for p, what := range running {
		p.WaitFor(what, 1)
	}
	ns := r.machine(n + 9)
	r.In(ns, "ip", "addr", "add", "10.77.1.250/24", "dev", "eth0")
	out, err := r.Try(30*time.Second, "ip", "netns", "exec", ns, "perfdhcp", "-4", "-r", "5", "-R", "4", "-p", "2", "-B", "-l", "eth0")
	if _, acks, _ := strings.Cut(out, "REQUEST-ACK"); !strings.Contains(acks, "drops: 0") || strings.Contains(acks, "received packets: 0") || err != nil {
		r.T.Errorf("perfdhcp: %v\n%s", err, lastLines(out, 40))
	}
}

// TestAForeignServerIsNoticed hears a second server on a network that is ours.
func TestAForeignServerIsNoticed(t *testing.T) {
	r := newRack(t, "dnsmasq", "udhcpc")
	s := r.serve(r.server, r.setup())
	ns := r.machine(9)
	r.In(ns, "ip", "addr", "add", "10.77.1.2/24", "dev", "eth0")
	r.lab.dnsmasq(ns, "10.77.1.10,10.77.1.20,255.255.255.0,1h", "")
	conn := r.Socket(r.machine(1), "eth0", 68)
	if all := offers(t, conn, message(t, dhcpv4.MessageTypeDiscover, mac(1), dhcpv4.WithBroadcast(true))); len(all) != 2 {
		t.Fatalf("offers of %v", all)
	}
	s.WaitFor("foreign rack1 10.77.1.2 "+mac(9)+" true false", 1)
	if strings.Contains(s.Text(), "foreign rack1 10.77.1.1") {
		t.Errorf("we take ourselves for another server:\n%s", s.Text())
	}
}

func grep(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
