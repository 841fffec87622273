package doctor

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// owner is a process that has a file open.
type owner struct {
	pid     int
	program string
}

// readSockets returns the open UDP sockets and the TCP ones that listen, with their programs, and the process that has
// the lock file open.
func readSockets(lock string) (all []Socket, server int) {
	owners, server := readOwners(resolved(lock))
	for _, s := range append(readProto("udp"), readProto("tcp")...) {
		o := owners[s.inode]
		s.PID, s.Program = o.pid, o.program
		all = append(all, s.Socket)
	}
	return all, server
}

// Holder returns the process that has a file open, 0 for none that is seen.
func Holder(path string) int {
	_, pid := readOwners(resolved(path))
	return pid
}

// resolved is a path as /proc has it.
func resolved(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path
}

// readOwners looks which processes have sockets open, by the sockets' inodes, and which one has the lock.
func readOwners(lock string) (owners map[uint64]owner, holder int) {
	owners = map[uint64]owner{}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		to, err := os.Readlink(link)
		if err != nil {
			continue // gone, or another user's
		}
		parts := strings.Split(link, "/")
		pid, _ := strconv.Atoi(parts[2])
		if to == lock {
			holder = pid
		}
		if inode, isSocket := socketInode(to); isSocket {
			if o, ok := owners[inode]; ok && o.pid < pid {
				continue // a child that has its parent's socket
			}
			name, _ := os.ReadFile(filepath.Join("/proc", parts[2], "comm"))
			owners[inode] = owner{pid: pid, program: strings.TrimSpace(string(name))}
		}
	}
	return owners, holder
}

func socketInode(link string) (uint64, bool) {
	text, ok := strings.CutPrefix(link, "socket:[")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64)
	return n, err == nil
}

// found is a socket before its program is known.
type found struct {
	Socket
	inode uint64
}

// readProto asks the kernel by netlink, which says to which interface sockets are bound; where it does not answer, /proc
// has the rest.
func readProto(proto string) (all []found) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		ask := netlink.SocketDiagUDP
		if proto == "tcp" {
			ask = netlink.SocketDiagTCP
		}
		rows, err := ask(family)
		if err != nil {
			all = append(all, readTable(proto, family)...)
			continue
		}
		for _, r := range rows {
			if proto == "tcp" && r.State != tcpListen {
				continue
			}
			a, _ := netip.AddrFromSlice(r.ID.Source)
			f := found{Socket: Socket{Proto: proto, Address: a.Unmap(), Number: int(r.ID.SourcePort)}, inode: uint64(r.INode)}
			if i, err := net.InterfaceByIndex(int(r.ID.Interface)); r.ID.Interface != 0 && err == nil {
				f.Interface = i.Name
			}
			all = append(all, f)
		}
	}
	return all
}

const tcpListen = 10

func readTable(proto string, family uint8) []found {
	path := "/proc/net/" + proto
	if family == unix.AF_INET6 {
		path += "6"
	}
	text, _ := os.ReadFile(path) // there is none without IPv6
	return parseTable(proto, text)
}

// parseTable reads a table as /proc/net/udp is: addresses as words in the machine's order, which is little-endian on all
// that we run on.
func parseTable(proto string, text []byte) (all []found) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		w := strings.Fields(lines.Text())
		if len(w) < 10 || !strings.HasSuffix(w[0], ":") || proto == "tcp" && w[3] != "0A" {
			continue
		}
		addr, port, _ := strings.Cut(w[1], ":")
		b, err1 := hex.DecodeString(addr)
		number, err2 := strconv.ParseUint(port, 16, 16)
		inode, err3 := strconv.ParseUint(w[9], 10, 64)
		if err1 != nil || err2 != nil || err3 != nil || len(b)%4 != 0 {
			continue
		}
		for i := 0; i < len(b); i += 4 {
			binary.BigEndian.PutUint32(b[i:], binary.LittleEndian.Uint32(b[i:]))
		}
		if a, ok := netip.AddrFromSlice(b); ok {
			all = append(all, found{Socket: Socket{Proto: proto, Address: a.Unmap(), Number: int(number)}, inode: inode})
		}
	}
	return all
}
