package web

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/proxy"
	"slipway.dev/slipway/web/rest"
)

var pathParameter = regexp.MustCompile(`\{[^}]*\}`)

// operations lists every method and path there is, with example values in the paths.
func (r *rig) operations() (all [][2]string) {
	for path, item := range r.srv.rest.API.OpenAPI().Paths {
		path = pathParameter.ReplaceAllString(path, "x")
		for method, has := range map[string]bool{"GET": item.Get != nil, "POST": item.Post != nil, "PUT": item.Put != nil, "PATCH": item.Patch != nil, "DELETE": item.Delete != nil} {
			if has {
				all = append(all, [2]string{method, path})
			}
		}
	}
	all = slices.DeleteFunc(all, func(op [2]string) bool { // whoever logs in is nobody yet
		return op == [2]string{"POST", "/api/v1/logins"} || op == [2]string{"POST", "/api/v1/logins/security-key"} || op[0] == "GET" && slices.Contains([]string{"/api/v1/logins/offers", "/api/v1/logins/oidc", "/api/v1/logins/oidc/callback"}, op[1])
	})
	return append(all, [][2]string{{"GET", "/metrics"}, {"GET", "/api/v1/openapi.yaml"}, {"POST", "/"}, {"GET", "/api/v1/nothing"}, {"OPTIONS", "/api/v1/hosts"}}...)
}

func TestEveryOperationNeedsATokenOverTCP(t *testing.T) {
	r := newRig(t, nil)
	all := r.operations()
	if len(all) < 50 {
		t.Fatalf("only %d operations found", len(all))
	}
	for i, op := range all {
		r.pass(time.Minute) // so that failed tries do not add up
		a := ask(t, r.srv.Handler(), op[0], op[1], `{}`)
		if a.status != 401 || a.header.Get("WWW-Authenticate") == "" || a.problem(t).Kind != inventory.Unauthorized {
			t.Errorf("%d: %s %s without a token: %d %s", i, op[0], op[1], a.status, a.body)
		}
	}
	if a := ask(t, r.srv.Handler(), "GET", "/healthz", ""); a.status != 200 || a.body != "ok\n" {
		t.Errorf("healthz: %d %s", a.status, a.body)
	}
}

func TestTokens(t *testing.T) {
	r := newRig(t, nil)
	var made access.NewToken
	r.must(201, &made, "POST", "/api/v1/tokens", `{"name":"ci","expiresAt":"2026-11-21T13:00:00Z"}`)
	if !strings.HasPrefix(made.Secret, "slipway_") || len(made.Secret) != 72 {
		t.Fatalf("secret %q", made.Secret)
	}
	if list := r.ask("GET", "/api/v1/tokens", ""); strings.Contains(list.body, made.Secret) || strings.Contains(list.body, access.HashToken(made.Secret)) {
		t.Errorf("the list tells secrets: %s", list.body)
	}
	try := func(auth string) int {
		return ask(t, r.srv.Handler(), "GET", "/api/v1/version", "", "Authorization", auth).status
	}
	for _, tc := range []struct {
		name, auth string
		want       int
	}{
		{"the secret", "Bearer " + made.Secret, 200},
		{"another case of the scheme", "bearer " + made.Secret, 200},
		{"nothing", "", 401},
		{"the secret without scheme", made.Secret, 401},
		{"another scheme", "Basic " + made.Secret, 401},
		{"a part of the secret", "Bearer " + made.Secret[:40], 401},
		{"the hash", "Bearer " + access.HashToken(made.Secret), 401},
		{"an endless one", "Bearer " + strings.Repeat("x", 10_000), 401},
		{"SQL", "Bearer ' OR 1=1 --", 401},
	} {
		if got := try(tc.auth); got != tc.want {
			t.Errorf("%s: status %d, want %d", tc.name, got, tc.want)
		}
	}
	var tok inventory.Token
	r.must(200, &tok, "GET", "/api/v1/tokens/ci", "")
	if !tok.LastUsedAt.Equal(testStart) {
		t.Errorf("last used at %v", tok.LastUsedAt)
	}
	r.pass(30 * time.Second)
	try("Bearer " + made.Secret)
	r.must(200, &tok, "GET", "/api/v1/tokens/ci", "")
	if !tok.LastUsedAt.Equal(testStart) {
		t.Error("the use is written down more than once a minute")
	}
	r.pass(2 * time.Minute)
	try("Bearer " + made.Secret)
	r.must(200, &tok, "GET", "/api/v1/tokens/ci", "")
	if !tok.LastUsedAt.After(testStart) {
		t.Error("the use is not written down after minutes")
	}
	r.pass(time.Hour)
	if a := ask(t, r.srv.Handler(), "GET", "/api/v1/version", "", "Authorization", "Bearer "+made.Secret); a.status != 401 || !strings.Contains(a.problem(t).Detail, "expired") {
		t.Errorf("an expired token: %d %s", a.status, a.body)
	}
	var forever access.NewToken
	r.must(201, &forever, "POST", "/api/v1/tokens", `{"name":"forever"}`)
	if try("Bearer "+forever.Secret) != 200 {
		t.Error("a token without end does not work")
	}
	r.must(204, nil, "DELETE", "/api/v1/tokens/forever", "")
	if try("Bearer "+forever.Secret) != 401 {
		t.Error("a deleted token works")
	}
	if strings.Contains(r.logged(), made.Secret) {
		t.Error("the log has the secret")
	}
}

