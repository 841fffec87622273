package tap

import (
	"fmt"

	"golang.org/x/net/bpf"
)

// Filter returns the kernel's program that passes the packets of boots. These are DHCP, TFTP requests with the beginnings
// and ends of transfers, and router solicitations and advertisements. Of TCP connections to the ports, it passes beginnings
// and ends, heads of HTTP and TLS alerts. It also passes reports of undeliverable packets.
func Filter(ports []int) ([]bpf.RawInstruction, error) {
	raw, err := bpf.Assemble(instructions(ports))
	if err != nil {
		return nil, fmt.Errorf("assemble packet filter: %w", err)
	}
	return raw, nil
}

// program is a filter being written, for the classic BPF of packet(7), which jumps forward only. Jumps name labels;
// accept and drop are at its end.
type program struct {
	code   []bpf.Instruction
	labels map[string]int
	jumps  []jump
}

type jump struct {
	at       int
	yes, no  string
	cond     bpf.JumpTest
	val      uint32
	isAlways bool
}

func (p *program) add(i ...bpf.Instruction) { p.code = append(p.code, i...) }

func (p *program) label(name string) { p.labels[name] = len(p.code) }

// when jumps to yes if the accumulator compares so, else to no; "" goes on.
func (p *program) when(cond bpf.JumpTest, val uint32, yes, no string) {
	p.jumps = append(p.jumps, jump{at: len(p.code), yes: yes, no: no, cond: cond, val: val})
	p.add(nil)
}

// or jumps to yes if the accumulator is one of the values.
func (p *program) or(yes string, values ...uint32) {
	for _, v := range values {
		p.when(bpf.JumpEqual, v, yes, "")
	}
}

func (p *program) always(to string) {
	p.jumps = append(p.jumps, jump{at: len(p.code), yes: to, isAlways: true})
	p.add(nil)
}

func (p *program) finish() []bpf.Instruction {
	p.label("accept")
	p.add(bpf.RetConstant{Val: snap})
	p.label("drop")
	p.add(bpf.RetConstant{Val: 0})
	skip := func(j jump, to string) uint8 {
		if to == "" {
			return 0
		}
		return uint8(p.labels[to] - j.at - 1)
	}
	for _, j := range p.jumps {
		if j.isAlways {
			p.code[j.at] = bpf.Jump{Skip: uint32(p.labels[j.yes] - j.at - 1)}
			continue
		}
		// A conditional jump reaches 255 instructions. The program has about a hundred.
		p.code[j.at] = bpf.JumpIf{Cond: j.cond, Val: j.val, SkipTrue: skip(j, j.yes), SkipFalse: skip(j, j.no)}
	}
	return p.code
}

const (
	snap      = 1600
	etherNet  = 14
	headerSix = etherNet + 40
	// largest is what a packet with the head of an answer may have: net/http flushes it from a buffer of 4 KiB.
	largest = 4096 + headerSix + 120
	// whole is what a frame of a network card that cannot cut has at least, as any link of IPv6 carries it: only the last
	// of those that make up a head has PSH.
	whole = etherNet + 1280
)

