// Package tftp owns the TFTP door: it sends the boot loaders of pxe's table from memory, and to each machine its own
// autoexec.ipxe, and tells how every transfer went. It never takes a file, never looks at a path, and decides nothing.
//
// The transfers are those of github.com/pin/tftp, which sees nothing that the network sent to our port: every packet
// passes gate.ReadFrom, which refuses, limits and counts, and hands on a request written by us.
package tftp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	pin "github.com/pin/tftp/v3"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// Boots knows what machines boot, and takes note of what they were sent.
type Boots interface {
	// Ask returns the script with which the machine at source says what it is and asks what to boot; base is the boot
	// door's URL as the machine reaches it.
	Ask(ctx context.Context, s inventory.SessionID, source netip.Addr, base string) ([]byte, error)
	// Transferring tells that a file begins to be sent, Transferred how that ended. Neither blocks.
	Transferring(t pxe.Transfer)
	Transferred(t pxe.Transfer)
}

// Loaders are the boot files by name.
type Loaders interface {
	Find(name string) (images.Loader, bool)
}

// Config is everything a Server needs.
type Config struct {
	// Listen are the addresses to bind, usually with port 69. 0.0.0.0 and :: are bound each for its own family only: a
	// socket for both would cost IPv4 clients 16 bytes of every block (RFC 2348 leaves the size to the server).
	Listen   []netip.AddrPort
	Serves   func(local netip.Addr) bool // which of our addresses are served; nil: all
	Boots    Boots
	Loaders  Loaders
	BootPort int // TCP port of the boot HTTP door, for the URLs in autoexec.ipxe

	Transfers int // at the same time; 0 means 2048
	PerClient int // of one address; 0 means 16

	Now func() time.Time
	Log *slog.Logger
}

// Server is the TFTP door.
type Server struct {
	Metrics *Metrics

	cfg     Config
	gates   []*gate
	running *running
	detours *rate.Limiter // of warnings
}

const (
	// resendAfter and tries replace the library's 5 s and 5: measured with 0.5 % loss, a MiB arrives in 0.7 s instead
	// of 17. A machine that vanished is given up after 15 s.
	resendAfter = 200 * time.Millisecond
	tries       = 75
	// stopFor is how long Serve waits for running transfers when it is told to stop. One whose machine has vanished
	// may outlive it by the rest of its 15 s.
	stopFor       = 3 * time.Second
	receiveBuffer = 4 << 20 // a row of machines that is switched on asks within milliseconds
)

// New returns a Server; nothing is opened before Listen.
func New(cfg Config) *Server {
	if cfg.Transfers == 0 {
		cfg.Transfers = 2048
	}
	if cfg.PerClient == 0 {
		cfg.PerClient = 16
	}
	if cfg.Serves == nil {
		cfg.Serves = func(netip.Addr) bool { return true }
	}
	s := &Server{cfg: cfg, running: newRunning(cfg.Transfers, cfg.PerClient), detours: rate.NewLimiter(rate.Every(time.Minute), 3)}
	s.Metrics = newMetrics(s.running.len)
	return s
}

// Listen binds the sockets, so that a taken port is known before anything else starts. Serve calls it when nobody has.
func (s *Server) Listen() error {
	for _, a := range s.cfg.Listen {
		g, err := s.open(a)
		if err != nil {
			for _, g := range s.gates {
				g.conn.Close()
			}
			s.gates = nil
			return err
		}
		s.gates = append(s.gates, g)
	}
	return nil
}

// Addrs returns what is bound, with the real port where 0 was asked for.
func (s *Server) Addrs() []netip.AddrPort {
	var addrs []netip.AddrPort
	for _, g := range s.gates {
		addrs = append(addrs, g.conn.LocalAddr().(*net.UDPAddr).AddrPort())
	}
	return addrs
}

func (s *Server) open(a netip.AddrPort) (*gate, error) {
	network := "udp4"
	if a.Addr().Is6() {
		network = "udp6"
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(a))
	if err != nil {
		return nil, listenError(a, err)
	}
	g := &gate{server: s, conn: conn, buf: make([]byte, 2048)}
	if network == "udp4" {
		flags := ipv4.FlagDst | ipv4.FlagInterface
		err, g.oob = ipv4.NewPacketConn(conn).SetControlMessage(flags, true), ipv4.NewControlMessage(flags)
	} else {
		flags := ipv6.FlagDst | ipv6.FlagInterface
		err, g.oob = ipv6.NewPacketConn(conn).SetControlMessage(flags, true), ipv6.NewControlMessage(flags)
	}
	if err != nil {
		conn.Close()
		return nil, listenError(a, err)
	}
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { // the default buffer works too, it only drops more
			if syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, receiveBuffer) != nil {
				_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, receiveBuffer)
			}
		})
	}
	return g, nil
}

func listenError(a netip.AddrPort, err error) error {
	e := &inventory.Error{Kind: inventory.Unavailable, Msg: "cannot serve TFTP on " + a.String(), Err: err}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		e.Kind, e.Hint = inventory.Conflict, "another program has the port: ss -lunp 'sport = :69' names it; often it is tftpd-hpa, atftpd or dnsmasq"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		e.Hint = "no interface of this machine has that address"
	case errors.Is(err, os.ErrPermission):
		e.Hint = "ports below 1024 need root or CAP_NET_BIND_SERVICE"
	}
	return e
}

// Serve sends files until ctx is done.
func (s *Server) Serve(ctx context.Context) error {
	if s.gates == nil {
		if err := s.Listen(); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		<-ctx.Done()
		return nil
	})
	for _, g := range s.gates {
		g.stop = ctx.Done()
		server := pin.NewServer(func(_ string, to io.ReaderFrom) error { return s.send(ctx, to) }, nil)
		server.SetTimeout(resendAfter)
		server.SetRetries(tries)
		server.SetBackoff(func(int) time.Duration { return 0 })
		server.SetBlockSizeNegotiation(false) // the gate has fitted the block size to the interface
		server.SetHook(g)
		group.Go(func() error { return server.Serve(g) })
		group.Go(func() error {
			<-ctx.Done()
			return stop(server)
		})
	}
	return group.Wait()
}

// stop ends a server. Its transfers notice at their next block.
func stop(server *pin.Server) error {
	var done sync.WaitGroup
	stopped := make(chan struct{})
	done.Go(func() {
		server.Shutdown()
		close(stopped)
	})
	select {
	case <-stopped:
	case <-time.After(stopFor):
	}
	return nil
}
