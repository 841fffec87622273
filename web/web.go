// Package web owns the admin listener: the chain of handlers around the REST API, its OpenAPI description and the web UI.
// It also limits what each caller sees of the inventory. The operations are in packages below it, one for each group of
// nouns, which web wires. None of them decides anything about a host: they read and write the inventory, and ask the
// engine.
//
// Each package of nouns has the same form: Register in register.go lists its operations, and each other file has those on one
// subject. They are methods of the Server in server.go, where the Config and the interfaces lie that the package needs.
//
// Start reading at New, then addAll, then package web/rest (what all operations share), then web/hosts.
package web

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/door"
	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/audit"
	"slipway.dev/slipway/web/clusters"
	"slipway.dev/slipway/web/configs"
	"slipway.dev/slipway/web/consoles"
	"slipway.dev/slipway/web/events"
	"slipway.dev/slipway/web/files"
	"slipway.dev/slipway/web/history"
	"slipway.dev/slipway/web/hosts"
	"slipway.dev/slipway/web/imports"
	"slipway.dev/slipway/web/instances"
	"slipway.dev/slipway/web/machines"
	"slipway.dev/slipway/web/network"
	"slipway.dev/slipway/web/power"
	"slipway.dev/slipway/web/proxy"
	"slipway.dev/slipway/web/records"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/scoped"
	"slipway.dev/slipway/web/system"
	"slipway.dev/slipway/web/wire"
)

// Config is everything a Server needs.
type Config struct {
	Store     inventory.Store
	Lifecycle Lifecycle
	Jobs      imports.Jobs
	Artefacts imports.Artefacts
	Catalogue []images.Entry
	Events    events.Events
	Configs   configs.Renderer   // nil: there is nothing to render, and configurations are saved unseen
	Secrets   configs.Sealer     // nil: no secret can be stored
	Appliance clusters.Appliance // what answers controllers in a cluster; nil: there are none
	// ClusterView returns it as the holder of a token may use it that is bound to a cluster, by its UID, and to namespaces of it.
	ClusterView func(uid string, namespaces []string) clusters.ClusterView
	// CheckTarget looks whether hosts can join a target, and TargetRBAC is what its cluster needs for that; nil: nobody
	// speaks to clusters.
	CheckTarget func(ctx context.Context, t inventory.JoinTarget) wire.TargetCheck
	TargetRBAC  []byte
	// IssueKubeconfig lets a user administer the cluster of a target whose authorities Slipway has; nil: nobody can.
	IssueKubeconfig func(ctx context.Context, target, user string, life time.Duration) ([]byte, error)
	// TargetNodesRBAC is what is added where Slipway looks after nodes too.
	TargetNodesRBAC []byte
	Clusters        clusters.Clusters // nil: no cluster can be attached
	Backups         files.Backups     // nil: no backup can be taken
	Logs            events.Logs       // of machines; nil: they are in the events
	SelfCheck       func(ctx context.Context) []wire.Check
	// Scan looks for controllers in a range of addresses, of at most 65,536; nil: nobody looks.
	Scan    func(ctx context.Context, rng string, drivers []string) ([]wire.FoundBMC, error)
	TLS     system.TLSKeeper // of the certificate of the admin door; nil: it speaks without TLS
	Metrics http.Handler     // what /metrics answers; nil: there is none
	UI      fs.FS            // the web UI as it was built; nil: there is none
	OIDC    *access.OIDC     // nil: people log in with passwords
	// Proxies are in front of the admin door, and Slipway believes them where a request comes from.
	Proxies proxy.Trusted
	// ExternalURL is the address by which browsers reach the admin door, such as https://slipway.example.org; "": not said.
	ExternalURL string
	// KnowsHost reports whether a name is one of the admin door's, in addition to its addresses; nil: any is.
	KnowsHost func(name string) bool
	// RotateAuthority prepares the authority that comes after that of a door, admin or boot, or puts it in force; nil: there is none.
	RotateAuthority func(ctx context.Context, door string, isFinish bool) error
	// FactorFrom is the least role whose users need a second factor in addition to their password, "" for none.
	FactorFrom inventory.UserRole
	Ready      func() []ReadyPart // of the doors; nil: only the admin door is known
	Key        []byte             // signs cookies that outlive a start; nil: one that is drawn for this start
	// Samples returns how busy the server was, as averages over step; nil: no samples are taken.
	Samples func(step time.Duration) []wire.Sample
	// Database says where the inventory is, and how that database is; nil: nobody asks.
	Database func() wire.Database
	// Duties knows the instances of the database; nil: nobody does.
	Duties instances.Keeper
	// Invitations lets machines become instances; nil: nobody can.
	Invitations instances.Inviter

	NewHostID func() inventory.HostID
	Vendor    func(inventory.MAC) string // who made a network card; "" when unknown
	// RecordConsoles keeps serial consoles open while something is done with their hosts.
	RecordConsoles bool
	BootBase       string // address of the boot door in script previews, such as http://10.0.0.1
	BootPort       int    // of the boot door
	// Interfaces lists the network interfaces, but for their subnets; nil: none is known.
	Interfaces func() []wire.Interface
	// Probe asks a subnet's network for other DHCP servers, or one of them as a relay agent; nil: nobody asks.
	Probe func(ctx context.Context, n inventory.Subnet, server netip.Addr) ([]pxe.ProbeLine, error)
	// ForeignServers returns the other DHCP servers that were noticed on a subnet; nil: none ever is.
	ForeignServers func(subnet string) []pxe.ForeignServer
	Version        string
	Instance       string // what admins call this server; "" if there can be no other
	Now            func() time.Time
	Log            *slog.Logger

	HeartbeatFor time.Duration // sign of life on a quiet event stream: 15 s
	WriteFor     time.Duration // a client that takes no bytes for so long is cut: 10 s
}

