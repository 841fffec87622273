package net_test

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// script writes a program that a DHCP client runs for every change; it prints what it was told.
func (l *lab) script(lines string) string {
	l.T.Helper()
	path := filepath.Join(l.Dir, fmt.Sprintf("script-%08x", crc32.ChecksumIEEE([]byte(lines))))
	if _, err := os.Stat(path); err == nil {
		return path // another client may be running it at this moment
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+lines), 0o755); err != nil {
		l.T.Fatal(err)
	}
	return path
}

// busybox's client sets the address itself only through the script, as an OS would.
const udhcpcScript = `case "$1" in
bound|renew) ip addr flush dev $interface; ip addr add $ip/$mask dev $interface; [ -z "$router" ] || ip route replace default via $router;;
deconfig) ip addr flush dev $interface;;
esac
echo "$1 ip=$ip mask=$mask router=$router dns=$dns domain=$domain lease=$lease server=$serverid boot=$boot_file siaddr=$siaddr message=$message"
`

func (r *rack) udhcpc(ns string, more ...string) *process {
	r.T.Helper()
	args := append([]string{"udhcpc", "-i", "eth0", "-f", "-t", "5", "-T", "2", "-A", "2", "-s", r.script(udhcpcScript)}, more...)
	return r.Start(ns, nil, nil, args...)
}

func TestUdhcpc(t *testing.T) {
	r := newRack(t, "udhcpc", "tcpdump")
	s := r.serve(r.server, r.setup())
	m := r.machine(1)
	dump := r.Start(r.server, nil, nil, "tcpdump", "-lnei", "srv0", "udp port 68")
	dump.WaitFor("listening on", 1)

	c := r.udhcpc(m, "-R")
	c.WaitFor("bound ip=10.77.1.100 mask=24 router=10.77.1.1 dns=10.77.1.1 domain=lab.example lease=3600 server=10.77.1.1", 1)
	if l, ok := s.lease("10.77.1.100"); !ok || l.State != inventory.LeaseBound || string(l.MAC) != mac(1) {
		t.Errorf("the store has %+v", l)
	}
	dump.WaitFor("> "+mac(1)+", ... : 10.77.1.1.67 > 10.77.1.100.68", 2) // OFFER, ACK

	_ = c.Cmd.Process.Signal(syscall.SIGUSR1) // renew: unicast to the server
	c.WaitFor("renew ip=10.77.1.100", 1)
	dump.WaitFor("10.77.1.100.68 > 10.77.1.1.67", 1)

	_ = c.Cmd.Process.Signal(syscall.SIGUSR2) // release
	c.WaitFor("deconfig", 2)
	s.WaitFor("note dhcp.release "+mac(1), 1)
	c.Kill(syscall.SIGTERM)

	c = r.udhcpc(m, "-B") // wants broadcasts
	c.WaitFor("bound ip=10.77.1.100", 1)
	dump.WaitFor("> ff:ff:ff:ff:ff:ff, ... : 10.77.1.1.67 > 255.255.255.255.68", 2)
}

func TestTwentyMachinesAtOnce(t *testing.T) {
	r := newRack(t, "udhcpc")
	setup := r.setup()
	setup.ProbeFor = 100 * time.Millisecond
	r.serve(r.server, setup)
	var clients []*process
	for n := range 20 {
		clients = append(clients, r.udhcpc(r.machine(n+1), "-q", "-n"))
	}
	seen := map[string]int{}
	address := regexp.MustCompile(`bound ip=(\S+)`)
	for n, c := range clients {
		c.WaitFor("bound ip=10.77.1.", 1)
		a := address.FindStringSubmatch(c.Text())[1]
		if other, twice := seen[a]; twice {
			t.Errorf("machines %d and %d both have %s", other, n, a)
		}
		seen[a] = n
	}
}

func (r *rack) dhclient(ns, id string, conf string, more ...string) *process {
	r.T.Helper()
	script := r.script(`echo "$reason ip=$new_ip_address mask=$new_subnet_mask routers=$new_routers lease=$new_dhcp_lease_time server=$new_dhcp_server_identifier mtu=$new_interface_mtu"
case "$reason" in BOUND|RENEW|REBIND|REBOOT) ip addr flush dev $interface; ip addr add $new_ip_address/24 dev $interface;; esac
exit 0
`)
	path := filepath.Join(r.Dir, id)
	if err := os.WriteFile(path+".conf", []byte("timeout 20;\nretry 5;\ninitial-interval 1;\n"+conf), 0o644); err != nil {
		r.T.Fatal(err)
	}
	args := []string{"dhclient", "-4", "-d", "-sf", script, "-cf", path + ".conf", "-lf", path + ".leases", "-pf", path + ".pid"}
	return r.Start(ns, nil, nil, append(append(args, more...), "eth0")...)
}

