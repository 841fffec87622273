package web

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/web/securitykey/securitykeytest"
	"slipway.dev/slipway/web/wire"
)

const keyOrigin = "https://slipway.example.org"

var fromKeyPage = []string{"Origin", keyOrigin, "Sec-Fetch-Site", "same-origin"}

// asked is a ceremony as a browser gets it.
type asked struct {
	Options json.RawMessage `json:"options"`
	Ticket  string          `json:"ticket"`
}

// addKey registers a key of a user who is logged in.
func (r *rig) addKey(who []string, user, name string) (*securitykeytest.Authenticator, answer) {
	r.t.Helper()
	who = append(append([]string{}, who...), fromKeyPage...)
	var b asked
	if a := r.via(who, "POST", "/api/v1/users/"+user+"/security-keys", ""); a.status != 200 || json.Unmarshal([]byte(a.body), &b) != nil {
		r.t.Fatalf("begin: %d %s", a.status, a.body)
	}
	key := securitykeytest.New(keyOrigin)
	body := func(password string) string {
		return fmt.Sprintf(`{"ticket":%q,"response":%s,"password":%q}`, b.Ticket, key.Create(b.Options), password)
	}
	if a := r.via(who, "PUT", "/api/v1/users/"+user+"/security-keys/"+name, body("wrong")); a.status != 403 {
		r.t.Errorf("without the password: %d %s", a.status, a.body)
	}
	return key, r.via(who, "PUT", "/api/v1/users/"+user+"/security-keys/"+name, body("correct horse "+user))
}

// askKey begins a login with a key.
func (r *rig) askKey(from, user string) (b asked, a answer) {
	r.t.Helper()
	a = r.send(from, "POST", "/api/v1/logins/security-key", map[string]any{"user": user, "password": "correct horse " + user}, fromKeyPage...)
	if a.status == 200 && json.Unmarshal([]byte(a.body), &b) != nil {
		r.t.Fatal(a.body)
	}
	return b, a
}

func (r *rig) withKey(from, user, ticket, response string) answer {
	r.t.Helper()
	return r.send(from, "POST", "/api/v1/logins", map[string]any{
		"user": user, "password": "correct horse " + user, "securityKey": map[string]any{"ticket": ticket, "response": json.RawMessage(response)},
	}, fromKeyPage...)
}

func TestASecurityKeyIsASecondFactor(t *testing.T) {
	r := newRig(t, nil)
	r.user("anna", adminEverywhere)
	key, a := r.addKey(r.in("anna"), "anna", "work")
	var codes wire.RecoveryCodes
	if a.status != 200 || json.Unmarshal([]byte(a.body), &codes) != nil || len(codes.Codes) != 10 {
		t.Fatalf("register: %d %s", a.status, a.body)
	}
	if a := r.logIn("192.0.2.1", "anna", "correct horse anna"); a.status != 401 || !strings.Contains(a.body, `"body.code"`) {
		t.Errorf("the password alone: %d %s", a.status, a.body)
	}
	if a := r.send("192.0.2.1", "POST", "/api/v1/logins/security-key", map[string]any{"user": "anna", "password": "wrong horse anna"}, fromKeyPage...); a.status != 401 {
		t.Errorf("a challenge for a wrong password: %d %s", a.status, a.body)
	}
	b, a := r.askKey("192.0.2.1", "anna")
	if a.status != 200 {
		t.Fatalf("ask: %d %s", a.status, a.body)
	}
	if a := r.withKey("192.0.2.1", "anna", b.Ticket, securitykeytest.New(keyOrigin).Get(b.Options)); a.status != 401 || a.header.Get("Set-Cookie") != "" {
		t.Errorf("another key: %d %s", a.status, a.body)
	}
	good := key.Get(b.Options)
	if a := r.withKey("192.0.2.1", "anna", b.Ticket, good); a.status != 201 {
		t.Errorf("the key: %d %s", a.status, a.body)
	}
	if a := r.withKey("192.0.2.1", "anna", b.Ticket, good); a.status != 401 {
		t.Errorf("the same answer once more: %d %s", a.status, a.body)
	}
	if a := r.withCode("192.0.2.1", "anna", codes.Codes[0]); a.status != 201 {
		t.Errorf("a recovery code: %d %s", a.status, a.body)
	}
	// Without an app there is no code of one: that of the empty secret is computed as easily by anybody.
	if a := r.withCode("192.0.2.1", "anna", app(t, "", r.clock())); a.status != 401 {
		t.Errorf("the code of an app that is not there: %d %s", a.status, a.body)
	}
	b, _ = r.askKey("192.0.2.1", "anna")
	r.pass(keyTicketFor + time.Second)
	if a := r.withKey("192.0.2.1", "anna", b.Ticket, key.Get(b.Options)); a.status == 201 {
		t.Errorf("an answer that comes too late: %d", a.status)
	}
	var f wire.SecondFactors
	r.must(200, &f, "GET", "/api/v1/users/anna/second-factor", "")
	if f.App || len(f.SecurityKeys) != 1 || f.SecurityKeys[0].Name != "work" || f.SecurityKeys[0].Site != "slipway.example.org" || f.SecurityKeys[0].UsedAt.IsZero() || f.RecoveryCodes != 9 {
		t.Errorf("factors: %+v", f)
	}
}