// Server answers REST requests. One handler serves two listeners: TCP, where a token is needed, and the Unix socket, whose
// file permissions say who is an admin.
type Server struct {
	cfg    Config          // without its store
	whole  inventory.Store // for what the server does by itself
	rest   *rest.Frame
	spec   func() ([]byte, error) // the OpenAPI description as YAML
	router http.Handler
	pages  pages
	access *access.Access
	life   context.Context // ends when Serve ends: streams and long waits stop
	end    context.CancelFunc

	consoles *consoles.Server
}

// New returns a Server; Serve opens its listeners.
func New(cfg Config) *Server {
	cfg.HeartbeatFor = cmp.Or(cfg.HeartbeatFor, 15*time.Second)
	cfg.WriteFor = cmp.Or(cfg.WriteFor, 10*time.Second)
	s := &Server{cfg: cfg}
	s.whole, s.cfg.Store = cfg.Store, nil
	s.life, s.end = context.WithCancel(context.Background())
	e, api := newRouter(cfg)
	store := scopedStore{cfg.Store, &scoped.Met{}, cfg.Lifecycle}
	conceal := concealer{store, cfg.Log}
	api.Transformers = append(api.Transformers, conceal.discreet)
	s.rest = rest.NewFrame(humaecho.NewV4(e, api), store, cfg.Now, cfg.Log, cfg.Configs != nil)
	s.access = access.New(access.Config{
		Frame: s.rest, Store: cfg.Store, Secrets: cfg.Secrets, Proxies: cfg.Proxies, OIDC: cfg.OIDC, ExternalURL: cfg.ExternalURL,
		FactorFrom: cfg.FactorFrom, Key: cfg.Key,
	})
	s.addAll(conceal)
	finishSpec(s.rest.API.OpenAPI())
	s.spec = descriptionOf(s.rest.API.OpenAPI())
	loosen(s.rest.API.OpenAPI())
	probes := health{s.whole, cfg.Ready, cfg.Database, cfg.Log}
	e.GET(rest.LivePath, echo.WrapHandler(http.HandlerFunc(probes.healthz)))
	e.GET(rest.ReadyPath, echo.WrapHandler(http.HandlerFunc(probes.readyz)))
	e.GET(rest.ReadyPath+"/:door", echo.WrapHandler(http.HandlerFunc(probes.readyz)))
	e.GET("/api/v1/hosts/:host/bmc/console", guarded(cfg.HeartbeatFor, rest.Operation{Needs: inventory.Operator, Scope: rest.OfPools}, s.consoles.Console))
	e.GET("/api/v1/openapi.yaml", guarded(cfg.HeartbeatFor, rest.Operation{Needs: rest.Anybody}, echo.WrapHandler(http.HandlerFunc(s.openapi))))
	if cfg.Metrics != nil {
		e.GET("/metrics", guarded(cfg.HeartbeatFor, rest.Operation{Needs: inventory.Viewer}, echo.WrapHandler(cfg.Metrics)))
	}
	s.router = e
	pages, err := readPages(cfg.UI)
	if err != nil {
		cfg.Log.Error("the web UI cannot be read", "err", err)
	}
	s.pages = pages
	return s
}

