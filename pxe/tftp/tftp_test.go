package tftp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pin "github.com/pin/tftp/v3"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// boots records what the door tells.
type boots struct {
	ask func(source netip.Addr, base string) ([]byte, error)

	mu      sync.Mutex
	started []pxe.Transfer
	ended   chan pxe.Transfer
}

func newBoots() *boots { return &boots{ended: make(chan pxe.Transfer, 1000)} }

func (b *boots) Ask(_ context.Context, _ inventory.SessionID, source netip.Addr, base string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ask(source, base)
}

func (b *boots) setAsk(f func(source netip.Addr, base string) ([]byte, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ask = f
}

func (b *boots) Transferring(t pxe.Transfer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started = append(b.started, t)
}

func (b *boots) Transferred(t pxe.Transfer) { b.ended <- t }

func (b *boots) startedN() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.started)
}

func (b *boots) wait(t *testing.T) pxe.Transfer {
	t.Helper()
	select {
	case e := <-b.ended:
		return e
	case <-time.After(30 * time.Second):
		t.Fatal("no transfer ended")
		return pxe.Transfer{}
	}
}

type loaders map[string][]byte

func (l loaders) Find(name string) (images.Loader, bool) {
	data, ok := l[name]
	return images.Loader{Name: name, Data: data}, ok
}

func fileOf(n int) []byte {
	r := rand.NewChaCha8([32]byte{1})
	b := make([]byte, n)
	_, _ = r.Read(b)
	return b
}

// start runs a server on the loopback and stops it at the end of the test.
func start(t *testing.T, change func(*Config)) (*Server, string, *boots) {
	t.Helper()
	b := newBoots()
	cfg := Config{
		Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, Boots: b, BootPort: 80, Now: time.Now,
		Log: slog.New(slog.DiscardHandler), Loaders: loaders{"snponly.efi": fileOf(174_001), "ipxe.efi": fileOf(1 << 20), "undionly.kpxe": fileOf(512 * 8)},
	}
	if change != nil {
		change(&cfg)
	}
	s := New(cfg)
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s, s.Addrs()[0].String(), b
}

func fetch(addr, name string, set func(*pin.Client)) ([]byte, error) {
	c, err := pin.NewClient(addr)
	if err != nil {
		return nil, err
	}
	if set != nil {
		set(c)
	}
	w, err := c.Receive(name, "octet")
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	_, err = w.WriteTo(&buf)
	return buf.Bytes(), err
}

func TestLoadersArriveWhole(t *testing.T) {
	s, addr, b := start(t, nil)
	for name, want := range s.cfg.Loaders.(loaders) {
		for _, block := range []int{0, 512, 1432, 1468, 8192} {
			t.Run(fmt.Sprintf("%s in blocks of %d", name, block), func(t *testing.T) {
				got, err := fetch(addr, name, func(c *pin.Client) {
					c.RequestTSize(true)
					if block > 0 {
						c.SetBlockSize(block)
					}
				})
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%d of %d bytes, %v", len(got), len(want), err)
				}
				e := b.wait(t)
				if e.Err != nil || e.Bytes != int64(len(want)) || e.Size != e.Bytes || e.Name != name || e.Proto != "tftp" ||
					e.Source != netip.MustParseAddr("127.0.0.1") || e.Took <= 0 {
					t.Errorf("ended as %+v", e)
				}
			})
		}
	}
	if got := b.startedN(); got != 15 {
		t.Errorf("%d transfers were told to start, want 15", got)
	}
	if got := s.running.len(); got != 0 {
		t.Errorf("%d transfers still run", got)
	}
	if got := counted(t, s.Metrics.Transfers.WithLabelValues(string(sent))); got != 15 {
		t.Errorf("%v transfers counted, want 15", got)
	}
	if err := prometheus.NewPedanticRegistry().Register(s.Metrics); err != nil {
		t.Error(err)
	}
}