func TestDhclient(t *testing.T) {
	r := newRack(t, "dhclient")
	setup := r.setup()
	setup.Subnets[0].MTU = 1400
	s := r.serve(r.server, setup)
	m := r.machine(1)
	c := r.dhclient(m, "c", "request subnet-mask, routers, interface-mtu;\n")
	c.WaitFor("BOUND ip=10.77.1.100 mask=255.255.255.0 routers=10.77.1.1 lease=3600 server=10.77.1.1 mtu=1400", 1)
	c.WaitFor("bound to 10.77.1.100", 1) // only now has it written the lease down
	c.Kill(syscall.SIGTERM)

	c = r.dhclient(m, "c", "") // it remembers its lease and goes on with it
	c.WaitFor("DHCPREQUEST for 10.77.1.100 on eth0 to 255.255.255.255", 1)
	c.WaitFor("REBOOT ip=10.77.1.100", 1)
	c.Kill(syscall.SIGTERM)

	r.Start(m, nil, nil, "dhclient", "-4", "-d", "-r", "-sf", "/bin/true", "-lf", r.Dir+"/c.leases", "-pf", r.Dir+"/c.pid", "eth0")
	s.WaitFor("note dhcp.release "+mac(1), 1)
	s.waitState("10.77.1.100", inventory.LeaseReleased)
}

