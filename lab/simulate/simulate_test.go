package simulate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pin/tftp/v3"
)

// toyServer is the least that boots a machine: it answers DHCP from a counter, serves one loader over TFTP and HTTP,
// and a script, a kernel and an initrd over HTTP. It is plugged into a network without raw sockets; TFTP and HTTP run
// on loopback, where every address of 127/8 may be used.
type toyServer struct {
	*mailboxes
	*adverts
	mu      sync.Mutex
	leases  map[[6]byte]netip.Addr
	heard   []message
	reports int
	busy    int // 503 answers left

	base     string
	loader   []byte
	script   string
	bootFile func(m *message) string // overrides what DHCP says
	sameAddr bool                    // gives one address to everyone
	extra    []option
	tftpPort uint16
	deaf     int // packets of operating systems that it does not answer

	asked      int // requests over TFTP
	otherAfter int // more requests than this many get other bytes; 0: never
}

const toyKernel, toyInitrd = "KERNEL of a toy", "INITRD of a toy"

// ran runs machines against a toy server.
func ran(t *testing.T, cfg Config, s *toyServer) Result {
	t.Helper()
	r, err := run(t.Context(), cfg, s, s.tftpPort)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func hexOf(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }

func newToyServer(t *testing.T) *toyServer {
	t.Helper()
	s := &toyServer{
		mailboxes: newMailboxes(), adverts: newAdverts(), leases: map[[6]byte]netip.Addr{},
		loader: append([]byte("MZ"), bytes.Repeat([]byte("loader "), 9000)...),
	}
	web := httptest.NewServer(http.HandlerFunc(s.http))
	t.Cleanup(web.Close)
	s.base = web.URL
	s.script = fmt.Sprintf("#!ipxe\nkernel %s/boot/artefact/%s/vmlinuz quiet slipway.report=%s/report\ninitrd %s/boot/artefact/%s/initrd.gz\nboot\n",
		s.base, hexOf(toyKernel), s.base, s.base, hexOf(toyInitrd))
	files := tftp.NewServer(func(_ string, rf io.ReaderFrom) error {
		s.mu.Lock()
		loader := s.loader
		if s.asked++; s.otherAfter > 0 && s.asked > s.otherAfter {
			loader = append([]byte("MZ other"), loader...)
		}
		s.mu.Unlock()
		_, err := rf.ReadFrom(bytes.NewReader(loader))
		return err
	}, nil)
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s.tftpPort = uint16(conn.LocalAddr().(*net.UDPAddr).Port)
	files.SetTimeout(100 * time.Millisecond)
	files.SetRetries(100) // what is lost comes again soon, and a machine on a busy system has ten seconds for each block
	files.SetBackoff(func(int) time.Duration { return 0 })
	go func() { _ = files.Serve(conn) }()
	t.Cleanup(files.Shutdown) // closing conn alone leaves Serve in a loop that takes a processor
	return s
}

func (s *toyServer) http(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy > 0 && strings.HasSuffix(r.URL.Path, "/script") {
		s.busy--
		w.Header().Set("Retry-After", "1")
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	send := func(b []byte) { http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b)) }
	switch {
	case strings.HasSuffix(r.URL.Path, "/snponly.efi"), strings.HasSuffix(r.URL.Path, "/undionly.kpxe"):
		send(s.loader)
	case strings.HasSuffix(r.URL.Path, "/script"):
		send([]byte(s.script))
	case strings.HasSuffix(r.URL.Path, "/vmlinuz"):
		send([]byte(toyKernel))
	case strings.HasSuffix(r.URL.Path, "/initrd.gz"):
		send([]byte(toyInitrd))
	case r.URL.Path == "/report" && r.URL.Query().Get("step") == "up":
		s.reports++
		send([]byte("ok"))
	default:
		http.NotFound(w, r)
	}
}

func (s *toyServer) send(d datagram) error {
	m, err := parseMessage(d.payload)
	if err != nil || m.op != 1 || m.kind() == 0 {
		return nil
	}
	s.mu.Lock()
	s.heard = append(s.heard, m)
	if strings.HasPrefix(string(m.option(optClass)), "udhcp") && s.deaf > 0 {
		s.deaf--
		s.mu.Unlock()
		return nil
	}
	a, ok := s.leases[m.chaddr]
	if !ok {
		n := len(s.leases)
		a = netip.AddrFrom4([4]byte{127, 1, byte(n >> 8), byte(n + 1)})
		if s.sameAddr {
			a = netip.AddrFrom4([4]byte{127, 1, 0, 1})
		}
		s.leases[m.chaddr] = a
	}
	s.mu.Unlock()
	us := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	out := message{op: 2, xid: m.xid, chaddr: m.chaddr, yiaddr: a, siaddr: us}
	kind := byte(typeOffer)
	if m.kind() == typeRequest {
		if m.address(optServer) != us {
			return nil
		}
		kind = typeAck
	}
	out.options = []option{{optType, []byte{kind}}, {optServer, addrBytes(us)}, {optLeaseTime, []byte{0, 0, 14, 16}}}
	if file := s.file(&m); file != "" {
		out.options = append(out.options, option{optBootFile, []byte(file)})
	}
	if strings.HasPrefix(string(m.option(optClass)), "HTTPClient") {
		out.options = append(out.options, option{optClass, []byte("HTTPClient")})
	}
	out.options = append(out.options, s.extra...)
	go s.deliver(datagram{toMAC: broadcastMAC, from: netip.AddrPortFrom(us, 67), payload: out.marshal()}, time.Now())
	return nil
}

