package system

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// addSystem registers the operations on the server itself.
func (s *Server) addSystem() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/selfcheck", ID: "self-check", Tag: "system", Summary: "Have the server look itself over",
		About: "Interfaces, ports, loaders, disk space, other DHCP servers. Each instance of the database checks its own machine.",
		AtAny: true, // the instance asks the others itself
	},
		func(req *rest.Request, _ *struct{}) (*rest.Listed[wire.Check], error) {
			checks := s.cfg.SelfCheck(req)
			return rest.PageOf(checks, len(checks), func(c wire.Check) string { return c.Name }), nil
		})
	rest.Register(s.rest, rest.Operation{Method: http.MethodGet, Path: "/version", ID: "version", Needs: rest.Anybody, ForClusters: true, Tag: "system", Summary: "Show the server's version"},
		func(*rest.Request, *struct{}) (*rest.One[wire.VersionInfo], error) {
			return &rest.One[wire.VersionInfo]{Body: wire.VersionInfo{Version: s.cfg.Version, Go: runtime.Version()}}, nil
		})
}

// addStats registers how busy the server is, and what it is made of.
func (s *Server) addStats() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/stats", ID: "get-stats", Scope: rest.OfNobody, Tag: "system",
		Summary: "Show how busy the server was in the last hour",
		About:   "Samples are kept in memory: /metrics is for keeping them longer.",
	},
		func(_ *rest.Request, in *struct {
			Step int `query:"step" doc:"Length of the spans in seconds" enum:"5,60" default:"60"`
		},
		) (*rest.One[wire.Stats], error) {
			if s.cfg.Samples == nil {
				return nil, inventory.Errorf(inventory.Unavailable, "this server takes no samples")
			}
			step := time.Duration(in.Step) * time.Second
			out := wire.Stats{Instance: s.cfg.Instance, StepSeconds: in.Step, Samples: s.cfg.Samples(step)}
			if out.Samples == nil {
				out.Samples = []wire.Sample{}
			}
			return &rest.One[wire.Stats]{Body: out}, nil
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/database", ID: "get-database", Scope: rest.OfNobody, Tag: "system",
		Summary: "Show where the inventory is, and how that database is",
		About: "Over the Unix socket it also answers while the database cannot be reached. " +
			"Each instance of the database says how it reaches that itself.",
		AtAny: true,
	},
		func(*rest.Request, *struct{}) (*rest.One[wire.Database], error) {
			if s.cfg.Database == nil {
				return nil, inventory.Errorf(inventory.Unavailable, "this server does not watch its database")
			}
			return &rest.One[wire.Database]{Body: s.cfg.Database()}, nil
		})
	var startedAt time.Time
	if s.rest.Now != nil { // nobody asks a server that only describes itself
		startedAt = s.rest.Now().UTC().Truncate(time.Second)
	}
	rest.Register(s.rest, rest.Operation{Method: http.MethodGet, Path: "/about", ID: "about", Needs: rest.Anybody, Tag: "system", Summary: "Show what the server is made of", AtAny: true},
		func(*rest.Request, *struct{}) (*rest.One[wire.About], error) {
			return &rest.One[wire.About]{Body: wire.About{
				Instance: s.cfg.Instance, Version: s.cfg.Version, Go: runtime.Version(),
				Platform: runtime.GOOS + "/" + runtime.GOARCH, StartedAt: startedAt, Parts: builtIn(),
			}}, nil
		})
}

// builtIn are the modules in this program, as its build noted them.
func builtIn() []wire.Part {
	parts := []wire.Part{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return parts
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, wire.Part{Name: m.Path, Version: m.Version})
	}
	return parts
}