func TestDhclientComesFromAnotherNetwork(t *testing.T) {
	r := newRack(t, "dhclient")
	s := r.serve(r.server, r.setup())
	m := r.machine(1)
	old := `lease {
  interface "eth0";
  fixed-address 192.168.33.7;
  option subnet-mask 255.255.255.0;
  option dhcp-lease-time 864000;
  option dhcp-message-type 5;
  option dhcp-server-identifier 192.168.33.1;
  renew 2 2037/01/01 00:00:00;
  rebind 2 2037/01/01 00:00:00;
  expire 2 2037/01/01 00:00:00;
}
`
	if err := os.WriteFile(filepath.Join(r.Dir, "c.leases"), []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	c := r.dhclient(m, "c", "")
	c.WaitFor("DHCPREQUEST for 192.168.33.7", 1)
	c.WaitFor("DHCPNAK from 10.77.1.1", 1)
	c.WaitFor("BOUND ip=10.77.1.100", 1)
	s.WaitFor("note dhcp.nak "+mac(1)+" it asks for an address of another network", 1)
}

func TestReservationsAndSeveralInterfaces(t *testing.T) {
	r := newRack(t, "udhcpc")
	other := r.NS("other")
	r.Wire(r.server, "srv1", other, "eth0")
	r.In(other, "ip", "link", "set", "eth0", "address", mac(2))
	r.In(r.server, "ip", "addr", "add", "10.77.2.1/24", "dev", "srv1")
	setup := r.setup()
	setup.Interfaces = append(setup.Interfaces, "srv1")
	only := rackNet(2, "srv1")
	only.Mode = inventory.ModeReservations
	setup.Subnets = append(setup.Subnets, only)
	reserved := inventory.Reservation{Address: setup.Subnets[0].Gateway.Next(), Subnet: "rack1", MAC: inventory.MAC(mac(1)), Hostname: "db7"}
	setup.Reservations = []inventory.Reservation{reserved}
	r.serve(r.server, setup)

	r.udhcpc(r.machine(1), "-q").WaitFor("bound ip=10.77.1.2 ", 1)
	r.udhcpc(r.machine(3), "-q").WaitFor("bound ip=10.77.1.100", 1)
	out, err := r.Try(20*time.Second, "ip", "netns", "exec", other, "udhcpc", "-i", "eth0", "-n", "-q", "-t", "2", "-T", "1", "-s", "/bin/true")
	if err == nil {
		t.Errorf("a machine without reservation was served in mode reservations:\n%s", out)
	}
}

func TestAnAddressInUseIsNotOffered(t *testing.T) {
	r := newRack(t, "udhcpc")
	squatter := r.machine(9)
	r.In(squatter, "ip", "addr", "add", "10.77.1.100/24", "dev", "eth0")
	setup := r.setup()
	setup.ProbeFor = 200 * time.Millisecond
	s := r.serve(r.server, setup)
	c := r.udhcpc(r.machine(1))
	c.WaitFor("bound ip=10.77.1.101", 1)
	s.WaitFor("conflict 10.77.1.100 rack1 "+mac(9)+" 10.77.1.100 is used by "+mac(9), 1)
	s.waitState("10.77.1.100", inventory.LeaseDeclined)
}

func TestAClientThatFindsItsAddressInUseDeclinesIt(t *testing.T) {
	r := newRack(t, "udhcpc")
	squatter := r.machine(9)
	r.In(squatter, "ip", "addr", "add", "10.77.1.100/24", "dev", "eth0")
	s := r.serve(r.server, r.setup()) // without our own probe
	c := r.udhcpc(r.machine(1), "-a500")
	s.WaitFor("note dhcp.decline "+mac(1), 1)
	c.WaitFor("bound ip=10.77.1.101", 1)
	s.waitState("10.77.1.100", inventory.LeaseDeclined)
}

func TestAnotherServerOnTheHostIsNamed(t *testing.T) {
	r := newRack(t, "dnsmasq")
	d := r.Start(r.server, nil, nil, "dnsmasq", "-k", "--conf-file=/dev/null", "--port=0", "--dhcp-range=10.77.1.10,10.77.1.20", "--log-dhcp",
		"--log-facility=-", "--user=root", "--pid-file=", "--dhcp-leasefile="+r.Dir+"/dnsmasq.leases")
	d.WaitFor("DHCP, IP range", 1)
	s := r.serveOnly(r.server, r.setup())
	s.WaitFor(fmt.Sprintf("error UDP port 67 is taken by dnsmasq (process %d): another DHCP server runs here", d.Cmd.Process.Pid), 1)
}

func TestAnInterfaceThatGoesAndComesBack(t *testing.T) {
	r := newRack(t, "udhcpc")
	s := r.serve(r.server, r.setup())
	m := r.machine(1)
	r.In(r.server, "ip", "link", "set", "srv0", "down")
	s.WaitFor("is down", 1)
	r.In(r.server, "ip", "link", "set", "srv0", "up")
	s.WaitFor("answering dhcp", 2)
	r.udhcpc(m, "-q").WaitFor("bound ip=10.77.1.100", 1)

	r.In(r.server, "ip", "link", "del", "srv0")
	s.WaitFor("there is no network interface srv0", 1)
	r.plug(r.server, "srv0")
	r.In(r.server, "ip", "addr", "add", "10.77.1.1/24", "dev", "srv0")
	s.WaitFor("answering dhcp", 3)
	r.udhcpc(m, "-q").WaitFor("bound ip=10.77.1.100", 1)
}

// TestAcknowledgedMeansOnDisk kills the server without warning while machines ask it as fast as it answers: every
// lease that perfdhcp counts as acknowledged is in the database afterwards.
func TestAcknowledgedMeansOnDisk(t *testing.T) {
	r := newRack(t, "perfdhcp", "tcpdump")
	setup := r.setup()
	setup.Subnets[0].CIDR, setup.Subnets[0].Ranges[0] = prefix("10.77.0.0/16"), inventory.Range{First: addr("10.77.2.0"), Last: addr("10.77.250.255")}
	r.In(r.server, "ip", "addr", "replace", "10.77.1.1/16", "dev", "srv0")
	s := r.serve(r.server, setup)
	m := r.NS("relay")
	r.plug(m, "eth0")
	r.In(m, "ip", "addr", "add", "10.77.1.254/16", "dev", "eth0")
	// What the kill leaves on the wire counts: whoever saw an ACK must find the lease.
	dump := r.Start(m, nil, nil, "tcpdump", "-lnvi", "eth0", "-s", "400", "-B", "16384", "udp src port 67 and src host 10.77.1.1")
	dump.WaitFor("listening on", 1)
	load := r.Start(m, nil, nil, "perfdhcp", "-4", "-r", "1500", "-R", "60000", "-p", "6", "-l", "10.77.1.254", "10.77.1.1")
	time.Sleep(2 * time.Second)
	s.Kill(syscall.SIGKILL)
	load.Kill(syscall.SIGTERM)
	dump.Kill(syscall.SIGTERM)

	acked := acknowledged(dump.Text())
	if len(acked) < 500 {
		t.Fatalf("only %d acknowledgements seen:\n%s", len(acked), load.Text())
	}
	stored := s.bound()
	for a := range acked {
		if !stored[a] {
			t.Errorf("%s was acknowledged and is not stored", a)
		}
	}
	t.Logf("%d acknowledged before the kill, %d stored", len(acked), len(stored))
	s.begin() // and it starts again
}

// acknowledged returns the addresses in the ACKs that tcpdump -v saw.
func acknowledged(text string) map[string]bool {
	seen := map[string]bool{}
	mine := regexp.MustCompile(`Your-IP (\S+)`)
	last := ""
	for line := range strings.Lines(text) {
		if m := mine.FindStringSubmatch(line); m != nil {
			last = m[1]
		}
		if strings.Contains(line, "DHCP-Message") && strings.Contains(line, "ACK") {
			seen[last] = true
		}
	}
	return seen
}
