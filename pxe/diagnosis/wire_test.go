package diagnosis

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/net/bpf"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/tap"
	"slipway.dev/slipway/pxe/trace"
)

// The cast of the tests: this server, the machine, another server, a relay.
var (
	us      = netip.MustParseAddr("10.0.0.1")
	machine = netip.MustParseAddr("10.0.0.77")
	other   = netip.MustParseAddr("10.0.0.9")
	router  = netip.MustParseAddr("10.5.0.1")
	nobody  = netip.IPv4Unspecified()
	all     = netip.MustParseAddr("255.255.255.255")
	mac     = []byte{0x52, 0x54, 0, 1, 2, 3}
	ourMAC  = []byte{0x52, 0x54, 0, 0xff, 0, 1}
	start   = time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)
)

// wire builds the frames of a boot.
type wire struct {
	t      testing.TB
	frames []trace.Frame
}

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func (w *wire) add(when float64, fromMachine bool, proto byte, src, dst netip.Addr, payload []byte) {
	f := make([]byte, 14, 14+20+len(payload))
	copy(f, ourMAC)
	copy(f[6:], mac)
	if !fromMachine {
		copy(f, mac)
		copy(f[6:], ourMAC)
	}
	binary.BigEndian.PutUint16(f[12:], 0x0800)
	ip := make([]byte, 20)
	ip[0], ip[8], ip[9] = 0x45, 64, proto
	binary.BigEndian.PutUint16(ip[2:], uint16(20+len(payload)))
	copy(ip[12:], src.AsSlice())
	copy(ip[16:], dst.AsSlice())
	f = append(append(f, ip...), payload...)
	w.frames = append(w.frames, trace.Frame{At: at(when), Bytes: f, Len: len(f)})
}

func (w *wire) six(when float64, proto byte, payload []byte) {
	f := make([]byte, 14+40)
	copy(f, []byte{0x33, 0x33, 0, 0, 0, 1})
	copy(f[6:], mac)
	switch isServer := proto == 17 && binary.BigEndian.Uint16(payload) == 547; {
	case isServer:
		copy(f, mac)
		copy(f[6:], ourMAC)
	case proto == 58 && payload[0] == 134: // to all nodes
		copy(f[6:], ourMAC)
	}
	binary.BigEndian.PutUint16(f[12:], 0x86dd)
	f[14] = 0x60
	binary.BigEndian.PutUint16(f[18:], uint16(len(payload)))
	f[20], f[21] = proto, 255
	copy(f[22:], netip.MustParseAddr("fe80::1").AsSlice())
	copy(f[38:], netip.MustParseAddr("ff02::2").AsSlice())
	f = append(f, payload...)
	w.frames = append(w.frames, trace.Frame{At: at(when), Bytes: f, Len: len(f)})
}

func udp(src, dst uint16, payload []byte) []byte {
	b := make([]byte, 8, 8+len(payload))
	binary.BigEndian.PutUint16(b, src)
	binary.BigEndian.PutUint16(b[2:], dst)
	binary.BigEndian.PutUint16(b[4:], uint16(8+len(payload)))
	return append(b, payload...)
}

// opt changes a DHCP message.
type opt = dhcpv4.Modifier

func raw(code uint8, value ...byte) opt {
	return dhcpv4.WithOption(dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(code), value))
}

func class(s string) opt { return raw(60, []byte(s)...) }

func file(s string) opt {
	return func(d *dhcpv4.DHCPv4) {
		raw(67, []byte(s)...)(d)
		d.ServerIPAddr = us.AsSlice()
	}
}

func relay(a netip.Addr) opt { return func(d *dhcpv4.DHCPv4) { d.GatewayIPAddr = a.AsSlice() } }

func uuid(last byte) opt { return raw(97, append(make([]byte, 16), last)...) }

func secs(n uint16) opt { return func(d *dhcpv4.DHCPv4) { d.NumSeconds = n } }

func to(a netip.Addr) opt { return raw(54, a.AsSlice()...) }

// without takes the address out of an answer, as a proxy's is.
func without() opt { return func(d *dhcpv4.DHCPv4) { d.YourIPAddr = nobody.AsSlice() } }

// What machines say of themselves.
var (
	uefi    = []opt{class("PXEClient:Arch:00007:UNDI:003000"), raw(93, 0, 7), raw(57, 5, 192)}
	bios    = []opt{class("PXEClient:Arch:00000:UNDI:002001"), raw(93, 0, 0)}
	urlUEFI = []opt{class("HTTPClient:Arch:00016:UNDI:003000"), raw(93, 0, 16), raw(57, 5, 192)}
	ipxe    = []opt{class("PXEClient:Arch:00007:UNDI:003010"), raw(93, 0, 7), raw(77, []byte("iPXE")...), raw(175, 0x13, 1, 1, 0xeb, 3, 1, 21, 1)}
	system  = []opt{raw(12, []byte("web-1")...)}
)

