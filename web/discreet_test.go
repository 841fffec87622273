package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/power"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// gossip has everything that belongs to pool alpha speak of what belongs to beta.
func (r *rig) gossip() {
	r.t.Helper()
	const says = "as beta-1 (52:54:00:b2:00:01) of beta-m was first"
	refs := []inventory.Ref{inventory.HostRef("beta-1"), inventory.HostRef("52:54:00:b2:00:01"), inventory.MachineRef("beta-m")}
	r.must(200, nil, "PUT", "/api/v1/racks/beta-rack", `{"height":20}`)
	r.must(200, nil, "PUT", "/api/v1/racks/beta-layer", `{"height":20}`)
	r.must(409, nil, "PATCH", "/api/v1/hosts/alpha-1", `{"macs":["52:54:00:b2:00:01"]}`) // the entry is about alpha-1 and names beta-1
	r.must(200, nil, "PATCH", "/api/v1/hosts/beta-1", `{"profile":"worker"}`)
	r.must(200, nil, "PATCH", "/api/v1/hosts/alpha-1", `{"profile":"worker"}`)
	err := r.store.Write(r.t.Context(), func(tx inventory.Tx) error {
		h, err := tx.FindHostByName("alpha-1")
		if err != nil {
			return err
		}
		h.StateReason, h.Refs = says, refs
		if err := tx.UpdateHost(&h, testStart); err != nil {
			return err
		}
		m, err := tx.FindMachine("alpha-m")
		if err != nil {
			return err
		}
		m.Reason, m.Hint = "1 is in pool beta, which the machine may not use", "slipway host release beta-1"
		m.Refs = append(refs, inventory.PoolRef("beta"))
		if err := tx.UpdateMachine(&m, testStart); err != nil {
			return err
		}
		op, err := tx.FindOpenOperation(h.ID)
		if err != nil {
			return err
		}
		op.Reason, op.Refs = says, refs
		if err := tx.UpdateOperation(&op, testStart); err != nil {
			return err
		}
		if err := tx.AddEvent(&inventory.Event{
			At: testStart, Kind: inventory.EventHostChanged, HostID: h.ID, SessionID: "alpha-session", Detail: says,
			Data: map[string]any{"hint": "ask beta-m", "of": []string{"beta-1"}}, Refs: refs,
		}); err != nil {
			return err
		}
		if err := tx.SaveSession(inventory.BootSession{ID: "alpha-session", HostID: h.ID, MAC: h.NICs[0].MAC, Reason: says, Refs: refs, StartedAt: testStart, LastAt: testStart}); err != nil {
			return err
		}
		_, err = tx.OpenIssue(&inventory.Issue{Key: "alpha-2", Type: "x", Severity: inventory.SeverityWarning, HostIDs: []inventory.HostID{h.ID}, Cause: says, Hint: "slipway host release beta-1", Refs: refs}, testStart)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.user("bob", inventory.Grant{Role: inventory.Operator, Pool: "beta"})
	r.mustAs(r.in("bob"), 200, "PUT", "/api/v1/views/beta-layer", `{"name":"beta-layer","isShared":false,"query":"x"}`)
}

func (r *rig) mustAs(who []string, want int, method, path, body string) answer {
	r.t.Helper()
	a := r.via(who, method, path, body)
	if a.status != want {
		r.t.Fatalf("%s %s: %d, want %d: %s", method, path, a.status, want, a.body)
	}
	return a
}

// everything lists the address of every GET route, and of each thing that is known by a number or an id.
func (r *rig) everything() (all []string) {
	r.t.Helper()
	for _, route := range r.routes() {
		path, method, _ := strings.Cut(route, " ")
		if method != http.MethodGet || strings.Contains(path, "console") {
			continue // consoles are streams of a host that was found
		}
		all = append(all, r.address(route, "alpha"))
	}
	for _, noun := range []string{"audit", "issues", "operations", "sessions", "racks", "machines", "views", "layers", "reservations", "leases"} {
		var list rest.List[map[string]any]
		r.must(200, &list, "GET", "/api/v1/"+noun+"?limit=1000", "")
		for _, item := range list.Items {
			for _, key := range []string{"id", "name", "address"} {
				if v, ok := item[key]; ok {
					all = append(all, "/api/v1/"+noun+"/"+strings.ReplaceAll(fmt.Sprint(v), "/", "%2F"))
					break
				}
			}
		}
	}
	return append(all, "/api/v1/hosts?search=beta", "/api/v1/hosts?pool=beta", "/api/v1/hosts?selector=mac", "/api/v1/events?limit=1000&before=100000",
		"/api/v1/issues?all=true", "/api/v1/audit?host=alpha-1", "/api/v1/audit?outcome=refused", "/api/v1/machines?pool=beta", "/api/v1/cabling?rack=alpha-rack")
}

// TestNoTextTellsOfAnotherPool reads everything as somebody with a role in one pool, where all that may be read speaks of
// another. Only what was asked for by its name comes back in a refusal.
func TestNoTextTellsOfAnotherPool(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	r.gossip()
	root := r.as("root", adminEverywhere)
	words := append(secretsOf("beta"), "in pool beta")
	for _, role := range inventory.Roles() {
		who := r.as("only-"+string(role), inventory.Grant{Role: role, Pool: "alpha"})
		hiddenN, toldN := 0, 0
		for _, asked := range r.everything() {
			a := r.via(who, "GET", asked, "")
			hiddenN += strings.Count(a.body, power.Hidden)
			if strings.Contains(r.via(root, "GET", asked, "").body, "as beta-1 ") {
				toldN++
			}
			if a.status == http.StatusNotFound || a.status == http.StatusForbidden || a.status == http.StatusUnprocessableEntity {
				a.body = strings.ReplaceAll(a.body, asked[strings.LastIndex(asked, "/")+1:], "") // a refusal repeats what was asked
			}
			for _, word := range words {
				if strings.Contains(a.body, word) {
					t.Errorf("%s in pool alpha: GET %s (%d) tells %q: %.300s", role, asked, a.status, word, a.body)
				}
			}
		}
		if hiddenN < 10 || toldN < 6 {
			t.Errorf("%s: %d names hidden; %d answers name beta-1 to an admin: nothing was tried", role, hiddenN, toldN)
		}
	}
	base, _ := r.serve()
	looker := r.as("looker", inventory.Grant{Role: inventory.Viewer, Pool: "alpha"})
	s := r.streamOf(base, strings.TrimPrefix(looker[1], "Bearer "), "?after=0")
	r.must(200, nil, "POST", "/api/v1/hosts/alpha-1/maintain", `{"on":true}`)
	heard := ""
	for !strings.Contains(heard, "maintenance") {
		line, err := s.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %s", err, heard)
		}
		heard += line
	}
	for _, word := range words {
		if strings.Contains(heard, word) {
			t.Errorf("the stream tells %q", word)
		}
	}
	if !strings.Contains(heard, power.Hidden) {
		t.Errorf("nothing was hidden in %s", heard)
	}
}

// TestAConflictDoesNotSayWhose tries to find out about another pool by writing.
func TestAConflictDoesNotSayWhose(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	for _, who := range [][]string{
		r.as("op", inventory.Grant{Role: inventory.Operator, Pool: "alpha"}), r.as("chief", inventory.Grant{Role: inventory.Admin, Pool: "alpha"}),
	} {
		for _, c := range []struct {
			method, path, body string
			want               int
		}{
			{"PATCH", "/hosts/alpha-1", `{"macs":["52:54:00:b2:00:01"]}`, 409},
			{"PATCH", "/hosts/alpha-1?dryRun=true", `{"macs":["52:54:00:b2:00:01"]}`, 409},
			{"POST", "/hosts", `{"name":"x","nics":[{"mac":"52:54:00:b2:00:01"}],"labels":{"team":"alpha"}}`, 409},
			{"PUT", "/hosts/alpha-1/bmc", `{"driver":"fake","system":"beta-bmc","options":{"power":"off"}}`, 409},
			{"POST", "/hosts/bulk?dryRun=true", `{"verb":"maintain","on":true,"selector":"mac"}`, 200},
			{"POST", "/hosts/bulk", `{"verb":"set","set":{"serial":"x"},"selector":"mac"}`, 200},
			{"POST", "/machines", `{"name":"beta-x","profile":"worker","pool":"alpha","placement":{"host":"nothing"}}`, 404},
		} {
			a := r.via(who, c.method, "/api/v1"+c.path, c.body)
			if a.status != c.want && a.status != 403 {
				t.Errorf("%s %s: %d, want %d: %s", c.method, c.path, a.status, c.want, a.body)
			}
			for _, word := range append(secretsOf("beta"), "beta-bmc powers host beta") {
				if strings.Contains(a.body, word) {
					t.Errorf("%s %s tells %q: %s", c.method, c.path, word, a.body)
				}
			}
		}
	}
	who := r.as("op2", inventory.Grant{Role: inventory.Operator, Pool: "alpha"})
	var there, none wire.BulkResult
	for name, out := range map[string]*wire.BulkResult{"beta-1": &there, "ghost-1": &none} {
		a := r.mustAs(who, 200, "POST", "/api/v1/hosts/bulk", `{"verb":"maintain","on":true,"hosts":["`+name+`"]}`)
		if err := json.Unmarshal([]byte(strings.ReplaceAll(a.body, name, "NAME")), out); err != nil {
			t.Fatal(err)
		}
	}
	if len(there.Items) != 1 || there.Items[0] != none.Items[0] || there.ActsN != 0 {
		t.Errorf("a host of another pool and none at all differ: %+v, %+v", there.Items, none.Items)
	}
	if a := r.ask("PATCH", "/api/v1/hosts/alpha-1", `{"macs":["52:54:00:b2:00:01"]}`); !strings.Contains(a.body, "belongs to host beta-1") {
		t.Errorf("an admin is not told whose it is: %s", a.body)
	}
	var all rest.List[inventory.Host]
	r.must(200, &all, "GET", "/api/v1/hosts?search=beta", "")
	if len(all.Items) != 1 || all.Items[0].InMaintenance || all.Items[0].Serial != "" {
		t.Errorf("the other pool was changed: %+v", all.Items)
	}
}
