package system

import (
	"net/http"
	"runtime"

	"slipway.dev/slipway/web/rest"
)

// Check is one line of the self-check.
type Check struct {
	Name   string `json:"name"`
	Status string `json:"status" enum:"ok,warning,error"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// VersionInfo is what the server is.
type VersionInfo struct {
	Version string `json:"version"`
	Go      string `json:"go" doc:"Version of Go that it was built with"`
}

// addSystem registers the operations on the server itself.
func (s *Server) addSystem() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/selfcheck", ID: "self-check", Tag: "system", Summary: "Have the server look itself over",
		About: "Interfaces, ports, loaders, disk space, other DHCP servers.",
	},
		func(req *rest.Request, _ *struct{}) (*rest.Listed[Check], error) {
			checks := s.cfg.SelfCheck(req)
			return rest.PageOf(checks, len(checks), func(c Check) string { return c.Name }), nil
		})
	rest.Register(s.rest, rest.Operation{Method: http.MethodGet, Path: "/version", ID: "version", Needs: rest.Anybody, ForClusters: true, Tag: "system", Summary: "Show the server's version"},
		func(*rest.Request, *struct{}) (*rest.One[VersionInfo], error) {
			return &rest.One[VersionInfo]{Body: VersionInfo{Version: s.cfg.Version, Go: runtime.Version()}}, nil
		})
}
