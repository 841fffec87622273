package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// switched is a store whose audit can be broken for a while.
type switched struct {
	inventory.Store
	isUnaudited bool
}

// Write implements inventory.Store.
func (s *switched) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	if s.isUnaudited {
		return s.Store.Write(ctx, func(tx inventory.Tx) error { return fn(unauditedTx{tx}) })
	}
	return s.Store.Write(ctx, fn)
}

// TestADeedWithoutItsEntryIsNotDone asks the engine for things while the audit cannot be written, and then while it can: a
// crash between the two is the same as the first.
func TestADeedWithoutItsEntryIsNotDone(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(201, nil, "POST", "/api/v1/machines", `{"name":"old","profile":"worker"}`)
	r.must(200, nil, "PUT", "/api/v1/hosts/r1-u01/bmc", `{"driver":"fake","system":"a","options":{"power":"off"}}`)
	look := func() string {
		var b strings.Builder
		for _, path := range []string{"hosts", "machines", "operations", "bmcs", "events?after=0"} {
			b.WriteString(r.ask("GET", "/api/v1/"+path, "").body)
		}
		return b.String()
	}
	for _, c := range []struct {
		method, path, body string
		want               int
		change             inventory.AuditChange
	}{
		{"POST", "/hosts/host-525400aa000a/accept", `{}`, 200, ""},
		{"POST", "/hosts/r2-u01/maintain", `{"on":true}`, 200, ""},
		{"POST", "/hosts/r2-u01/cordon", `{"on":true}`, 200, ""},
		{"POST", "/hosts/r2-u01/protect", `{"on":true}`, 200, ""},
		{"POST", "/hosts/bulk", `{"verb":"retain","on":true,"hosts":["r2-u01"]}`, 200, ""},
		{"POST", "/hosts/r1-u01/power", `{"action":"on"}`, 202, ""},
		{"PUT", "/hosts/r2-u01/bmc", `{"driver":"fake","system":"b","options":{"power":"off"}}`, 200, inventory.AuditCreate},
		{"PUT", "/hosts/r2-u01/bmc", `{"driver":"fake","system":"c","options":{"power":"off"}}`, 200, inventory.AuditUpdate},
		{"POST", "/machines", `{"name":"new","profile":"worker"}`, 201, inventory.AuditCreate},
		{"DELETE", "/machines/old", "", 204, inventory.AuditDelete},
	} {
		was, had := look(), len(r.audits())
		r.under.isUnaudited = true
		if a := r.ask(c.method, "/api/v1"+c.path, c.body); a.status != 503 && !strings.Contains(a.body, `"actsN":0`) {
			t.Errorf("%s %s without an audit: %d %s", c.method, c.path, a.status, a.body)
		}
		r.under.isUnaudited = false
		if now := look(); now != was {
			t.Errorf("%s %s was done without its entry", c.method, c.path)
		}
		refused := len(r.audits()) - had
		if a := r.ask(c.method, "/api/v1"+c.path, c.body); a.status != c.want {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.body)
		}
		rows := r.audits()
		want := 1
		if strings.HasSuffix(c.path, "/bulk") {
			want = 2 // one of the host, one of the whole
			rows = rows[1:]
		}
		if n := len(r.audits()) - had - refused; n != want {
			t.Errorf("%s %s left %d entries, want %d", c.method, c.path, n, want)
		}
		if e := rows[0]; e.Status != c.want || e.IsRefused() || e.Change != c.change || e.HostID == "" && strings.HasPrefix(c.path, "/hosts") {
			t.Errorf("%s %s: entry %+v", c.method, c.path, e)
		}
	}
	var op rest.List[inventory.Operation]
	r.must(200, &op, "GET", "/api/v1/operations", "")
	for _, o := range op.Items {
		if o.IsOpen() {
			r.under.isUnaudited = true
			r.must(503, nil, "POST", "/api/v1/operations/"+o.ID+"/cancel", "")
			r.under.isUnaudited = false
			r.must(200, nil, "POST", "/api/v1/operations/"+o.ID+"/cancel", "")
			return
		}
	}
	t.Error("no operation to cancel")
}

