package net_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/web/wire"
)

const (
	floodEnv  = "SLIPWAY_NET_FLOOD"
	floodRate = 100_000 // packets a second, as far as one processor makes them
	floodN    = 256     // in one system call
	floodNice = 10      // whoever floods has a machine of their own: here they take what other tests leave of the processor
)

// floods are what is sent, by name: frames that are altered before each is sent.
var floods = map[string]func(frame []byte, n int) []byte{
	"discovers":  func(b []byte, n int) []byte { return discoverFrame(b, n, false) },
	"garbage":    func(b []byte, n int) []byte { return discoverFrame(b, n, true) },
	"tftp reads": readFrame,
	"solicits":   solicitFrame,
}

// TestKnownMachinesBootInFloods boots accepted machines, from their firmware to the report of what they booted, while
// somebody on their network sends packets as fast as one processor can, up to 100,000 a second, or holds connections open.
// The server's memory stays bounded, and afterwards strangers get an address at once.
func TestKnownMachinesBootInFloods(t *testing.T) {
	a := newAppliance(t)
	ctx := t.Context()
	a.ImportLive()
	if _, err := a.API.Profiles.Create(ctx, inventory.Profile{Name: "live", Image: "live", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
	known := simulate.Config{Hosts: 8, Seed: 21, Expect: simulate.StageBooted, Timeout: 3 * time.Minute}
	stranger := known
	stranger.Expect = simulate.StageWaiting
	a.Good(a.Boot(ctx, stranger))
	if _, err := a.API.Hosts.Bulk(ctx, wire.BulkRequest{Verb: "accept", Selector: "state=discovered"}, false); err != nil {
		t.Fatal(err)
	}
	a.Good(a.Boot(ctx, known))
	before := a.memory(t)
	for _, name := range []string{"discovers", "garbage", "tftp reads", "solicits", "connections"} {
		t.Run(name, func(t *testing.T) {
			stop := a.flood(t, name)
			var said strings.Builder
			for until := time.Now().Add(floodFor); time.Now().Before(until) && !t.Failed(); {
				r := a.Boot(ctx, known)
				said.Reset()
				_ = r.WriteSummary(&said)
				if !r.IsGood() {
					t.Error("a machine does not boot")
				}
			}
			stop()
			t.Logf("the last boot: %s", said.String())
			if now := a.memory(t); now > before+floodMemory {
				t.Errorf("the server took %d MiB before, and takes %d MiB", before>>20, now>>20)
			}
			for seed, until := uint64(seeds[name]), time.Now().Add(endings[name]); ; seed++ {
				a.Good(a.Boot(ctx, simulate.Config{Hosts: 2, Seed: seed, Expect: simulate.StageWaiting}))
				if time.Now().After(until) {
					break
				}
				time.Sleep(100 * time.Millisecond) // a seed is a byte
			}
		})
	}
}

// endings is for how long strangers boot after a flood, where it leaves something behind that ends: offers to strangers.
var endings = map[string]time.Duration{"discovers": 17 * time.Second}

// seeds are of the strangers that boot after a flood.
var seeds = map[string]int{"connections": 31, "garbage": 32, "tftp reads": 33, "solicits": 34, "discovers": 50}

const (
	floodFor = 6 * time.Second // machines boot one time after the other
	// floodMemory is how much more memory floods may cost, in bytes: full queues take 56 MiB, the record of strangers 8 MiB,
	// and the garbage collector lets half as much again come on top before it looks.
	floodMemory = 192 << 20
)

// memory is the most that the server has taken so far.
func (a *appliance) memory(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.Process.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(grep(string(status), "VmHWM"))
	if len(words) < 2 {
		t.Fatalf("no VmHWM in %s", status)
	}
	n, err := strconv.Atoi(words[1])
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// flood begins one, and returns what ends it.
func (a *appliance) flood(t *testing.T, name string) (stop func()) {
	t.Helper()
	if name == "connections" {
		return a.holdConnections(t)
	}
	received := func() int {
		n, _ := strconv.Atoi(a.lab.In(a.Net.Server, "sh", "-c", "cat /sys/class/net/vs/statistics/rx_packets | tr -d '\\n'"))
		return n
	}
	p := a.lab.Start(a.Net.Client, []string{netlab.Child("flood"), floodEnv + "=" + name}, nil, selfPath(t))
	p.WaitFor("flooding", 1)
	first, began := received(), time.Now()
	return func() {
		rate := float64(received()-first) / time.Since(began).Seconds()
		p.Kill(syscall.SIGTERM)
		t.Logf("%.0f packets a second came to the server's interface; sent: %s", rate, lastLines(p.Text(), 1))
	}
}

// holdConnections opens connections to the boot door from one machine and says half a sentence on each.
func (a *appliance) holdConnections(t *testing.T) (stop func()) {
	t.Helper()
	a.lab.In(a.Net.Client, "ip", "addr", "add", "10.77.200.1/32", "dev", "lo")
	var open []net.Conn
	a.lab.Inside(a.Net.Client, func() error {
		d := net.Dialer{Timeout: 2 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(10, 77, 200, 1)}}
		for range 3000 {
			conn, err := d.Dial("tcp4", "10.77.0.1:80")
			if err != nil {
				break // refused at last, or left waiting: that is one way to bound them
			}
			_, _ = io.WriteString(conn, "GET /boot/undionly.kpxe HTTP/1.1\r\nHost: x\r\nX-")
			open = append(open, conn)
		}
		return nil
	})
	t.Logf("%d connections are open", len(open))
	return func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	}
}

// sendFlood is a child: it sends frames on vc until it is told to stop, and says how many.
func sendFlood() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	runtime.LockOSThread()
	var last unix.CPUSet // the last processor is the flood's; the server may use all others by itself
	last.Set(runtime.NumCPU() - 1)
	_ = unix.SchedSetaffinity(0, &last)
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, floodNice)
	vc, err := net.InterfaceByName("vc")
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: vc.Index}); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
		return err
	}
	alter, frames := floods[os.Getenv(floodEnv)], make([][]byte, floodN)
	vectors, heads := make([]unix.Iovec, floodN), make([]mmsghdr, floodN)
	fmt.Println("flooding")
	sent, start := 0, time.Now()
	for ctx.Err() == nil {
		for i := range frames {
			frames[i] = alter(frames[i], sent+i)
			vectors[i].Base = &frames[i][0]
			vectors[i].SetLen(len(frames[i]))
			heads[i].header.Iov = &vectors[i]
			heads[i].header.SetIovlen(1)
		}
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&heads[0])), floodN, 0, 0, 0)
		if errno == 0 {
			sent += int(n)
		}
		if ahead := time.Duration(sent)*time.Second/floodRate - time.Since(start); ahead > time.Millisecond {
			time.Sleep(ahead)
		}
	}
	fmt.Printf("%d packets, %.0f a second\n", sent, float64(sent)/time.Since(start).Seconds())
	return nil
}

