// Package httpboot owns the boot door over HTTP: loaders, scripts, artefacts by digest, and what booting machines
// report. It never decides what a machine boots, and never redirects, chunks or compresses, which boot firmware cannot
// take.
//
// It is plain net/http so that the kernel sends files by itself (sendfile). Start reading at Server.ServeHTTP.
package httpboot

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/admission"
	"slipway.dev/slipway/pxe/door"
)

// Boots knows what machines boot, and takes note of what they were sent and say. Its errors are *inventory.Error when
// the machine's console may show them.
type Boots interface {
	// Ask returns the script with which a machine says what it is; s is "" when the URL had no session.
	Ask(ctx context.Context, s inventory.SessionID, source netip.Addr, base string) ([]byte, error)
	// Script returns what the machine boots, as a script.
	Script(ctx context.Context, s inventory.SessionID, c pxe.Client, base string) ([]byte, error)
	// Report takes what a machine tells about its boot. With the key of the session it may come from any address.
	Report(ctx context.Context, s inventory.SessionID, source netip.Addr, key string, r pxe.Report) error
	// Document returns a document of the configuration that the boot was given.
	Document(ctx context.Context, r pxe.ConfigRequest) (pxe.ConfigDocument, error)
	// Artefact returns the digest of what a machine fetches as d/name in that session, or why it may not.
	Artefact(ctx context.Context, s inventory.SessionID, source netip.Addr, d inventory.Digest, name string) (inventory.Digest, error)
	// Transferring tells that a file begins to be sent, Transferred how that ended. Neither blocks.
	Transferring(t pxe.Transfer)
	Transferred(t pxe.Transfer)
}

// Loaders are the boot files by name.
type Loaders interface {
	Find(name string) (images.Loader, bool)
}

// Artefacts are the files of images by digest.
type Artefacts interface {
	// Open returns the file, which the caller closes.
	Open(d inventory.Digest) (*os.File, inventory.Artefact, error)
}

// Config is everything a Server needs.
type Config struct {
	Listen    []netip.AddrPort
	ListenTLS []netip.AddrPort // the same over TLS, with the certificates of TLS
	TLS       *tls.Config
	Serves    func(local netip.Addr) bool // which of our addresses are served; nil: all
	Boots     Boots
	Agents    Agents
	Loaders   Loaders
	Artefacts Artefacts
	Admission *admission.Lines // of downloads of artefacts; nil: lines of its own with the usual rules

	Door    *door.Door // bounds the connections; nil: a door of its own with 8,192, and 128 of one address
	DoorTLS *door.Door // and those over TLS

	Now func() time.Time
	Log *slog.Logger
}

// Server is the boot door over HTTP.
type Server struct {
	Metrics *Metrics

	cfg       Config
	listeners []*listener
	progress  *progress
	refusals  refusals
}

// PerSource is how many connections one address has at the most.
const PerSource = 128

const (
	proto = "http"

	headerFor  = 5 * time.Second  // for a request's header
	requestFor = 30 * time.Second // and with its body
	idleFor    = 30 * time.Second // iPXE keeps a connection for 10 s
	maxHeader  = 16 << 10
	stopFor    = 3 * time.Second
	sweepEvery = 30 * time.Second
)

// New returns a Server; nothing is opened before Listen.
func New(cfg Config) *Server {
	for _, d := range []**door.Door{&cfg.Door, &cfg.DoorTLS} {
		if *d == nil {
			*d = door.New(door.Config{All: 8192, PerSource: PerSource})
		}
	}
	if cfg.Serves == nil {
		cfg.Serves = func(netip.Addr) bool { return true }
	}
	if cfg.Admission == nil {
		cfg.Admission = admission.New(nil, cfg.Now)
	}
	s := &Server{cfg: cfg, progress: newProgress(cfg.Now)}
	s.Metrics = newMetrics(s)
	return s
}

// Listen binds the sockets, so that a taken port is known before anything else starts. Serve calls it when nobody has.
func (s *Server) Listen() error {
	for i, a := range slices.Concat(s.cfg.Listen, s.cfg.ListenTLS) {
		network := "tcp4"
		if a.Addr().Is6() {
			network = "tcp6"
		}
		lc := net.ListenConfig{Control: keepAlive, KeepAlive: -1} // what is set on the listener, its connections inherit
		bound, err := lc.Listen(context.Background(), network, a.String())
		if err != nil {
			for _, l := range s.listeners {
				l.Close()
			}
			s.listeners = nil
			return listenError(a, err)
		}
		l := &listener{TCPListener: bound.(*net.TCPListener), server: s, door: s.cfg.Door, send: sendByKernel}
		if i >= len(s.cfg.Listen) {
			l.isTLS, l.door = true, s.cfg.DoorTLS
		}
		s.listeners = append(s.listeners, l)
	}
	return nil
}

// keepAlive has the connections of a listener asked for a sign of life, as often as those of Go are, once for them all.
func keepAlive(_, _ string, c syscall.RawConn) (err error) {
	failed := c.Control(func(fd uintptr) {
		err = errors.Join(
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1),
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15),
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15),
			unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 9),
		)
	})
	return errors.Join(failed, err)
}

// Addrs returns what is bound, with the real port where 0 was asked for.
func (s *Server) Addrs() []netip.AddrPort {
	var addrs []netip.AddrPort
	for _, l := range s.listeners {
		addrs = append(addrs, addrOf(l.Addr()))
	}
	return addrs
}

func listenError(a netip.AddrPort, err error) error {
	e := &inventory.Error{Kind: inventory.Unavailable, Msg: "cannot serve boot HTTP on " + a.String(), Err: err}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		e.Kind, e.Hint = inventory.Conflict, "another program has the port: ss -ltnp names it; another port is chosen with --boot-port"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		e.Hint = "no interface of this machine has that address"
	case errors.Is(err, os.ErrPermission):
		e.Hint = "ports below 1024 need root or CAP_NET_BIND_SERVICE; another port is chosen with --boot-port"
	}
	return e
}

// connKey is where the context of a request has its *conn.
type connKey struct{}

// Serve answers requests until ctx is done.
func (s *Server) Serve(ctx context.Context) error {
	if s.listeners == nil {
		if err := s.Listen(); err != nil {
			return err
		}
	}
	server := &http.Server{
		Handler: door.Handler(s), ReadHeaderTimeout: headerFor, ReadTimeout: requestFor, IdleTimeout: idleFor, MaxHeaderBytes: maxHeader,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if secure, ok := c.(*tls.Conn); ok {
				c = secure.NetConn()
			}
			return door.Context(context.WithValue(ctx, connKey{}, c), c)
		},
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range s.listeners {
		group.Go(func() error {
			var from net.Listener = l
			if l.isTLS {
				from = tls.NewListener(l, s.cfg.TLS)
			}
			if err := server.Serve(from); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	group.Go(func() error {
		s.sweepLoop(ctx)
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopFor)
		defer cancel()
		if server.Shutdown(last) != nil {
			return server.Close() // long downloads break off; machines resume them with Range
		}
		return nil
	})
	return group.Wait()
}

// sweepLoop forgets machines that have gone, until ctx is done.
func (s *Server) sweepLoop(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.sweep()
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) sweep() {
	for _, t := range s.progress.sweep() {
		s.cfg.Boots.Transferred(t)
	}
	s.cfg.Admission.Sweep()
}
