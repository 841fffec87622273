package net_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
	l.t.Helper()
	conf := filepath.Join(l.t.TempDir(), "dnsmasq.conf")
	if err := os.WriteFile(conf, []byte("port=0\nno-ping\nlog-dhcp\nuser=root\npid-file=\nlog-facility=-\ndhcp-leasefile="+conf+".leases\ndhcp-range="+rng+"\n"+more), 0o644); err != nil {
		l.t.Fatal(err)
	}
	p := l.start(ns, nil, nil, "dnsmasq", "-k", "--conf-file="+conf)
	p.waitFor("DHCP, IP range", 1)
	return p
}

// kea runs Kea without a control socket; classes is a list of client classes in JSON, or "".
func (l *lab) kea(ns, cidr, pool, classes string) *process {
	l.t.Helper()
	dir := l.t.TempDir()
	if classes != "" {
		classes = `"client-classes": ` + classes + ", "
	}
	conf := `{"Dhcp4": {"interfaces-config": {"interfaces": ["eth0"], "dhcp-socket-type": "raw"}, "lease-database": {"type": "memfile", "persist": false},
 "valid-lifetime": 3600, ` + classes + `"subnet4": [{"subnet": "` + cidr + `", "pools": [{"pool": "` + pool + `"}]}],
 "loggers": [{"name": "kea-dhcp4", "severity": "INFO", "output_options": [{"output": "stdout"}]}]}}`
	path := filepath.Join(dir, "kea.json")
	if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
		l.t.Fatal(err)
	}
	p := l.start(ns, []string{"KEA_PIDFILE_DIR=" + dir, "KEA_LOCKFILE_DIR=" + dir}, nil, "kea-dhcp4", "-c", path)
	p.waitFor("DHCP4_STARTED", 1)
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
			r := newRack(t, o.name, "udhcpc")
			ns := r.machine(9)
			r.in(ns, "ip", "addr", "add", "10.77.1.2/24", "dev", "eth0")
			o.run(r.lab, ns, "")
			setup := r.setup()
			setup.Subnets[0].Mode, setup.Subnets[0].Ranges = inventory.ModeProxy, nil
			s := r.serve(r.server, setup)

			m := r.machine(1)
			conn := r.socket(m, "eth0", 68)
			all := offers(t, conn, firmware(t, mac(1), "PXEClient:Arch:00007:UNDI:003000", 7))
			theirs, ours := all["10.77.1.2"], all["10.77.1.1"]
			if theirs == nil || ours == nil {
				t.Fatalf("offers of %v", all)
			}
			if theirs.YourIPAddr.IsUnspecified() || !ours.YourIPAddr.IsUnspecified() || ours.BootFileName != "snponly.efi" || !ours.ServerIPAddr.Equal(net.IPv4(10, 77, 1, 1)) || ours.ClassIdentifier() != "PXEClient" {
				t.Errorf("theirs: %s\nours: %s", theirs.Summary(), ours.Summary())
			}
			if o.isHeard {
				s.waitFor("foreign rack1 10.77.1.2 "+mac(9)+" true false", 1)
			}

			take := message(t, dhcpv4.MessageTypeRequest, mac(1), dhcpv4.WithBroadcast(true), dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(theirs.YourIPAddr)),
				dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 77, 1, 2))))
			if ask(t, conn, "255.255.255.255:67", take, dhcpv4.MessageTypeAck) == nil {
				t.Fatal("the other server does not acknowledge")
			}
			s.waitFor("beside "+mac(1)+" "+theirs.YourIPAddr.String()+" false", 1) // the machine says so
			if o.isHeard {
				s.waitFor("beside "+mac(1)+" "+theirs.YourIPAddr.String()+" true", 1) // the server was heard
			} else {
				s.waitFor("foreign rack1 10.77.1.2  false false", 1) // the machine named it
			}
			conn.Close()

			c := r.udhcpc(m, "-q", "-n") // an operating system gets its address from the other server, and nothing from us
			c.waitFor("server=10.77.1.2", 1)
			if leases := s.bound(); len(leases) != 0 {
				t.Errorf("we leased %v", leases)
			}
		})
	}
}

// TestAForeignServerIsNoticed hears a second server on a network that is ours.
func TestAForeignServerIsNoticed(t *testing.T) {
	r := newRack(t, "dnsmasq", "udhcpc")
	s := r.serve(r.server, r.setup())
	ns := r.machine(9)
	r.in(ns, "ip", "addr", "add", "10.77.1.2/24", "dev", "eth0")
	r.lab.dnsmasq(ns, "10.77.1.10,10.77.1.20,255.255.255.0,1h", "")
	conn := r.socket(r.machine(1), "eth0", 68)
	if all := offers(t, conn, message(t, dhcpv4.MessageTypeDiscover, mac(1), dhcpv4.WithBroadcast(true))); len(all) != 2 {
		t.Fatalf("offers of %v", all)
	}
	s.waitFor("foreign rack1 10.77.1.2 "+mac(9)+" true false", 1)
	if strings.Contains(s.text(), "foreign rack1 10.77.1.1") {
		t.Errorf("we take ourselves for another server:\n%s", s.text())
	}
}

// TestAKnownMachineBootsInAFlood lets strangers with made-up MACs ask as fast as they can, and a known machine beside.
func TestAKnownMachineBootsInAFlood(t *testing.T) {
	r := newRack(t)
	setup := r.setup()
	setup.Known, setup.IsLimited = []string{mac(1)}, true
	s := r.serve(r.server, setup)
	flooder := r.machine(8)
	flood := r.start(flooder, []string{childEnv + "=flood"}, nil, selfPath(t))
	flood.waitFor("flooding", 1)
	conn := r.socket(r.machine(1), "eth0", 68)
	const rounds = 20
	tries, worst := 0, time.Duration(0)
	for n := range rounds {
		start := time.Now()
		var offer *dhcpv4.DHCPv4
		for offer == nil {
			if tries++; tries > 3*rounds {
				t.Fatalf("round %d: the known machine gets no offer in the flood\n%s", n, lastLines(s.text(), 20))
			}
			offer = ask(t, conn, "255.255.255.255:67", firmware(t, mac(1), "PXEClient:Arch:00007:UNDI:003000", 7), dhcpv4.MessageTypeOffer)
		}
		take := message(t, dhcpv4.MessageTypeRequest, mac(1), dhcpv4.WithBroadcast(true), dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr)),
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 77, 1, 1))))
		for ask(t, conn, "255.255.255.255:67", take, dhcpv4.MessageTypeAck) == nil {
			if tries++; tries > 3*rounds {
				t.Fatalf("round %d: the known machine gets no acknowledgement in the flood", n)
			}
		}
		worst = max(worst, time.Since(start))
	}
	flood.kill(syscall.SIGTERM)
	t.Logf("%d exchanges in a flood, %d tries over what was needed, the slowest took %s; the flood said: %s", rounds, max(tries-rounds, 0), worst, lastLines(flood.text(), 1))
	memory, err := os.ReadFile("/proc/" + s.pid() + "/status")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(grep(string(memory), "VmHWM"))
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