func (s *toyServer) file(m *message) string {
	if s.bootFile != nil {
		return s.bootFile(m)
	}
	class := string(m.option(optClass))
	switch {
	case m.option(optIPXE) != nil:
		return s.base + "/boot/script"
	case strings.HasPrefix(class, "HTTPClient"):
		return s.base + "/boot/snponly.efi"
	case strings.HasPrefix(class, "PXEClient:Arch:00007"):
		return "snponly.efi"
	case strings.HasPrefix(class, "PXEClient"):
		return "undionly.kpxe"
	}
	return ""
}

func (s *toyServer) solicit([6]byte) error {
	go s.came()
	return nil
}

func (s *toyServer) own(netip.Addr) error    { return nil }
func (s *toyServer) disown(netip.Addr) error { return nil }

func (s *toyServer) inside(f func() error) error { return f() }

func (s *toyServer) packetConn(_ context.Context, from netip.Addr) (net.PacketConn, error) {
	return net.ListenPacket("udp4", netip.AddrPortFrom(from, 0).String())
}

func (s *toyServer) dial(ctx context.Context, from netip.Addr, to string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	return d.DialContext(ctx, "tcp4", to)
}

func toyConfig(hosts int) Config {
	return Config{Hosts: hosts, Seed: 1, Firmware: Firmwares(), Expect: StageBooted, Timeout: 3 * time.Minute}
}

func summaryOf(t *testing.T, r Result) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteSummary(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestMachinesOfEveryFirmwareBootAndReport(t *testing.T) {
	t.Parallel()
	s := newToyServer(t)
	r := ran(t, toyConfig(12), s)
	if !r.IsGood() || s.reports != 12 {
		t.Fatalf("%d reports; %s", s.reports, summaryOf(t, r))
	}
	if len(r.Failures) != 0 {
		t.Errorf("boots failed on the way: %s", summaryOf(t, r))
	}
}

func TestMachinesArriveThroughEveryFault(t *testing.T) {
	t.Parallel()
	s := newToyServer(t)
	s.mu.Lock()
	s.busy = 3
	s.mu.Unlock()
	cfg := toyConfig(8)
	cfg.Faults = Faults{
		FaultDrop: .005, FaultDuplicate: .2, FaultMalformed: .2, FaultTFTPAbort: .3, FaultHTTPAbort: .1,
		FaultWrongOrder: .3, FaultReboot: .3, FaultSlow: .1, FaultSameXID: .3,
	}
	r := ran(t, cfg, s)
	if !r.IsGood() {
		t.Fatal(summaryOf(t, r))
	}
	t.Log(summaryOf(t, r))
}

func TestTheSameSeedThrowsTheSameFaults(t *testing.T) {
	a, b := newDice(Faults{FaultDrop: .5}, 7, 3), newDice(Faults{FaultDrop: .5}, 7, 3)
	for range 100 {
		if a.happens(FaultDrop) != b.happens(FaultDrop) {
			t.Fatal("two throws differ")
		}
	}
}

func TestWhatServersDoWrongIsFound(t *testing.T) {
	for _, c := range []struct {
		name     string
		firmware Firmware
		break_   func(*toyServer)
		want     string
	}{
		{"iPXE is given its loader again", FirmwareUEFI, func(s *toyServer) { s.bootFile = func(*message) string { return "snponly.efi" } }, "load itself without end"},
		{"UEFI is given a BIOS loader", FirmwareUEFI, func(s *toyServer) { s.bootFile = func(*message) string { return "undionly.kpxe" } }, "uefi cannot run undionly.kpxe"},
		{"the loader is no program", FirmwareUEFI, func(s *toyServer) { s.loader = []byte("<html>") }, "no EFI program"},
		{"class PXEClient without 43", FirmwareUEFI, func(s *toyServer) { s.extra = []option{{optClass, []byte("PXEClient")}} }, "43.6=8"},
		{"HTTP Boot without its class", FirmwareUEFIHTTP, func(s *toyServer) { s.extra = []option{{optClass, []byte("x")}} }, "ignores an answer with class"},
		{"a file differs from its digest", FirmwareIPXEROM, func(s *toyServer) {
			s.script = strings.Replace(s.script, hexOf(toyKernel), hexOf("another"), 1)
		}, "not the one in its URL"},
		{"a script uses a verb that iPXE lacks", FirmwareIPXEROM, func(s *toyServer) { s.script = "#!ipxe\npoweroff\n" }, "command not found"},
		{"a script is missing", FirmwareIPXEROM, func(s *toyServer) { s.bootFile = func(*message) string { return s.base + "/none" } }, "HTTP 404"},
		{"a kernel boots that never reports", FirmwareIPXEROM, func(s *toyServer) { s.script = strings.Replace(s.script, "slipway.report", "x", 1) }, "no slipway.report="},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newToyServer(t)
			s.mu.Lock()
			c.break_(s)
			s.mu.Unlock()
			cfg := toyConfig(1)
			cfg.Firmware = []Firmware{c.firmware}
			isFound := false
			for cfg.Timeout = 6 * time.Second; !isFound; cfg.Timeout *= 3 { // a busy system needs longer to get that far
				r := ran(t, cfg, s)
				isFound = len(r.Failures) > 0 && strings.Contains(summaryOf(t, r), c.want)
				if r.IsGood() || !isFound && cfg.Timeout > 30*time.Second {
					t.Fatalf("want a failure with %q, got: %s", c.want, summaryOf(t, r))
				}
			}
		})
	}
}

