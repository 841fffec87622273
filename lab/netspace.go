package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

const (
	ownNamespace  = "slipway-lab"
	namespaceDir  = "/run/netns"
	defaultBridge = "slipway0"
	bridgeMAC     = "52:54:00:5a:ff:fe"
)

// netspace is a network namespace: that of libvirtd and the bridge, or that of a server.
type netspace struct {
	path  string // such as /run/netns/slipway-lab or /proc/812/ns/net
	isOwn bool   // made by the lab, and removed by it
}

// MostInstances is how many servers a rack may have.
const MostInstances = 3

// seatNamespace returns the name of the namespace of a server that shares the bridge with others.
func seatNamespace(i int) string { return fmt.Sprintf("%s-%d", ownNamespace, i+1) }

// ownNetspaces returns all namespaces that a lab may have made: those of servers first, whose cables lead to the bridge.
func ownNetspaces() (all []netspace) {
	for i := range MostInstances {
		all = append(all, ownNetspace(seatNamespace(i)))
	}
	return append(all, ownNetspace(ownNamespace))
}

func ownNetspace(name string) netspace {
	return netspace{path: filepath.Join(namespaceDir, name), isOwn: true}
}

// makeNetspace makes a namespace of the lab, or returns the existing one.
func makeNetspace(name string) (netspace, error) {
	n := ownNetspace(name)
	if _, err := os.Stat(n.path); err == nil {
		return n, nil
	}
	err := onOwnThread(func() error {
		h, err := netns.NewNamed(name)
		if err != nil {
			return fmt.Errorf("make network namespace %s: %w", name, err)
		}
		defer h.Close()
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return fmt.Errorf("find loopback in %s: %w", name, err)
		}
		return netlink.LinkSetUp(lo)
	})
	return n, err
}

// do runs fn on a thread inside the namespace. Sockets that fn opens and processes that it starts stay there.
func (n netspace) do(fn func() error) error {
	return onOwnThread(func() error {
		if err := n.enter(); err != nil {
			return err
		}
		return fn()
	})
}

func (n netspace) enter() error {
	f, err := os.Open(n.path)
	if err != nil {
		return fmt.Errorf("open network namespace: %w", err)
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", n.path, err)
	}
	return nil
}

// onOwnThread runs fn on a thread of its own. The goroutine never unlocks the thread, so Go ends it, and no other
// goroutine runs in a foreign namespace.
func onOwnThread(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- fn()
	}()
	return <-done
}

// inode returns the number that identifies the namespace: all paths to one namespace have the same.
func (n netspace) inode() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(n.path, &st); err != nil {
		return 0, err
	}
	return st.Ino, nil
}

// processes returns the ids of all processes inside the namespace except this one.
func (n netspace) processes() []int {
	want, err := n.inode()
	if err != nil {
		return nil
	}
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if got, err := (netspace{path: fmt.Sprintf("/proc/%d/ns/net", pid)}).inode(); err == nil && got == want {
			pids = append(pids, pid)
		}
	}
	return pids
}

// name returns the name of a namespace of the lab.
func (n netspace) name() string { return filepath.Base(n.path) }

// remove stops each process in a namespace of the lab, and deletes the namespace with its interfaces. It never
// removes one that the lab did not make.
func (n netspace) remove() (removed bool, err error) {
	if !n.isOwn {
		return false, nil
	}
	if _, err := os.Stat(n.path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	for _, pid := range n.processes() {
		_ = stopProcess(pid)
	}
	if err := netns.DeleteNamed(n.name()); err != nil {
		return false, fmt.Errorf("remove network namespace %s: %w", n.name(), err)
	}
	return true, nil
}

// makeBridge makes the isolated bridge with the address of the server. Without an address it only joins cables. The error is Conflict
// when an interface has the name already.
func (n netspace) makeBridge(name string, addr netip.Prefix) error {
	return n.do(func() error {
		mac, err := net.ParseMAC(bridgeMAC)
		if err != nil {
			return err
		}
		br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name, HardwareAddr: mac}}
		if err := netlink.LinkAdd(br); err != nil {
			if errors.Is(err, unix.EEXIST) {
				return inventory.Errorf(inventory.Conflict, "an interface %s exists already", name).
					WithHint("if an earlier lab left it, remove it with: slipway lab down")
			}
			return fmt.Errorf("make bridge %s: %w", name, err)
		}
		if err := address(br, addr); err != nil {
			return err
		}
		if err := netlink.LinkSetUp(br); err != nil {
			return fmt.Errorf("bring up bridge %s: %w", name, err)
		}
		return plug(br)
	})
}

