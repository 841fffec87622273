package system

import (
	"net/http"
	"runtime"

	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// addSystem registers the operations on the server itself.
func (s *Server) addSystem() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/selfcheck", ID: "self-check", Tag: "system", Summary: "Have the server look itself over",
		About: "Interfaces, ports, loaders, disk space, other DHCP servers.",
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
