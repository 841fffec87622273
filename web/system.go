package web

import (
	"context"
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

// CheckOIDC says whether the provider of identities answers; ok is false without one.
func (s *Server) CheckOIDC(ctx context.Context) (c Check, ok bool) {
	p, err := s.access.Provider(ctx)
	if p == nil {
		return c, false
	}
	c = Check{Name: "single sign-on", Status: "ok", Detail: p.Title + " answers at " + p.Issuer}
	if err != nil {
		c.Status, c.Detail, c.Hint = "warning", err.Error(), "people can log in with passwords and tokens meanwhile; see docs/sso.md"
	}
	return c, true
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
