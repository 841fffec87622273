package web

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/web/rest"
)

// undo takes back the newest entry, after a dry run that must promise as much.
func (r *rig) undo(want int) answer {
	r.t.Helper()
	rows := r.audits()
	path := fmt.Sprintf("/api/v1/audit/%d/undo", rows[0].ID)
	dry := r.ask("POST", path+"?dryRun=true", "")
	if (dry.status == 200) != (want == 200) || len(r.audits()) != len(rows) {
		r.t.Errorf("dry run of an undo that answers %d: %d %s", want, dry.status, dry.body)
	}
	return r.must(want, nil, "POST", path, "")
}

func TestEditsAreUndoneAndDoneAgain(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(201, nil, "POST", "/api/v1/pools", `{"name":"gold","selector":"rack=r9"}`)
	r.must(201, nil, "POST", "/api/v1/machines", `{"name":"web-1","profile":"worker","pool":"gold"}`)
	r.must(200, nil, "PUT", "/api/v1/hosts/r2-u01/bmc", `{"driver":"redfish","address":"https://10.0.9.2","username":"admin"}`)
	type edit struct{ what, method, path, body, look string }
	edits := []edit{
		{"a created pool", "POST", "/pools", `{"name":"silver"}`, "/pools/silver"},
		{"a changed pool", "PUT", "/pools/gold", `{"selector":"rack=r8"}`, "/pools/gold"},
		{"a deleted profile", "DELETE", "/profiles/worker2", "", "/profiles/worker2"},
		{"a changed profile", "PUT", "/profiles/worker2", `{"image":"debian","priority":9}`, "/profiles/worker2"},
		{"a layer", "PUT", "/layers/rack%2Fr1", `{"config":"host: {locale: C}\n"}`, "/layers/rack%2Fr1"},
		{"a range", "PUT", "/subnets/rack1/ranges/10.0.0.10-10.0.0.20", "", "/subnets/rack1"},
		{"a subnet", "POST", "/subnets", `{"name":"lab","cidr":"10.9.0.0/24"}`, "/subnets/lab"},
		{"a reservation", "POST", "/reservations", `{"address":"10.0.0.3","mac":"52:54:00:00:00:01"}`, "/reservations/10.0.0.3"},
		{"an accept rule", "POST", "/acceptrules", `{"name":"all","selector":"mac"}`, "/acceptrules/all"},
		{"a host's fields", "PATCH", "/hosts/r1-u01", `{"place":{"unit":9},"labels":{"role":null,"example.com/a.b":"c"}}`, "/hosts/r1-u01"},
		{"a host's name", "PATCH", "/hosts/r1-u01", `{"name":"r1-new"}`, "/hosts/00000000-0000-7000-8000-000000000001"},
		{"a created host", "POST", "/hosts", `{"name":"new","nics":[{"mac":"52:54:00:00:00:09"}]}`, "/hosts/new"},
		{"a machine's fields", "PATCH", "/machines/web-1", `{"hostname":"other","parameters":{"a":"b"}}`, "/machines/web-1"},
		{"a host that is forgotten", "DELETE", "/hosts/host-525400aa000a", "", "/hosts/host-525400aa000a"},
		{"a BMC", "PUT", "/hosts/r1-u01/bmc", `{"driver":"redfish","address":"https://10.0.9.1"}`, "/hosts/r1-u01/bmc"},
		{"a BMC's certificate", "PUT", "/hosts/r2-u01/bmc", `{"driver":"redfish","address":"https://10.0.9.2","username":"admin","insecureSkipVerify":true}`, "/hosts/r2-u01/bmc"},
		{"a BMC that is forgotten", "DELETE", "/hosts/r2-u01/bmc", "", "/hosts/r2-u01/bmc"},
	}
	for _, n := range noun.All() {
		about := n.About()
		body, err := json.Marshal(n.New())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains([]string{"secret", "user", "image", "profile", "target", "cluster"}, about.One) { // these name others, or have tests of their own
			path := "/" + about.Many
			edits = append(edits, edit{"a new " + about.One, "POST", path, string(body), path + "/" + url.PathEscape(n.KeyOf(n.New()))})
		}
	}
	for _, c := range edits {
		t.Run(c.what, func(t *testing.T) {
			r := &rig{t: t, store: r.store, srv: r.srv}
			r.must(200, nil, "PUT", "/api/v1/profiles/worker2", `{"image":"debian","priority":1}`)
			before := r.plain(c.look)
			if a := r.ask(c.method, "/api/v1"+c.path, c.body); a.status >= 300 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			after := r.plain(c.look)
			edit := r.lastAudit()
			if after == before || edit.Change == "" || len(edit.Changes) == 0 || edit.NotUndoable != "" {
				t.Fatalf("was no edit: %+v\n%s", edit, after)
			}
			r.undo(200)
			undone := r.lastAudit()
			if got := r.plain(c.look); got != before && c.what != "a host that is forgotten" { // that one has a new id
				t.Errorf("undone is\n%s, want\n%s", got, before)
			}
			if undone.UndoOf != edit.ID || undone.Operation != "undo-audit" || undone.Noun != edit.Noun || undone.HostID != edit.HostID && c.method != "DELETE" {
				t.Errorf("entry of the undo: %+v", undone)
			}
			r.must(409, nil, "POST", fmt.Sprintf("/api/v1/audit/%d/undo", edit.ID), "") // it is undone already
			if edit.Noun == "host" && edit.Change != inventory.AuditUpdate {
				return // the same again has another id
			}
			id := undone.ID
			r.must(200, nil, "POST", fmt.Sprintf("/api/v1/audit/%d/undo", id), "")
			if got := r.plain(c.look); got != after {
				t.Errorf("done again is\n%s, want\n%s", got, after)
			}
			r.undo(200)
		})
	}
}

