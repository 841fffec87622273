package web

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/wire"
)

// app shows the code of an authenticator app at a time; it is written anew here, as apps are.
func app(t *testing.T, secret string, now time.Time) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	m := hmac.New(sha1.New, key)
	_ = binary.Write(m, binary.BigEndian, now.Unix()/30)
	sum := m.Sum(nil)
	return fmt.Sprintf("%06d", (binary.BigEndian.Uint32(sum[sum[19]&0xf:])&0x7fffffff)%1_000_000)
}

// setUp gives a user who is logged in an app.
func (r *rig) setUp(who []string, name string) (secret string, codes []string) {
	r.t.Helper()
	var begun wire.SecondFactor
	if a := r.via(who, "POST", "/api/v1/users/"+name+"/second-factor", ""); a.status != 200 || json.Unmarshal([]byte(a.body), &begun) != nil {
		r.t.Fatalf("begin: %d %s", a.status, a.body)
	}
	body := func(code, password string) string {
		return fmt.Sprintf(`{"ticket":%q,"code":%q,"password":%q}`, begun.Ticket, code, password)
	}
	if a := r.via(who, "PUT", "/api/v1/users/"+name+"/second-factor", body("000000", "correct horse "+name)); a.status != 422 {
		r.t.Errorf("a wrong first code: %d %s", a.status, a.body)
	}
	if a := r.via(who, "PUT", "/api/v1/users/"+name+"/second-factor", body(app(r.t, begun.Secret, r.clock()), "wrong")); a.status != 403 {
		r.t.Errorf("without the password: %d %s", a.status, a.body)
	}
	var out wire.RecoveryCodes
	if a := r.via(who, "PUT", "/api/v1/users/"+name+"/second-factor", body(app(r.t, begun.Secret, r.clock()), "correct horse "+name)); a.status != 200 || json.Unmarshal([]byte(a.body), &out) != nil {
		r.t.Fatalf("set up: %d %s", a.status, a.body)
	}
	return begun.Secret, out.Codes
}

// withCode tries to log in with a password and a code.
func (r *rig) withCode(from, name, code string, headers ...string) answer {
	r.t.Helper()
	return r.logInWith(from, map[string]string{"user": name, "password": "correct horse " + name, "code": code}, headers...)
}

func TestASecondFactorIsAskedFor(t *testing.T) {
	r := newRig(t, nil)
	r.user("anna", adminEverywhere)
	secret, codes := r.setUp(r.in("anna"), "anna")
	if a := r.ask("GET", "/api/v1/users/anna", ""); !strings.Contains(a.body, `"hasSecondFactor":true`) || strings.Contains(a.body, secret) || strings.Contains(a.body, "sealed") {
		t.Errorf("user: %s", a.body)
	}
	without := r.logIn("192.0.2.1", "anna", "correct horse anna")
	if without.status != 401 || without.header.Get("Set-Cookie") != "" || !strings.Contains(without.body, `"body.code"`) {
		t.Errorf("without a code: %d %s", without.status, without.body)
	}
	if a := r.logInWith("192.0.2.1", map[string]string{"user": "anna", "password": "wrong horse anna", "code": app(t, secret, r.clock().Add(30*time.Second))}); a.status != 401 || strings.Contains(a.body, "body.code") {
		t.Errorf("a right code with a wrong password: %d %s", a.status, a.body)
	}
	if a := r.withCode("192.0.2.1", "anna", app(t, secret, r.clock())); a.status != 401 {
		t.Errorf("the code that set it up counts twice: %d", a.status)
	}
	r.pass(time.Minute)
	good := app(t, secret, r.clock())
	if a := r.withCode("192.0.2.1", "anna", good); a.status != 201 {
		t.Errorf("the right code: %d %s", a.status, a.body)
	}
	if a := r.withCode("192.0.2.1", "anna", good); a.status != 401 {
		t.Errorf("the right code once more: %d", a.status)
	}
	if a := r.withCode("192.0.2.1", "anna", codes[0]); a.status != 201 {
		t.Errorf("a recovery code: %d %s", a.status, a.body)
	}
	if a := r.withCode("192.0.2.1", "anna", codes[0]); a.status != 401 {
		t.Errorf("a recovery code once more: %d", a.status)
	}
	for _, text := range append(codes, secret) {
		if strings.Contains(r.logged(), text) || strings.Contains(r.ask("GET", "/api/v1/audit/export", "").body, text) {
			t.Errorf("%s is in the log or in the audit", text)
		}
	}
}