func instructions(ports []int) []bpf.Instruction {
	p := &program{labels: map[string]int{}}
	p.add(bpf.LoadAbsolute{Off: 12, Size: 2})
	p.when(bpf.JumpEqual, 0x86dd, "six", "")
	p.when(bpf.JumpEqual, 0x0800, "", "drop")
	p.add(bpf.LoadAbsolute{Off: 20, Size: 2})
	// A later fragment has no ports: the bytes at their place are data.
	p.when(bpf.JumpBitsSet, 0x1fff, "drop", "") // a later fragment
	p.add(bpf.LoadMemShift{Off: etherNet})      // X: the IP header's length
	p.add(bpf.LoadAbsolute{Off: 23, Size: 1})
	p.or("udp", 17)
	p.or("tcp", 6)
	p.when(bpf.JumpEqual, 1, "", "drop")
	p.add(bpf.LoadIndirect{Off: etherNet, Size: 1})
	p.when(bpf.JumpEqual, 3, "accept", "drop")

	p.label("six")
	p.add(bpf.LoadConstant{Dst: bpf.RegX, Val: headerSix - etherNet})
	p.add(bpf.LoadAbsolute{Off: 20, Size: 1})
	p.or("udp", 17)
	p.or("tcp", 6)
	p.when(bpf.JumpEqual, 58, "", "drop")
	p.add(bpf.LoadAbsolute{Off: headerSix, Size: 1})
	p.or("accept", 133)
	p.when(bpf.JumpEqual, 134, "accept", "drop")

	p.label("udp")
	p.add(bpf.LoadIndirect{Off: etherNet + 2, Size: 2})
	p.or("accept", 67, 68, 69, 4011, 546, 547)
	p.when(bpf.JumpGreaterOrEqual, 1024, "", "drop")
	p.add(bpf.LoadIndirect{Off: etherNet, Size: 2})
	p.or("accept", 67, 68, 4011, 546, 547)
	p.or("tftp", 69) // what refuses a request comes from the port that was asked, before a transfer has one of its own
	p.when(bpf.JumpGreaterOrEqual, 1024, "", "drop")
	p.label("tftp")
	p.add(bpf.LoadIndirect{Off: etherNet + 8, Size: 2}) // TFTP's operation
	p.or("accept", 5, 6)
	p.when(bpf.JumpEqual, 3, "block", "")
	p.when(bpf.JumpEqual, 4, "block", "drop")
	p.label("block")
	p.add(bpf.LoadIndirect{Off: etherNet + 10, Size: 2})
	p.when(bpf.JumpGreaterThan, 2, "drop", "accept")

	p.label("tcp")
	for _, side := range []struct {
		off uint32
		is  string
	}{{etherNet, "answer"}, {etherNet + 2, "boot"}} {
		p.add(bpf.LoadIndirect{Off: side.off, Size: 2})
		for _, n := range ports {
			p.or(side.is, uint32(n))
		}
	}
	p.always("drop")
	p.label("answer") // most are pieces of files: their contents are in no cache, and to look at them costs a wait for memory
	p.add(bpf.LoadExtension{Num: bpf.ExtLen})
	p.when(bpf.JumpGreaterThan, largest, "large", "")
	p.when(bpf.JumpGreaterOrEqual, whole, "boot", "")
	p.add(bpf.LoadIndirect{Off: etherNet + 13, Size: 1})
	p.when(bpf.JumpBitsSet, 7, "accept", "")      // FIN, SYN, RST
	p.when(bpf.JumpBitsSet, 8, "payload", "drop") // no PSH: what the window left room for
	p.label("large")
	p.add(bpf.LoadIndirect{Off: etherNet + 13, Size: 1})
	p.when(bpf.JumpBitsSet, 7, "accept", "drop")
	p.label("boot")
	p.add(bpf.LoadIndirect{Off: etherNet + 13, Size: 1})
	p.when(bpf.JumpBitsSet, 7, "accept", "") // FIN, SYN, RST
	p.label("payload")
	p.add(bpf.LoadIndirect{Off: etherNet + 12, Size: 1}, bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 2}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0x3c})
	p.add(bpf.ALUOpX{Op: bpf.ALUOpAdd}, bpf.TAX{}) // X: where the payload is
	p.add(bpf.LoadIndirect{Off: etherNet, Size: 4})
	for _, word := range []string{"GET ", "HEAD", "POST", "HTTP"} {
		p.or("accept", uint32(word[0])<<24|uint32(word[1])<<16|uint32(word[2])<<8|uint32(word[3]))
	}
	p.add(bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 16})
	p.or("accept", 0x1503) // a TLS alert
	p.when(bpf.JumpEqual, 0x1603, "", "drop")
	p.add(bpf.LoadIndirect{Off: etherNet + 5, Size: 1})
	p.when(bpf.JumpEqual, 1, "accept", "drop") // ClientHello
	return p.finish()
}
