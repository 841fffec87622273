package access

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/web/rest"
)

var testStart = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// rig is an Access before a router of its own, with a real store and a clock that the test moves.
type rig struct {
	t      *testing.T
	store  *sqlstore.Store
	access *Access
	guard  http.Handler
	now    time.Time
}

// whole shows every request the whole inventory.
type whole struct{ inventory.Store }

func (w whole) Read(req *rest.Request, fn func(inventory.Tx) error) error {
	return w.Store.Read(req, fn)
}

func (w whole) Write(req *rest.Request, fn func(inventory.Tx) error) error {
	return w.Store.Write(req, fn)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	r := &rig{t: t, store: store, now: testStart}
	clock := func() time.Time { return r.now }
	e := echo.New()
	frame := rest.NewFrame(humaecho.NewV4(e, rest.NewAPI("test")), whole{store}, clock, slog.New(slog.DiscardHandler), false)
	r.access = New(Config{Frame: frame, Store: store})
	r.access.Register()
	r.guard = r.access.Guard(e)
	return r
}

// user makes an admin with the password "correct horse NAME".
func (r *rig) user(name string) {
	r.t.Helper()
	hash, err := r.access.passwords.inner.hash(rest.NewRequest(r.t.Context(), ""), "correct horse "+name)
	if err != nil {
		r.t.Fatal(err)
	}
	u := inventory.User{Name: name, Grants: inventory.AdminEverywhere(), PasswordHash: hash}
	if err := r.store.Write(r.t.Context(), func(tx inventory.Tx) error { return tx.Users().Create(&u, r.now) }); err != nil {
		r.t.Fatal(err)
	}
}

// logIn tries to log in from an address, with the cookie of a known browser if there is one.
func (r *rig) logIn(from, name, known string) *httptest.ResponseRecorder {
	r.t.Helper()
	b, err := json.Marshal(map[string]string{"user": name, "password": "correct horse " + name})
	if err != nil {
		r.t.Fatal(err)
	}
	req := httptest.NewRequestWithContext(rest.Begin(r.t.Context(), "test"), "POST", "/api/v1/logins", strings.NewReader(string(b)))
	req.RemoteAddr = from + ":1000"
	req.Header.Set("Content-Type", "application/json")
	if known != "" {
		req.AddCookie(&http.Cookie{Name: knownCookie, Value: known})
	}
	w := httptest.NewRecorder()
	r.guard.ServeHTTP(w, req)
	return w
}

// known logs a user in, and returns the cookie by which the browser is known from then on.
func (r *rig) known(name string) string {
	r.t.Helper()
	a := r.logIn("192.0.2.1", name, "")
	if a.Code != http.StatusCreated {
		r.t.Fatalf("log in %s: %d %s", name, a.Code, a.Body)
	}
	for _, c := range a.Result().Cookies() {
		if c.Name == knownCookie {
			return c.Value
		}
	}
	r.t.Fatal("no cookie of a known browser")
	return ""
}

// TestAFloodOfLoginsLeavesATurnForKnownBrowsers: hashes are computed a few at a time.
func TestAFloodOfLoginsLeavesATurnForKnownBrowsers(t *testing.T) {
	r := newRig(t)
	r.user("anna")
	known := r.known("anna")
	for range hashersMax() {
		back, err := r.access.passwords.hashes.turn(rest.NewRequest(t.Context(), ""))
		if err != nil {
			t.Fatal(err)
		}
		defer back()
	}
	for range hashersQueue {
		r.access.passwords.hashes.queue <- struct{}{}
	}
	if a := r.logIn("192.0.2.2", "anna", ""); a.Code != 503 {
		t.Errorf("a stranger in the flood: %d", a.Code)
	}
	if a := r.logIn("192.0.2.2", "anna", known); a.Code != 201 {
		t.Errorf("a known browser in the flood: %d %s", a.Code, a.Body)
	}
}

func TestABrowserIsKnownForAYear(t *testing.T) {
	r := newRig(t)
	r.user("anna")
	known := r.known("anna")
	again := r.access.cookies.browser(known)
	r.now = r.now.Add(knownFor + 48*time.Hour)
	if !again.knows("anna") || r.access.cookies.browser(known).knows("anna") {
		t.Error("a browser is known for ever, or not at all")
	}
	forged := newSeal(nil).sign("known browser", browser{ID: "x", Users: map[string]string{"anna": r.now.Format(time.DateOnly)}})
	if !r.access.cookies.browser(forged).isNew() {
		t.Error("a cookie that another key has signed is taken")
	}
}

func TestACookieThatCameOverTLSGoesOverTLSOnly(t *testing.T) {
	if c := (&cookies{}).ofLogin("x", true, 1); !c.Secure {
		t.Error("the cookie would come back without TLS")
	}
}

func TestABoundedNumberOfFailedTriesIsRemembered(t *testing.T) {
	k := newPasswords(nil, time.Now)
	for i := range triedMax + 10 {
		k.names.failed(fmt.Sprint(i))
		k.sources.failed(netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}))
	}
	if n := len(k.names.failAt); n > triedMax {
		t.Errorf("%d names remembered", n)
	}
	if n := len(k.sources.failAt); n > triedMax {
		t.Errorf("%d addresses remembered", n)
	}
}