// newRouter returns a router without routes, and the settings of the API on it.
func newRouter(cfg Config) (*echo.Echo, huma.Config) {
	e := echo.New()
	// Without this, anyone who sends X-Forwarded-For chooses an address: only package access asks whom to believe.
	e.IPExtractor = echo.ExtractIPDirect()
	e.HTTPErrorHandler = func(err error, c echo.Context) { rest.RouteError(c.Response(), c.Request(), cfg.Log, err) }
	return e, rest.NewAPI(cfg.Version)
}

// addAll registers every operation.
func (s *Server) addAll(conceal concealer) {
	cfg := &s.cfg
	// The first type of a name keeps it in the description: that of a pool is the one of the records.
	records.Register(s.rest)
	powers := power.Register(power.Config{Frame: s.rest, Engine: cfg.Lifecycle, Scan: cfg.Scan, Life: s.life, Moving: moving})
	s.consoles = consoles.Register(consoles.Config{
		Frame: s.rest, Store: s.whole, Power: powers, Events: cfg.Events, Life: s.life, IsRecording: cfg.RecordConsoles,
		HeartbeatFor: cfg.HeartbeatFor, WriteFor: cfg.WriteFor,
	})
	hosts.Register(hosts.Config{
		Frame: s.rest, Engine: cfg.Lifecycle, NewHostID: cfg.NewHostID, Vendor: cfg.Vendor, Conceal: conceal,
		Addresses: hosts.Addresses{Boot: cfg.BootBase, UI: cfg.ExternalURL},
		Devices:   hosts.Devices{Locate: powers.Locate, Forget: s.consoles.Forget}, Moving: moving,
	})
	machines.Register(machines.Config{Frame: s.rest, Engine: cfg.Lifecycle, Moving: moving})
	heard := events.Register(events.Config{
		Frame: s.rest, Events: cfg.Events, Logs: cfg.Logs, Life: s.life, Conceal: conceal.discreetEvents,
		HeartbeatFor: cfg.HeartbeatFor, WriteFor: cfg.WriteFor,
	})
	clusters.Register(clusters.Config{
		Frame: s.rest, Clusters: cfg.Clusters, Events: heard, Appliance: cfg.Appliance, View: cfg.ClusterView,
		Joining: clusters.Joining{
			Check: cfg.CheckTarget, RBAC: cfg.TargetRBAC, NodesRBAC: cfg.TargetNodesRBAC, IssueKubeconfig: cfg.IssueKubeconfig,
		},
	})
	history.Register(history.Config{Frame: s.rest, Engine: cfg.Lifecycle})
	network.Register(network.Config{
		Frame: s.rest, Addresses: cfg.Lifecycle,
		Interfaces: cfg.Interfaces, BootPort: cfg.BootPort, Probe: cfg.Probe, ForeignServers: cfg.ForeignServers,
	})
	imports.Register(imports.Config{
		Frame: s.rest, Jobs: cfg.Jobs, Artefacts: cfg.Artefacts, Catalogue: cfg.Catalogue, Life: s.life,
	})
	configs.Register(configs.Config{
		Frame: s.rest, Renderer: cfg.Configs, Secrets: cfg.Secrets, Catalogue: cfg.Catalogue,
	})
	s.access.Register()
	files.Register(files.Config{
		Frame: s.rest, Backups: cfg.Backups, Life: s.life, NewHostID: cfg.NewHostID, Engine: cfg.Lifecycle,
	})
	audit.Register(s.rest)
	system.Register(system.Config{
		Frame: s.rest, Version: cfg.Version, Instance: cfg.Instance, SelfCheck: cfg.SelfCheck, Samples: cfg.Samples, TLS: cfg.TLS,
		RotateAuthority: cfg.RotateAuthority, Database: cfg.Database,
	})
	instances.Register(instances.Config{Frame: s.rest, Duties: cfg.Duties, Invitations: cfg.Invitations})
}

// Handler returns the API for requests that need a token.
func (s *Server) Handler() http.Handler {
	ours := names{s.cfg.KnowsHost, s.access, s.cfg.Log}
	return chain(s.cfg.Log, ours.named(s.pages.ui(compressed(s.access.Guard(s.router)))))
}