func TestEachMachineGetsItsOwnAutoexec(t *testing.T) {
	_, addr, b := start(t, func(c *Config) { c.BootPort = 8081 })
	b.setAsk(func(source netip.Addr, base string) ([]byte, error) {
		return []byte("#!ipxe\necho " + source.String() + " " + base + "\n"), nil
	})
	got, err := fetch(addr, "/autoexec.ipxe", nil)
	if err != nil || string(got) != "#!ipxe\necho 127.0.0.1 http://127.0.0.1:8081\n" {
		t.Errorf("%q, %v", got, err)
	}
	b.wait(t)

	b.setAsk(func(netip.Addr, string) ([]byte, error) {
		return nil, inventory.Errorf(inventory.Unavailable, "the database is read-only").WithHint("free some disk space")
	})
	got, err = fetch(addr, "autoexec.ipxe", nil)
	if err != nil || !strings.HasPrefix(string(got), "#!ipxe\n") || !strings.Contains(string(got), "the database is read-only") ||
		!strings.Contains(string(got), "chain") {
		t.Errorf("a machine whose script could not be made got %q, %v", got, err)
	}
	b.wait(t)
}

func TestARefusalSaysWhyWithoutPaths(t *testing.T) {
	s, addr, b := start(t, nil)
	for name, want := range map[string]string{
		"pxeboot.n12": "no such boot file", "../../etc/passwd": "no such boot file", "/etc/passwd": "no such boot file",
		"shimx64.efi": "shimx64.efi is not installed",
	} {
		_, err := fetch(addr, name, nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "code: 1") {
			t.Errorf("%s: %v", name, err)
		}
		if e := b.wait(t); e.Name != name || e.Err == nil || !strings.Contains(e.Err.Error(), "installed") && name == "shimx64.efi" {
			t.Errorf("a refused name is told as %+v", e)
		}
	}
	c, _ := pin.NewClient(addr)
	if _, err := c.Send("ipxe.efi", "octet"); err == nil || !strings.Contains(err.Error(), "code: 2") && !strings.Contains(err.Error(), "code=2") {
		t.Errorf("a write request is answered with %v", err)
	}
	if n := counted(t, s.Metrics.Requests.WithLabelValues(string(isWrite))); n < 1 {
		t.Errorf("%v write requests counted", n)
	}
}

// counted returns the value of a counter.
func counted(t *testing.T, c prometheus.Metric) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// machine is a raw TFTP client.
type machine struct {
	t    *testing.T
	conn *net.UDPConn
	to   *net.UDPAddr
	peer *net.UDPAddr
	buf  []byte
}

