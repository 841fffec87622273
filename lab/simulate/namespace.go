package simulate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// namespace is a network namespace in which sockets are opened; the zero handle is the current one.
type namespace struct {
	target netns.NsHandle
	isHere bool
}

// openNamespace finds a namespace by its name under /run/netns; "" is the one we run in.
func openNamespace(name string) (*namespace, error) {
	if name == "" {
		return &namespace{target: netns.None(), isHere: true}, nil
	}
	h, err := netns.GetFromName(name)
	if err != nil {
		return nil, fmt.Errorf("network namespace %s: %w", name, err)
	}
	return &namespace{target: h}, nil
}

func (n *namespace) close() {
	if !n.isHere && n.target.IsOpen() {
		_ = n.target.Close()
	}
}

// do runs f with this namespace under its thread. Sockets that f opens stay in it afterwards.
func (n *namespace) do(f func() error) error {
	if n.isHere {
		return f()
	}
	return onOwnThread(func() error {
		if err := netns.Set(n.target); err != nil {
			return fmt.Errorf("enter the namespace: %w", err)
		}
		return f()
	})
}

// onOwnThread runs f on a thread of its own. The goroutine never unlocks it: the thread ends with its goroutine instead of
// carrying others into the wrong namespace.
func onOwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

// isOwnNamespace tells whether we run apart from the first process: synthetic machines take addresses and must not do
// so in the network of a real system.
func isOwnNamespace() bool {
	mine, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return false
	}
	first, err := os.Readlink("/proc/1/ns/net")
	return err == nil && mine != first
}

// Net is a pair of network namespaces joined by a veth cable. The server's side has an address, and the machines' side gets
// every address by DHCP. Nothing leaves them.
type Net struct {
	Server, Client     string       // names, as for ip netns exec
	ServerIf, ClientIf string       // the ends of the cable: vs and vc
	Address            netip.Prefix // of the server
}

// NewNet makes the namespaces name-srv and name-cli. The server's end gets the given address.
func NewNet(name string, address netip.Prefix) (_ *Net, err error) {
	n := &Net{Server: name + "-srv", Client: name + "-cli", ServerIf: "vs", ClientIf: "vc", Address: address}
	if os.Geteuid() != 0 {
		return nil, errors.New("making network namespaces needs root")
	}
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	for _, ns := range []string{n.Server, n.Client} {
		if err := makeNamespace(ns); err != nil {
			return nil, err
		}
	}
	if err := n.cable(); err != nil {
		return nil, err
	}
	if err := n.setUp(n.Server, n.ServerIf, &netlink.Addr{IPNet: ipNet(address)}); err != nil {
		return nil, err
	}
	return n, n.setUp(n.Client, n.ClientIf, nil)
}

func makeNamespace(name string) error {
	return onOwnThread(func() error {
		made, err := netns.NewNamed(name)
		if err != nil {
			return fmt.Errorf("make namespace %s (left over? ip netns del %s): %w", name, name, err)
		}
		return made.Close()
	})
}

func (n *Net) cable() error {
	srv, err := netns.GetFromName(n.Server)
	if err != nil {
		return fmt.Errorf("open namespace %s: %w", n.Server, err)
	}
	defer srv.Close()
	cli, err := netns.GetFromName(n.Client)
	if err != nil {
		return fmt.Errorf("open namespace %s: %w", n.Client, err)
	}
	defer cli.Close()
	h, err := netlink.NewHandleAt(srv)
	if err != nil {
		return fmt.Errorf("open netlink in %s: %w", n.Server, err)
	}
	defer h.Close()
	link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: n.ServerIf}, PeerName: n.ClientIf, PeerNamespace: netlink.NsFd(cli)}
	if err := h.LinkAdd(link); err != nil {
		return fmt.Errorf("make the cable %s-%s: %w", n.ServerIf, n.ClientIf, err)
	}
	return nil
}

// setUp brings an interface and the loopback up. On the machines' side a route to the server's network takes the place
// of an address.
func (n *Net) setUp(ns, iface string, addr *netlink.Addr) error {
	space, err := openNamespace(ns)
	if err != nil {
		return err
	}
	defer space.close()
	return space.do(func() error {
		for _, name := range []string{"lo", iface} {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return fmt.Errorf("find %s in %s: %w", name, ns, err)
			}
			if err := netlink.LinkSetUp(l); err != nil {
				return fmt.Errorf("bring up %s in %s: %w", name, ns, err)
			}
			if name != iface {
				continue
			}
			if addr != nil {
				err = netlink.AddrAdd(l, addr)
			} else {
				masked := ipNet(n.Address.Masked())
				err = netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: masked, Scope: netlink.SCOPE_LINK})
			}
			if err != nil {
				return fmt.Errorf("configure %s in %s: %w", name, ns, err)
			}
		}
		return nil
	})
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}
}

// Close removes both namespaces, and the cable with them.
func (n *Net) Close() {
	for _, ns := range []string{n.Client, n.Server} {
		_ = netns.DeleteNamed(ns)
	}
}

// Command is a program that runs in one of the namespaces.
func (n *Net) Command(ctx context.Context, ns, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", ns, program}, args...)...)
}

// InNamespace runs f in the network namespace with that name under /run/netns; sockets that it opens stay there.
func InNamespace(name string, f func() error) error {
	space, err := openNamespace(name)
	if err != nil {
		return err
	}
	defer space.close()
	return space.do(f)
}