// address gives an interface its address. An interface without one is kept out of IPv6, too: the servers on the bridge send router
// advertisements, and this machine would make routes of them.
func address(link netlink.Link, addr netip.Prefix) error {
	name := link.Attrs().Name
	if !addr.IsValid() {
		err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6 has no such file
			return fmt.Errorf("switch IPv6 off on %s: %w", name, err)
		}
		return nil
	}
	ip := &net.IPNet{IP: addr.Addr().AsSlice(), Mask: net.CIDRMask(addr.Bits(), 32)}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: ip}); err != nil {
		return fmt.Errorf("set %s on %s: %w", addr, name, err)
	}
	return nil
}

// seat joins the namespace of a server to the bridge by a cable. The end there has the name of the bridge, and an address.
func (n netspace) seat(bridge string, i int, addr netip.Prefix) (at netspace, err error) {
	if at, err = makeNetspace(seatNamespace(i)); err != nil {
		return at, err
	}
	to, err := os.Open(at.path)
	if err != nil {
		return at, fmt.Errorf("open network namespace: %w", err)
	}
	defer to.Close()
	err = n.do(func() error {
		br, err := netlink.LinkByName(bridge)
		if err != nil {
			return fmt.Errorf("find bridge %s: %w", bridge, err)
		}
		cable := &netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("%s-%d", bridge, i+1), MasterIndex: br.Attrs().Index},
			PeerName:  bridge, PeerNamespace: netlink.NsFd(to.Fd()),
		}
		if err := netlink.LinkAdd(cable); err != nil {
			return fmt.Errorf("plug server %d into bridge %s: %w", i+1, bridge, err)
		}
		if err := address(cable, netip.Prefix{}); err != nil { // a port of the bridge
			return err
		}
		return netlink.LinkSetUp(cable)
	})
	if err != nil {
		return at, err
	}
	return at, at.do(func() error {
		end, err := netlink.LinkByName(bridge)
		if err != nil {
			return fmt.Errorf("find %s: %w", bridge, err)
		}
		if err := address(end, addr); err != nil {
			return err
		}
		return netlink.LinkSetUp(end)
	})
}

// plug adds a port that is always up: one end of a veth pair whose other end leads nowhere. Without it the bridge has
// no carrier, and so no IPv6 address, until the first machine is on.
func plug(br *netlink.Bridge) error {
	cable := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: br.Name + nearEnd, MasterIndex: br.Index}, PeerName: br.Name + farEnd}
	if err := netlink.LinkAdd(cable); err != nil {
		return fmt.Errorf("plug a cable into bridge %s: %w", br.Name, err)
	}
	for _, name := range []string{cable.Name, cable.PeerName} {
		end, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("find %s: %w", name, err)
		}
		if err := netlink.LinkSetUp(end); err != nil {
			return fmt.Errorf("bring up %s: %w", name, err)
		}
	}
	return nil
}

// The ends of that cable, after the bridge's name.
const (
	nearEnd = "-near"
	farEnd  = "-far"
)

// removeBridge removes the bridge if it has the MAC of the lab. It spares a bridge that an admin made.
func (n netspace) removeBridge(name string) (removed bool, err error) {
	err = n.do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil || l.Attrs().HardwareAddr.String() != bridgeMAC {
			return nil
		}
		removed = true
		if port, err := netlink.LinkByName(name + nearEnd); err == nil {
			if err := netlink.LinkDel(port); err != nil {
				return err
			}
		}
		return netlink.LinkDel(l)
	})
	return removed && err == nil, err
}
