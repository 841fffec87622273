// Package ipmitest owns a simulated controller for tests: the ipmi_sim program of Debian's package openipmi, whose
// chassis is a program of the test's own. It never listens on another address than it was given.
package ipmitest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/ipmi"
	"slipway.dev/slipway/inventory"
)

// Options describe a simulated controller.
type Options struct {
	// Addr is host:port, UDP. Port 0 picks a free one. Empty is 127.0.0.1:0.
	Addr           string
	User, Password string // an administrator's
	// Chassis is a shell command that powers the machine. ipmi_sim calls it as
	//
	//	<Chassis> get power             and it prints power:1 or power:0
	//	<Chassis> set power "1"         or "0"
	//	<Chassis> set reset "1"
	//	<Chassis> set shutdown "1"
	//	<Chassis> get boot              and it prints boot:none, pxe, default (the disk), cdrom or bios
	//	<Chassis> set boot "pxe"
	//	<Chassis> set identify "15 0"   seconds, and 1 for as long as it takes
	//
	// and takes any exit status but 0 for a failure.
	Chassis string
	// Serial, if set, is what the serial console leads to, as "tcp:host:port" or the path of a device.
	Serial string
	// NetNS, if set, is the name of the network namespace, as of ip netns, that ipmi_sim runs in; Addr then needs a port.
	NetNS string
}

// Sim is a running simulator.
type Sim struct {
	Addr string // host:port
	opts Options
	out  lockedBuffer
}

// Start runs ipmi_sim until the end of the test. It skips the test when SLIPWAY_NET=1 is not set or the program is not
// installed.
func Start(t *testing.T, o Options) *Sim {
	t.Helper()
	if os.Getenv("SLIPWAY_NET") != "1" && os.Getenv("SLIPWAY_VM") != "1" {
		t.Skip("starts ipmi_sim, which needs Debian's package openipmi; run it with SLIPWAY_NET=1")
	}
	program, err := exec.LookPath("ipmi_sim")
	if err != nil {
		t.Skip("ipmi_sim is not installed; run: apt-get install openipmi")
	}
	s := &Sim{opts: o, Addr: address(t, o.Addr, o.NetNS)}
	dir := t.TempDir()
	conf, commands := s.files(t)
	write(t, filepath.Join(dir, "lan.conf"), conf)
	write(t, filepath.Join(dir, "sim.emu"), commands)

	args := []string{program, "-n", "-c", filepath.Join(dir, "lan.conf"), "-f", filepath.Join(dir, "sim.emu"), "-s", dir}
	if o.NetNS != "" {
		args = append([]string{"ip", "netns", "exec", o.NetNS}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &s.out, &s.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the group: chassis programs may be running
		<-exited
		if t.Failed() {
			t.Logf("ipmi_sim: %s", s.out.String())
		}
	})
	if o.NetNS == "" {
		s.await(t, exited)
	} else {
		s.awaitSocket(t, cmd.Process.Pid, exited)
	}
	return s
}

// awaitSocket returns when the simulator listens, in a namespace where we cannot log in from here. ip replaces itself by
// the program, so that the process is the one that was started.
func (s *Sim) awaitSocket(t *testing.T, pid int, exited chan error) {
	t.Helper()
	port := fmt.Sprintf(":%04X ", netip.MustParseAddrPort(s.Addr).Port())
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		for _, table := range []string{"udp", "udp6"} {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
			if err == nil && strings.Contains(string(b), port) {
				return
			}
		}
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("ipmi_sim ended: %v: %s", err, s.out.String())
		case <-time.After(50 * time.Millisecond): // it says nothing when it is ready
		}
	}
	t.Fatalf("ipmi_sim did not come up: %s", s.out.String())
}

// await returns when the simulator lets its administrator in.
func (s *Sim) await(t *testing.T, exited chan error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		d, err := ipmi.Open(s.Target())
		if err != nil {
			t.Fatal(err)
		}
		err = d.(bmc.UserManager).CheckCredentials(ctx)
		d.Close()
		if err == nil {
			return
		}
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("ipmi_sim ended: %v: %s", err, s.out.String())
		case <-time.After(50 * time.Millisecond): // it says nothing when it is ready
		case <-ctx.Done():
		}
	}
	t.Fatalf("ipmi_sim did not come up: %s", s.out.String())
}