func (w *wire) message(kind dhcpv4.MessageType, isReply bool, opts ...[]opt) []byte {
	d, err := dhcpv4.New(dhcpv4.WithHwAddr(mac), dhcpv4.WithMessageType(kind))
	if err != nil {
		w.t.Fatal(err)
	}
	if isReply {
		d.OpCode, d.YourIPAddr = dhcpv4.OpcodeBootReply, machine.AsSlice()
	}
	for _, some := range opts {
		for _, o := range some {
			o(d)
		}
	}
	return d.ToBytes()
}

func (w *wire) discover(when float64, who []opt, opts ...opt) {
	w.add(when, true, 17, nobody, all, udp(68, 67, w.message(dhcpv4.MessageTypeDiscover, false, who, opts)))
}

func (w *wire) request(when float64, who []opt, opts ...opt) {
	w.add(when, true, 17, nobody, all, udp(68, 67, w.message(dhcpv4.MessageTypeRequest, false, who, opts)))
}

func (w *wire) decline(when float64) {
	w.add(when, true, 17, nobody, all, udp(68, 67, w.message(dhcpv4.MessageTypeDecline, false, uefi)))
}

func (w *wire) answer(when float64, kind dhcpv4.MessageType, from netip.Addr, opts ...opt) {
	w.add(when, false, 17, from, all, udp(67, 68, w.message(kind, true, []opt{to(from)}, opts)))
}

func (w *wire) offer(when float64, from netip.Addr, opts ...opt) {
	w.answer(when, dhcpv4.MessageTypeOffer, from, opts...)
}

func (w *wire) ack(when float64, from netip.Addr, opts ...opt) {
	w.answer(when, dhcpv4.MessageTypeAck, from, opts...)
}

// address is a whole exchange with us.
func (w *wire) address(when float64, who []opt, opts ...opt) {
	w.discover(when, who)
	w.offer(when+.001, us, opts...)
	w.request(when+.002, who, to(us))
	w.ack(when+.003, us, opts...)
}

func (w *wire) ask4011(when float64, who []opt, dst netip.Addr) {
	w.add(when, true, 17, machine, dst, udp(4011, 4011, w.message(dhcpv4.MessageTypeRequest, false, who)))
}

func (w *wire) tell4011(when float64, opts ...opt) {
	w.add(when, false, 17, us, machine, udp(4011, 4011, w.message(dhcpv4.MessageTypeAck, true, []opt{to(us), without()}, opts)))
}

func (w *wire) unreachable(when float64, port uint16) { w.refused(when, 3, port) }

// refused is an ICMP error with a code, about a packet to a port of ours.
func (w *wire) refused(when float64, code byte, port uint16) {
	b := make([]byte, 8+20+8)
	b[0], b[1], b[8], b[17] = 3, code, 0x45, 17
	copy(b[20:], machine.AsSlice())
	copy(b[24:], us.AsSlice())
	binary.BigEndian.PutUint16(b[28:], 4011)
	binary.BigEndian.PutUint16(b[30:], port)
	w.add(when, false, 1, us, machine, b)
}

func (w *wire) read(when float64, port uint16, name string, options ...string) {
	b := append([]byte{0, 1}, strings.Join(append([]string{name, "octet"}, options...), "\x00")+"\x00"...)
	w.add(when, true, 17, machine, us, udp(port, 69, b))
}

// tftp is a packet within a transfer between the machine's port and ours.
func (w *wire) tftp(when float64, isFromMachine bool, port uint16, op byte, n byte, rest string) {
	b := append([]byte{0, op, 0, n}, rest...)
	if op == 6 {
		b = append([]byte{0, 6}, rest...)
	}
	if isFromMachine {
		w.add(when, true, 17, machine, us, udp(port, 40000, b))
	} else if op == 5 { // a refusal comes from the port that was asked
		w.add(when, false, 17, us, machine, udp(69, port, b))
	} else {
		w.add(when, false, 17, us, machine, udp(40000, port, b))
	}
}

func (w *wire) tcp(when float64, isFromMachine bool, flags byte, payload string) {
	w.tcpTo(when, us, isFromMachine, flags, payload)
}

const (
	syn, rst, push, ackFlag = 2, 4, 8, 16
)

