package dhcp

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/mdlayher/packet"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
)

// desk is a server without sockets: packets go in, replies come out, all in the test's goroutine.
type desk struct {
	*Server
	t     testing.TB
	now   time.Time
	port  *port
	wire  *wire
	store *shelf
	boots *operator
	out   *outbox
}

// reply is a packet that went out.
type reply struct {
	to string // "10.0.0.1:67", or "frame 52:54:00:aa:00:01 10.98.0.85:68"
	b  []byte
	m  *dhcpv4.DHCPv4
}

// wire records what the sockets of a port are given.
type wire struct {
	mu   sync.Mutex
	sent []reply
	arps []netip.Addr
	in   chan datagram // what read returns
	arp  chan []byte
	gone chan struct{}
	once sync.Once
	fail error
}

func newWire() *wire {
	return &wire{in: make(chan datagram, 1024), arp: make(chan []byte, 16), gone: make(chan struct{})}
}

func (w *wire) read(ms []datagram) (int, error) {
	select {
	case <-w.gone:
		return 0, net.ErrClosed
	case m := <-w.in:
		n := 0
		for {
			room := ms[n].b
			ms[n] = m
			ms[n].b = room[:copy(room, m.b)]
			if n++; n == len(ms) {
				return n, nil
			}
			select {
			case m = <-w.in:
			default:
				return n, nil
			}
		}
	}
}

func (w *wire) write(ms []datagram) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return 0, w.fail
	}
	for _, m := range ms {
		w.keep(m.peer.String(), m.b)
	}
	return len(ms), nil
}

func (w *wire) keep(to string, b []byte) {
	m, err := dhcpv4.FromBytes(b)
	if err != nil {
		panic(fmt.Sprintf("a reply that does not parse: %v %x", err, b))
	}
	w.sent = append(w.sent, reply{to, bytes.Clone(b), m})
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.gone) })
	return nil
}

// deafWire is the socket of port 4011: it sends, and nothing arrives.
type deafWire struct{ *wire }

func (w deafWire) read([]datagram) (int, error) {
	<-w.gone
	return 0, net.ErrClosed
}

// etherWire is the packet socket of the same port.
type etherWire struct{ *wire }

func (w etherWire) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case <-w.gone:
		return 0, nil, net.ErrClosed
	case f := <-w.arp:
		return copy(b, f), nil, nil
	}
}

func (w etherWire) WriteTo(b []byte, to net.Addr) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b[12] == 8 && b[13] == 6 {
		w.arps = append(w.arps, netip.AddrFrom4([4]byte(b[etherHeader+24:])))
		return len(b), nil
	}
	addr := to.(*packet.Addr).HardwareAddr
	dst := netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[30:34])), uint16(b[36])<<8|uint16(b[37]))
	w.keep(fmt.Sprintf("frame %s %s", addr, dst), b[headers:])
	return len(b), nil
}

// shelf keeps leases in memory.
type shelf struct {
	mu     sync.Mutex
	leases map[netip.Addr]inventory.Lease
	groups []int // sizes
	fail   func([]inventory.Lease) error
	before func() // runs in Save
}

func (s *shelf) Save(_ context.Context, leases []inventory.Lease) error {
	if s.before != nil {
		s.before()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = append(s.groups, len(leases))
	if s.fail != nil {
		if err := s.fail(leases); err != nil {
			return err
		}
	}
	for _, l := range leases {
		s.leases[l.Address] = l
	}
	return nil
}

// operator stands for the boot engine: it gives a loader to every firmware and a script to every iPXE.
type operator struct {
	mu     sync.Mutex
	asked  []pxe.Client
	lines  []string
	silent bool
}

func (o *operator) Offer(_ context.Context, c pxe.Client, base string) pxe.Reply {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, c)
	if o.silent {
		return pxe.Reply{}
	}
	loader := "snponly.efi"
	if c.Firmware == inventory.BIOS {
		loader = "undionly.kpxe"
	}
	return pxe.Answer(c, pxe.Decision{Boot: pxe.BootImage, Loader: loader}, "00112233445566778899aabbccddeeff", base)
}