// mmsghdr is struct mmsghdr of sendmmsg(2).
type mmsghdr struct {
	header unix.Msghdr
	n      uint32
	_      [4]byte
}

// udpFrame puts addresses and ports before a datagram of UDP over IPv4, to be broadcast.
func udpFrame(b []byte, from, to [4]byte, src, dst uint16, n int) []byte {
	b = append(b[:0], 255, 255, 255, 255, 255, 255, 2, 0xf1, 0, 0, 0, 1, 8, 0)
	b = append(b, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0)
	b = append(append(b, from[:]...), to[:]...)
	binary.BigEndian.PutUint16(b[16:], uint16(28+n))
	sum := uint32(0)
	for at := 14; at < 34; at += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[at:]))
	}
	binary.BigEndian.PutUint16(b[24:], ^uint16(sum>>16+sum))
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, src), dst)
	return binary.BigEndian.AppendUint32(b, uint32(8+n)<<16) // a checksum of 0 is none
}

// discoverFrame is a DISCOVER of PXE firmware with a made-up MAC, or nonsense of the same length.
func discoverFrame(b []byte, n int, isGarbage bool) []byte {
	const size = 300
	if len(b) == 0 {
		b = udpFrame(b, [4]byte{}, [4]byte{255, 255, 255, 255}, 68, 67, size)
		m := make([]byte, size)
		m[0], m[1], m[2], m[10] = 1, 1, 6, 0x80
		options := "\x63\x82\x53\x63\x35\x01\x01\x5d\x02\x00\x07\x5e\x03\x01\x03\x00\x3c\x20PXEClient:Arch:00007:UNDI:003000\xff"
		copy(m[236:], options)
		b = append(b, m...)
	}
	if isGarbage {
		for at := 42; at+8 <= len(b); at += 8 {
			binary.LittleEndian.PutUint64(b[at:], rand.Uint64())
		}
		if n%2 == 0 { // half of it has a head that is right
			b[42], b[43], b[44], b[45] = 1, 1, 6, 0
		}
		return b
	}
	binary.LittleEndian.PutUint64(b[42+28:], rand.Uint64()<<8|0x0e)
	return b
}

// readFrame is a read request of TFTP from an address that machines may have, each from another port.
func readFrame(b []byte, n int) []byte {
	const ask = "\x00\x01undionly.kpxe\x00octet\x00blksize\x001456\x00"
	b = udpFrame(b, [4]byte{10, 77, 201, 1}, [4]byte{10, 77, 0, 1}, uint16(1024+n%60000), 69, len(ask))
	return append(b, ask...)
}

// solicitFrame is a SOLICIT of DHCPv6 with a made-up DUID.
func solicitFrame(b []byte, _ int) []byte {
	m := []byte("\x01\x00\x00\x00" + "\x00\x01\x00\x0a\x00\x03\x00\x01\x0e\x00\x00\x00\x00\x00" + "\x00\x03\x00\x0c\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x08\x00\x02\x00\x00")
	id := rand.Uint64()
	binary.LittleEndian.PutUint32(m[13:], uint32(id))
	m[1], m[2], m[3] = byte(id>>32), byte(id>>40), byte(id>>48)
	b = append(b[:0], 0x33, 0x33, 0, 1, 0, 2, 2, 0xf1, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(m)))
	b = append(b, 17, 64)
	from := [16]byte{0xfe, 0x80, 8: 0x0e, 15: 1}
	to := [16]byte{0xff, 2, 13: 1, 15: 2}
	b = append(append(b, from[:]...), to[:]...)
	at := len(b)
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, 546), 547)
	b = binary.BigEndian.AppendUint32(b, uint32(8+len(m))<<16)
	b = append(b, m...)
	sum := uint32(17 + 8 + len(m)) // UDP over IPv6 has to have a checksum
	for i := 22; i < 54; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for i := at; i < len(b); i += 2 {
		if i+1 < len(b) {
			sum += uint32(binary.BigEndian.Uint16(b[i:]))
		} else {
			sum += uint32(b[i]) << 8
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(b[at+6:], ^uint16(sum))
	return b
}

func selfPath(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}