func TestAnAppAndKeysStandBesideEachOther(t *testing.T) {
	r := newRig(t, nil)
	r.user("anna", adminEverywhere)
	anna := r.in("anna")
	first, _ := r.addKey(anna, "anna", "work")
	secret, _ := r.setUp(anna, "anna")
	if _, a := r.addKey(anna, "anna", "home"); a.status != 200 || !strings.Contains(a.body, `"codes":[]`) {
		t.Errorf("a second key, while recovery codes are left: %d %s", a.status, a.body)
	}
	b, _ := r.askKey("192.0.2.1", "anna")
	if a := r.withKey("192.0.2.1", "anna", b.Ticket, first.Get(b.Options)); a.status != 201 {
		t.Errorf("the first key after an app was set up: %d %s", a.status, a.body)
	}
	r.pass(time.Minute)
	if a := r.withCode("192.0.2.1", "anna", app(t, secret, r.clock())); a.status != 201 {
		t.Errorf("the app: %d %s", a.status, a.body)
	}
	r.must(404, nil, "DELETE", "/api/v1/users/anna/second-factor?key=none", "")
	r.must(204, nil, "DELETE", "/api/v1/users/anna/second-factor?key=work", "")
	b, _ = r.askKey("192.0.2.1", "anna")
	if a := r.withKey("192.0.2.1", "anna", b.Ticket, first.Get(b.Options)); a.status != 401 {
		t.Errorf("a key that was removed: %d %s", a.status, a.body)
	}
	r.must(204, nil, "DELETE", "/api/v1/users/anna/second-factor", "")
	if a := r.logIn("192.0.2.1", "anna", "correct horse anna"); a.status != 201 {
		t.Errorf("after all are gone: %d %s", a.status, a.body)
	}
}

func TestNobodyRegistersAKeyOfAnother(t *testing.T) {
	r := newRig(t, nil)
	r.user("anna", adminEverywhere)
	r.user("ben", adminEverywhere)
	ben := append(r.in("ben"), fromKeyPage...)
	if a := r.via(ben, "POST", "/api/v1/users/anna/security-keys", ""); a.status != 403 {
		t.Errorf("begin: %d %s", a.status, a.body)
	}
	var b asked
	if a := r.via(ben, "POST", "/api/v1/users/ben/security-keys", ""); json.Unmarshal([]byte(a.body), &b) != nil {
		t.Fatal(a.body)
	}
	key := securitykeytest.New(keyOrigin)
	body := fmt.Sprintf(`{"ticket":%q,"response":%s,"password":"correct horse anna"}`, b.Ticket, key.Create(b.Options))
	anna := append(r.in("anna"), fromKeyPage...)
	if a := r.via(anna, "PUT", "/api/v1/users/anna/security-keys/work", body); a.status != 422 {
		t.Errorf("with the ticket of another: %d %s", a.status, a.body)
	}
	if a := r.via(anna, "POST", "/api/v1/users/nobody/security-keys", ""); a.status == 200 {
		t.Errorf("of nobody: %d", a.status)
	}
	// A registration is no login.
	if _, a := r.addKey(ben[:2], "ben", "work"); a.status != 200 {
		t.Fatalf("register: %d %s", a.status, a.body)
	}
	if a := r.withKey("192.0.2.1", "ben", b.Ticket, key.Get(b.Options)); a.status != 422 {
		t.Errorf("a login with the ticket of a registration: %d %s", a.status, a.body)
	}
}