func TestGuessingIsSlowedDownPerAddress(t *testing.T) {
	r := newRig(t, nil)
	var made access.NewToken
	r.must(201, &made, "POST", "/api/v1/tokens", `{"name":"ci"}`)
	from := func(addr, secret, forwarded string) int {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "/api/v1/version", nil)
		req.RemoteAddr = addr
		req.Header.Set("Authorization", "Bearer "+secret)
		req.Header.Set("X-Forwarded-For", forwarded)
		rec := &recorder{header: http.Header{}}
		r.srv.Handler().ServeHTTP(rec, req)
		return rec.status
	}
	last := 0
	for i := range 30 {
		last = from("192.0.2.1:1000", "guess", "198.51.100."+string(rune('0'+i%10)))
	}
	if last != 429 {
		t.Errorf("the thirtieth guess: %d, want 429 whatever X-Forwarded-For says", last)
	}
	if got := from("192.0.2.2:1000", made.Secret, ""); got != 200 {
		t.Errorf("another address: %d", got)
	}
	if got := from("192.0.2.1:1000", made.Secret, ""); got != 200 {
		t.Errorf("a good token from the address of the guesses: %d", got)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "POST", "/api/v1/logins", strings.NewReader(`{"token":"`+made.Secret+`"}`))
	req.RemoteAddr = "192.0.2.1:1000"
	req.Header.Set("Content-Type", "application/json")
	if a := serveOnce(r.srv.Handler(), req); a.status != 201 {
		t.Errorf("a login with a good token from the address of the guesses: %d %s", a.status, a.body)
	}
	if got := from("192.0.2.1:1000", "guess", ""); got != 429 {
		t.Errorf("one more guess after that: %d", got)
	}
}

// TestATrustedProxyNamesTheClient: guesses count for the client behind it, and cookies are as its outside is.
func TestATrustedProxyNamesTheClient(t *testing.T) {
	trusted, err := proxy.Parse([]string{"10.0.0.5"})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(c *Config) { c.Proxies = trusted })
	r.user("anna", adminEverywhere)
	via := []string{"X-Forwarded-For", "198.51.100.1", "X-Forwarded-Proto", "https"}
	for range failureBurst + 1 {
		r.logIn("10.0.0.5", "anna", "wrong password", via...)
	}
	if a := r.logIn("10.0.0.5", "anna", "correct horse anna", via...); a.status != 429 {
		t.Errorf("the guesser: %d", a.status)
	}
	via[1] = "198.51.100.2"
	a := r.logIn("10.0.0.5", "anna", "correct horse anna", via...)
	if a.status != 201 {
		t.Fatalf("another client behind the same proxy: %d %s", a.status, a.body)
	}
	for _, c := range a.header.Values("Set-Cookie") {
		if !strings.Contains(c, "; Secure") {
			t.Errorf("a cookie that goes over plain HTTP: %s", c)
		}
	}
	who := []string{"Cookie", cookieIn(a, loginCookie)}
	if list := r.via(who, "GET", "/api/v1/logins", ""); !strings.Contains(list.body, `"source":"198.51.100.2"`) {
		t.Errorf("logins: %s", list.body)
	}
	if out := r.via(append(via, who...), "DELETE", "/api/v1/logins/current", ""); !strings.Contains(out.header.Get("Set-Cookie"), "slipway-login=") {
		t.Errorf("log out: %v", out.header)
	}
	outside := newRig(t, func(c *Config) { c.ExternalURL = "https://slipway.example" })
	outside.user("anna", adminEverywhere)
	if a := outside.logIn("10.0.0.5", "anna", "correct horse anna"); !strings.Contains(a.header.Get("Set-Cookie"), "; Secure") {
		t.Errorf("the external URL is https, and the cookie %q", a.header.Get("Set-Cookie"))
	}
}

type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(s int)   { r.status = s }
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = 200
	}
	return len(b), nil
}

func TestTheSocketKnowsWhoCalls(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	path := filepath.Join(t.TempDir(), "s.sock")
	l, err := ListenSocket(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("socket mode %v, %v", info.Mode(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- r.srv.Serve(ctx, nil, l) }()
	hc := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	res, err := hc.Post("http://x/api/v1/hosts/r1-u01/maintain", "application/json", strings.NewReader(`{"on":true}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	hc.CloseIdleConnections()
	if res.StatusCode != 200 {
		t.Errorf("status %d", res.StatusCode)
	}
	if _, err := ListenSocket(path); err == nil {
		t.Error("a second server takes over the socket of a running one")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	var events rest.List[inventory.Event]
	r.must(200, &events, "GET", "/api/v1/events?host=r1-u01", "")
	if last := events.Items[len(events.Items)-1]; !strings.Contains(last.Detail, me.Username+" (local)") {
		t.Errorf("the timeline says %q and not who it was", last.Detail)
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	again, err := ListenSocket(path)
	if err != nil {
		t.Fatalf("the next start: %v", err)
	}
	_ = again.Close()
}
