package web

import (
	"net/http"
	"runtime"
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
	register(s.rest, operation{
		method: http.MethodGet, path: "/selfcheck", id: "self-check", tag: "system", summary: "Have the server look itself over",
		about: "Interfaces, ports, loaders, disk space, other DHCP servers.",
	},
		func(req *Request, _ *struct{}) (*listed[Check], error) {
			checks := s.cfg.SelfCheck(req)
			return pageOf(checks, len(checks), func(c Check) string { return c.Name }), nil
		})
	register(s.rest, operation{method: http.MethodGet, path: "/version", id: "version", needs: anybody, forClusters: true, tag: "system", summary: "Show the server's version"},
		func(*Request, *struct{}) (*one[VersionInfo], error) {
			return &one[VersionInfo]{Body: VersionInfo{Version: s.cfg.Version, Go: runtime.Version()}}, nil
		})
}