func (o *operator) say(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, fmt.Sprintf(format, args...))
}

func (o *operator) Note(_ context.Context, c pxe.Client, kind, detail string) {
	o.say("%s %s %s", kind, c.MAC, detail)
}

func (o *operator) Conflict(a netip.Addr, subnet string, who inventory.MAC, detail string) {
	o.say("conflict %s %s %s: %s", a, subnet, who, detail)
}

func (o *operator) Beside(c pxe.Client, isHeard bool) {
	o.say("beside %s %s heard=%v", c.MAC, c.Address, isHeard)
}

func (o *operator) Foreign(f pxe.ForeignServer) {
	o.say("foreign %s %s %s heard=%v proxy=%v", f.Subnet, f.Server, f.MAC, f.IsHeard, f.IsProxy)
}

func (o *operator) Exhausted(subnet string) { o.say("exhausted %s", subnet) }

// farRack is behind a relay.
func farRack() *inventory.Subnet {
	s := rack()
	s.Name, s.CIDR, s.Interface, s.Gateway, s.MTU, s.Routes = "far", netip.MustParsePrefix("10.5.0.0/24"), "", ip("10.5.0.1"), 0, nil
	s.Ranges = []inventory.Range{{First: ip("10.5.0.100"), Last: ip("10.5.0.199")}}
	return s
}

type deskOption func(*lease.Network, *Config)

func withMode(m inventory.SubnetMode) deskOption {
	return func(n *lease.Network, _ *Config) { n.Subnets[0].Mode = m }
}

func withReservation(r inventory.Reservation) deskOption {
	return func(n *lease.Network, _ *Config) { n.Reservations = append(n.Reservations, r) }
}

func withRange(first, last string) deskOption {
	return func(n *lease.Network, _ *Config) {
		n.Subnets[0].Ranges = []inventory.Range{{First: ip(first), Last: ip(last)}}
	}
}

func withProbe(d time.Duration) deskOption {
	return func(_ *lease.Network, c *Config) { c.ProbeFor = d }
}

// withKnown makes machines known by the last byte of their MAC.
func withKnown(known ...byte) deskOption {
	return func(_ *lease.Network, c *Config) {
		c.Knows = func(m [6]byte) bool { return slices.Contains(known, m[5]) }
	}
}

func withQueue(n int) deskOption {
	return func(_ *lease.Network, c *Config) { c.QueueN = n }
}

func newDesk(t testing.TB, options ...deskOption) *desk {
	d := &desk{
		t: t, now: time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC), store: &shelf{leases: map[netip.Addr]inventory.Lease{}},
		boots: &operator{}, wire: newWire(),
	}
	n := lease.Network{Subnets: []inventory.Subnet{*rack(), *farRack()}, Ours: []netip.Addr{ip("10.98.0.1")}}
	cfg := Config{
		Interfaces: []string{"eno2"}, Leases: d.store, Boots: d.boots, BootPort: 80, QueueN: 512,
		StoreState: func(err error) { d.boots.say("store: %v", err) },
		Now:        func() time.Time { return d.now }, Log: slog.New(slog.DiscardHandler),
	}
	for _, o := range options {
		o(&n, &cfg)
	}
	cfg.Book = lease.New(n, nil)
	d.Server = New(cfg)
	d.port = testPort(d.wire)
	d.out = newOutbox(d.buffers, d.Metrics)
	return d
}

func testPort(w *wire) *port {
	own := ip("10.98.0.1")
	return &port{
		link: link{
			name: "eno2", index: 3, mtu: 1500, mac: hardwareAddr{2, 0, 0, 0, 0, 1}, isUp: true,
			prefixes: []netip.Prefix{netip.MustParsePrefix("10.98.0.1/24")}, addrs: []netip.Addr{own},
		},
		dhcp: w, pxe: deafWire{w}, raw: etherWire{w}, limit: newSourceLimit(1000, 1),
	}
}

