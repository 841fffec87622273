package dhcp

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// portTaken explains who has a UDP port.
func portTaken(number int) error {
	e := inventory.Errorf(inventory.Conflict, "UDP port %d is taken by another program", number)
	owners := ownersOf(number)
	if len(owners) == 0 {
		return e.WithHint("find it with: ss -lunp 'sport = :%d'", number)
	}
	e = inventory.Errorf(inventory.Conflict, "UDP port %d is taken by %s: another DHCP server runs here", number, strings.Join(owners, " and "))
	return e.WithHint("stop it, or serve another interface; two DHCP servers on one port would take each other's packets")
}

// ownersOf names the processes that have a UDP port open on IPv4, as far as /proc lets us see them.
func ownersOf(number int) []string {
	inodes := inodesOf("/proc/thread-self/net/udp", number)
	if len(inodes) == 0 {
		return nil
	}
	var owners []string
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*") // unreadable processes are simply not named
	for _, fd := range fds {
		target, err := os.Readlink(fd)
		if err != nil || !slices.Contains(inodes, strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")) {
			continue
		}
		pid := strings.Split(fd, "/")[2]
		name, _ := os.ReadFile("/proc/" + pid + "/comm")
		owner := fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), pid)
		if !slices.Contains(owners, owner) {
			owners = append(owners, owner)
		}
	}
	return owners
}

// inodesOf returns the inodes of the sockets on a local port; table is /proc/net/udp.
func inodesOf(table string, number int) []string {
	f, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer f.Close()
	var inodes []string
	suffix := fmt.Sprintf(":%04X", number)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && strings.HasSuffix(fields[1], suffix) {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}