// SocketHandler returns the API for requests over the Unix socket, which need none.
func (s *Server) SocketHandler() http.Handler {
	return chain(s.cfg.Log, access.AdmitLocal(access.LocalUser, s.router))
}

// PeerHandler returns the API for requests that another instance has received over its admin listener. That instance has checked the
// name in the Host header. The caller sets the RemoteAddr of each request to that of the client.
func (s *Server) PeerHandler() http.Handler {
	return chain(s.cfg.Log, names{nil, s.access, s.cfg.Log}.named(s.pages.ui(compressed(s.access.Guard(s.router)))))
}

// PeerSocketHandler is SocketHandler for requests that another instance has received over its Unix socket. User names the user there.
func (s *Server) PeerSocketHandler(user func(*http.Request) string) http.Handler {
	return chain(s.cfg.Log, access.AdmitLocal(user, s.router))
}

// KnownNames lets requests through that ask for an address or for a name that knows accepts, as Handler does.
func KnownNames(knows func(name string) bool, log *slog.Logger, next http.Handler) http.Handler {
	return names{knows: knows, log: log}.only(next)
}

// limits of a connection.
const (
	headerFor   = 5 * time.Second
	idleFor     = time.Minute
	headerBytes = 32 << 10
	stopFor     = 5 * time.Second
)

// Door is a listener, and what answers its requests. Without a listener nobody asks.
type Door struct {
	Listener net.Listener
	Handler  http.Handler
}

// ServeDoors answers requests until ctx is done. Requests under way get five seconds to finish. It closes the listeners.
func ServeDoors(ctx context.Context, log *slog.Logger, doors ...Door) error {
	g, gctx := errgroup.WithContext(ctx)
	var servers []*http.Server
	for _, at := range doors {
		if at.Listener == nil {
			continue
		}
		srv := &http.Server{
			Handler: door.Handler(at.Handler), ReadHeaderTimeout: headerFor, IdleTimeout: idleFor, MaxHeaderBytes: headerBytes,
			ConnContext: access.RememberPeer, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		}
		servers = append(servers, srv)
		g.Go(func() error {
			if err := srv.Serve(at.Listener); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
	}
	g.Go(func() error {
		<-gctx.Done()
		late, cancel := context.WithTimeout(context.WithoutCancel(gctx), stopFor)
		defer cancel()
		for _, srv := range servers {
			if srv.Shutdown(late) != nil {
				_ = srv.Close() // who is still busy was given its time
			}
		}
		return nil
	})
	return g.Wait()
}

// Serve answers requests from both listeners, either of which may be nil, until ctx is done. Requests under way get
// five seconds to finish; event streams end at once. It closes the listeners, and is called once.
func (s *Server) Serve(ctx context.Context, tcp, socket net.Listener) error {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return ServeDoors(gctx, s.cfg.Log, Door{tcp, s.Handler()}, Door{socket, s.SocketHandler()})
	})
	g.Go(func() error { return s.consoles.Record(gctx) })
	g.Go(func() error {
		<-gctx.Done()
		s.end()
		late, cancel := context.WithTimeout(context.WithoutCancel(gctx), stopFor)
		defer cancel()
		ended := make(chan struct{})
		go func() {
			s.consoles.Wait() // they end with s.life; a driver that hangs must not hold up the stop
			close(ended)
		}()
		select {
		case <-ended:
		case <-late.Done():
		}
		return nil
	})
	return g.Wait()
}

// CheckOIDC says whether the provider of identities answers; ok is false without one.
func (s *Server) CheckOIDC(ctx context.Context) (c wire.Check, ok bool) {
	p, err := s.access.Provider(ctx)
	if p == nil {
		return c, false
	}
	c = wire.Check{Name: "single sign-on", Status: "ok", Detail: p.Title + " answers at " + p.Issuer}
	if err != nil {
		c.Status, c.Detail, c.Hint = "warning", err.Error(), "people can log in with passwords and tokens meanwhile; see docs/sso.md"
	}
	return c, true
}

func (s *Server) openapi(w http.ResponseWriter, r *http.Request) {
	text, err := s.spec()
	if err != nil {
		rest.WriteProblem(w, r, s.cfg.Log, err)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(text)
}

// Spec returns the OpenAPI description as YAML. It needs no running server.
func Spec() ([]byte, error) {
	return New(Config{Version: "1", Now: time.Now, Log: slog.New(slog.DiscardHandler)}).spec()
}
