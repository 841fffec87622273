package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/wire"
)

func TestReadinessNamesTheDoorAndTheReason(t *testing.T) {
	const why = "leases cannot be stored"
	parts := []ReadyPart{{Name: "dhcp", Reason: why}, {Name: "tftp", IsReady: true}}
	r := newRig(t, func(c *Config) { c.Ready = func() []ReadyPart { return parts } })
	for path, want := range map[string]int{"/readyz": 503, "/readyz/dhcp": 503, "/readyz/tftp": 200, "/readyz/nothing": 404, "/healthz": 200} {
		a := ask(t, r.srv.Handler(), "GET", path, "")
		if a.status != want || want == 503 && !strings.Contains(a.body, why) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	parts = parts[1:]
	if a := ask(t, r.srv.Handler(), "GET", "/readyz", ""); a.status != 200 || !strings.Contains(a.body, `"isReady":true`) {
		t.Errorf("all are ready: %d %s", a.status, a.body)
	}
}

// gone is a store whose database cannot be read.
type gone struct{ inventory.Store }

func (gone) Read(context.Context, func(inventory.Tx) error) error {
	return inventory.Errorf(inventory.Unavailable, "the database cannot be reached")
}

// TestARestartIsAskedForWhereItHelps: who restarts Slipway by its health would do so for as long as a database server is away.
func TestARestartIsAskedForWhereItHelps(t *testing.T) {
	for kind, want := range map[string]int{wire.DatabaseSQLite: 503, wire.DatabasePostgreSQL: 200} {
		x := health{store: gone{}, database: func() wire.Database { return wire.Database{Kind: kind} }, log: slog.New(slog.DiscardHandler)}
		a := httptest.NewRecorder()
		x.healthz(a, httptest.NewRequestWithContext(t.Context(), "GET", "/healthz", nil))
		if a.Code != want || !strings.Contains(a.Body.String(), "the database") {
			t.Errorf("%s: %d %s", kind, a.Code, a.Body)
		}
	}
}

// TestAnotherNameIsRefused: a page whose own name leads here (DNS rebinding) is of no origin with Slipway.
func TestAnotherNameIsRefused(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.KnowsHost = func(name string) bool { return name == "slipway.example" }
		c.ExternalURL = "https://slipway.example"
	})
	token := r.as("ci", inventory.Grant{Role: inventory.Viewer})
	for host, want := range map[string]int{
		"slipway.example": 200, "SLIPWAY.example:8067": 200, "slipway.example.": 200, "127.0.0.1:8067": 200, "[::1]:8067": 200, "10.0.0.1": 200, "localhost:8067": 200, "": 200,
		"evil.example": 421, "evil.example:8067": 421, "slipway.example.evil.example": 421, "127.0.0.1.evil.example": 421,
	} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "/api/v1/version", nil)
		req.Host, req.RemoteAddr = host, "192.0.2.1:1"
		req.Header.Set(token[0], token[1])
		a := serveOnce(r.srv.Handler(), req)
		if a.status != want || a.header.Get("Strict-Transport-Security") == "" {
			t.Errorf("%q: %d, want %d: %s", host, a.status, want, a.body)
		}
		if a.status == 421 && (a.problem(t).Hint == "" || strings.Contains(a.body, r.srv.cfg.Version)) {
			t.Errorf("%q: %s", host, a.body)
		}
	}
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "/healthz", nil)
	req.Host = "probe.example"
	if a := serveOnce(r.srv.Handler(), req); a.status != 200 {
		t.Errorf("a probe by another name: %d", a.status)
	}
	if a := ask(t, newRig(t, nil).srv.Handler(), "GET", "/healthz", ""); a.header.Get("Strict-Transport-Security") != "" {
		t.Error("HSTS where the outside is http")
	}
}
