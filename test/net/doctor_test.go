package net_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/cmd/slipway/doctor"
)

// doctorIn lets the doctor look at a namespace with the ports that DHCP needs there.
func doctorIn(l *lab, ns, iface string) (checks map[string]doctor.Check) {
	l.Inside(ns, func() error {
		f := doctor.Read([]string{iface}, l.Dir, []doctor.Port{
			{Proto: "udp", Number: 67, For: "DHCP", Interfaces: []string{iface}},
			{Proto: "udp", Number: 69, For: "TFTP"},
		})
		checks = map[string]doctor.Check{}
		for _, k := range doctor.Judge(f) {
			checks[k.Name] = k
		}
		return nil
	})
	return checks
}

// TestTheDoctorNamesTheProgramThatHasThePort runs a real dnsmasq where DHCP is to be answered.
func TestTheDoctorNamesTheProgramThatHasThePort(t *testing.T) {
	r := newRack(t, "dnsmasq")
	ns := r.machine(9)
	r.In(ns, "ip", "addr", "add", "10.77.1.2/24", "dev", "eth0")
	if k := doctorIn(r.lab, ns, "eth0")["port udp 67"]; k.Status != doctor.OK {
		t.Errorf("nobody has the port: %+v", k)
	}
	r.dnsmasq(ns, "10.77.1.10,10.77.1.20,255.255.255.0,1h", "")
	out, err := exec.Command("ip", "netns", "pids", ns).Output()
	if err != nil {
		t.Fatal(err)
	}
	checks := doctorIn(r.lab, ns, "eth0")
	k := checks["port udp 67"]
	if k.Status != doctor.Failed || !slices.ContainsFunc(strings.Fields(string(out)), func(pid string) bool {
		return strings.Contains(k.Detail, "dnsmasq (pid "+pid+")") && strings.Contains(k.Hint, pid)
	}) {
		t.Errorf("dnsmasq has the port, one of %q: %+v", out, k)
	}
	if k := checks["port udp 69"]; k.Status != doctor.OK {
		t.Errorf("a port that dnsmasq does not have: %+v", k)
	}
	if k := checks["interface eth0"]; k.Status != doctor.OK {
		t.Errorf("%+v", k)
	}
	r.In(ns, "ip", "link", "set", "eth0", "down")
	if k := doctorIn(r.lab, ns, "eth0")["interface eth0"]; k.Status != doctor.Failed || !strings.Contains(k.Hint, "ip link set eth0 up") {
		t.Errorf("an interface that is down: %+v", k)
	}
}

// TestAnInterfaceThatGoesAndComesBackIsAnIssueMeanwhile takes the server's interface and its address away, under a whole
// running server.
func TestAnInterfaceThatGoesAndComesBackIsAnIssueMeanwhile(t *testing.T) {
	a := newAppliance(t)
	const opened, closed = "issue opened ... interface-unserved", "issue closed ... interface-unserved"
	a.lab.In(a.Net.Server, "ip", "link", "set", "vs", "down")
	a.Process.WaitFor(opened+" ... is down", 1)
	a.lab.In(a.Net.Server, "ip", "link", "set", "vs", "up")
	a.Process.WaitFor(closed, 1)
	a.lab.In(a.Net.Server, "ip", "addr", "flush", "dev", "vs")
	a.Process.WaitFor(opened+" ... no IPv4 address", 1)
	a.lab.In(a.Net.Server, "ip", "addr", "add", "10.99.0.1/24", "dev", "vs")
	a.Process.WaitFor("issue changed ... interface-unserved ... 10.99.0.1/24, which is in no subnet", 1)
	a.lab.In(a.Net.Server, "ip", "addr", "flush", "dev", "vs")
	a.lab.In(a.Net.Server, "ip", "addr", "add", "10.77.0.7/16", "dev", "vs")
	a.Process.WaitFor(closed, 2)
	a.Process.WaitFor("answering dhcp ... vs addr=10.77.0.7", 1)
}
