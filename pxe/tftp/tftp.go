// Package tftp owns the TFTP server. It sends the boot loaders of pxe's table from memory, and to each machine its own
// autoexec.ipxe, and reports how every transfer ended. It never takes a file, never looks at a path, and decides nothing.
//
// A gate reads requests and refuses unknown files. A desk sends the files of many machines through one socket. A sender,
// which is pure, says which blocks to send when. See docs/decisions/0018 for why it is ours.
package tftp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// Boots knows what machines boot, and records what the server sent them.
type Boots interface {
	// Ask returns the script with which the machine at source reports its hardware and asks what to boot. base is the
	// URL of the boot listener as the machine reaches it.
	Ask(ctx context.Context, s inventory.SessionID, source netip.Addr, base string) ([]byte, error)
	// Transferring reports the start of a transfer, and Transferred its end. Neither blocks.
	Transferring(t pxe.Transfer)
	Transferred(t pxe.Transfer)
}

// Loaders are the boot files by name.
type Loaders interface {
	Find(name string) (images.Loader, bool)
}

// Files are the other files for machines, in addition to loaders and autoexec.ipxe.
type Files interface {
	// Open returns the file of that name for the machine at source. base is the URL of the boot listener as the
	// machine reaches it. The machine sees NotFound as such.
	Open(ctx context.Context, source netip.Addr, base, name string) (File, error)
}

// Config is everything a Server needs.
type Config struct {
	// Listen are the addresses to bind, usually with port 69. 0.0.0.0 and :: are bound each for its own family only: a
	// socket for both would cost IPv4 clients 16 bytes of every block (RFC 2348 leaves the size to the server).
	Listen   []netip.AddrPort
	Serves   func(local netip.Addr) bool // which of our addresses are served; nil: all
	Boots    Boots
	Loaders  Loaders
	Files    Files // made for machines; nil: none
	BootPort int   // TCP port of the boot HTTP door, for the URLs in autoexec.ipxe

	Transfers int // at the same time; 0 means 2048
	PerClient int // of one address; 0 means 16
	// Knows reports whether an address is that of an accepted host. A quarter of the transfers is reserved for these. nil reserves
	// none.
	Knows func(netip.Addr) bool

	Now func() time.Time
	Log *slog.Logger
}

// Server is the TFTP server.
type Server struct {
	Metrics *Metrics

	cfg     Config
	gates   []*gate
	running *running
	refused *rate.Limiter // of refused names that are told on
	shims   shims
}

const receiveBuffer = 4 << 20 // a row of machines that is switched on asks within milliseconds

// New returns a Server; nothing is opened before Listen.
func New(cfg Config) *Server {
	cfg.Transfers = cmp.Or(cfg.Transfers, 2048)
	cfg.PerClient = cmp.Or(cfg.PerClient, 16)
	if cfg.Serves == nil {
		cfg.Serves = func(netip.Addr) bool { return true }
	}
	s := &Server{cfg: cfg, running: newRunning(cfg.Transfers, cfg.PerClient, cfg.Knows), refused: rate.NewLimiter(20, 100)}
	s.Metrics = newMetrics(s.running.len)
	return s
}

// Listen binds the sockets, so that a taken port is known before anything else starts. Serve calls it when nobody has.
func (s *Server) Listen() error {
	for _, a := range s.cfg.Listen {
		g, err := s.open(a)
		if err != nil {
			for _, g := range s.gates {
				g.close()
			}
			s.gates = nil
			return err
		}
		s.gates = append(s.gates, g)
	}
	return nil
}

// Addrs returns the bound addresses, with the real port in place of 0.
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
	widen(conn)
	for range min(runtime.GOMAXPROCS(0), mostDesks) {
		d, err := openDesk(s, network, a.Addr())
		if err != nil {
			g.close()
			return nil, listenError(a, err)
		}
		g.desks = append(g.desks, d)
	}
	return g, nil
}

// mostDesks bounds the sockets that files are sent through; more processors than these are never short.
const mostDesks = 4

// widen gives a socket room for the packets of many machines. The default works too, it only drops more.
func widen(conn *net.UDPConn) {
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			if syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, receiveBuffer) != nil {
				_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, receiveBuffer)
			}
		})
	}
}

func (g *gate) close() {
	g.conn.Close()
	for _, d := range g.desks {
		d.close()
	}
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
		group.Go(func() error { return g.serve(ctx) })
		for _, d := range g.desks {
			group.Go(func() error { return d.serve(ctx) })
		}
	}
	return group.Wait()
}
