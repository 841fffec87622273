package leader

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/cmd/slipway/serve/peer/peertest"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/door"
)

// admins starts a leader whose listeners say what they see of a request, and returns an instance that passes requests on.
func admins(t *testing.T) *httptest.Server {
	t.Helper()
	i := peertest.Identity(t, "k")
	says := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			scheme := "http"
			if r.TLS != nil {
				scheme = "https"
			}
			if r.URL.Path == "/metrics" && r.Header.Get("Authorization") == "" {
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			if r.Header.Get("Authorization") != "" {
				door.Trust(r.Context())
			}
			seen := []string{name, r.URL.Path, r.URL.RawQuery, r.Host, scheme, r.RemoteAddr, UserOf(r), r.Header.Get("X-Forwarded-For")}
			_, _ = io.WriteString(w, strings.Join(seen, " "))
		})
	}
	return passing(t, i, peertest.Serve(t, i, func(s *peer.Server) { AdminHandler(s, says("admin"), says("socket")) }))
}

// passing returns an instance that passes requests on to the leader at an address.
func passing(t *testing.T, i peer.Identity, at string) *httptest.Server {
	t.Helper()
	c := peer.NewClient(i, "a")
	t.Cleanup(c.Close)
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "of this instance") })
	leader := func() (string, bool) { return at, true }
	absent := func() *inventory.Error {
		return inventory.Errorf(inventory.Unavailable, "the instance with the engine does not answer")
	}
	a := &Admin{Client: c, Leader: leader, Absent: absent, Log: slog.New(slog.DiscardHandler), Metrics: metrics, TakeFor: time.Second}
	front := httptest.NewServer(a.Handler())
	t.Cleanup(front.Close)
	return front
}

// get sends a request with a raw path, as a program does that cleans nothing.
func get(t *testing.T, front *httptest.Server, path string, header http.Header) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.URL.Opaque, r.Header, r.Host = path, header, "slipway.example.org"
	answer, err := front.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func TestTheLeaderSeesTheClient(t *testing.T) {
	front := admins(t)
	forged := http.Header{
		"Slipway-Client": {"10.0.0.1:1"}, "Slipway-Scheme": {"https"}, "Slipway-User": {"root"}, "X-Forwarded-For": {"10.9.9.9"},
		"Connection": {"Slipway-Client, Slipway-Scheme, Slipway-User"},
	}
	status, body := get(t, front, "/api/v1/hosts?limit=5", forged)
	if !strings.HasPrefix(body, "admin /api/v1/hosts limit=5 slipway.example.org http 127.0.0.1:") ||
		!strings.HasSuffix(body, " somebody at another instance 10.9.9.9") || status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
}

// The socket is for root, so nobody may get there over TCP. The leader sees each path as the client has sent it.
func TestNoPathLeadsToTheSocketOfTheLeader(t *testing.T) {
	front := admins(t)
	for path, want := range map[string]string{
		"/../socket/api/v1/hosts": "", "/%2e%2e/socket/api/v1/hosts": "/../socket/api/v1/hosts",
		"/x/..%2f../socket/": "/x/../../socket/", "/..": "",
		"/socket/api/v1/hosts": "", "/./api": "", "/a//b": "", "/admin": "", "/": "",
	} {
		if want == "" {
			want = path
		}
		status, body := get(t, front, path, http.Header{"Slipway-Target": {"/forged"}})
		if !strings.HasPrefix(body, "admin "+want+" ") || status != http.StatusOK {
			t.Errorf("%s: %d %s, want %s", path, status, body, want)
		}
	}
	if status, body := get(t, front, "/a%", http.Header{}); status != http.StatusBadRequest {
		t.Errorf("a path that cannot be read: %d %s", status, body)
	}
}

// An instance that has just got the engine does not answer people yet. They read that it is unavailable, and not that they asked in a wrong
// way.
func TestALeaderThatIsNotReadyIsUnavailable(t *testing.T) {
	i := peertest.Identity(t, "k")
	front := passing(t, i, peertest.Serve(t, i, func(*peer.Server) {}))
	status, body := get(t, front, "/api/v1/hosts", http.Header{})
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "does not have the engine at the moment") {
		t.Errorf("%d %s", status, body)
	}
}

// A leader that dies may have done what it was asked for. Who hears that it was not done would try again, and do it twice.
func TestAChangeWhoseAnswerIsLostIsNotCalledUndone(t *testing.T) {
	i, err := peer.NewIdentity([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	dies := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	mayBeDone, isNot := "it is not known whether this was done", "the instance with the engine does not answer"
	for _, c := range []struct{ at, method, want string }{
		{peertest.Serve(t, i, func(s *peer.Server) { AdminHandler(s, dies, dies) }), http.MethodPost, mayBeDone},
		{peertest.Serve(t, i, func(s *peer.Server) { AdminHandler(s, dies, dies) }), http.MethodDelete, mayBeDone},
		{peertest.Serve(t, i, func(s *peer.Server) { AdminHandler(s, dies, dies) }), http.MethodGet, isNot},
		{dead.Addr().String(), http.MethodPost, isNot},
		{"", http.MethodPost, isNot},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, passing(t, i, c.at).URL+"/api/v1/hosts", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), c.want) {
			t.Errorf("%s at %q: %d %s: %v", c.method, c.at, answer.StatusCode, text, err)
		}
	}
}

// Who the leader lets in keeps a place at the listener of the instance in between.
func TestCallersThatTheLeaderKnowsAreKnown(t *testing.T) {
	front := admins(t)
	passes := front.Config.Handler
	for token, want := range map[string]bool{"": false, "Bearer x": true} {
		known := false
		front.Config.Handler = knownTo(&known, passes)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", token)
		answer, err := front.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if known != want || answer.Header.Get(knownHeader) != "" {
			t.Errorf("with token %q: known %t, header %q", token, known, answer.Header.Get(knownHeader))
		}
	}
}

func knownTo(known *bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(door.OnTrust(r.Context(), func() { *known = true })))
	})
}

// A client that reads nothing holds neither instance up, whether it asks for a page, or for a stream or a console.
func TestAClientThatTakesNothingIsCut(t *testing.T) {
	i := peertest.Identity(t, "k")
	endless := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := io.Writer(w)
		if r.Header.Get("Upgrade") != "" {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "websocket")
			w.WriteHeader(http.StatusSwitchingProtocols)
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			out = c
		}
		for block := make([]byte, 1<<20); ; {
			if _, err := out.Write(block); err != nil {
				return
			}
		}
	})
	front := passing(t, i, peertest.Serve(t, i, func(s *peer.Server) { AdminHandler(s, endless, endless) }))
	ended, passes := make(chan bool, 2), front.Config.Handler
	front.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- true }()
		passes.ServeHTTP(w, r)
	})
	for _, more := range []string{"", "Connection: Upgrade\r\nUpgrade: websocket\r\n"} {
		c, err := net.Dial("tcp", front.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /events HTTP/1.1\r\nHost: localhost\r\n"+more+"\r\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Errorf("%q: it is waited for", more)
		}
	}
}

func TestMetricsAreOfThisInstanceForThoseTheLeaderLetsIn(t *testing.T) {
	front := admins(t)
	if status, body := get(t, front, "/metrics", http.Header{}); status != http.StatusUnauthorized || !strings.Contains(body, "who are you?") {
		t.Errorf("without a token: %d %s", status, body)
	}
	status, body := get(t, front, "/metrics", http.Header{"Authorization": {"Bearer x"}})
	if status != http.StatusOK || body != "of this instance" {
		t.Errorf("with a token: %d %s", status, body)
	}
}