func (w *wire) tcpTo(when float64, server netip.Addr, isFromMachine bool, flags byte, payload string) {
	b := make([]byte, 20, 20+len(payload))
	src, dst, from, into := machine, server, uint16(5000), uint16(80)
	if !isFromMachine {
		src, dst, from, into = dst, src, into, from
	}
	binary.BigEndian.PutUint16(b, from)
	binary.BigEndian.PutUint16(b[2:], into)
	b[12], b[13] = 0x50, flags
	if payload != "" && len(payload) < 1400 { // the last segment of what one side has to say
		b[13] |= push
	}
	w.add(when, isFromMachine, 6, src, dst, append(b, payload...))
}

// get is an HTTP request with its answer.
func (w *wire) get(when float64, path, status string) {
	w.tcp(when, true, syn, "")
	w.tcp(when+.001, false, syn|ackFlag, "")
	w.tcp(when+.002, true, ackFlag, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
	if status != "" {
		w.tcp(when+.003, false, ackFlag, "HTTP/1.1 "+status+"\r\nContent-Length: 0\r\n\r\n")
	}
}

func (w *wire) solicit(when float64) {
	w.six(when, 17, udp(546, 547, []byte{1, 0, 0, 1, 0, 61, 0, 2, 0, 7}))
}

func (w *wire) advertise(when float64) {
	w.six(when, 17, udp(547, 546, []byte{2, 0, 0, 1, 0, 59, 0, 1, 'x'}))
}

// sixSays is an answer of a DHCPv6 server: an address when status is 0, else why there is none.
func (w *wire) sixSays(when float64, kind byte, status byte, text string) {
	inner := append([]byte{0, 13, 0, byte(2 + len(text)), 0, status}, text...)
	if status == 0 {
		inner = append([]byte{0, 5, 0, 24}, make([]byte, 24)...)
	}
	m := append([]byte{kind, 0, 0, 1, 0, 3, 0, byte(12 + len(inner))}, make([]byte, 12)...)
	w.six(when, 17, udp(547, 546, append(append(m, inner...), 0, 59, 0, 1, 'x')))
}

// sixRequest is a REQUEST of a boot.
func (w *wire) sixRequest(when float64) {
	w.six(when, 17, udp(546, 547, []byte{3, 0, 0, 1, 0, 61, 0, 2, 0, 7}))
}

func (w *wire) solicitRouter(when float64) { w.six(when, 58, make133()) }

func make133() []byte { b := make([]byte, 16); b[0] = 133; return b }

func (w *wire) advertiseRouter(when float64) {
	b := make133()
	b[0] = 134
	w.six(when, 58, b)
}

// event adds an event to a case.
func (c *Case) event(when float64, kind, detail string, data ...map[string]any) {
	e := inventory.Event{At: at(when), Kind: kind, Detail: detail}
	if len(data) > 0 {
		e.Data = data[0]
	}
	c.Events = append(c.Events, e)
}

// tell makes a case of what a test says: the machine is a host in a subnet in mode full, and it is a minute and a half
// after the beginning.
func tell(t testing.TB, fn func(w *wire, c *Case)) Case {
	c := Case{
		Now: at(90), Ours: []netip.Addr{us}, BootPort: 80,
		Host:   &inventory.Host{Name: "r1-u01", State: inventory.Available},
		Subnet: &inventory.Subnet{Name: "rack1", Mode: inventory.ModeFull},
	}
	w := &wire{t: t}
	fn(w, &c)
	slices.SortStableFunc(w.frames, func(a, b trace.Frame) int { return a.At.Compare(b.At) })
	c.Packets = heard(t, w.frames, c.BootPort)
	return c
}

// heard is what the record has of a machine: what the ear's filter lets through, as the ring keeps it.
func heard(t testing.TB, frames []trace.Frame, bootPort int) []trace.Packet {
	t.Helper()
	raw, err := tap.Filter([]int{bootPort})
	if err != nil {
		t.Fatal(err)
	}
	code, _ := bpf.Disassemble(raw)
	kernel, err := bpf.NewVM(code)
	if err != nil {
		t.Fatal(err)
	}
	r := trace.NewRing(trace.Config{IsOurs: func(a netip.Addr) bool { return a == us }})
	for _, f := range frames {
		if n, err := kernel.Run(f.Bytes); err == nil && n > 0 {
			r.Add(f)
		}
	}
	return r.Packets(inventory.MAC(net.HardwareAddr(mac).String()), time.Time{})
}

// find returns a cause by its code.
func find(causes []Cause, code string) (Cause, bool) {
	for _, x := range causes {
		if x.Code == code {
			return x, true
		}
	}
	return Cause{}, false
}
