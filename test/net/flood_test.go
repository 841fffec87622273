package net_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// floodDHCP is a child: it broadcasts DISCOVERs with made-up MACs, and packets of garbage among them, from eth0 until it
// is told to stop, and says how many.
func floodDHCP() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) {
			if err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err == nil {
				err = unix.BindToDevice(int(fd), "eth0")
			}
		}); e != nil {
			return e
		}
		return err
	}}
	conn, err := lc.ListenPacket(ctx, "udp4", "0.0.0.0:68")
	if err != nil {
		return err
	}
	hw, _ := net.ParseMAC("02:00:00:00:00:00")
	m, err := dhcpv4.NewDiscovery(hw, dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00007:UNDI:003000")),
		dhcpv4.WithGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{0, 7}))
	if err != nil {
		return err
	}
	const batch = 64
	ms := make([]ipv4.Message, batch)
	for i := range ms {
		b := m.ToBytes()
		if i%8 == 7 {
			b = make([]byte, 300)
		}
		ms[i] = ipv4.Message{Buffers: [][]byte{b}, Addr: &net.UDPAddr{IP: net.IPv4bcast, Port: 67}}
	}
	p := ipv4.NewPacketConn(conn)
	fmt.Println("flooding")
	sent, start := 0, time.Now()
	for ctx.Err() == nil {
		for i := range ms {
			_, _ = rand.Read(ms[i].Buffers[0][29:34]) // of chaddr all but the first byte
			if i%8 == 7 {
				_, _ = rand.Read(ms[i].Buffers[0])
			}
		}
		n, err := p.WriteBatch(ms, 0)
		if err == nil {
			sent += n
		}
	}
	fmt.Printf("%d packets, %.0f a second\n", sent, float64(sent)/time.Since(start).Seconds())
	return nil
}

func selfPath(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// pid is the server's process: ip netns exec has become it.
func (s *dhcpServer) pid() string { return strconv.Itoa(s.cmd.Process.Pid) }