func newMachine(t *testing.T, addr string) *machine {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	to, err := net.ResolveUDPAddr("udp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	return &machine{t: t, conn: conn, to: to, buf: make([]byte, 65536)}
}

func (m *machine) send(p string, to *net.UDPAddr) {
	m.t.Helper()
	if _, err := m.conn.WriteToUDP([]byte(p), to); err != nil {
		m.t.Fatal(err)
	}
}

// receive returns the next packet, or nil when none comes in time.
func (m *machine) receive(within time.Duration) []byte {
	_ = m.conn.SetReadDeadline(time.Now().Add(within))
	n, from, err := m.conn.ReadFromUDP(m.buf)
	if err != nil {
		return nil
	}
	m.peer = from
	return m.buf[:n]
}

func TestAskingOnlyForTheSizeIsNoFailure(t *testing.T) {
	s, addr, b := start(t, nil)
	m := newMachine(t, addr)
	m.send(rrq("snponly.efi", "octet", "tsize", "0", "blksize", "1468", "windowsize", "4"), m.to)
	p := m.receive(5 * time.Second)
	if got := string(p); !strings.HasPrefix(got, "\x00\x06") || !strings.Contains(got, "tsize\x00174001\x00") ||
		!strings.Contains(got, "blksize\x001468\x00") || !strings.Contains(got, "windowsize\x004\x00") {
		t.Fatalf("answered with %q", got)
	}
	m.send("\x00\x05\x00\x08User aborted the transfer\x00", m.peer)
	m.waitIdle(s)
	if n := len(b.ended) + b.startedN(); n != 0 {
		t.Errorf("%d events for a probe", n)
	}
	if n := counted(t, s.Metrics.Transfers.WithLabelValues(string(probed))); n != 1 {
		t.Errorf("%v probes counted", n)
	}
}

// waitIdle breaks off what still comes, until nothing runs.
func (m *machine) waitIdle(s *Server) {
	m.t.Helper()
	for end := time.Now().Add(20 * time.Second); s.running.len() > 0; {
		if time.Now().After(end) {
			m.t.Fatal("a transfer does not end")
		}
		if m.receive(5*time.Millisecond) != nil && m.peer.Port != m.to.Port {
			m.send("\x00\x05\x00\x00enough\x00", m.peer)
		}
	}
}

func TestABrokenTransferTellsHowFarItCame(t *testing.T) {
	_, addr, b := start(t, nil)
	m := newMachine(t, addr)
	m.send(rrq("ipxe.efi", "octet"), m.to)
	for block := uint16(1); block <= 3; block++ {
		p := m.receive(5 * time.Second)
		if len(p) != 516 || binary.BigEndian.Uint16(p[2:]) != block {
			t.Fatalf("block %d: %d bytes, %x", block, len(p), p[:min(4, len(p))])
		}
		if block < 3 {
			m.send("\x00\x04"+string(binary.BigEndian.AppendUint16(nil, block)), m.peer)
		}
	}
	m.send("\x00\x05\x00\x03disk\x1b[31m full\x00", m.peer)
	e := b.wait(t)
	if e.Err == nil || e.Bytes != 1024 || e.Size != 1<<20 || !strings.Contains(e.Err.Error(), "disk") || strings.Contains(e.Err.Error(), "\x1b") {
		t.Errorf("ended as %+v", e)
	}
}

func TestARequestThatWasSentTwiceIsServedOnce(t *testing.T) {
	s, addr, b := start(t, nil)
	m := newMachine(t, addr)
	for range 20 {
		m.send(rrq("undionly.kpxe", "octet"), m.to)
	}
	if p := m.receive(5 * time.Second); len(p) != 516 {
		t.Fatalf("%d bytes", len(p))
	}
	first := m.peer.Port
	for range 3 { // retransmissions of the one transfer
		if p := m.receive(time.Second); p != nil && m.peer.Port != first {
			t.Fatal("a second transfer runs")
		}
	}
	if n := s.running.len(); n != 1 {
		t.Errorf("%d transfers run", n)
	}
	m.send("\x00\x05\x00\x00enough\x00", m.peer)
	b.wait(t)
	if n := counted(t, s.Metrics.Requests.WithLabelValues(string(duplicate))); n != 19 {
		t.Errorf("%v duplicates counted, want 19", n)
	}
}

func TestTransfersAreLimited(t *testing.T) {
	s, addr, _ := start(t, func(c *Config) { c.PerClient, c.Transfers = 3, 5 })
	var all []*machine
	for range 6 {
		m := newMachine(t, addr)
		m.send(rrq("undionly.kpxe", "octet"), m.to)
		all = append(all, m)
	}
	served := 0
	for _, m := range all {
		if m.receive(time.Second) != nil {
			served++
		}
	}
	for _, m := range all {
		if m.peer != nil {
			m.send("\x00\x05\x00\x00enough\x00", m.peer)
		}
	}
	if served != 3 {
		t.Errorf("%d transfers of one client at once, want 3", served)
	}
	all[0].waitIdle(s)
	if got := counted(t, s.Metrics.Requests.WithLabelValues(string(tooMany))); got != 3 {
		t.Errorf("%v requests counted as too many, want 3", got)
	}
	if _, err := fetch(addr, "undionly.kpxe", nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	r := newRunning(2, 3, nil)
	for i, want := range []outcome{accepted, accepted, isFull} {
		client := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 1000)
		if got := r.add(&transfer{client: client}); got != want {
			t.Errorf("client %d: %s, want %s", i, got, want)
		}
	}
}

func TestInventedAddressesDoNotCloseTheDoor(t *testing.T) {
	isKnown := func(a netip.Addr) bool { return a == netip.MustParseAddr("10.9.9.9") }
	r := newRunning(8, 3, isKnown)
	for n := range 20 {
		client := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), 1000)
		want := accepted
		if n >= 6 {
			want = isFull
		}
		if got := r.add(&transfer{client: client}); got != want {
			t.Errorf("stranger %d: %s, want %s", n, got, want)
		}
	}
	for n := range 3 {
		client := netip.AddrPortFrom(netip.MustParseAddr("10.9.9.9"), uint16(1000+n))
		want := accepted
		if n == 2 {
			want = isFull
		}
		if got := r.add(&transfer{client: client}); got != want {
			t.Errorf("transfer %d of a known host: %s, want %s", n, got, want)
		}
	}
	if len(r.oldest()) != 6 {
		t.Errorf("%d strangers", len(r.oldest()))
	}
	r.remove(r.oldest()[0])
	if got := r.add(&transfer{client: netip.MustParseAddrPort("10.1.1.1:5")}); got != accepted {
		t.Errorf("after one has left: %s", got)
	}
}

