package leader

import (
	"cmp"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/door"
	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/rest"
)

// What the instance that a client has connected to says of the client. No client can set these headers: Admin replaces them.
const (
	clientHeader = "Slipway-Client" // its address and port
	schemeHeader = "Slipway-Scheme" // https if its own connection was encrypted
	userHeader   = "Slipway-User"   // who it is, on the Unix socket of that instance
	targetHeader = "Slipway-Target" // path and query, as the client has sent them
)

// knownHeader is in the answer to a client whose token or cookie is valid. The other instance removes it.
const knownHeader = "Slipway-Known"

// The paths of the link at which the leader has its admin listener and its Unix socket. What a client asks for is in targetHeader: no path
// of a request over TCP can lead to the socket.
const (
	adminPath  = "/admin"
	socketPath = "/socket"
)

// nowhere is an address to which no connection can be made.
const nowhere = "127.0.0.1:0"

// Admin passes requests to an instance's admin listener on to the leader: those for the API and the UI, with event streams, uploads and
// consoles.
type Admin struct {
	Client *peer.Client
	Leader func() (link string, ok bool) // Remote.Link
	// Absent says why the leader does not answer, and what to do.
	Absent func() *inventory.Error
	// Metrics answers /metrics, which is about this instance. The leader checks the rights of the client.
	Metrics http.Handler
	Log     *slog.Logger
	// TakeFor is how long a client may take no byte of an answer: 2 minutes. The leader has such limits, but it sees only the connection of
	// this instance, which otherwise waits for the client without an end.
	TakeFor time.Duration
}

// Handler answers the requests of the admin listener.
func (a *Admin) Handler() http.Handler { return a.pass(adminPath) }

// SocketHandler answers those of the Unix socket.
func (a *Admin) SocketHandler() http.Handler { return a.pass(socketPath) }

func (a *Admin) pass(path string) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport: a.Client.Upgrade, FlushInterval: -1, // events are sent as they come
		ErrorLog: slog.NewLogLogger(a.Log.Handler(), slog.LevelDebug),
		Rewrite: func(r *httputil.ProxyRequest) {
			link, _ := a.Leader() // it may have gone this moment
			r.Out.URL = &url.URL{Scheme: "https", Host: cmp.Or(link, nowhere), Path: path}
			r.Out.Host = r.In.Host
			r.Out.Header.Set(targetHeader, r.In.URL.RequestURI())
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
		ModifyResponse: func(answer *http.Response) error {
			if err := peer.FaultOf(answer); err != nil { // it has just got the engine, or lost it, or runs another version
				return err
			}
			if answer.Header.Get(knownHeader) != "" {
				door.Trust(answer.Request.Context())
				answer.Header.Del(knownHeader)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if e, ok := errors.AsType[*inventory.Error](err); ok && e.Kind == inventory.Unavailable {
				rest.WriteProblem(w, r, a.Log, e)
				return
			}
			why := a.Absent()
			if mayChange(r) && !peer.IsNotConnected(err) {
				// A client reads before it tries again: if the name is taken, the first try may have done it.
				why = inventory.Errorf(inventory.Unavailable,
					"it is not known whether this was done: the instance with the engine went away before it answered").
					WithHint("look whether it is there before you try again")
			}
			why.Err = err
			rest.WriteProblem(w, r, a.Log, why)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := url.ParseRequestURI(r.URL.RequestURI()); err != nil {
			rest.WriteProblem(w, r, a.Log, inventory.Errorf(inventory.Invalid, "the path of the request cannot be read"))
			return
		}
		w = &taking{w, http.NewResponseController(w), cmp.Or(a.TakeFor, 2*time.Minute)}
		if _, ok := a.Leader(); !ok {
			rest.WriteProblem(w, r, a.Log, a.Absent())
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

// mayChange reports whether a request may change something.
func mayChange(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
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
	link.Handle(adminPath, received(admin))
	link.Handle(socketPath, received(socket))
}

// UserOf names the user of a request that another instance has received over its Unix socket.
func UserOf(r *http.Request) string {
	return cmp.Or(r.Header.Get(userHeader), "somebody") + " at another instance"
}

// received makes a request what it was when the other instance received it.
func received(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target, err := url.ParseRequestURI(r.Header.Get(targetHeader))
		if err != nil {
			peer.SendError(w, inventory.Errorf(inventory.Invalid, "the path of the request cannot be read: %w", err))
			return
		}
		r = r.WithContext(door.OnTrust(r.Context(), func() { w.Header().Set(knownHeader, "yes") }))
		r.URL, r.RequestURI, r.RemoteAddr, r.TLS = target, r.Header.Get(targetHeader), r.Header.Get(clientHeader), nil
		if r.Header.Get(schemeHeader) == "https" {
			r.TLS = &tls.ConnectionState{HandshakeComplete: true}
		}
		next.ServeHTTP(w, r)
	})
}