// Target is what reaches the simulator.
func (s *Sim) Target() bmc.Target {
	return bmc.Target{BMC: inventory.BMC{Driver: inventory.IPMI, Address: s.Addr, Username: s.opts.User}, Password: s.opts.Password}
}

// UUID is what the simulator says of its machine, as SMBIOS stores it.
const UUID = "30d4f5a6-9c1b-4fe0-9f3c-7cd30ad1f2b4"

// files returns the two files that ipmi_sim reads: ipmi_lan(5) and ipmi_sim_cmd(5).
func (s *Sim) files(t *testing.T) (conf, commands string) {
	t.Helper()
	for _, text := range []string{s.opts.User, s.opts.Password, s.opts.Chassis, s.opts.Serial} {
		if strings.ContainsAny(text, "\"\\\n") {
			t.Fatalf("%q cannot be written into the configuration of ipmi_sim", text)
		}
	}
	host, port, _ := net.SplitHostPort(s.Addr)
	var c strings.Builder
	fmt.Fprintf(&c, "name \"slipway\"\nset_working_mc 0x20\n")
	fmt.Fprintf(&c, "startlan 1\n  addr %s %s\n  priv_limit admin\n  allowed_auths_admin none md5\n", host, port)
	fmt.Fprintf(&c, "  guid a6f5d4301b9ce04f9f3c7cd30ad1f2b4\nendlan\n")
	if s.opts.Chassis != "" {
		fmt.Fprintf(&c, "chassis_control \"%s\"\n", s.opts.Chassis)
	}
	if s.opts.Serial != "" {
		fmt.Fprintf(&c, "sol \"%s\" 115200\n", s.opts.Serial)
	}
	fmt.Fprintf(&c, "user 1 false \"\" \"\" user 10 none\n")
	fmt.Fprintf(&c, "user 2 true \"%s\" \"%s\" admin 10 none md5\n", s.opts.User, s.opts.Password)
	for id := 3; id <= 5; id++ {
		fmt.Fprintf(&c, "user %d false \"\" \"\" user 10 none\n", id)
	}
	return c.String(), emulation
}

// emulation is one controller with a temperature sensor (54 °C of at most 112), a full inventory of records, and an
// event log with one entry. 0x1291 is the vendor that OpenIPMI's own examples claim to be.
const emulation = `mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02
sel_enable 0x20 1000 0x0a
sensor_add 0x20 0 1 0x01 0x01
sensor_set_value 0x20 0 1 54 0
sensor_set_threshold 0x20 0 1 settable 111000 160 144 112 00 00 00
sensor_set_event_support 0x20 0 1 enable scanning per-state \
	000111111000000 000111111000000 \
	000111111000000 000111111000000
main_sdr_add 0x20 \
	0x00 0x00 0x51 0x01 0x31 0x20 0x00 0x01 0x07 0x01 0x67 0x68 0x01 0x01 \
	0x00 0x00 0x00 0x00 0x00 0x00 0x00 0x01 0x00 0x00 0x01 0x00 0x00 0x00 \
	0x00 0x00 0x00 0x00 0x00 0x00 0xff 0x00 0xa0 0x90 0x70 0x00 0x00 0x00 \
	0x00 0x00 0x00 0x00 0x00 0xc6 0x4d 0x42 0x54 0x65 0x6d 0x70
sel_add 0x20 0x02 0x00 0x9a 0xc4 0x65 0x20 0x00 0x04 0x01 0x01 0x01 0x57 0x70 0x70
mc_enable 0x20
`

// address completes an address with a port that is free now.
func address(t *testing.T, addr, netns string) string {
	t.Helper()
	addr = cmp.Or(addr, "127.0.0.1:0")
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		t.Fatalf("the address of ipmi_sim: %v", err)
	}
	if at.Port() != 0 {
		return at.String()
	}
	if netns != "" {
		t.Fatal("ipmi_sim in a network namespace needs a port")
	}
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().String()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// lockedBuffer takes the output of the program while the test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