// A client that never says a word, as one whose address is invented, makes room after two seconds.
func TestASilentTransferMakesRoom(t *testing.T) {
	_, addr, _ := start(t, func(c *Config) { c.Transfers, c.Knows = 1, func(netip.Addr) bool { return false } })
	silent := newMachine(t, addr)
	silent.send(rrq("undionly.kpxe", "octet"), silent.to)
	if p := silent.receive(5 * time.Second); len(p) != 516 {
		t.Fatalf("%d bytes", len(p))
	}
	time.Sleep(silentFor + 100*time.Millisecond)
	if _, err := fetch(addr, "undionly.kpxe", nil); err != nil {
		t.Errorf("the next machine: %v", err)
	}
}

func TestGarbageCostsNothing(t *testing.T) {
	s, addr, b := start(t, nil)
	m := newMachine(t, addr)
	r := rand.New(rand.NewPCG(1, 2))
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	routines := runtime.NumGoroutine()
	for i := range 20_000 {
		p := make([]byte, r.IntN(600))
		for j := range p {
			p[j] = byte(r.Uint32())
		}
		switch {
		case i%3 == 0 && len(p) > 2:
			p[0], p[1] = 0, byte(1+i%6)
		case i%7 == 0:
			p = []byte(rrq("ipxe.efi", "octet", "tsize", strings.Repeat("9", 1+r.IntN(460))))
			p = p[:r.IntN(len(p))]
		}
		_, _ = m.conn.WriteToUDP(p, m.to)
	}
	if got, err := fetch(addr, "ipxe.efi", nil); err != nil || len(got) != 1<<20 {
		t.Fatalf("afterwards: %d bytes, %v", len(got), err)
	}
	e := b.wait(t)
	for e.Name != "ipxe.efi" {
		e = b.wait(t) // refused names
	}
	if e.Err != nil {
		t.Errorf("%+v", e)
	}
	m.waitIdle(s)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if n := runtime.NumGoroutine(); n > routines+20 {
		t.Errorf("%d goroutines, %d before", n, routines)
	}
}

func TestARequestToAnAddressThatIsNotServedIsDropped(t *testing.T) {
	s, addr, _ := start(t, func(c *Config) { c.Serves = func(a netip.Addr) bool { return a != netip.MustParseAddr("127.0.0.1") } })
	m := newMachine(t, addr)
	m.send(rrq("ipxe.efi", "octet"), m.to)
	if p := m.receive(500 * time.Millisecond); p != nil {
		t.Errorf("answered with %q", p)
	}
	if n := counted(t, s.Metrics.Requests.WithLabelValues(string(notServed))); n != 1 {
		t.Errorf("%v counted", n)
	}
}

func TestATakenPortIsAnErrorWithAHint(t *testing.T) {
	_, addr, _ := start(t, nil)
	err := New(Config{Listen: []netip.AddrPort{netip.MustParseAddrPort(addr)}, Now: time.Now, Log: slog.New(slog.DiscardHandler)}).Listen()
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != inventory.Conflict || e.Hint == "" || !strings.Contains(e.Msg, addr) {
		t.Errorf("%v", err)
	}
}

