// Package httpboot serves boots over HTTP: loaders, scripts, artefacts by digest, documents of a configuration, and
// reports of booting machines. It never decides what a machine boots: Boots does. It never redirects, chunks or
// compresses, because boot firmware cannot take any of these.
//
// The server is plain net/http, so that the kernel sends files by itself (sendfile). Machines come without a
// password: a URL names the boot session, and some URLs a key as well. docs/boot-http.md lists the URLs. Start
// reading at Server.ServeHTTP.
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

// Boots decides what machines boot, and records what the server sent them and what they report. An error of the type
// *inventory.Error is written for people: the server shows its message on the console of the machine. The server
// shows any other error as "internal error" and writes it to its log. All methods may be called from many goroutines
// at once.
type Boots interface {
	// Ask returns the script with which a machine reports its hardware addresses; s is "" when the URL had no
	// session. base is the URL of this server as the machine reached it.
	Ask(ctx context.Context, s inventory.SessionID, source netip.Addr, base string) ([]byte, error)
	// Script decides what the machine boots, and returns that as an iPXE script. A call may change the state of a
	// session, so the server makes none for HEAD.
	Script(ctx context.Context, s inventory.SessionID, c pxe.Client, base string) ([]byte, error)
	// Report records what a machine says about its boot. A report with the key of the session may come from any
	// address; one without must come from the machine's own.
	Report(ctx context.Context, s inventory.SessionID, source netip.Addr, key string, r pxe.Report) error
	// Document returns one document of the configuration of the boot, or all of them as an initrd. The server answers
	// every error with 503 (see sendConfig).
	Document(ctx context.Context, r pxe.ConfigRequest) (pxe.ConfigDocument, error)
	// Artefact returns the digest of the file that this session may fetch as d/name. An error says why it may not.
	Artefact(ctx context.Context, s inventory.SessionID, source netip.Addr, d inventory.Digest, name string) (inventory.Digest, error)
	// Transferring says that the server begins to send a file. Transferred says how that ended: Err is nil when the
	// machine has acknowledged every byte. A resumed download is one transfer. The server calls both while a machine
	// waits, so neither may block.
	Transferring(t pxe.Transfer)
	Transferred(t pxe.Transfer)
}

// Loaders finds boot loaders by the name that a machine asks for.
type Loaders interface {
	Find(name string) (images.Loader, bool)
}

// Artefacts opens files of images by digest.
type Artefacts interface {
	// Open returns the file, which the caller closes. Its error is *inventory.Error: NotFound for a file that nobody
	// has, Unavailable for one that is on its way here.
	Open(d inventory.Digest) (*os.File, inventory.Artefact, error)
}

// Config is everything a Server needs. Boots, Agents, Loaders, Artefacts, Now and Log are required.
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

// Server serves boots over HTTP and HTTPS. It lives for one Serve.
type Server struct {
	Metrics *Metrics

	cfg       Config
	listeners []*listener
	progress  *progress
	refusals  refusals
}

// PerSource is the most connections that one address may have: a whole rack can stand behind one relay or NAT.
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

// New returns a Server and fills in the defaults of cfg. It opens nothing: Listen does.
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

// Listen binds the sockets, so that the program knows of a taken port before it starts anything else. Serve calls it
// when nobody has. It binds all addresses or none. Its error is *inventory.Error with a hint for the operator.
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

// keepAlive makes the kernel probe idle connections, as Go does by default: after 15 s, every 15 s, nine times. It
// sets that once on the listener, and each accepted connection inherits it: that saves four system calls a
// connection.
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

// Addrs returns the bound addresses, with the real port where the configuration has port 0. It is empty before
// Listen.
func (s *Server) Addrs() []netip.AddrPort {
	var addrs []netip.AddrPort
	for _, l := range s.listeners {
		addrs = append(addrs, addrOf(l.Addr()))
	}
	return addrs
}

// listenError turns the error of a bind into a message for the operator, with the command or option that helps.
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

// connKey is the key under which the context of a request holds its *conn. Over TLS that is the connection below the
// encryption.
type connKey struct{}

// Serve answers requests until ctx is done, and then gives running requests stopFor (3 s) to end. It closes longer
// downloads; machines resume them with Range. It returns nil after an orderly end.
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
	// One http.Server serves all listeners: the first that fails cancels ctx, and so ends the others.
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
		// ctx is done here, so the shutdown needs a context of its own.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopFor)
		defer cancel()
		if server.Shutdown(last) != nil {
			return server.Close() // long downloads break off; machines resume them with Range
		}
		return nil
	})
	return group.Wait()
}

// sweepLoop runs until ctx is done. Every 30 s it drops machines that have gone.
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

// sweep reports downloads that machines gave up, and frees their places in the waiting lines. It calls Boots without
// holding a lock.
func (s *Server) sweep() {
	for _, t := range s.progress.sweep() {
		s.cfg.Boots.Transferred(t)
	}
	s.cfg.Admission.Sweep()
}
