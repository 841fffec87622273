package inspect

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

const (
	// lldpFor is how long switches are listened to after a link came up: they speak every 30 s by default.
	lldpFor = 35 * time.Second
	// lldpVirtual is the same for virtual ports, whose bridges say nothing.
	lldpVirtual = 3 * time.Second
)

// Ears listen to LLDP on all Ethernet ports from the start of the agent, so that a later inspection does not wait as
// long. mu guards the maps. Listen waits for the goroutines of all ports.
type Ears struct {
	Log *slog.Logger
	Sys string // /sys
	// For is how long it listens on a physical port; 0 means lldpFor.
	For time.Duration

	mu     sync.Mutex
	heard  map[string]inventory.Neighbour
	linked map[string]time.Time // when a port was first seen with a link
	opened map[string]bool
	crew   sync.WaitGroup
}

// Listen listens until ctx ends, also on ports that appear later.
func (e *Ears) Listen(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	defer e.crew.Wait()
	for {
		e.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look notes the links, and opens ports that are new.
func (e *Ears) look(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.heard == nil {
		e.heard, e.linked, e.opened = make(map[string]inventory.Neighbour), make(map[string]time.Time), make(map[string]bool)
	}
	ports, err := net.Interfaces()
	if err != nil {
		return
	}
	for _, p := range ports {
		if _, err := os.Stat(filepath.Join(e.Sys, "class/net", p.Name, "device")); err != nil || p.Flags&net.FlagUp == 0 {
			continue
		}
		if _, ok := e.linked[p.Name]; !ok && p.Flags&net.FlagRunning != 0 {
			e.linked[p.Name] = time.Now()
		}
		if e.opened[p.Name] || len(e.opened) >= maxPorts {
			continue
		}
		e.opened[p.Name] = true
		fd, err := openLLDP(p.Index)
		if err != nil {
			e.Log.Debug("LLDP is not listened to", "port", p.Name, "err", err)
			continue
		}
		e.crew.Go(func() { e.listen(ctx, fd, p.Name) })
	}
}

// listen takes the frames of one port.
func (e *Ears) listen(ctx context.Context, fd int, port string) {
	defer unix.Close(fd)
	buf := make([]byte, 2048)
	for ctx.Err() == nil {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			if ctx.Err() == nil && err != unix.EAGAIN && err != unix.EINTR {
				// The port is down or gone; it may come back.
				_ = sleep.For(ctx, time.Second)
			}
			continue
		}
		if neighbour, ok := parseLLDP(buf[:n]); ok {
			e.mu.Lock()
			if _, known := e.heard[port]; !known {
				e.Log.Info("neighbour", "port", port, "system", neighbour.System, "chassis", neighbour.Chassis, "at", neighbour.Port)
			}
			e.heard[port] = neighbour
			e.mu.Unlock()
		}
	}
}

// openLLDP opens a socket that receives LLDP frames alone, from one port.
func openLLDP(index int) (int, error) {
	const etherType = 0x88cc
	bigEndian := uint16(etherType>>8 | etherType&0xff<<8)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open a packet socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian, Ifindex: index}); err != nil {
		unix.Close(fd)
		return 0, fmt.Errorf("bind it: %w", err)
	}
	// 01:80:c2:00:00:0e is where switches send LLDP; ports drop it unless asked.
	group := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_MULTICAST, Alen: 6, Address: [8]uint8{0x01, 0x80, 0xc2, 0, 0, 0x0e}}
	_ = unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &group)
	timeout := unix.NsecToTimeval(int64(500 * time.Millisecond)) // how long the end may be overdue
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
	return fd, nil
}

// Neighbours waits until it has listened long enough on every port with a link, and returns the neighbours by port name.
// If ctx ends first, it returns those that it has.
func (e *Ears) Neighbours(ctx context.Context) map[string]inventory.Neighbour {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		heard, isEnough := e.state()
		if isEnough {
			return heard
		}
		select {
		case <-ctx.Done():
			return heard
		case <-ticker.C:
		}
	}
}

func (e *Ears) state() (map[string]inventory.Neighbour, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for port, since := range e.linked {
		long := cmp.Or(e.For, lldpFor)
		if driver, err := os.Readlink(filepath.Join(e.Sys, "class/net", port, "device/driver")); err == nil && isVirtual(filepath.Base(driver)) {
			long = lldpVirtual
		}
		if _, ok := e.heard[port]; !ok && time.Since(since) < long {
			return maps.Clone(e.heard), false
		}
	}
	return maps.Clone(e.heard), true
}

// isVirtual knows the drivers of ports that no cable can be in.
func isVirtual(driver string) bool {
	return strings.HasPrefix(driver, "virtio") || driver == "vmxnet3" || driver == "hv_netvsc" || driver == "xen-netfront" || driver == "vif" || driver == "gve" || driver == "ena"
}
