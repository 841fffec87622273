package rest

import (
	"path"
	"strings"
)

// What load balancers and monitoring ask without a login: whether the process lives, and whether each door can do its work.
const (
	LivePath  = "/healthz"
	ReadyPath = "/readyz"
)

// IsProbe reports whether a path is one of these.
func IsProbe(path string) bool {
	return path == LivePath || path == ReadyPath || strings.HasPrefix(path, ReadyPath+"/")
}

// IsOfAPI reports whether a path is none of a page of the UI, in any spelling. //api/v1/hosts and /API/v1/hosts are no
// pages either, and get the API's 404.
func IsOfAPI(p string) bool {
	p = strings.ToLower(path.Clean("/" + strings.ReplaceAll(p, `\`, "/")))
	return p == "/api" || strings.HasPrefix(p, "/api/") || IsProbe(p) || p == "/metrics"
}
