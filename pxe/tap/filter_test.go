package tap

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/net/bpf"

	"slipway.dev/slipway/pxe/trace"
)

// The kernel's program lets through what a boot is made of, and keeps file contents out.
func TestFilterKeepsWhatBootsAreMadeOf(t *testing.T) {
	vm, err := bpf.NewVM(instructions([]int{8000, 8001, 8002}))
	if err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join("..", "testdata", "captures", "*.pcap"))
	if len(names) < 16 {
		t.Fatalf("%d captures", len(names))
	}
	passed, kept := 0, map[trace.Kind]int{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		frames, err := trace.ParsePCAP(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			n, err := vm.Run(f.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			p := trace.Decode(f)
			if want := isWanted(p); want != (n > 0) {
				t.Errorf("%s: passed %v: %s", filepath.Base(name), n > 0, p)
			}
			if n > 0 {
				passed++
				kept[p.Kind]++
			}
		}
	}
	for _, k := range []trace.Kind{trace.DHCPv4, trace.DHCPv6, trace.TFTP, trace.TCP, trace.ICMP, trace.Router} {
		if kept[k] == 0 {
			t.Errorf("no %s passed", k)
		}
	}
	t.Logf("%d frames passed: %v", passed, kept)
}

// isWanted says the same as the program, after decoding.
func isWanted(p trace.Packet) bool {
	switch p.Kind {
	case trace.Unknown:
		return false
	case trace.TFTP:
		return p.TFTP.Op != trace.Data && p.TFTP.Op != trace.Ack || p.TFTP.Block <= 2
	case trace.TCP:
		s := p.TCP
		return s.IsSYN || s.IsFIN || s.IsRST || s.Method != "" || s.Status != 0 || s.Alert != 0 || s.IsHello
	}
	return true
}

func dhcpFrame(src, dst int, mac [6]byte) []byte {
	b := make([]byte, etherNet+20+8+240)
	b[12], b[13], b[etherNet], b[etherNet+9] = 8, 0, 0x45, 17
	binary.BigEndian.PutUint16(b[16:], uint16(len(b)-etherNet))
	binary.BigEndian.PutUint16(b[etherNet+20:], uint16(src))
	binary.BigEndian.PutUint16(b[etherNet+22:], uint16(dst))
	copy(b[etherNet+20+8+28:], mac[:])
	return b
}

// TestFilterOfFramesThatNoCaptureHas has what the captures lack.
func TestFilterOfFramesThatNoCaptureHas(t *testing.T) {
	vm, err := bpf.NewVM(instructions([]int{8000}))
	if err != nil {
		t.Fatal(err)
	}
	segment := func(payload ...byte) []byte {
		b := append(dhcpFrame(8000, 50000, [6]byte{})[:etherNet+20+20], payload...)
		b[etherNet+9], b[etherNet+20+12], b[etherNet+20+13] = 6, 0x50, 0x18
		return b
	}
	long := func(head string, n int) []byte { return segment(append([]byte(head), make([]byte, n-len(head))...)...) }
	unpushed := func(head string, n int) []byte {
		b := long(head, n)
		b[etherNet+20+13] = 0x10
		return b
	}
	last := long("content", 64<<10)
	last[etherNet+20+13] |= 1
	request := long("POST /report", 64<<10)
	binary.BigEndian.PutUint16(request[etherNet+20:], 50000)
	binary.BigEndian.PutUint16(request[etherNet+22:], 8000)
	fragment := dhcpFrame(68, 67, [6]byte{})
	tftp := func(port int, op, n byte) []byte {
		b := dhcpFrame(port, 2070, [6]byte{})
		copy(b[etherNet+28:], []byte{0, op, 0, n})
		return b
	}
	fragment[21] = 8
	for _, c := range []struct {
		name  string
		frame []byte
		want  bool
	}{
		{"DHCP", dhcpFrame(68, 67, [6]byte{}), true},
		{"a later fragment", fragment, false},
		{"what a PXE server on port 4011 answers", dhcpFrame(4011, 50000, [6]byte{}), true},
		{"a refusal of a file, from the port that was asked", tftp(69, 5, 1), true},
		{"a large block from the port that was asked", tftp(69, 3, 9), false},
		{"the same from another service", tftp(53, 5, 1), false},
		{"a TLS alert", segment(0x15, 3, 3, 0, 2, 2, 40), true},
		{"a ClientHello", segment(0x16, 3, 1, 2, 0, 1, 0), true},
		{"a ServerHello", segment(0x16, 3, 3, 2, 0, 2, 0), false},
		{"an answer that begins with 4 KiB", long("HTTP/1.1 200 OK", 4096), true},
		{"a large piece of a file that begins as an answer does", long("HTTP/1.1 200 OK", 5000), false},
		{"the large last piece of a file", last, true},
		{"what the window left room for, as an answer begins", unpushed("HTTP/1.1 200 OK", 376), false},
		{"the first whole segment of a head that the kernel had to cut", unpushed("HTTP/1.1 200 OK", 1240), true},
		{"a request that came in large pieces", request, true},
		{"content", segment(0x17, 3, 3, 2, 0, 2, 0), false},
	} {
		if n, err := vm.Run(c.frame); err != nil || n > 0 != c.want {
			t.Errorf("%s: %d, %v, want it %v", c.name, n, err, c.want)
		}
	}
}

func TestMachineOf(t *testing.T) {
	mac := [6]byte{2, 0, 0, 0, 0, 1}
	for _, ports := range [][2]int{{68, 67}, {67, 68}, {67, 67}} {
		if got, ok := machineOf(dhcpFrame(ports[0], ports[1], mac)); !ok || got != mac {
			t.Errorf("ports %v: %x, %v", ports, got, ok)
		}
	}
	with := func(at int, b byte) []byte {
		frame := dhcpFrame(68, 67, mac)
		frame[at] = b
		return frame
	}
	long := dhcpFrame(68, 67, mac) // four bytes of IP options
	long = append(append(append([]byte(nil), long[:etherNet+20]...), 1, 1, 1, 1), long[etherNet+20:]...)
	long[etherNet] = 0x46
	if got, ok := machineOf(long); !ok || got != mac {
		t.Errorf("behind IP options: %x, %v", got, ok)
	}
	for name, frame := range map[string][]byte{
		"TFTP": dhcpFrame(2070, 69, mac), "port 4011": dhcpFrame(68, 4011, mac), "nothing": nil, "TCP": with(etherNet+9, 6), "no IP": with(13, 6),
		"to port 67 from elsewhere": dhcpFrame(2070, 67, mac), "from port 67 to elsewhere": dhcpFrame(67, 2070, mac),
	} {
		if _, ok := machineOf(frame); ok {
			t.Errorf("%s is taken for DHCP", name)
		}
	}
	whole := dhcpFrame(68, 67, mac)
	for n := range whole {
		if _, ok := machineOf(whole[:n]); ok && n < etherNet+20+8+34 {
			t.Errorf("a frame of %d bytes names its machine", n)
		}
	}
	whole[etherNet] = 0x4f // options that the frame has no room for
	machineOf(whole[:etherNet+20+8+34])
}
