package lookup

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// Neighbours asks the kernel over sockets that stay open, because it looks up every unaccepted machine that boots.
type Neighbours struct {
	routes  *netlink.Handle
	entries map[int]*nl.SocketHandle
}

// NewNeighbours opens the netlink sockets. It fails where the kernel allows none, as in some containers.
func NewNeighbours() (*Neighbours, error) {
	routes, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("ask the kernel for routes: %w", err)
	}
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE) // to no group: it gets what it asks for
	if err != nil {
		return nil, fmt.Errorf("ask the kernel for neighbours: %w", err)
	}
	limit := unix.NsecToTimeval(int64(time.Second))
	if err := errors.Join(routes.SetSocketTimeout(time.Second), socket.SetSendTimeout(&limit), socket.SetReceiveTimeout(&limit)); err != nil {
		return nil, fmt.Errorf("bound the question to the kernel: %w", err)
	}
	return &Neighbours{routes, map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: socket}}}, nil
}

// Of returns the MAC that uses an address on a network of ours, as the kernel's neighbour table has it. A machine that has
// just asked us for something over TCP is in that table. It asks for that one entry: a list of them all takes milliseconds
// for a thousand machines.
func (k *Neighbours) Of(a netip.Addr) (inventory.MAC, bool) {
	routes, err := k.routes.RouteGet(a.AsSlice())
	if err != nil || len(routes) == 0 || routes[0].Gw != nil {
		return "", false // behind a router: its MAC says nothing
	}
	family := unix.AF_INET
	if a.Is6() {
		family = unix.AF_INET6
	}
	ask := nl.NewNetlinkRequest(unix.RTM_GETNEIGH, 0)
	ask.Sockets = k.entries
	ask.AddData(&netlink.Ndmsg{Family: uint8(family), Index: uint32(routes[0].LinkIndex)})
	ask.AddData(nl.NewRtAttr(netlink.NDA_DST, a.AsSlice()))
	found, err := ask.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGH)
	if err != nil || len(found) == 0 {
		return "", false
	}
	n, err := netlink.NeighDeserialize(found[0])
	if err != nil || n.State&(netlink.NUD_FAILED|netlink.NUD_INCOMPLETE|netlink.NUD_NOARP) != 0 {
		return "", false
	}
	mac, err := inventory.ParseMAC(n.HardwareAddr.String())
	return mac, err == nil
}
