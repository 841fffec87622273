package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/power"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// user makes a user with the password "correct horse NAME".
func (r *rig) user(name string, grants ...inventory.Grant) {
	r.t.Helper()
	b, err := json.Marshal(inventory.User{Name: name, Grants: grants})
	if err != nil {
		r.t.Fatal(err)
	}
	r.must(201, nil, "POST", "/api/v1/users", string(b))
	err = r.store.Write(r.t.Context(), func(tx inventory.Tx) error {
		u, err := tx.Users().Find(name)
		if err != nil {
			return err
		}
		u.PasswordHash = cheapHash("correct horse " + name)
		return tx.Users().Update(&u, r.clock())
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// cheapHash is the hash of a password with the least memory, 8 KiB. The API takes 64 MiB and a tenth of a second of processor time, for
// each hash and each comparison with it.
func cheapHash(password string) string {
	salt, b64 := []byte("somesalt"), base64.RawStdEncoding
	return "$argon2id$v=19$m=8,t=1,p=1$" + b64.EncodeToString(salt) + "$" + b64.EncodeToString(argon2.IDKey([]byte(password), salt, 1, 8, 1, 32))
}

// logIn tries to log in from an address.
func (r *rig) logIn(from, name, password string, headers ...string) answer {
	r.t.Helper()
	return r.logInWith(from, map[string]string{"user": name, "password": password}, headers...)
}

// logInWith tries to log in from an address with whatever is given.
func (r *rig) logInWith(from string, with map[string]string, headers ...string) answer {
	r.t.Helper()
	return r.send(from, "POST", "/api/v1/logins", with, headers...)
}

// send sends a request from an address.
func (r *rig) send(from, method, path string, with any, headers ...string) answer {
	r.t.Helper()
	b, err := json.Marshal(with)
	if err != nil {
		r.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://slipway.example"+path, strings.NewReader(string(b)))
	if err != nil {
		r.t.Fatal(err)
	}
	req.RemoteAddr = from + ":1000"
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return serveOnce(r.srv.Handler(), req)
}

// in logs a user in and returns the header with the cookie.
func (r *rig) in(name string) []string {
	r.t.Helper()
	a := r.logIn("192.0.2.1", name, "correct horse "+name)
	if a.status != 201 {
		r.t.Fatalf("log in %s: %d %s", name, a.status, a.body)
	}
	return []string{"Cookie", strings.SplitN(a.header.Get("Set-Cookie"), ";", 2)[0]}
}

var adminEverywhere = inventory.Grant{Role: inventory.Admin}

func TestALoginIsACookie(t *testing.T) {
	r := newRig(t, nil)
	r.user("anna", adminEverywhere)
	a := r.logIn("192.0.2.1", "anna", "correct horse anna")
	cookie := a.header.Get("Set-Cookie")
	for _, want := range []string{"slipway-login=slipway_", "Path=/", "HttpOnly", "SameSite=Lax", "Max-Age=604800"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie %q lacks %s", cookie, want)
		}
	}
	if strings.Contains(cookie, "Secure") {
		t.Error("the cookie would never come back without TLS")
	}
	who := []string{"Cookie", strings.SplitN(cookie, ";", 2)[0]}
	var me wire.Me
	if got := r.via(who, "GET", "/api/v1/me", ""); got.status != 200 || json.Unmarshal([]byte(got.body), &me) != nil || me.Name != "user anna" || me.Via != "login" || me.NeedsSetup {
		t.Fatalf("who I am: %d %s", got.status, got.body)
	}
	secret := strings.TrimPrefix(who[1], "slipway-login=")
	var logins rest.List[access.OneLogin]
	list := r.via(who, "GET", "/api/v1/logins", "")
	if err := json.Unmarshal([]byte(list.body), &logins); err != nil || len(logins.Items) != 1 || !logins.Items[0].IsCurrent || logins.Items[0].Source != "192.0.2.1" {
		t.Errorf("logins: %s", list.body)
	}
	if strings.Contains(list.body, secret) || strings.Contains(list.body, access.HashToken(secret)) || strings.Contains(r.logged(), secret) {
		t.Error("the cookie is told")
	}
	// Another server on the same database, as after a restart.
	cfg := r.srv.cfg
	cfg.Store = r.store
	again := New(cfg)
	if got := ask(t, again.Handler(), "GET", "/api/v1/me", "", who...); got.status != 200 {
		t.Errorf("after a restart: %d", got.status)
	}
	out := r.via(who, "DELETE", "/api/v1/logins/current", "")
	if out.status != 204 || !strings.Contains(out.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("log out: %d %v", out.status, out.header)
	}
	if got := r.via(who, "GET", "/api/v1/me", ""); got.status != 401 || !strings.Contains(got.body, "your login has ended") {
		t.Errorf("after logging out: %d %s", got.status, got.body)
	}
}

func TestALoginEndsByItself(t *testing.T) {
	r := newRig(t, nil)
	r.user("anna", adminEverywhere)
	status := func(who []string) int { return r.via(who, "GET", "/api/v1/me", "").status }
	idle := r.in("anna")
	r.pass(loginIdle - time.Minute)
	if status(idle) != 200 {
		t.Fatal("it has ended too early")
	}
	r.pass(loginIdle - time.Minute)
	if status(idle) != 200 {
		t.Fatal("its use did not keep it alive")
	}
	r.pass(loginIdle + time.Minute)
	if status(idle) != 401 {
		t.Error("it has not ended though nobody used it")
	}
	old := r.in("anna")
	for range 7*4 - 1 {
		r.pass(6 * time.Hour)
		if status(old) != 200 {
			t.Fatal("it has ended though it is used")
		}
	}
	r.pass(6 * time.Hour)
	if status(old) != 401 {
		t.Error("it has not ended after a week")
	}
}

func TestAnotherSiteCannotUseACookie(t *testing.T) {
	r := newRig(t, nil)
	r.user("anna", adminEverywhere)
	who := r.in("anna")
	token := r.as("ci", adminEverywhere)
	const body = `{"name":"x","selector":"rack=r1"}`
	for _, tc := range []struct {
		name    string
		who     []string
		headers []string
		want    int
	}{
		{"a page of another site", who, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a page of another port", who, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"an old browser on another site", who, []string{"Origin", "https://evil.example"}, 403},
		{"a token from another site", token, []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 201},
		{"our own page", who, []string{"Sec-Fetch-Site", "same-origin"}, 201},
	} {
		a := r.via(append(tc.headers, tc.who...), "POST", "/api/v1/acceptrules", body)
		if a.status != tc.want {
			t.Errorf("%s: %d, want %d: %s", tc.name, a.status, tc.want, a.body)
		}
		if a.status == 201 {
			r.must(204, nil, "DELETE", "/api/v1/acceptrules/x", "")
		}
	}
	console := append([]string{"Sec-Fetch-Site", "same-site", "Connection", "Upgrade", "Upgrade", power.ConsoleProtocol}, who...)
	if a := r.via(console, "GET", "/api/v1/hosts/x/bmc/console", ""); a.status != 403 {
		t.Errorf("a console from another site: %d", a.status)
	}
	if a := r.logIn("192.0.2.1", "anna", "correct horse anna", "Sec-Fetch-Site", "cross-site"); a.status != 403 {
		t.Errorf("a login made by another site: %d", a.status)
	}
}

func TestWrongPasswordsTellNothingAndAreSlowedDown(t *testing.T) {
	r := newRig(t, nil)
	r.user("anna", adminEverywhere)
	wrong, unknown := r.logIn("192.0.2.1", "anna", "wrong password"), r.logIn("192.0.2.1", "nobody", "wrong password")
	pw, pu := wrong.problem(t), unknown.problem(t)
	pw.RequestID, pu.RequestID = "", ""
	if wrong.status != 401 || unknown.status != 401 || pw.Detail != pu.Detail || pw.Hint != pu.Hint {
		t.Errorf("a wrong password gets %v, an unknown user %v", pw, pu)
	}
	// By name and address, whether there is such a user or not.
	for _, name := range []string{"anna", "nobody"} {
		last := answer{}
		for range passwordBurst + 1 {
			last = r.logIn("198.51.100."+map[string]string{"anna": "1", "nobody": "2"}[name], name, "wrong password")
		}
		if last.status != 429 || last.header.Get("Retry-After") == "" || !strings.Contains(last.problem(t).Detail, "this user") {
			t.Errorf("%s: try %d got %d %s", name, passwordBurst+1, last.status, last.body)
		}
	}
	if a := r.logIn("198.51.100.1", "anna", "correct horse anna"); a.status != 429 {
		t.Errorf("the right one from the same address, while it is slowed down: %d", a.status)
	}
	r.pass(passwordEvery + time.Second)
	if a := r.logIn("198.51.100.1", "anna", "correct horse anna"); a.status != 201 {
		t.Errorf("the right one after the wait: %d %s", a.status, a.body)
	}
	// By address, with many names.
	last := 0
	for i := range failureBurst + 1 {
		last = r.logIn("192.0.2.99", fmt.Sprint("user", i), "wrong password").status
	}
	if last != 429 {
		t.Errorf("many names from one address: %d", last)
	}
}

// TestWrongPasswordsOfStrangersKeepNobodyOut: neither from other addresses, nor from the same one where the browser is known.
func TestWrongPasswordsOfStrangersKeepNobodyOut(t *testing.T) {
	r := newRig(t, nil)
	r.user("anna", adminEverywhere)
	r.user("ben", adminEverywhere)
	first := r.logIn("192.0.2.1", "anna", "correct horse anna")
	known := []string{"Cookie", cookieIn(first, knownCookie)}
	for i := range 3 * passwordBurst { // from many addresses, and from the one that anna has, too
		r.logIn(fmt.Sprintf("198.51.100.%d", i), "anna", "wrong password")
		r.logIn("192.0.2.1", "anna", "wrong password")
	}
	if a := r.logIn("203.0.113.1", "anna", "correct horse anna"); a.status != 201 {
		t.Errorf("the right one from another address: %d %s", a.status, a.body)
	}
	if a := r.logIn("192.0.2.1", "anna", "correct horse anna"); a.status != 429 {
		t.Errorf("an unknown browser at the address of the guesser: %d", a.status)
	}
	if a := r.logIn("192.0.2.1", "anna", "correct horse anna", known...); a.status != 201 {
		t.Errorf("the known browser at the address of the guesser: %d %s", a.status, a.body)
	}
	// A known browser of one user guesses no other's password, and not for ever its own.
	for range passwordBurst + 1 {
		r.logIn("203.0.113.7", "ben", "wrong password", known...)
	}
	if a := r.logIn("203.0.113.7", "ben", "correct horse ben", known...); a.status != 429 {
		t.Errorf("the browser of anna guesses the password of ben: %d", a.status)
	}
	for range passwordBurst + 1 {
		r.logIn("203.0.113.8", "anna", "wrong password", known...)
	}
	if a := r.logIn("203.0.113.9", "anna", "correct horse anna", known...); a.status != 429 {
		t.Errorf("a known browser guesses without end: %d", a.status)
	}
	forged := []string{"Cookie", knownCookie + "=" + forgedBrowser("ben")}
	if a := r.logIn("203.0.113.7", "ben", "correct horse ben", forged...); a.status != 429 {
		t.Errorf("a forged cookie of a known browser: %d", a.status)
	}
}

// forgedBrowser is the cookie of a browser in which a user has logged in, signed with a key that is not the server's.
func forgedBrowser(user string) string {
	text := fmt.Sprintf(`{"i":"x","u":{%q:"2026-11-21"}}`, user)
	m := hmac.New(sha256.New, []byte("another key"))
	m.Write([]byte("known browser\x00" + text))
	return base64.RawURLEncoding.EncodeToString(append(m.Sum(nil), text...))
}

// cookieIn returns NAME=VALUE of a cookie that an answer sets.
func cookieIn(a answer, name string) string {
	for _, c := range a.header.Values("Set-Cookie") {
		if strings.HasPrefix(c, name+"=") {
			return strings.SplitN(c, ";", 2)[0]
		}
	}
	return ""
}

func TestPasswords(t *testing.T) {
	r := newRig(t, nil)
	r.user("anna", adminEverywhere)
	r.user("ben", inventory.Grant{Role: inventory.Viewer})
	anna, ben, other := r.in("anna"), r.in("ben"), r.in("ben")
	set := func(who []string, name, body string) answer {
		return r.via(who, "PUT", "/api/v1/users/"+name+"/password", body)
	}
	for _, tc := range []struct {
		name, of, body string
		who            []string
		want           int
	}{
		{"of another", "anna", `{"password":"a new long one"}`, ben, 403},
		{"without the old one", "ben", `{"password":"a new long one"}`, ben, 403},
		{"with a wrong old one", "ben", `{"password":"a new long one","old":"wrong"}`, ben, 403},
		{"a short one", "ben", `{"password":"short","old":"correct horse ben"}`, ben, 422},
		{"all the same", "ben", `{"password":"aaaaaaaaaaaaa","old":"correct horse ben"}`, ben, 422},
		{"a common one", "ben", `{"password":"P@ssw0rd2026!","old":"correct horse ben"}`, ben, 422},
		{"the name with a year", "ben", `{"password":"Ben2026Ben2026","old":"correct horse ben"}`, ben, 422},
		{"a common one by an admin", "ben", `{"password":"slipway-2026"}`, anna, 422},
		{"own", "ben", `{"password":"a new long one","old":"correct horse ben"}`, ben, 204},
		{"by an admin", "ben", `{"password":"one by the admin"}`, anna, 204},
		{"of nobody", "carl", `{"password":"a new long one"}`, anna, 404},
	} {
		if a := set(tc.who, tc.of, tc.body); a.status != tc.want {
			t.Errorf("%s: %d, want %d: %s", tc.name, a.status, tc.want, a.body)
		}
		if tc.name == "own" {
			if got := r.via(ben, "GET", "/api/v1/me", "").status; got != 200 {
				t.Errorf("the login that changed it: %d", got)
			}
			if got := r.via(other, "GET", "/api/v1/me", "").status; got != 401 {
				t.Errorf("the other login: %d", got)
			}
		}
	}
	if got := r.logIn("192.0.2.1", "ben", "one by the admin").status; got != 201 {
		t.Errorf("with the new one: %d", got)
	}
	if a := r.ask("GET", "/api/v1/users/ben", ""); strings.Contains(a.body, "argon2") || !strings.Contains(a.body, `"hasPassword":true`) {
		t.Errorf("user: %s", a.body)
	}
}

func TestTheLastAdminStays(t *testing.T) {
	r := newRig(t, nil)
	r.user("anna", adminEverywhere)
	r.user("ben", inventory.Grant{Role: inventory.Operator})
	for _, tc := range [][3]string{
		{"PUT", "/api/v1/users/anna", `{"grants":[{"role":"operator"}]}`},
		{"PUT", "/api/v1/users/anna", `{"grants":[{"role":"admin","pool":"default"}]}`},
		{"PUT", "/api/v1/users/anna", `{"grants":[{"role":"admin"}],"isDisabled":true}`},
		{"DELETE", "/api/v1/users/anna", ""},
	} {
		if a := r.ask(tc[0], tc[1], tc[2]); a.status != 409 || !strings.Contains(a.body, "last admin") {
			t.Errorf("%v: %d %s", tc, a.status, a.body)
		}
	}
	r.must(200, nil, "PUT", "/api/v1/users/ben", `{"grants":[{"role":"admin"}]}`)
	r.must(204, nil, "DELETE", "/api/v1/users/anna", "")
	r.must(422, nil, "PUT", "/api/v1/users/ben", `{"grants":[{"role":"admin"},{"role":"viewer","pool":"nowhere"}]}`)
	r.must(422, nil, "PUT", "/api/v1/users/ben", `{"grants":[{"role":"king"}]}`)
}

func TestATokenIsNeverMoreThanItsUser(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	r.user("anna", adminEverywhere)
	r.user("ben", inventory.Grant{Role: inventory.Operator})
	ben := r.in("ben")
	make := func(who []string, body string) answer { return r.via(who, "POST", "/api/v1/tokens", body) }
	for _, tc := range []struct {
		name, body string
		want       int
	}{
		{"more than one has", `{"name":"a","grants":[{"role":"admin"}]}`, 403},
		{"of another", `{"name":"a","user":"anna"}`, 403},
		{"of nobody", `{"name":"a","user":""}`, 403},
		{"less", `{"name":"a","grants":[{"role":"operator","pool":"alpha"}]}`, 201},
	} {
		if a := make(ben, tc.body); a.status != tc.want {
			t.Errorf("%s: %d, want %d: %s", tc.name, a.status, tc.want, a.body)
		}
	}
	var made access.NewToken
	if err := json.Unmarshal([]byte(make(ben, `{"name":"b","expiresAt":"2026-11-21T13:00:00Z"}`).body), &made); err != nil || made.User != "ben" {
		t.Fatalf("%+v, %v", made, err)
	}
	token := []string{"Authorization", "Bearer " + made.Secret}
	if a := make(token, `{"name":"c"}`); a.status != 403 || !strings.Contains(a.body, "outlive") {
		t.Errorf("a token that outlives the one it is made with: %d %s", a.status, a.body)
	}
	act := func() int { return r.via(token, "POST", "/api/v1/hosts/alpha-1/maintain", `{"on":false}`).status }
	if got := act(); got != 200 {
		t.Errorf("an operator's token: %d", got)
	}
	r.must(200, nil, "PUT", "/api/v1/users/ben", `{"grants":[{"role":"viewer"}]}`)
	if got := act(); got != 403 {
		t.Errorf("the token of an operator who is viewer now: %d", got)
	}
	r.must(200, nil, "PUT", "/api/v1/users/ben", `{"grants":[{"role":"operator"}],"isDisabled":true}`)
	if got := act(); got != 401 {
		t.Errorf("the token of a disabled user: %d", got)
	}
	if got := r.via(ben, "GET", "/api/v1/me", "").status; got != 401 {
		t.Errorf("the login of a disabled user: %d", got)
	}
	again := r.logIn("192.0.2.1", "ben", "correct horse ben")
	if again.status != 401 || again.header.Get("Set-Cookie") != "" || !strings.Contains(again.body, "user ben is disabled") {
		t.Errorf("a disabled user who logs in: %d %v %s", again.status, again.header["Set-Cookie"], again.body)
	}
	if guess := r.logIn("192.0.2.1", "ben", "wrong horse ben"); guess.status != 401 || strings.Contains(guess.body, "disabled") {
		t.Errorf("who only guesses is told that the user is disabled: %d %s", guess.status, guess.body)
	}
	if byToken := r.via(nil, "POST", "/api/v1/logins", `{"token":"`+made.Secret+`"}`); byToken.status != 401 || byToken.header.Get("Set-Cookie") != "" {
		t.Errorf("a login by the token of a disabled user: %d %s", byToken.status, byToken.body)
	}
	r.must(204, nil, "DELETE", "/api/v1/users/ben", "")
	r.user("ben", inventory.Grant{Role: inventory.Operator})
	if got := act(); got != 401 {
		t.Errorf("the token of an earlier user of that name: %d", got)
	}
	var all rest.List[inventory.Token]
	if err := json.Unmarshal([]byte(r.via(r.in("ben"), "GET", "/api/v1/tokens", "").body), &all); err != nil || len(all.Items) != 0 {
		t.Errorf("tokens of others: %+v", all)
	}
}

// TestALoginIsNeverMoreThanItsUser: a login that is still there, as after a restore of the database, is not one of a user who is
// disabled in it.
func TestALoginIsNeverMoreThanItsUser(t *testing.T) {
	r := newRig(t, nil)
	r.user("ben", inventory.Grant{Role: inventory.Operator})
	ben := r.in("ben")
	r.mustAs(ben, 200, "GET", "/api/v1/me", "")
	err := r.store.Write(t.Context(), func(tx inventory.Tx) error {
		u, err := tx.Users().Find("ben")
		if err != nil {
			return err
		}
		u.IsDisabled = true
		return tx.Users().Update(&u, testStart)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.via(ben, "GET", "/api/v1/me", ""); got.status != 401 || !strings.Contains(got.body, "user ben is disabled") {
		t.Errorf("the login of a user who is disabled since: %d %s", got.status, got.body)
	}
}

func TestAPasswordIsOfferedHoweverManyUsersComeFromElsewhere(t *testing.T) {
	r := newRig(t, nil)
	for i := range 101 {
		u := inventory.User{Name: fmt.Sprintf("a%03d", i), Issuer: "https://idp.example.org", Subject: fmt.Sprint(i), Grants: inventory.Grants{}}
		if err := r.store.Write(t.Context(), func(tx inventory.Tx) error { return tx.Users().Create(&u, r.clock()) }); err != nil {
			t.Fatal(err)
		}
	}
	r.user("zoe", adminEverywhere)
	if a := r.send("192.0.2.1", "GET", "/api/v1/logins/offers", nil); !strings.Contains(a.body, `"password":true`) {
		t.Errorf("offers: %s", a.body)
	}
}
