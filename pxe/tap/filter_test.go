package tap

import (
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
