package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/door"
)

// Port is the usual TCP port of the link.
const Port = 8069

// Config is everything a Server needs.
type Config struct {
	Identity Identity
	Listen   string // host:port; without a host on all addresses
	// Door limits the connections: NewDoor. nil: one for the most connections, that knows no address.
	Door *door.Door
	// Admit refuses an instance by its id, with the reason; "" does not say who it is. An instance that an admin has deleted has the key still.
	// nil admits everybody with the key.
	Admit func(id string) error
	Log   *slog.Logger
}

// Server answers other instances.
type Server struct {
	cfg      Config
	mux, all *http.ServeMux // for instances, and for everybody
	listener net.Listener
}

// limits of the listener.
const (
	most        = 4096 // connections
	perSource   = 2048 // each event stream of a browser has one
	headerFor   = 5 * time.Second
	idleFor     = 2 * time.Minute
	headerBytes = 64 << 10    // an instance passes on what a client has sent, and adds some lines
	stopFor     = time.Second // others ask the next instance
)

// arrivals limits handshakes. An instance makes many at once: each client of its admin listener that asks for something has a connection.
var arrivals = door.Arrivals{
	All: door.Pace{PerSecond: 100, Burst: 200}, PerSource: door.Pace{PerSecond: 20, Burst: 80},
	PerKnown: door.Pace{PerSecond: 500, Burst: perSource},
}

// NewDoor limits the connections of a Server to all. Half of them are for instances: for addresses that knows recognises, and for those
// that have shown the key lately.
func NewDoor(all int, knows func(netip.Addr) bool) *door.Door {
	return door.New(door.Config{All: all, PerSource: min(perSource, all), KnownPart: 2, Knows: knows, Arrivals: arrivals})
}

// New returns a Server that has nothing to answer yet.
func New(cfg Config) *Server {
	if cfg.Door == nil {
		cfg.Door = NewDoor(most, nil)
	}
	return &Server{cfg: cfg, mux: http.NewServeMux(), all: http.NewServeMux()}
}

// Handle answers instances at a pattern of http.ServeMux, from now on.
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// HandleAll answers at a pattern also those who have shown no certificate.
func (s *Server) HandleAll(pattern string, h http.Handler) { s.all.Handle(pattern, h) }

// Listen binds the port, so that the program knows of a taken one before it starts anything else.
func (s *Server) Listen(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return &inventory.Error{
			Kind: inventory.Conflict, Msg: "cannot listen for other instances: " + err.Error(),
			Hint: "choose another address with --instance-listen", Err: err,
		}
	}
	s.listener = tls.NewListener(s.cfg.Door.Listen(l, door.Shut), s.cfg.Identity.serverTLS())
	return nil
}

// Addr is the bound address.
func (s *Server) Addr() netip.AddrPort {
	a, _ := netip.ParseAddrPort(s.listener.Addr().String())
	return a
}

// Serve answers until ctx is done. Listen comes before it.
func (s *Server) Serve(ctx context.Context) error {
	srv := &http.Server{
		Handler: door.Handler(s), ReadHeaderTimeout: headerFor, IdleTimeout: idleFor, MaxHeaderBytes: headerBytes,
		ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug), ConnContext: remember,
		// A peer whose machine lost power leaves connections behind that never end by themselves.
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingFor, MaxConcurrentStreams: 10_000},
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopFor)
		defer cancel()
		if srv.Shutdown(late) != nil {
			_ = srv.Close() // long polls and streams
		}
	})
	err := srv.Serve(s.listener)
	if !stop() {
		<-ended
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// remember keeps the place of a connection at the door.
func remember(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return door.Context(ctx, c)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The handshake has checked the certificate if there is one.
	if isInstance := r.TLS != nil && len(r.TLS.PeerCertificates) > 0; isInstance {
		door.Trust(r.Context())
		if err := checkVersion(r); err != nil {
			SendError(w, err)
			return
		}
		if _, pattern := s.mux.Handler(r); pattern != "" {
			if s.cfg.Admit != nil {
				if err := s.cfg.Admit(r.Header.Get(callerHeader)); err != nil {
					SendError(w, err)
					return
				}
			}
			s.mux.ServeHTTP(w, r)
			return
		}
		if _, pattern := s.all.Handler(r); pattern == "" { // it has lost the engine, or does not have it yet
			SendError(w, inventory.Errorf(inventory.Unavailable, "the other instance does not have the engine at the moment").
				WithHint("another takes it within seconds; slipway instance list shows the instances"))
			return
		}
	}
	if _, pattern := s.all.Handler(r); pattern == "" {
		SendError(w, inventory.Errorf(inventory.Forbidden, "only other instances may ask this"))
		return
	}
	s.all.ServeHTTP(w, r)
}