// plain is a thing without what changes with every write.
func (r *rig) plain(path string) string {
	r.t.Helper()
	a := r.ask("GET", "/api/v1"+path, "")
	if a.status == 404 {
		return "none"
	}
	var out []string
	for _, d := range rest.Compare(nil, json.RawMessage(a.body)) {
		if !strings.HasPrefix(d.Field, "hosts.") && d.Field != "nextAt" && d.Field != "reason" && d.Field != "hint" {
			out = append(out, fmt.Sprint(d.Field, "=", d.To))
		}
	}
	return strings.Join(out, "\n")
}

func TestAnUndoIsRefusedWithAReason(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(200, nil, "PUT", "/api/v1/secrets/db", `{"value":"one"}`)
	r.must(200, nil, "PUT", "/api/v1/hosts/r2-u01/bmc", `{"driver":"redfish","address":"https://10.0.9.2","username":"admin","password":"a"}`)
	r.must(201, nil, "POST", "/api/v1/subnets", `{"name":"lab","cidr":"10.9.0.0/24"}`)
	lab := r.audits()[0].ID
	r.must(201, nil, "POST", "/api/v1/reservations", `{"address":"10.9.0.3","mac":"52:54:00:00:00:01"}`)
	r.must(409, nil, "POST", fmt.Sprintf("/api/v1/audit/%d/undo", lab), "")
	for _, c := range []struct{ what, method, path, body, then, want string }{
		{"a refusal", "POST", "/pools", `{"name":"A B"}`, "", "nothing changed"},
		{"an action", "POST", "/hosts/r1-u01/maintain", `{"on":true}`, "", "no edit"},
		{"a secret's value", "PUT", "/secrets/db", `{"value":"two"}`, "", "value that it had is not kept"},
		{"a password", "PUT", "/hosts/r2-u01/bmc", `{"driver":"redfish","address":"https://10.0.9.2","username":"root","password":"b"}`, "", "password that it had"},
		{"a machine that is wanted", "POST", "/machines", `{"name":"web-1","profile":"worker"}`, "", "wipes its host"},
		{"a profile that has changed since", "PUT", "/profiles/worker", `{"image":"debian","priority":2}`, `PUT /profiles/worker {"image":"debian","priority":3}`, "changed since"},
		{"a host whose field has changed since", "PATCH", "/hosts/r1-u01", `{"place":{"unit":3}}`, `PATCH /hosts/r1-u01 {"place":{"unit":4}}`, "place.unit"},
		{"a host whose name is taken since", "DELETE", "/hosts/r2-u01", "", `POST /hosts {"name":"r2-u01","nics":[{"mac":"52:54:00:00:00:08"}]}`, "r2-u01"},
		{"a profile that something else has changed since", "PUT", "/profiles/worker", `{"image":"debian","priority":7}`, "beside", "changed since"},
		{"a pool that is deleted and made again", "POST", "/pools", `{"name":"tin"}`, `again`, "changed since"},
		{"a subnet with reservations", "DELETE", "/subnets/lab", "", "", "reservations went"},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := &rig{t: t, store: r.store, srv: r.srv}
			r.ask(c.method, "/api/v1"+c.path, c.body)
			id := r.audits()[0].ID
			if method, then, ok := strings.Cut(c.then, " "); ok {
				path, body, _ := strings.Cut(then, " ")
				if a := r.ask(method, "/api/v1"+path, body); a.status >= 300 {
					t.Fatalf("%d %s", a.status, a.body)
				}
			} else if c.then == "beside" { // which the audit knows nothing of
				err := r.store.Write(t.Context(), func(tx inventory.Tx) error {
					p, err := tx.Profiles().Find("worker")
					if err != nil {
						return err
					}
					p.KernelArgs = []string{"quiet"}
					return tx.Profiles().Update(&p, testStart)
				})
				if err != nil {
					t.Fatal(err)
				}
			} else if c.then == "again" {
				r.must(204, nil, "DELETE", "/api/v1/pools/tin", "")
				r.must(201, nil, "POST", "/api/v1/pools", c.body)
			}
			a := r.must(409, nil, "POST", fmt.Sprintf("/api/v1/audit/%d/undo", id), "")
			if p := a.problem(t); !strings.Contains(p.Detail, c.want) {
				t.Errorf("%q does not say %q", p.Detail, c.want)
			}
			if e := r.lastAudit(); e.UndoOf != id || e.Status != 409 {
				t.Errorf("the refusal is not in the audit: %+v", e)
			}
		})
	}
	r.must(404, nil, "POST", "/api/v1/audit/9999/undo", "")
}

