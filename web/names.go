package web

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/proxy"
	"slipway.dev/slipway/web/rest"
)

// names are the names of this server, as the settings say, and how browsers reach it.
type names struct {
	knows  func(name string) bool // nil: any name is good
	access *access.Access
	log    *slog.Logger
}

// named refuses requests for a name that is not Slipway's: a page of another site can have its own name lead here (DNS
// rebinding), and its scripts would then be of one origin with Slipway. An address is no name. It also has browsers come by
// https only, where the outside is https.
func (n names) named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.access.IsSecure(r) {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		n.only(next).ServeHTTP(w, r)
	})
}

// only is named without the part about https.
func (n names) only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := proxy.HostOf(r.Host)
		if !rest.IsProbe(r.URL.Path) && !n.isOurs(host) {
			e := inventory.Errorf(inventory.Forbidden, "this server is not known as %q", inventory.Clean(host, 80)).
				WithHint("use its address, or have an admin add the name to adminHosts in its configuration")
			rest.WriteProblem(w, r, n.log, &rest.StatusError{Status: http.StatusMisdirectedRequest, Err: e})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOurs reports whether a host of a request is an address, this machine itself, or a name that the settings know. A
// request without any, of a program that speaks HTTP/1.0, comes from no browser.
func (n names) isOurs(host string) bool {
	if n.knows == nil || host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil || n.knows(host)
}
