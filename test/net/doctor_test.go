package net_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/lab/simulate"
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

// TestTheDoctorFetchesALoaderFromTheServerThatRuns looks beside a whole running server: with its own loaders, with a folder whose
// loader was replaced after the start, and while the server is stopped and answers nothing.
func TestTheDoctorFetchesALoaderFromTheServerThatRuns(t *testing.T) {
	a := newAppliance(t)
	newer := t.TempDir()
	if err := os.WriteFile(filepath.Join(newer, "undionly.kpxe"), []byte("a newer loader"), 0o644); err != nil {
		t.Fatal(err)
	}
	look := func(loaders ...string) doctor.Check {
		p := &patient{rack: &rack{lab: a.lab}, t: t, ns: a.Net.Server, flags: serve.Cmd{Interface: []string{"vs"}, DataDir: a.Data, Loaders: loaders}}
		return p.look("TFTP on vs")
	}
	if k := look(); k.Status != doctor.OK || !strings.Contains(k.Detail, "undionly.kpxe comes whole") {
		t.Errorf("with the server's loaders: %+v", k)
	}
	if k := look(newer); k.Status != doctor.Warning || !strings.Contains(k.Detail, "which has 14") || !strings.Contains(k.Hint, "start it again") {
		t.Errorf("with a newer loader: %+v", k)
	}
	server := doctor.Holder(filepath.Join(a.Data, "lock"))
	if err := syscall.Kill(server, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	k := look()
	if err := syscall.Kill(server, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if k.Status != doctor.Failed || !strings.Contains(k.Detail, "undionly.kpxe does not come") {
		t.Errorf("while the server is stopped: %+v", k)
	}
}

// TestAnotherTFTPClientGetsTheLoadersThatMachinesGet lets machines boot as slipway simulate does.
func TestAnotherTFTPClientGetsTheLoadersThatMachinesGet(t *testing.T) {
	a := newAppliance(t)
	r := a.Boot(t.Context(), simulate.Config{Hosts: 8, Seed: 1, Expect: simulate.StageWaiting, SecondClient: true})
	a.Good(r)
	if n := r.Counts["loaders compared with another TFTP client"]; n != 2 || len(r.Failures) > 0 { // for BIOS and for UEFI
		t.Errorf("%d loaders were compared; failures %+v", n, r.Failures)
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