func TestStoppingEndsTransfers(t *testing.T) {
	b := newBoots()
	s := New(Config{
		Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, Boots: b, Now: time.Now,
		Log: slog.New(slog.DiscardHandler), Loaders: loaders{"ipxe.efi": fileOf(1 << 20)},
	})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	m := newMachine(t, s.Addrs()[0].String())
	m.send(rrq("ipxe.efi", "octet"), m.to)
	if m.receive(5*time.Second) == nil {
		t.Fatal("no answer")
	}
	m.send("\x00\x04\x00\x01", m.peer)
	for {
		p := m.receive(5 * time.Second)
		if p == nil {
			t.Fatal("no second block")
		}
		if binary.BigEndian.Uint16(p[2:]) == 2 {
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if e := b.wait(t); !errors.Is(e.Err, errStopping) || e.Bytes != 512 {
		t.Errorf("ended as %+v", e)
	}
}

// receiveAll takes a file in windows, without the acknowledgement of the last block if it is told so.
func (m *machine) receiveAll(window int, isRude bool) []byte {
	m.t.Helper()
	var got []byte
	next := uint16(1)
	for n := 0; ; {
		p := m.receive(5 * time.Second)
		if p == nil {
			m.t.Fatalf("silence after %d bytes", len(got))
		}
		switch op, number := binary.BigEndian.Uint16(p), binary.BigEndian.Uint16(p[2:]); {
		case op == opOption:
			m.send("\x00\x04\x00\x00", m.peer)
			continue
		case op != opData:
			m.t.Fatalf("%q", p)
		case number != next:
			continue
		}
		got = append(got, p[4:]...)
		n++
		isLast := len(p) < 4+1468
		if isLast && isRude {
			return got
		}
		if n == window || isLast {
			n = 0
			m.send("\x00\x04"+string(binary.BigEndian.AppendUint16(nil, next)), m.peer)
		}
		if isLast {
			return got
		}
		next++
	}
}

func TestAFileArrivesInWindows(t *testing.T) {
	_, addr, b := start(t, nil)
	for _, window := range []string{"1", "4", "16"} {
		m := newMachine(t, addr)
		m.send(rrq("ipxe.efi", "octet", "blksize", "1468", "windowsize", window), m.to)
		n, _ := strconv.Atoi(window)
		if got := m.receiveAll(n, false); !bytes.Equal(got, fileOf(1<<20)) {
			t.Errorf("window %s: %d bytes", window, len(got))
		}
		if e := b.wait(t); e.Err != nil || e.Bytes != 1<<20 || e.Unconfirmed {
			t.Errorf("window %s: %+v", window, e)
		}
	}
}

func TestALastBlockWithoutAcknowledgementIsNoFailure(t *testing.T) {
	s, addr, b := start(t, nil)
	m := newMachine(t, addr)
	m.send(rrq("snponly.efi", "octet", "blksize", "1468", "tsize", "0"), m.to)
	if got := m.receiveAll(1, true); len(got) != 174_001 {
		t.Fatalf("%d bytes", len(got))
	}
	if e := b.wait(t); e.Err != nil || !e.Unconfirmed || e.Bytes != e.Size {
		t.Errorf("%+v", e)
	}
	if n := counted(t, s.Metrics.Transfers.WithLabelValues(string(lastMissing))); n != 1 {
		t.Errorf("%v counted", n)
	}
}

func TestAMachineThatStartsAnewThroughTheSamePortIsServed(t *testing.T) {
	_, addr, b := start(t, nil)
	m := newMachine(t, addr)
	m.send(rrq("snponly.efi", "octet", "blksize", "1468"), m.to)
	m.receive(5 * time.Second)
	m.send("\x00\x04\x00\x00", m.peer)
	if m.receive(5*time.Second) == nil {
		t.Fatal("no first block")
	}
	m.send(rrq("undionly.kpxe", "octet", "blksize", "1468"), m.to)
	if e := b.wait(t); !errors.Is(e.Err, errAskedAnew) || e.Name != "snponly.efi" {
		t.Errorf("the first ended as %+v", e)
	}
	if got := m.receiveAll(1, false); !bytes.Equal(got, fileOf(512*8)) {
		t.Errorf("%d bytes of the second", len(got))
	}
}

// brokenFile is damaged on disk.
type brokenFile struct{ closed chan struct{} }

func (brokenFile) ReadAt([]byte, int64) (int, error) {
	return 0, errors.New("read /var/lib/x: input/output error")
}
func (brokenFile) Size() int64    { return 1000 }
func (f brokenFile) Close() error { close(f.closed); return nil }

func TestAFileThatCannotBeReadEndsWithAReasonAndNoPath(t *testing.T) {
	closed := make(chan struct{})
	s, addr, b := start(t, nil)
	m := newMachine(t, addr)
	client := m.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	g := s.gates[0]
	g.start(&transfer{
		request: request{name: "linux"}, client: client, to: net.UDPAddrFromAddrPort(client), local: netip.MustParseAddr("127.0.0.1"),
		startedAt: time.Now(), desk: g.desks[0], file: brokenFile{closed},
	}, 1468)
	p := m.receive(5 * time.Second)
	if len(p) < 4 || binary.BigEndian.Uint16(p) != opError || strings.Contains(string(p), "/") {
		t.Errorf("answered with %q", p)
	}
	if e := b.wait(t); !errors.Is(e.Err, errUnreadable) {
		t.Errorf("ended as %+v", e)
	}
	<-closed
}