// TestACommandToAControllerIsWrittenBeforeItIsGiven: it is in no transaction.
func TestACommandToAControllerIsWrittenBeforeItIsGiven(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(200, nil, "PUT", "/api/v1/hosts/r1-u01/bmc", `{"driver":"fake","system":"a","options":{"power":"off"}}`)
	device := func() string {
		var b wire.BMCBoot
		r.must(200, &b, "GET", "/api/v1/hosts/r1-u01/bmc/boot", "")
		return string(b.Device)
	}
	was := device()
	whole := r.srv.rest.Store
	r.srv.rest.Store = unaudited{whole}
	for _, c := range [][2]string{{"boot", `{"device":"pxe"}`}, {"media", `{"url":"http://10.0.0.1/x.iso"}`}, {"user", `{"user":"ops","password":"a long password"}`}} {
		r.must(503, nil, "POST", "/api/v1/hosts/r1-u01/bmc/"+c[0], c[1])
	}
	r.must(503, nil, "DELETE", "/api/v1/hosts/r1-u01/bmc/log", "")
	r.must(503, nil, "POST", "/api/v1/hosts/r1-u01/locate", `{"on":true}`)
	r.srv.rest.Store = whole
	if now := device(); now != was {
		t.Errorf("the boot device is %s without an entry", now)
	}
	had := len(r.audits())
	r.must(200, nil, "POST", "/api/v1/hosts/r1-u01/bmc/boot", `{"device":"pxe"}`)
	if rows := r.audits(); len(rows) != had+1 || rows[0].Status != 200 || rows[0].Detail != "pxe" || rows[0].HostID == "" {
		t.Errorf("%d entries, the last %+v", len(rows)-had, rows[0])
	}
	if device() != "pxe" {
		t.Error("the command did not arrive")
	}
	// What fails after that leaves one more, which says why.
	r.must(200, nil, "POST", "/api/v1/hosts/r1-u01/bmc/user", `{"user":"ops","password":"a long password"}`)
	had = len(r.audits())
	a := r.ask("POST", "/api/v1/hosts/r1-u01/bmc/user", `{"user":"nobody","remove":true}`)
	if rows := r.audits(); a.status < 400 || len(rows) != had+2 || !rows[0].IsRefused() || rows[1].IsRefused() || rows[0].RequestID != rows[1].RequestID {
		t.Errorf("refused with %d: %+v", a.status, rows[:len(rows)-had])
	}
}

// TestWhoDoesNotGetInIsInTheAudit: who, from where and why; and a flood of it fills no disk.
func TestWhoDoesNotGetInIsInTheAudit(t *testing.T) {
	r := newRig(t, nil)
	r.user("anna", adminEverywhere)
	had := len(r.audits())
	r.logIn("192.0.2.9", "anna", "not her password")
	ask(t, r.srv.Handler(), "GET", "/api/v1/hosts", "", "Authorization", "Bearer slipway_wrong")
	rows := r.audits()
	if len(rows) != had+2 {
		t.Fatalf("%d entries", len(rows)-had)
	}
	if e := rows[1]; e.Operation != "create-login" || e.Name != "anna" || e.Source != "192.0.2.9" || e.Status != 401 || e.Via != "none" || !strings.Contains(e.Detail, "password is another") {
		t.Errorf("a wrong password: %+v", e)
	}
	if e := rows[0]; e.Operation != "use-token" || e.Source == "" || e.Status != 401 || !strings.Contains(e.Detail, "not known here") {
		t.Errorf("a wrong token: %+v", e)
	}
	text, _ := json.Marshal(rows)
	for _, no := range []string{"not her password", "slipway_wrong", access.HashToken("slipway_wrong")} {
		if strings.Contains(string(text), no) {
			t.Errorf("the audit tells %q", no)
		}
	}
	secret := r.as("late", adminEverywhere)
	if err := r.store.Write(t.Context(), func(tx inventory.Tx) error {
		if err := tx.DeleteToken("late"); err != nil {
			return err
		}
		return tx.CreateToken(&inventory.Token{
			Name: "late", Hash: access.HashToken(strings.TrimPrefix(secret[1], "Bearer ")), Grants: inventory.AdminEverywhere(), ExpiresAt: testStart.Add(-time.Hour),
		}, testStart)
	}); err != nil {
		t.Fatal(err)
	}
	r.via(secret, "GET", "/api/v1/hosts", "")
	if e := r.audits()[0]; e.Actor != "token late" || !strings.Contains(e.Detail, "expired") {
		t.Errorf("an expired token: %+v", e)
	}
	had = len(r.audits())
	for i := range 40 { // addresses of one network count as one
		r.pass(time.Second)
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://slipway.example/api/v1/logins", strings.NewReader(`{"user":"u","token":"x"}`))
		req.RemoteAddr = fmt.Sprintf("[2001:db8:ffff:1::%x]:1000", i+1)
		req.Header.Set("Content-Type", "application/json")
		serveOnce(r.srv.Handler(), req)
	}
	if n := len(r.audits()) - had; n > strangeBurst+10 {
		t.Errorf("a flood from one network left %d entries", n)
	}
	had = len(r.audits())
	for i := range 3 * strangersBurst { // each from another network
		body := fmt.Sprintf(`{"user":"u%d","token":"x"}`, i)
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://slipway.example/api/v1/logins", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.RemoteAddr = fmt.Sprintf("[2001:db8:%x:%x::1]:1000", i/250, i)
		req.Header.Set("Content-Type", "application/json")
		if a := serveOnce(r.srv.Handler(), req); a.status < 400 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if n := len(r.audits()) - had; n > strangersBurst || n < strangersBurst/2 {
		t.Errorf("a flood from everywhere left %d entries", n)
	}
	r.must(201, nil, "POST", "/api/v1/pools", `{"name":"gold"}`)
	if e := r.audits()[0]; e.Operation != "create-pool" {
		t.Errorf("after the flood the audit says nothing more: %+v", e)
	}
}
