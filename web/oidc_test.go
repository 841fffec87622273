package web

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

const people = `{
 "id-anna": {"ID":"id-anna","Username":"Anna.Berg@example.org","Password":"pw","FirstName":"Anna","LastName":"Berg","groups":["staff","slipway-admins"]},
 "id-otto": {"ID":"id-otto","Username":"otto","Password":"pw","FirstName":"Otto","LastName":"Ohm","groups":["web-team","staff"]},
 "id-eva":  {"ID":"id-eva","Username":"eva","Password":"pw","FirstName":"Eva","LastName":"Ex","groups":["staff"]},
 "id-max":  {"ID":"id-max","Username":"max","Password":"pw","FirstName":"Max","LastName":"M"}
}`

// ssoRig is a server on a port, and a real provider (zitadel/oidc, built by tools/parts.sh) that knows people.
type ssoRig struct {
	*rig
	base     string
	provider *exec.Cmd
	http     *http.Client // a browser: it keeps cookies and follows links one at a time
}

func startSSO(t *testing.T, edit func(*access.OIDC)) *ssoRig {
	t.Helper()
	part, err := filepath.Abs("../build/parts/oidc-provider")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(part); err != nil {
		t.Skipf("needs an OpenID provider: tools/parts.sh build oidc-provider")
	}
	users := filepath.Join(t.TempDir(), "users.json")
	if err := os.WriteFile(users, []byte(people), 0o600); err != nil {
		t.Fatal(err)
	}
	var srv *Server
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { srv.Handler().ServeHTTP(w, r) }))
	t.Cleanup(door.Close)
	cmd := exec.Command(part, "--users", users, "--redirect", door.URL+"/api/v1/logins/oidc/callback")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	o := access.OIDC{
		Issuer: strings.TrimSpace(strings.TrimPrefix(line, "issuer ")), ClientID: "slipway", ClientSecret: "not a secret", Title: "Example", Scopes: []string{"profile", "email"},
		NameClaim: "preferred_username", GroupsClaim: "groups", ExternalURL: door.URL,
		Groups: map[string]inventory.Grants{"slipway-admins": {{Role: inventory.Admin}}, "web-team": {{Role: inventory.Operator, Pool: "default"}, {Role: inventory.Viewer, Pool: "gone"}}},
	}
	if edit != nil {
		edit(&o)
	}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(c *Config) { c.OIDC = &o })
	r.mu.Lock()
	r.now = time.Now() // the provider's tokens are of now
	r.mu.Unlock()
	srv = r.srv
	s := &ssoRig{rig: r, base: door.URL, provider: cmd}
	s.fresh()
	return s
}

// fresh forgets all cookies.
func (s *ssoRig) fresh() {
	jar, _ := cookiejar.New(nil)
	s.http = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (s *ssoRig) do(method, at string, form url.Values, accept string) (*http.Response, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, at, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	req.Header.Set("Accept", accept)
	a, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body)
	return a, string(text)
}

// begin clicks the button of the login page, and returns where the provider is asked.
func (s *ssoRig) begin(back string) string {
	s.t.Helper()
	a, text := s.do("GET", s.base+ssoPath+"?back="+url.QueryEscape(back), nil, "text/html")
	if a.StatusCode != http.StatusSeeOther {
		s.t.Fatalf("begin: %d %s", a.StatusCode, text)
	}
	return a.Header.Get("Location")
}

var hiddenID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// atProvider logs in there, and returns where the provider sends the browser back to.
func (s *ssoRig) atProvider(at, user string) string {
	s.t.Helper()
	for range 10 {
		a, text := s.do("GET", at, nil, "text/html")
		if id := hiddenID.FindStringSubmatch(text); id != nil {
			here := a.Request.URL
			a, text = s.do("POST", here.ResolveReference(&url.URL{Path: "/login/username"}).String(), url.Values{"id": {id[1]}, "username": {user}, "password": {"pw"}}, "text/html")
		}
		to, err := a.Location()
		if err != nil {
			s.t.Fatalf("at the provider: %d %s", a.StatusCode, text)
		}
		if at = to.String(); strings.HasPrefix(at, s.base) {
			return at
		}
	}
	s.t.Fatal("the provider sends us in circles")
	return ""
}

// back follows the link back as a program, so that the reason of a refusal is the answer.
func (s *ssoRig) back(at string) answer {
	s.t.Helper()
	a, text := s.do("GET", at, nil, "application/json")
	return answer{a.StatusCode, a.Header, text}
}

func (s *ssoRig) logInAs(user string) answer {
	s.t.Helper()
	return s.back(s.atProvider(s.begin("/"), user))
}

func (s *ssoRig) me() (me wire.Me) {
	s.t.Helper()
	_, text := s.do("GET", s.base+"/api/v1/me", nil, "application/json")
	if err := json.Unmarshal([]byte(text), &me); err != nil {
		s.t.Fatal(err)
	}
	return me
}

