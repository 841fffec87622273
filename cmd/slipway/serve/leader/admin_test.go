package leader

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
)

// admins starts a leader whose listeners say what they see of a request, and returns an instance that passes requests on.
func admins(t *testing.T) *httptest.Server {
	t.Helper()
	i, err := peer.NewIdentity([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s := peer.New(peer.Config{Identity: i, Listen: "127.0.0.1:0", Log: log})
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
			seen := []string{name, r.URL.Path, r.URL.RawQuery, r.Host, scheme, r.RemoteAddr, UserOf(r), r.Header.Get("X-Forwarded-For")}
			_, _ = io.WriteString(w, strings.Join(seen, " "))
		})
	}
	AdminHandler(s, says("admin"), says("socket"))
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(t.Context()) }()
	c := peer.NewClient(i, "a")
	t.Cleanup(c.Close)
	at := s.Addr().String()
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "of this instance") })
	a := &Admin{Client: c, Leader: func() (string, bool) { return at, true }, Log: log, Metrics: metrics}
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

// The socket is for root, so nobody may get there over TCP.
func TestNoPathLeadsToTheSocketOfTheLeader(t *testing.T) {
	front := admins(t)
	for _, path := range []string{"/../socket/api/v1/hosts", "/%2e%2e/socket/api/v1/hosts", "/x/..%2f../socket/", "/.."} {
		if status, body := get(t, front, path, http.Header{}); status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, path := range []string{"/socket/api/v1/hosts", "//socket/api"} {
		if _, body := get(t, front, path, http.Header{}); strings.HasPrefix(body, "socket") {
			t.Errorf("%s: %s", path, body)
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