func TestAnAddressGivenTwiceIsFound(t *testing.T) {
	t.Parallel()
	s := newToyServer(t)
	s.sameAddr = true
	r := ran(t, toyConfig(2), s)
	if r.IsGood() || len(r.Breaches) == 0 {
		t.Errorf("nobody noticed: %s", summaryOf(t, r))
	}
}

func TestMachinesEndWhereTheyAreSent(t *testing.T) {
	for _, c := range []struct {
		name   string
		script string
		expect Stage
	}{
		{"exit is the disk", "exit", StageDisk},
		{"exit 1 is the disk", "exit 1", StageDisk},
		{"sanboot is the disk", "sanboot --no-describe --drive 0x80 || exit", StageDisk},
		{"a long sleep is waiting", ":a\necho not accepted\nsleep 30\ngoto a", StageWaiting},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newToyServer(t)
			s.mu.Lock()
			s.script = "#!ipxe\n" + c.script + "\n"
			s.mu.Unlock()
			cfg := toyConfig(4)
			cfg.Expect, cfg.Concurrency = c.expect, 2
			if r := ran(t, cfg, s); !r.IsGood() {
				t.Error(summaryOf(t, r))
			}
		})
	}
}

func TestAMachineWithoutBootDataGoesToItsDisk(t *testing.T) {
	t.Parallel()
	s := newToyServer(t)
	s.bootFile = func(*message) string { return "" }
	cfg := toyConfig(4)
	cfg.Expect = StageDisk
	if r := ran(t, cfg, s); !r.IsGood() {
		t.Error(summaryOf(t, r))
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	s := newToyServer(t)
	cfg := toyConfig(1)
	cfg.Faults, cfg.Timeout = Faults{FaultDrop: 1}, 300*time.Millisecond
	if r := ran(t, cfg, s); r.IsGood() || r.Stages[StageFailed] != 1 {
		t.Errorf("got: %s", summaryOf(t, r))
	}
}

func TestTheWaitForARouterEndsWithItsAdvertisement(t *testing.T) {
	t.Parallel()
	s := newToyServer(t)
	cfg := toyConfig(2)
	cfg.Firmware, cfg.Pace = []Firmware{FirmwareIPXEROM}, 0.05
	r := ran(t, cfg, s)
	for _, step := range r.Steps {
		if step.Step == "router" && step.N >= 2 && r.Counts["router waits without an answer"] == 0 {
			return
		}
	}
	t.Errorf("nobody heard the router: %s", summaryOf(t, r))
}

func TestRetransmissionsFollowThePace(t *testing.T) {
	d := edk2(false)
	for _, c := range []struct {
		pace     float64
		min, max time.Duration
	}{{0, 900 * time.Millisecond, 1100 * time.Millisecond}, {1, 3600 * time.Millisecond, 4400 * time.Millisecond}, {2, 7200 * time.Millisecond, 8800 * time.Millisecond}} {
		m := &machine{group: &group{cfg: Config{Pace: c.pace}}, dice: newDice(nil, 1, 1)}
		if got := m.timer(d.timers[0]); got < c.min || got > c.max {
			t.Errorf("pace %g: first retransmission after %s, want %s to %s", c.pace, got, c.min, c.max)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		firmware string
		faults   []string
		isGood   bool
	}{
		{"bios,uefi=3", []string{"drop=0.1", "reboot"}, true},
		{"bios,beige", nil, false},
		{"uefi=0", nil, false},
		{"uefi", []string{"gremlin"}, false},
		{"uefi", []string{"drop=2"}, false},
		{"uefi", []string{"drop=NaN"}, false},
	} {
		cmd := BootCommand{Hosts: 1, Firmware: c.firmware, Fault: c.faults, Expect: "booted", Timeout: time.Second}
		if _, err := cmd.config(); (err == nil) != c.isGood {
			t.Errorf("firmware %q, faults %q: %v", c.firmware, c.faults, err)
		}
	}
}