// TestAHostThatMovesOnCanStillBeUndone: the engine changes a host all the time, which is no later edit.
func TestAHostThatMovesOnCanStillBeUndone(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(200, nil, "PATCH", "/api/v1/hosts/r1-u01", `{"place":{"unit":9}}`)
	id := r.audits()[0].ID
	err := r.store.Write(t.Context(), func(tx inventory.Tx) error {
		h, err := tx.FindHostByName("r1-u01")
		if err != nil {
			return err
		}
		h.LastSeenAt, h.Firmware = testStart.Add(time.Hour), inventory.UEFI
		return tx.UpdateHost(&h, testStart.Add(time.Hour))
	})
	if err != nil {
		t.Fatal(err)
	}
	r.must(200, nil, "PATCH", "/api/v1/hosts/r1-u01", `{"labels":{"later":"yes"}}`)
	r.must(200, nil, "POST", fmt.Sprintf("/api/v1/audit/%d/undo", id), "")
	var h inventory.Host
	r.must(200, &h, "GET", "/api/v1/hosts/r1-u01", "")
	if h.Place.Unit != 1 || h.Labels["later"] != "yes" || h.Firmware != inventory.UEFI {
		t.Errorf("host is %+v", h)
	}
}

// TestAnUndoNeedsTheRoleOfTheEdit: who may act on hosts of a pool does not undo what an admin said of one.
func TestAnUndoNeedsTheRoleOfTheEdit(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	r.must(200, nil, "PUT", "/api/v1/hosts/alpha-1/bmc", `{"driver":"fake","system":"other-bmc","options":{"power":"off"}}`)
	id := r.audits()[0].ID
	for who, want := range map[string]int{"operator": 403, "admin": 200} {
		as := r.as("undo-"+who, inventory.Grant{Role: inventory.UserRole(who), Pool: "alpha"})
		if a := r.via(as, "POST", fmt.Sprintf("/api/v1/audit/%d/undo?dryRun=true", id), ""); a.status != want {
			t.Errorf("%s of the pool: %d, want %d: %s", who, a.status, want, a.body)
		}
	}
	r.must(200, nil, "PATCH", "/api/v1/hosts/beta-1", `{"serial":"x"}`)
	outside := r.as("outside", inventory.Grant{Role: inventory.Admin, Pool: "alpha"})
	if a := r.via(outside, "POST", fmt.Sprintf("/api/v1/audit/%d/undo", r.audits()[0].ID), ""); a.status != 404 {
		t.Errorf("of another pool: %d %s", a.status, a.body)
	}
	r.must(200, nil, "PATCH", "/api/v1/hosts/alpha-1", `{"serial":"y"}`)
	old := r.audits()[0]
	old.ID, old.Operation = 0, "an-operation-of-an-older-version"
	if err := r.store.Write(t.Context(), func(tx inventory.Tx) error { return tx.AddAudit(&old) }); err != nil {
		t.Fatal(err)
	}
	if a := r.ask("POST", fmt.Sprintf("/api/v1/audit/%d/undo", old.ID), ""); a.status != 409 || !strings.Contains(a.body, "has no operation") {
		t.Errorf("of an operation that nobody knows: %d %s", a.status, a.body)
	}
}