func (s *ssoRig) refused(a answer, status int, want string) {
	s.t.Helper()
	if a.status != status || !strings.Contains(a.body, want) {
		s.t.Errorf("%d %s, want %d with %q", a.status, a.body, status, want)
	}
	if strings.Contains(strings.Join(a.header.Values("Set-Cookie"), " "), loginCookie+"=") {
		s.t.Error("it sets the cookie of a login")
	}
}

func TestSingleSignOn(t *testing.T) {
	for _, client := range []string{"slipway", "slipway-full"} { // the roles are in userinfo, or in the ID token
		t.Run(client, func(t *testing.T) {
			s := startSSO(t, func(o *access.OIDC) { o.ClientID = client })
			a := s.back(s.atProvider(s.begin("/hosts?q=r1#x"), "Anna.Berg@example.org"))
			if a.status != http.StatusSeeOther || a.header.Get("Location") != "/hosts?q=r1#x" {
				t.Fatalf("back: %d %v %s", a.status, a.header, a.body)
			}
			if me := s.me(); me.User != "anna-berg" || me.DisplayName != "Anna Berg" || me.Grants.Everywhere() != inventory.Admin || me.HasPassword {
				t.Errorf("me: %+v", me)
			}
			s.fresh()
			s.logInAs("otto")
			if me := s.me(); me.User != "otto" || me.Grants.String() != (inventory.Grants{{Role: inventory.Operator, Pool: "default"}}).String() {
				t.Errorf("otto: %+v", me)
			}
			var audit rest.List[inventory.Audit]
			s.must(200, &audit, "GET", "/api/v1/audit", "")
			if len(audit.Items) != 2 || audit.Items[0].Actor != "user otto" || !strings.Contains(audit.Items[0].Detail, "id-otto") {
				t.Errorf("audit: %+v", audit.Items)
			}
		})
	}
}

func TestWhoStaysOutAtSingleSignOn(t *testing.T) {
	s := startSSO(t, nil)
	s.refused(s.logInAs("eva"), 403, "eva is in no group that has a role here")
	s.refused(s.logInAs("max"), 403, "max is in no group")
	if a := s.ask("GET", "/api/v1/users/eva", ""); a.status != 404 {
		t.Errorf("eva became a user: %s", a.body)
	}
	s.user("otto", adminEverywhere)
	s.refused(s.logInAs("otto"), 409, "there is another user otto already")

	// An admin may tie a user to an identity, and its name stays.
	s.must(201, nil, "POST", "/api/v1/users", fmt.Sprintf(`{"name":"ops","grants":[],"issuer":%q,"subject":"id-otto"}`, s.srv.cfg.OIDC.Issuer))
	if a := s.logInAs("otto"); a.status != 303 || s.me().User != "ops" {
		t.Errorf("tied: %d %s %+v", a.status, a.body, s.me())
	}
	var u inventory.User
	s.must(200, &u, "GET", "/api/v1/users/ops", "")
	s.must(200, nil, "PUT", "/api/v1/users/ops", fmt.Sprintf(`{"name":"ops","isDisabled":true,"grants":[{"role":"admin"}],"issuer":%q,"subject":"id-otto"}`, u.Issuer))
	s.refused(s.logInAs("otto"), 401, "user ops is disabled")
	if s.me().User != "" {
		t.Error("the login from before goes on")
	}
}

func TestRolesGoWithTheGroups(t *testing.T) {
	s := startSSO(t, nil)
	s.logInAs("Anna.Berg@example.org")
	old := s.http
	clear(s.srv.cfg.OIDC.Groups) // as after a change and a restart
	s.srv.cfg.OIDC.Groups["nobody"] = inventory.Grants{{Role: inventory.Admin}}
	s.fresh()
	s.refused(s.logInAs("Anna.Berg@example.org"), 403, "in no group")
	s.http = old
	if me := s.me(); len(me.Grants) != 0 {
		t.Errorf("in another browser: %+v", me)
	}
}

func TestALoginAtTheProviderIsGoodOnceAndHere(t *testing.T) {
	s := startSSO(t, nil)
	const over = "not begun in this browser"

	at := s.atProvider(s.begin("/"), "otto")
	other := s.http
	s.fresh()
	s.refused(s.back(at), 422, over) // somebody else's browser, as of who was sent a link
	s.http = other
	jar := s.cookies()
	if a := s.back(at); a.status != 303 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.fresh()
	u, _ := url.Parse(s.base + ssoPath)
	s.http.Jar.SetCookies(u, jar)
	s.refused(s.back(at), 422, over) // again, with the cookie kept

	s.fresh()
	at = s.atProvider(s.begin("/"), "otto")
	s.refused(s.back(strings.Replace(at, "state=", "state=x", 1)), 422, over)
	s.pass(ssoFor + time.Second)
	s.refused(s.back(at), 422, over)
	if s.me().User != "" {
		t.Error("somebody is in")
	}
}

