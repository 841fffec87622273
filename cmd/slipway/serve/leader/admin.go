package leader

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/rest"
)

// What the instance that a client has connected to says of the client. No client can set these headers: Admin replaces them.
const (
	clientHeader = "Slipway-Client" // its address and port
	schemeHeader = "Slipway-Scheme" // https if its own connection was encrypted
	userHeader   = "Slipway-User"   // who it is, on the Unix socket of that instance
)

// The paths of the link under which the leader has its admin listener and its Unix socket.
const (
	adminRoot  = "/admin"
	socketRoot = "/socket"
)

// Admin passes requests to an instance's admin listener on to the leader: those for the API and the UI, with event streams, uploads and
// consoles.
type Admin struct {
	Client *peer.Client
	Leader func() (link string, ok bool) // Remote.Link
	// Metrics answers /metrics, which is about this instance. The leader checks the rights of the client.
	Metrics http.Handler
	Log     *slog.Logger
}

// Handler answers the requests of the admin listener.
func (a *Admin) Handler() http.Handler { return a.pass(adminRoot) }

// SocketHandler answers those of the Unix socket.
func (a *Admin) SocketHandler() http.Handler { return a.pass(socketRoot) }

func (a *Admin) pass(root string) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport: a.Client.Upgrade, FlushInterval: -1, // events are sent as they come
		ErrorLog: slog.NewLogLogger(a.Log.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			link, _ := a.Leader() // without one, the connection to "" fails
			r.Out.URL = &url.URL{Scheme: "https", Host: link, Path: root + r.In.URL.Path, RawQuery: r.In.URL.RawQuery}
			if r.In.URL.RawPath != "" {
				r.Out.URL.RawPath = root + r.In.URL.RawPath
			}
			r.Out.Host = r.In.Host
			// The leader judges the headers of proxies itself, as if the client had connected to it.
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if v, ok := r.In.Header[name]; ok {
					r.Out.Header[name] = slices.Clone(v)
				}
			}
			r.Out.Header.Set(clientHeader, r.In.RemoteAddr)
			r.Out.Header.Set(schemeHeader, "http")
			if r.In.TLS != nil {
				r.Out.Header.Set(schemeHeader, "https")
			}
			r.Out.Header.Set(userHeader, access.LocalUser(r.In))
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			rest.WriteProblem(w, r, a.Log, &inventory.Error{
				Kind: inventory.Unavailable, Msg: "the instance with the engine does not answer", Err: err,
				Hint: "if it does not come back, another instance takes over within seconds; this one serves machines meanwhile",
			})
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == rest.LivePath { // about this process
			w.WriteHeader(http.StatusOK)
			return
		}
		// The link has the admin listener and the socket under one root each. No path may lead from the first to the second.
		if slices.Contains(strings.Split(r.URL.Path, "/"), "..") {
			rest.WriteProblem(w, r, a.Log, inventory.Errorf(inventory.Invalid, "the path has .. in it"))
			return
		}
		if _, ok := a.Leader(); !ok {
			rest.WriteProblem(w, r, a.Log, inventory.Errorf(inventory.Unavailable, "no instance has the engine at the moment").
				WithHint("another takes it within seconds; if none does, see the logs of the instances"))
			return
		}
		if r.URL.Path != "/metrics" {
			proxy.ServeHTTP(w, r)
			return
		}
		v := &verdict{ResponseWriter: w, header: http.Header{}}
		if proxy.ServeHTTP(v, r); v.mayRead {
			a.Metrics.ServeHTTP(w, r)
		}
	})
}

// verdict takes from an answer of the leader whether a client may read something, and drops what it could read. A refusal passes.
type verdict struct {
	http.ResponseWriter
	header  http.Header
	mayRead bool
}

// Header implements http.ResponseWriter.
func (v *verdict) Header() http.Header { return v.header }

// WriteHeader implements http.ResponseWriter.
func (v *verdict) WriteHeader(status int) {
	if v.mayRead = status == http.StatusOK; v.mayRead {
		return
	}
	maps.Copy(v.ResponseWriter.Header(), v.header)
	v.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (v *verdict) Write(b []byte) (int, error) {
	if v.mayRead {
		return len(b), nil
	}
	return v.ResponseWriter.Write(b)
}

// AdminHandler answers, on the leader, what Admin passes on: by the handlers of its own admin listener and socket.
func AdminHandler(link interface{ Handle(string, http.Handler) }, admin, socket http.Handler) {
	link.Handle(adminRoot+"/", received(adminRoot, admin))
	link.Handle(socketRoot+"/", received(socketRoot, socket))
}

// UserOf names the user of a request that another instance has received over its Unix socket.
func UserOf(r *http.Request) string {
	return cmp.Or(r.Header.Get(userHeader), "somebody") + " at another instance"
}

// received makes a request what it was when the other instance received it.
func received(root string, next http.Handler) http.Handler {
	return http.StripPrefix(root, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = r.Header.Get(clientHeader)
		r.TLS = nil
		if r.Header.Get(schemeHeader) == "https" {
			r.TLS = &tls.ConnectionState{HandshakeComplete: true}
		}
		next.ServeHTTP(w, r)
	}))
}
