package web

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2/adapters/humaecho"

	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/audit"
	"slipway.dev/slipway/web/configs"
	"slipway.dev/slipway/web/history"
	"slipway.dev/slipway/web/hosts"
	"slipway.dev/slipway/web/imports"
	"slipway.dev/slipway/web/machines"
	"slipway.dev/slipway/web/network"
	"slipway.dev/slipway/web/records"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/scoped"
	"slipway.dev/slipway/web/system"
)

// Reads answers requests at an instance that is not the leader. It knows the operations of the API that read the inventory and nothing
// else. It also has the files of the UI, and says whether this instance can do its work. That way the load of readers is spread, and people can read while no instance leads.
type Reads struct {
	log    *slog.Logger
	rest   *rest.Frame
	router http.Handler
	pages  pages
	access *access.Access
	probes health
}

// NewReads returns Reads. It needs the store, the UI, and what New needs to know callers. The store is the whole inventory, and this
// instance may write to it: Reads notes when a login was last used.
func NewReads(cfg Config) *Reads {
	e, api := newRouter(cfg)
	store := scopedStore{cfg.Store, &scoped.Met{}, nil}
	conceal := concealer{store, cfg.Log}
	api.Transformers = append(api.Transformers, conceal.discreet)
	f := rest.NewReadFrame(humaecho.NewV4(e, api), store, cfg.Now, cfg.Log)
	records.Register(f)
	hosts.Register(hosts.Config{Frame: f, Conceal: conceal, Addresses: hosts.Addresses{UI: cfg.ExternalURL}})
	machines.Register(machines.Config{Frame: f})
	history.Register(history.Config{Frame: f})
	network.Register(network.Config{Frame: f})
	imports.Register(imports.Config{Frame: f})
	configs.Register(configs.Config{Frame: f})
	audit.Register(f)
	system.Register(system.Config{Frame: f, Version: cfg.Version, Instance: cfg.Instance, SelfCheck: cfg.SelfCheck, Database: cfg.Database})
	pages, err := readPages(cfg.UI)
	if err != nil {
		cfg.Log.Error("the web UI cannot be read", "err", err)
	}
	return &Reads{
		log: cfg.Log, rest: f, router: e, pages: pages, probes: health{cfg.Store, cfg.Ready, cfg.Database, cfg.Log},
		access: access.New(access.Config{
			Frame: f, Store: cfg.Store, Secrets: cfg.Secrets, Proxies: cfg.Proxies, ExternalURL: cfg.ExternalURL,
			FactorFrom: cfg.FactorFrom, Key: cfg.Key,
		}),
	}
}

// Handler answers what it can of the requests to the admin listener. All others go to leader, and those of callers that it does not
// know, too.
func (s *Reads) Handler(leader http.Handler) http.Handler {
	toLeader := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		clear(w.Header()) // the leader sets its own
		leader.ServeHTTP(w, r)
	})
	known := s.access.GuardReads(compressed(s.router), toLeader)
	return s.split(chain(s.log, names{nil, s.access, s.log}.named(s.pages.ui(known))), leader)
}

// SocketHandler answers what it can of the requests over the Unix socket.
func (s *Reads) SocketHandler(leader http.Handler) http.Handler {
	return s.split(chain(s.log, access.AdmitLocal(access.LocalUser, s.router)), leader)
}

// split has own answer what this instance can answer, and leader all else.
func (s *Reads) split(own, leader http.Handler) http.Handler {
	lives, ready := chain(s.log, http.HandlerFunc(s.probes.healthz)), chain(s.log, http.HandlerFunc(s.probes.readyz))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == rest.LivePath:
			lives.ServeHTTP(w, r)
			return
		case rest.IsProbe(r.URL.Path):
			ready.ServeHTTP(w, r)
			return
		case !rest.IsOfAPI(r.URL.Path), s.rest.Answers(r):
			own.ServeHTTP(w, r)
			return
		}
		// A request before this one on the same connection may have set limits. A stream has none.
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Time{})
		_ = control.SetWriteDeadline(time.Time{})
		leader.ServeHTTP(w, r)
	})
}