func TestCodesAreNotGuessed(t *testing.T) {
	r := newRig(t, nil)
	r.user("anna", adminEverywhere)
	r.user("ben", adminEverywhere)
	first := r.logIn("192.0.2.1", "anna", "correct horse anna")
	secret, _ := r.setUp([]string{"Cookie", cookieIn(first, loginCookie)}, "anna")
	last := 0
	for i := range passwordBurst + 1 { // from many addresses: whoever gets so far knows the password
		last = r.withCode(fmt.Sprintf("198.51.100.%d", i), "anna", "123456").status
	}
	if last != 429 {
		t.Errorf("guess %d: %d", passwordBurst+1, last)
	}
	r.pass(time.Second)
	if a := r.withCode("192.0.2.1", "anna", app(t, secret, r.clock().Add(30*time.Second)), "Cookie", cookieIn(first, knownCookie)); a.status != 201 {
		t.Errorf("the known browser meanwhile: %d %s", a.status, a.body)
	}
	if a := r.logIn("192.0.2.2", "ben", "correct horse ben"); a.status != 201 {
		t.Errorf("another user meanwhile: %d", a.status)
	}
}

func TestASecondFactorIsEnforced(t *testing.T) {
	r := newRig(t, func(c *Config) { c.FactorFrom = inventory.Operator })
	r.user("anna", adminEverywhere)
	r.user("vera", inventory.Grant{Role: inventory.Viewer})
	if a := r.via(r.in("vera"), "GET", "/api/v1/hosts", ""); a.status != 200 {
		t.Errorf("a viewer, of whom none is asked: %d", a.status)
	}
	anna := r.in("anna")
	if a := r.via(anna, "GET", "/api/v1/me", ""); a.status != 200 || !strings.Contains(a.body, `"mustSetUpSecondFactor":true`) {
		t.Errorf("who I am: %s", a.body)
	}
	for _, path := range []string{"hosts", "users", "secrets", "audit"} {
		if a := r.via(anna, "GET", "/api/v1/"+path, ""); a.status != 403 || !strings.Contains(a.body, "second factor") {
			t.Errorf("%s before it is set up: %d %s", path, a.status, a.body)
		}
	}
	if a := r.via(anna, "POST", "/api/v1/tokens", `{"name":"way-round","grants":[{"role":"admin"}]}`); a.status != 403 {
		t.Errorf("a token as a way round: %d %s", a.status, a.body)
	}
	r.setUp(anna, "anna")
	if a := r.via(anna, "GET", "/api/v1/hosts", ""); a.status != 200 {
		t.Errorf("after it is set up: %d %s", a.status, a.body)
	}
	r.must(200, nil, "PUT", "/api/v1/users/vera", `{"grants":[{"role":"viewer"}],"needsSecondFactor":true}`)
	if a := r.via(r.in("vera"), "GET", "/api/v1/hosts", ""); a.status != 403 {
		t.Errorf("a viewer of whom an admin asks for it: %d", a.status)
	}
}

func TestWhoMayChangeASecondFactor(t *testing.T) {
	r := newRig(t, nil)
	r.user("anna", adminEverywhere)
	r.user("ben", inventory.Grant{Role: inventory.Operator})
	ben := r.in("ben")
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		if a := r.via(ben, method, "/api/v1/users/anna/second-factor", `{"ticket":"x","code":"123456"}`); a.status != 403 {
			t.Errorf("%s that of another: %d %s", method, a.status, a.body)
		}
	}
	secret, codes := r.setUp(ben, "ben")
	if a := r.via(ben, "DELETE", "/api/v1/users/ben/second-factor", ""); a.status != 403 {
		t.Errorf("one's own without a code: %d %s", a.status, a.body)
	}
	if a := r.via(ben, "DELETE", "/api/v1/users/ben/second-factor?code="+codes[1], ""); a.status != 204 {
		t.Errorf("one's own with a recovery code: %d %s", a.status, a.body)
	}
	if a := r.logIn("192.0.2.9", "ben", "correct horse ben"); a.status != 201 {
		t.Errorf("after it is gone: %d", a.status)
	}
	_ = secret
	r.setUp(r.in("ben"), "ben")
	r.must(204, nil, "DELETE", "/api/v1/users/ben/second-factor", "")
	r.must(404, nil, "DELETE", "/api/v1/users/ben/second-factor", "")
	// A ticket of one user is none of another.
	var begun wire.SecondFactor
	r.must(200, &begun, "POST", "/api/v1/users/ben/second-factor", "")
	r.must(422, nil, "PUT", "/api/v1/users/anna/second-factor", fmt.Sprintf(`{"ticket":%q,"code":%q}`, begun.Ticket, app(t, begun.Secret, r.clock())))
	r.pass(ticketFor + time.Second)
	r.must(422, nil, "PUT", "/api/v1/users/ben/second-factor", fmt.Sprintf(`{"ticket":%q,"code":%q}`, begun.Ticket, app(t, begun.Secret, r.clock())))
}
