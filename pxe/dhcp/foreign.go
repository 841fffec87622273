package dhcp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"
)

// AnswersWithin is how long Foreign and Look wait for other DHCP servers. dnsmasq pings an address for three seconds
// before it offers it.
const AnswersWithin = 4 * time.Second

// Foreign asks the network of an interface for an address, as a client that does not exist. It returns the server
// identifiers of the DHCP servers that offer one within wait, sorted and each once. It requests nothing, so that the
// offers expire. An error means that it could not listen or ask. A network without servers is no error.
func Foreign(ctx context.Context, iface string, wait time.Duration) ([]netip.Addr, error) {
	conn, err := clientSocket(ctx, iface)
	if err != nil {
		return nil, fmt.Errorf("listen as a client on %s: %w", iface, err)
	}
	defer conn.Close()
	hw := make(net.HardwareAddr, 6)
	_, _ = rand.Read(hw) // never fails
	hw[0] = hw[0]&^1 | 2 // a locally administered unicast address
	ask, err := dhcpv4.NewDiscovery(hw, dhcpv4.WithBroadcast(true))
	if err != nil {
		return nil, fmt.Errorf("make a discover: %w", err)
	}
	if _, err := conn.WriteTo(ask.ToBytes(), &net.UDPAddr{IP: net.IPv4bcast, Port: serverPort}); err != nil {
		return nil, fmt.Errorf("ask on %s: %w", iface, err)
	}
	until := time.Now().Add(wait)
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	if err := conn.SetReadDeadline(until); err != nil {
		return nil, err
	}
	var servers []netip.Addr
	for buf := make([]byte, 2048); ; {
		n, _, err := conn.ReadFrom(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			slices.SortFunc(servers, netip.Addr.Compare)
			return slices.Compact(servers), nil
		}
		if err != nil {
			return servers, fmt.Errorf("listen on %s: %w", iface, err)
		}
		answer, err := dhcpv4.FromBytes(buf[:n])
		if err != nil || answer.TransactionID != ask.TransactionID || answer.MessageType() != dhcpv4.MessageTypeOffer {
			continue
		}
		if id, ok := netip.AddrFromSlice(answer.ServerIdentifier().To4()); ok {
			servers = append(servers, id)
		}
	}
}

// clientSocket opens the client port on one interface, next to a client of the host's own.
func clientSocket(ctx context.Context, iface string) (net.PacketConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var opt error
		err := c.Control(func(fd uintptr) {
			opt = errors.Join(
				unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, iface),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1))
		})
		return errors.Join(err, opt)
	}}
	conn, err := lc.ListenPacket(ctx, "udp4", ":68")
	if owners := ownersOf(clientPort); errors.Is(err, syscall.EADDRINUSE) && len(owners) > 0 {
		return nil, fmt.Errorf("UDP port %d is taken by %s: %w", clientPort, strings.Join(owners, " and "), err)
	}
	return conn, err
}