// ask puts a packet through the server and returns what goes out. to is where it was sent: "" for a broadcast, an
// address of ours, or "pxe" for port 4011.
func (d *desk) ask(packet []byte, to string) []reply {
	d.t.Helper()
	buf := new([bufferSize]byte)
	m := datagram{b: buf[:copy(buf[:maxPacketSize], packet)], peer: netip.MustParseAddrPort("10.98.0.85:4011")}
	e, reason := d.port.receive(&m, buf, to == "pxe", d.now)
	if reason != dropNone {
		return nil
	}
	e.isKnown = d.cfg.Knows(hardwareAddr(e.packet[offChaddr:]))
	if to != "" && to != "pxe" {
		e.local = ip(to)
	}
	before := len(d.wire.sent)
	d.handle(context.Background(), &e, d.out)
	d.settle()
	return d.wire.sent[before:]
}

// settle finishes what handle has passed on.
func (d *desk) settle() {
	ctx := context.Background()
	for len(d.bootingKnown) > 0 {
		d.boot(ctx, <-d.bootingKnown, d.out)
	}
	for len(d.booting) > 0 {
		d.boot(ctx, <-d.booting, d.out)
	}
	d.commits.flush(ctx, nil, d.out)
	d.out.flush()
}

// one asks and wants exactly one reply of that type.
func (d *desk) one(packet []byte, to string, want kind) reply {
	d.t.Helper()
	got := d.ask(packet, to)
	if len(got) != 1 || kind(got[0].m.MessageType()) != want {
		d.t.Fatalf("got %s, want one %s", kinds(got), want)
	}
	return got[0]
}

// none asks and wants silence.
func (d *desk) none(packet []byte, to string) {
	d.t.Helper()
	if got := d.ask(packet, to); len(got) != 0 {
		d.t.Fatalf("got %s, want silence", kinds(got))
	}
}

func kinds(rs []reply) string {
	var words []string
	for _, r := range rs {
		words = append(words, kind(r.m.MessageType()).String())
	}
	if words == nil {
		return "silence"
	}
	return strings.Join(words, ", ")
}

// bind takes a machine through a whole exchange and returns its address.
func (d *desk) bind(mac byte, options ...[]byte) netip.Addr {
	d.t.Helper()
	o := d.one(build(discover, mac, nil, options...), "", offer)
	a := yours(o)
	d.one(build(request, mac, nil, append(options, opt(50, a.AsSlice()...), opt(54, 10, 98, 0, 1))...), "", ack)
	return a
}

func yours(r reply) netip.Addr { return netip.AddrFrom4([4]byte(r.m.YourIPAddr.To4())) }

func ciaddr(a netip.Addr) func([]byte) {
	return func(b []byte) { copy(b[offCiaddr:], a.AsSlice()) }
}

func giaddr(s string) func([]byte) {
	return func(b []byte) { copy(b[offGiaddr:], addr4(s)) }
}

var errDisk = errors.New("disk full")

// text shows a reply in words, for golden files.
func (r reply) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "to %s, %d bytes\n", r.to, len(r.b))
	fmt.Fprintf(&b, "flags %x ciaddr %s yiaddr %s siaddr %s giaddr %s\n", r.b[offFlags:offCiaddr], r.m.ClientIPAddr, r.m.YourIPAddr, r.m.ServerIPAddr, r.m.GatewayIPAddr)
	fmt.Fprintf(&b, "sname %q file %q\n", r.m.ServerHostName, r.m.BootFileName)
	for _, code := range order(r.b) {
		v := r.m.Options[uint8(code)]
		fmt.Fprintf(&b, "%3d %s", code, hex.EncodeToString(v))
		if printable := strings.TrimRight(string(v), "\x00"); len(printable) > 3 && strings.IndexFunc(printable, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
			fmt.Fprintf(&b, " %q", v)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