func TestSingleSignOnBeginsAtTheExternalURL(t *testing.T) {
	s := startSSO(t, nil)
	elsewhere := strings.Replace(s.base, "127.0.0.1", "localhost", 1)
	a, _ := s.do("GET", elsewhere+ssoPath+"?back=/racks", nil, "text/html")
	to := a.Header.Get("Location")
	if !strings.HasPrefix(to, s.base+ssoPath+"?") || len(a.Header.Values("Set-Cookie")) != 0 {
		t.Fatalf("%d to %q", a.StatusCode, to)
	}
	a, _ = s.do("GET", to, nil, "text/html")
	cookie := a.Header.Get("Set-Cookie")
	for _, want := range []string{"slipway-sso=", "Path=/api/v1/logins/oidc", "HttpOnly", "SameSite=Lax", "Max-Age=600"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie %q lacks %s", cookie, want)
		}
	}
	if end := s.back(s.atProvider(a.Header.Get("Location"), "otto")); end.header.Get("Location") != "/racks" {
		t.Errorf("back: %d %v", end.status, end.header)
	}
}

func (s *ssoRig) cookies() []*http.Cookie {
	u, _ := url.Parse(s.base + ssoPath)
	return s.http.Jar.Cookies(u)
}

func TestTokensOfAnotherLoginAreRefused(t *testing.T) {
	s := startSSO(t, nil)
	with := func(param, value string) string {
		u, _ := url.Parse(s.begin("/"))
		q := u.Query()
		q.Set(param, value)
		u.RawQuery = q.Encode()
		return s.atProvider(u.String(), "otto")
	}
	s.refused(s.back(with("nonce", "another")), 401, "its answer belongs to another login")
	s.refused(s.back(with("code_challenge", "A3NWkUjTH4mAQRjdQNK5J5b1pYxjZQ3aYkLrZ1RzZ5A")), 401, "it refuses the code")
	s.pass(2 * time.Hour)
	s.refused(s.logInAs("otto"), 401, "has expired")
	s.pass(-4 * time.Hour)
	s.refused(s.logInAs("otto"), 401, "from the future")
}

func TestTheProviderIsAway(t *testing.T) {
	s := startSSO(t, nil)
	_ = s.provider.Process.Kill()
	_, _ = s.provider.Process.Wait()
	a, _ := s.do("GET", s.base+ssoPath+"?back=/racks", nil, "text/html")
	if a.StatusCode != 303 || a.Header.Get("Location") != "/racks" {
		t.Errorf("%d to %q", a.StatusCode, a.Header.Get("Location"))
	}
	var offers access.Offers
	_, text := s.do("GET", s.base+"/api/v1/logins/offers", nil, "application/json")
	if err := json.Unmarshal([]byte(text), &offers); err != nil || offers.OIDC == nil || offers.OIDC.Refused == nil || !strings.Contains(offers.OIDC.Refused.Message, "Example cannot be used now") {
		t.Errorf("the login page is told %s", text)
	}
	s.user("anna", adminEverywhere)
	if got := s.logIn("192.0.2.1", "anna", "correct horse anna"); got.status != 201 {
		t.Errorf("with a password: %d", got.status)
	}
	if c, ok := s.srv.CheckOIDC(t.Context()); !ok || c.Status != "warning" {
		t.Errorf("self-check: %+v", c)
	}
}

func TestAProviderThatLies(t *testing.T) {
	for name, doc := range map[string]string{
		"another issuer": `{"issuer":"http://other.example"}`,
		"no TLS":         `{"issuer":"ISSUER","authorization_endpoint":"http://192.0.2.1/auth","token_endpoint":"ISSUER/t","jwks_uri":"ISSUER/k"}`,
		"endless":        `{"issuer":"ISSUER","x":"` + strings.Repeat("x", ssoAnswer) + `"}`,
		"no JSON":        `<html>`,
	} {
		t.Run(name, func(t *testing.T) {
			var liar *httptest.Server
			liar = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, strings.ReplaceAll(doc, "ISSUER", liar.URL))
			}))
			defer liar.Close()
			o := access.OIDC{Issuer: liar.URL, ClientID: "x", Title: "Liar", ExternalURL: "http://127.0.0.1", Groups: map[string]inventory.Grants{"a": {{Role: inventory.Viewer}}}}
			r := newRig(t, func(c *Config) { c.OIDC = &o })
			if a := r.ask("GET", ssoPath+"?here=true", ""); a.status != 503 {
				t.Errorf("%d %v", a.status, a.header)
			}
		})
	}
}
