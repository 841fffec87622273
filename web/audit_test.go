package web

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/audit"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// asks are the operations that are no GET and change nothing. All else that is no GET leaves an entry.
var asks = []string{"check-kubeconfig", "check-layer", "check-profile", "render-draft", "type-into-console"}

// audits returns the whole audit, latest first.
func (r *rig) audits() (rows []inventory.Audit) {
	r.t.Helper()
	err := r.store.Read(r.t.Context(), func(tx inventory.Tx) (err error) {
		rows, err = tx.ListAudits(inventory.AuditFilter{}, inventory.Page{})
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return rows
}

// lastAudit returns the newest entry with everything in it.
func (r *rig) lastAudit() (e wire.AuditEntry) {
	r.t.Helper()
	rows := r.audits()
	if len(rows) == 0 {
		r.t.Fatal("the audit is empty")
	}
	r.must(200, &e, "GET", fmt.Sprintf("/api/v1/audit/%d", rows[0].ID), "")
	return e
}

func TestEveryOperationThatMayChangeSomethingLeavesOneEntry(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	param := regexp.MustCompile(`\{[^}]*\}`)
	n := 0
	for path, item := range r.srv.rest.API.OpenAPI().Paths {
		for method, id := range operationsOf(item) {
			n++
			at := param.ReplaceAllStringFunc(path, func(p string) string {
				if p == "{id}" {
					return "1"
				}
				return "r1-u01"
			})
			had := len(r.audits())
			a := r.ask(method, at, `{}`)
			rows := r.audits()
			want := 1
			if slices.Contains(asks, id) {
				want = 0
			}
			if len(rows) != had+want {
				t.Errorf("%s %s (%s) answered %d and left %d entries, want %d", method, at, id, a.status, len(rows)-had, want)
				continue
			}
			if want == 1 && (rows[0].Operation != id || rows[0].Status != a.status || rows[0].Actor != "somebody (local)" || rows[0].Via != "socket" ||
				rows[0].RequestID != a.header.Get("X-Request-ID") || rows[0].Noun == "") {
				t.Errorf("%s %s answered %d and left %+v", method, at, a.status, rows[0])
			}
			if want == 1 && a.status >= 400 && rows[0].Detail == "" {
				t.Errorf("%s: entry %+v does not say why it was refused", id, rows[0])
			}
		}
	}
	if n < 60 {
		t.Errorf("only %d operations", n)
	}
}

func TestADryRunLeavesNoEntry(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	had := len(r.audits())
	r.must(200, nil, "PATCH", "/api/v1/hosts/r1-u01?dryRun=true", `{"place":{"unit":7}}`)
	r.must(200, nil, "POST", "/api/v1/pools?dryRun=true", `{"name":"gold"}`)
	r.must(200, nil, "DELETE", "/api/v1/profiles/worker?dryRun=1", "")
	r.must(200, nil, "POST", "/api/v1/transfer?dryRun=true", "hosts:\n- name: new\n  macs: [52:54:00:cc:00:01]\n")
	r.must(422, nil, "POST", "/api/v1/pools?dryRun=true", `{"name":"A B"}`)
	if n := len(r.audits()); n != had {
		t.Errorf("%d entries", n-had)
	}
}

func TestARefusalIsKeptShort(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	for _, c := range []struct {
		method, path, body string
		status             int
		noun, name, detail string
	}{
		{"PATCH", "/hosts/r1-u01", `{"profile":"nope"}`, 404, "host", "r1-u01", "nope"},
		{"PATCH", "/hosts/5254.00aa.0001", `{"colour":"red"}`, 422, "host", "r1-u01", "not valid"},
		{"POST", "/subnets", `{"name":"a","cidr":"10.0.0.0/16"}`, 409, "subnet", "", "rack1"},
		{"DELETE", "/images/debian", "", 409, "image", "debian", "worker"},
		{"POST", "/hosts/nobody/power", `{"action":"off"}`, 404, "host", "nobody", "off; there is no host"},
	} {
		r.must(c.status, nil, c.method, "/api/v1"+c.path, c.body)
		e := r.lastAudit()
		if e.Status != c.status || e.Noun != c.noun || e.Name != c.name || !strings.Contains(e.Detail, c.detail) || e.Change != "" || e.Before != nil || e.After != nil {
			t.Errorf("%s %s: %+v", c.method, c.path, e)
		}
		if e.NotUndoable == "" {
			t.Errorf("%s %s: could be undone", c.method, c.path)
		}
	}
}

// unaudited is a store whose audit cannot be written.
type unaudited struct{ rest.Store }

type unauditedTx struct{ inventory.Tx }

func (s unaudited) Write(req *rest.Request, fn func(inventory.Tx) error) error {
	return s.Store.Write(req, func(tx inventory.Tx) error { return fn(unauditedTx{tx}) })
}

func (unauditedTx) AddAudit(*inventory.Audit) error {
	return inventory.Errorf(inventory.Unavailable, "the disk is full")
}

func TestAnEditWithoutItsEntryIsNotMade(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(200, nil, "PUT", "/api/v1/secrets/db", `{"value":"geheim"}`)
	var before strings.Builder
	look := func() string {
		before.Reset()
		for _, path := range []string{"hosts", "pools", "profiles", "subnets", "secrets", "machines", "reservations", "acceptrules"} {
			before.WriteString(r.ask("GET", "/api/v1/"+path, "").body)
		}
		return before.String()
	}
	was := look()
	whole := r.srv.rest.Store
	r.srv.rest.Store = unaudited{whole}
	for _, c := range [][3]string{
		{"PATCH", "/hosts/r1-u01", `{"place":{"unit":7}}`},
		{"POST", "/hosts", `{"name":"new","nics":[{"mac":"52:54:00:00:00:01"}]}`},
		{"DELETE", "/hosts/r2-u01", ""},
		{"POST", "/pools", `{"name":"gold"}`},
		{"PUT", "/profiles/worker", `{"image":"debian","priority":3}`},
		{"DELETE", "/profiles/worker", ""},
		{"PUT", "/subnets/rack1/ranges/10.0.0.10-10.0.0.20", ""},
		{"PUT", "/secrets/db", `{"about":"x"}`},
		{"DELETE", "/secrets/db", ""},
		{"POST", "/reservations", `{"address":"10.0.0.3","mac":"52:54:00:00:00:01"}`},
		{"POST", "/transfer", "hosts:\n- name: new\n  macs: [52:54:00:cc:00:01]\n"},
	} {
		r.must(503, nil, c[0], "/api/v1"+c[1], c[2])
	}
	r.srv.rest.Store = whole
	if now := look(); now != was {
		t.Errorf("something changed without an entry:\n%s\n%s", was, now)
	}
}

func TestRefusalsDoNotFillTheDisk(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	had := len(r.audits())
	for range refusedBurst + 50 {
		r.must(422, nil, "POST", "/api/v1/pools", `{"name":"A B"}`)
	}
	if n := len(r.audits()) - had; n != refusedBurst {
		t.Errorf("%d refusals left %d entries, want %d", refusedBurst+50, n, refusedBurst)
	}
	r.must(201, nil, "POST", "/api/v1/pools", `{"name":"gold"}`)
	if e := r.lastAudit(); e.Change != inventory.AuditCreate {
		t.Errorf("what is not refused is not written: %+v", e)
	}
	r.pass(2 * refusedEvery)
	r.must(422, nil, "POST", "/api/v1/pools", `{"name":"A B"}`)
	if e := r.lastAudit(); !strings.Contains(e.Detail, "50 more were refused") {
		t.Errorf("detail %q", e.Detail)
	}
}

func TestAControllersWishIsKeptOnceAndAgainWhenItIsAnother(t *testing.T) {
	r := newRig(t, nil)
	count := func(what string, want int, method, path, body string) {
		t.Helper()
		had := len(r.audits())
		if a := r.ask(method, "/api/v1"+path, body); a.status >= 400 {
			t.Fatalf("%s: %d %s", what, a.status, a.body)
		}
		if n := len(r.audits()) - had; n != want {
			t.Errorf("%s left %d entries, want %d", what, n, want)
		}
	}
	pool := `{"name":"gold","owner":"mgmt/ns/MetalPool/gold"}`
	count("the first wish", 1, "PUT", "/appliance/pools/gold", pool)
	count("the same", 0, "PUT", "/appliance/pools/gold", pool)
	count("another", 1, "PUT", "/appliance/pools/gold", `{"name":"gold","owner":"mgmt/ns/MetalPool/gold","clean":"full"}`)
	count("the same", 0, "PUT", "/appliance/pools/gold", `{"name":"gold","owner":"mgmt/ns/MetalPool/gold","clean":"full"}`)
	count("a person's", 1, "PUT", "/pools/gold", `{"clean":"none","owner":"mgmt/ns/MetalPool/gold"}`)
	count("the same after that", 1, "PUT", "/appliance/pools/gold", `{"name":"gold","owner":"mgmt/ns/MetalPool/gold","clean":"full"}`)
}

// TestNoSecretGetsIntoTheAudit plants canaries wherever a secret goes in.
func TestNoSecretGetsIntoTheAudit(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	for _, c := range [][3]string{
		{"PUT", "/secrets/db", `{"value":"` + canary + `","about":"of the database"}`},
		{"PUT", "/secrets/db", `{"value":"` + canary + `2"}`},
		{"PUT", "/hosts/r1-u01/bmc", `{"driver":"redfish","address":"https://10.0.9.1","username":"admin","password":"` + canary + `"}`},
		{"PUT", "/hosts/r1-u01/bmc", `{"driver":"redfish","address":"https://10.0.9.1","username":"root","password":"` + canary + `"}`},
		{"PUT", "/hosts/r2-u01/bmc", `{"driver":"webhook","address":"http://10.0.9.2/","options":{"header.Authorization":"` + canary + `"}}`},
		{"PUT", "/hosts/r2-u01/bmc", `{"driver":"webhook","address":"http://10.0.9.2/","options":{"header.Authorization":"` + canary + `2"}}`},
		{"POST", "/hosts/r1-u01/bmc/user", `{"user":"ops","password":"` + canary + `"}`},
		{"PUT", "/appliance/secrets/tls", `{"value":"` + canary + `","owner":"mgmt/ns/Secret/tls"}`},
		{"POST", "/tokens", `{"name":"ci"}`},
		{"DELETE", "/secrets/db", ""},
		{"DELETE", "/hosts/r2-u01/bmc", ""},
	} {
		r.ask(c[0], "/api/v1"+c[1], c[2])
	}
	var list rest.List[inventory.Audit]
	r.must(200, &list, "GET", "/api/v1/audit?limit=1000", "")
	if len(list.Items) < 10 {
		t.Fatalf("only %d entries", len(list.Items))
	}
	for _, a := range list.Items {
		text := r.must(200, nil, "GET", fmt.Sprintf("/api/v1/audit/%d", a.ID), "").body
		for _, no := range []string{canary, "slipway_", access.HashToken(canary)} {
			if strings.Contains(text, no) {
				t.Errorf("%s tells: %s", a.Operation, text)
			}
		}
	}
}

func TestTheAuditIsListed(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.pass(time.Minute)
	r.must(200, nil, "PATCH", "/api/v1/hosts/r1-u01", `{"place":{"unit":7}}`)
	r.must(200, nil, "POST", "/api/v1/hosts/r1-u01/maintain", `{"on":true}`)
	r.must(422, nil, "POST", "/api/v1/pools", `{"name":"A B"}`)
	for query, want := range map[string]string{
		"?host=r1-u01":                                     "maintain-host patch-host create-host",
		"?host=5254.00aa.0001&outcome=change":              "patch-host create-host",
		"?outcome=refused":                                 "create-pool",
		"?noun=profile&name=worker":                        "create-profile",
		"?operation=create-host":                           "create-host create-host",
		"?actor=nobody":                                    "",
		"?since=2026-11-21T12:00:30Z":                      "create-pool maintain-host patch-host",
		"?until=2026-11-21T12:00:30Z&noun=subnet":          "create-subnet",
		"?limit=2":                                         "create-pool maintain-host",
		"?limit=2&actor=somebody%20(local)&outcome=change": "patch-host create-host",
	} {
		var list rest.List[inventory.Audit]
		r.must(200, &list, "GET", "/api/v1/audit"+query, "")
		var ids []string
		for _, a := range list.Items {
			ids = append(ids, a.Operation)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
		if strings.Contains(query, "limit") && list.Next != audit.Key(list.Items[1]) {
			t.Errorf("%s: next is %q", query, list.Next)
		}
	}
	r.must(404, nil, "GET", "/api/v1/audit/99", "")
	r.must(422, nil, "GET", "/api/v1/audit?after=x", "")
	var e wire.AuditEntry
	rows := r.audits()
	r.must(200, &e, "GET", fmt.Sprintf("/api/v1/audit/%d", rows[2].ID), "")
	if d, _ := json.Marshal(e.Changes); string(d) != `[{"field":"place.unit","from":1,"to":7}]` {
		t.Errorf("changes %s", d)
	}
}

// operationsOf lists the operations of a path that are no GET, by method.
func operationsOf(item *huma.PathItem) map[string]string {
	out := map[string]string{}
	for method, op := range map[string]*huma.Operation{"POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete} {
		if op != nil {
			out[method] = op.OperationID
		}
	}
	return out
}
