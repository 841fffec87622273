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

// netspace is the network namespace of libvirtd and the bridge.
type netspace struct {
	path  string // such as /run/netns/slipway-lab or /proc/812/ns/net
	isOwn bool   // made by the lab, and removed by it
}

// makeNetspace makes the namespace of the lab, or returns the existing one.
func makeNetspace() (netspace, error) {
	n := netspace{path: filepath.Join(namespaceDir, ownNamespace), isOwn: true}
	if _, err := os.Stat(n.path); err == nil {
		return n, nil
	}
	err := onOwnThread(func() error {
		h, err := netns.NewNamed(ownNamespace)
		if err != nil {
			return fmt.Errorf("make network namespace %s: %w", ownNamespace, err)
		}
		defer h.Close()
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return fmt.Errorf("find loopback in %s: %w", ownNamespace, err)
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

// remove stops each process in the namespace of the lab, and deletes the namespace with its interfaces. It never
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
	if err := netns.DeleteNamed(ownNamespace); err != nil {
		return false, fmt.Errorf("remove network namespace %s: %w", ownNamespace, err)
	}
	return true, nil
}

// makeBridge makes the isolated bridge with the address of the server. The error is Conflict when an interface has
// the name already.
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
		if err := netlink.AddrAdd(br, &netlink.Addr{IPNet: &net.IPNet{
			IP: addr.Addr().AsSlice(), Mask: net.CIDRMask(addr.Bits(), 32),
		}}); err != nil {
			return fmt.Errorf("set %s on bridge %s: %w", addr, name, err)
		}
		if err := netlink.LinkSetUp(br); err != nil {
			return fmt.Errorf("bring up bridge %s: %w", name, err)
		}
		return plug(br)
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
