package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/access"
)

// teams gives the rig two pools, each with a host, a machine, and what belongs to them. Names and MACs of the one have
// "alpha" or :a1: in them, those of the other "beta" and :b2:.
func (r *rig) teams() {
	r.t.Helper()
	r.seed()
	for i, team := range []string{"alpha", "beta"} {
		mac := fmt.Sprintf("52:54:00:%s:00:01", []string{"a1", "b2"}[i])
		r.must(201, nil, "POST", "/api/v1/pools", fmt.Sprintf(`{"name":"%s","selector":"label:team=%s"}`, team, team))
		r.must(201, nil, "POST", "/api/v1/hosts", fmt.Sprintf(`{"name":"%s-1","nics":[{"mac":"%s"}],"labels":{"team":"%s"},"place":{"rack":"%s-rack"}}`, team, mac, team, team))
		r.must(201, nil, "POST", "/api/v1/machines", fmt.Sprintf(`{"name":"%s-m","profile":"worker","pool":"%s"}`, team, team))
		r.must(200, nil, "PUT", "/api/v1/hosts/"+team+"-1/bmc", fmt.Sprintf(`{"driver":"fake","system":"%s-bmc","options":{"power":"off"}}`, team))
		r.must(201, nil, "POST", "/api/v1/reservations", fmt.Sprintf(`{"subnet":"rack1","address":"10.0.0.%d","mac":"%s"}`, 10+i, mac))
		r.must(200, nil, "PUT", "/api/v1/layers/host%2F"+team+"-1", fmt.Sprintf(`{"config":"files: [{path: /etc/%s-layer, text: x}]\n"}`, team))
		r.must(200, nil, "PUT", "/api/v1/views/"+team+"-view", fmt.Sprintf(`{"name":"%[1]s-view","isShared":true,"pools":["%[1]s"],"query":"name=%[1]s-1"}`, team))
		var h inventory.Host
		r.must(200, &h, "GET", "/api/v1/hosts/"+team+"-1", "")
		err := r.store.Write(r.t.Context(), func(tx inventory.Tx) error {
			seen := inventory.Inspection{HostID: h.ID, At: testStart, Hardware: inventory.Hardware{CollectedAt: testStart, Source: "agent"}}
			if err := tx.SaveInspection(&seen); err != nil {
				return err
			}
			if err := tx.SaveSession(inventory.BootSession{ID: inventory.SessionID(team + "-session"), HostID: h.ID, MAC: inventory.MAC(mac), StartedAt: testStart, LastAt: testStart}); err != nil {
				return err
			}
			if err := tx.SaveLease(inventory.Lease{
				Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(20 + i)}), Subnet: "rack1", MAC: inventory.MAC(mac), Hostname: team + "-lease",
				State: inventory.LeaseBound, StartsAt: testStart, ExpiresAt: testStart.Add(1 << 40),
			}); err != nil {
				return err
			}
			_, err := tx.OpenIssue(&inventory.Issue{Key: team + "-issue", Type: "x", Severity: inventory.SeverityWarning, HostIDs: []inventory.HostID{h.ID}, Cause: team + " is ill"}, testStart)
			return err
		})
		if err != nil {
			r.t.Fatal(err)
		}
		r.must(202, nil, "POST", "/api/v1/hosts/"+team+"-1/power", `{"action":"on"}`)
	}
}

// as makes a token with grants and returns the header that brings it.
func (r *rig) as(name string, grants ...inventory.Grant) []string {
	r.t.Helper()
	secret := access.NewSecret()
	err := r.store.Write(r.t.Context(), func(tx inventory.Tx) error {
		return tx.CreateToken(&inventory.Token{Name: name, Hash: access.HashToken(secret), Grants: grants}, testStart)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return []string{"Authorization", "Bearer " + secret}
}

// asCluster makes the token of a cluster, and returns how to send it.
func (r *rig) asCluster(name, uid string, namespaces ...string) []string {
	r.t.Helper()
	secret := access.NewSecret()
	err := r.store.Write(r.t.Context(), func(tx inventory.Tx) error {
		return tx.CreateToken(&inventory.Token{Name: name, Hash: access.HashToken(secret), Cluster: uid, Namespaces: namespaces}, testStart)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return []string{"Authorization", "Bearer " + secret}
}

// via sends a request over TCP's handler.
func (r *rig) via(who []string, method, path, body string) answer {
	r.t.Helper()
	return ask(r.t, r.srv.Handler(), method, path, body, who...)
}

// word says what became of a request, as far as roles go.
func word(a answer) string {
	switch {
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden, a.status == http.StatusNotFound:
		return fmt.Sprint(a.status)
	case a.status == http.StatusUnprocessableEntity:
		return "422" // it was looked at before what it is about: see bodies
	case a.status >= 500 && a.status != http.StatusServiceUnavailable:
		return "broken " + fmt.Sprint(a.status)
	}
	return "yes"
}

// bodies are what routes are asked with that want more than nothing, so that what they are about is looked for.
var bodies = map[string]string{
	"power": `{"action":"on"}`, "adopt": `{"on":true}`, "cordon": `{"on":true}`, "maintain": `{"on":true}`, "protect": `{"on":true}`, "retain": `{"on":true}`,
	"locate": `{"on":true}`, "confirm": `{"state":"off"}`, "type": `{"text":"x"}`, "boot": `{"device":"pxe"}`, "media": `{"url":"http://10.0.0.1/x.iso"}`,
	"ack": `{"step":"pre-drain","owner":"x"}`, "render": `{"image":"debian"}`,
}

// body is what a route is asked with.
func body(route string) string {
	path, method, _ := strings.Cut(route, " ")
	if method == http.MethodPut && strings.HasSuffix(path, "/hosts/{host}") {
		return `{"nics":[{"mac":"52:54:00:cc:00:01"}],"labels":{"team":"alpha"}}`
	}
	if method == http.MethodPut && strings.HasSuffix(path, "/v1/machines/{name}") {
		return `{"profile":"worker","pool":"alpha"}`
	}
	if b := bodies[path[strings.LastIndex(path, "/")+1:]]; b != "" && method == http.MethodPost {
		return b
	}
	return "{}"
}

// routes lists every operation of the API description, and the routes beside it.
func (r *rig) routes() (all []string) {
	for path, item := range r.srv.rest.API.OpenAPI().Paths {
		for method, op := range map[string]bool{"GET": item.Get != nil, "POST": item.Post != nil, "PUT": item.Put != nil, "PATCH": item.Patch != nil, "DELETE": item.Delete != nil} {
			if op {
				all = append(all, path+" "+method)
			}
		}
	}
	all = append(all, "/metrics GET", "/healthz GET", "/readyz GET", "/api/v1/openapi.yaml GET", "/api/v1/hosts/{host}/bmc/console GET")
	// What deletes comes last, so that there is something for the others to find.
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, " DELETE"), strings.Count(b, " DELETE")), cmp.Compare(a, b))
	})
	return all
}

// address fills in a route for a team. Whatever can be tried is.
func (r *rig) address(route, team string) string {
	path, method, _ := strings.Cut(route, " ")
	name := "nothing"
	for noun, of := range map[string]string{
		"machines": team + "-m", "pools": team, "views": team + "-view", "sessions": team + "-session", "subnets": "rack1", "images": "debian", "profiles": "worker",
		"layers": "host%2F" + team + "-1", "reservations": map[string]string{"alpha": "10.0.0.10", "beta": "10.0.0.11"}[team],
		"instances": "rig",
		"leases":    map[string]string{"alpha": "10.0.0.20", "beta": "10.0.0.21"}[team],
	} {
		if strings.HasPrefix(path, "/api/v1/"+noun+"/") {
			name = of
		}
	}
	path = strings.NewReplacer("{host}", team+"-1", "{name}", name, "{range}", "10.0.0.100-10.0.0.199", "{revision}", "1", "{id}", "job1",
		"{digest}", "sha256:"+strings.Repeat("0", 64)).Replace(path)
	if op := r.operationAt(route); op != nil && method != http.MethodGet && slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.Name == "dryRun" }) {
		path += "?dryRun=true"
	}
	return path
}

// operationAt returns the description of a route, nil for one beside it.
func (r *rig) operationAt(route string) *huma.Operation {
	path, method, _ := strings.Cut(route, " ")
	item := r.srv.rest.API.OpenAPI().Paths[path]
	if item == nil {
		return nil
	}
	return map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete}[method]
}

// TestWhoMayDoWhat sends a request to every route as everybody, and compares who is let in with a table. A route that is new
// needs a line there: rewrite it with -update, and look at the lines.
func TestWhoMayDoWhat(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	people := []struct {
		name string
		who  []string
	}{
		{"nobody", nil},
		{"none", r.as("none")},
		{"viewer", r.as("viewer", inventory.Grant{Role: inventory.Viewer})},
		{"operator", r.as("operator", inventory.Grant{Role: inventory.Operator})},
		{"admin", r.as("root", inventory.Grant{Role: inventory.Admin})},
	}
	alpha := r.as("alpha", inventory.Grant{Role: inventory.Operator, Pool: "alpha"})
	looker := r.as("looker", inventory.Grant{Role: inventory.Viewer, Pool: "alpha"})
	cluster := r.asCluster("mgmt", "aaaaaaaa-0000-4000-8000-000000000001")
	var b strings.Builder
	b.WriteString("# Who may do what. yes: let in; 401, 403, 404: not. In: an operator of the pool, on what is in it; out: on what is in another;\n# looks: a viewer of the pool, on what is in it; cluster: the token of a cluster. Written by: go test ./web -run WhoMayDoWhat -update\n\n")
	fmt.Fprintf(&b, "%-6s %-58s %-7s %-5s %-7s %-9s %-6s %-4s %-4s %-5s %s\n", "", "", "nobody", "none", "viewer", "operator", "admin", "in", "out", "looks", "cluster")
	for _, route := range r.routes() {
		path, method, _ := strings.Cut(route, " ")
		fmt.Fprintf(&b, "%-6s %-58s", method, strings.TrimPrefix(path, "/api/v1"))
		widths := []int{7, 5, 7, 9, 6}
		for i, p := range people {
			fmt.Fprintf(&b, " %-*s", widths[i], word(r.via(p.who, method, r.address(route, "alpha"), body(route))))
		}
		fmt.Fprintf(&b, " %-4s", word(r.via(alpha, method, r.address(route, "alpha"), body(route))))
		fmt.Fprintf(&b, " %-4s", word(r.via(alpha, method, r.address(route, "beta"), body(route))))
		fmt.Fprintf(&b, " %-5s", word(r.via(looker, method, r.address(route, "alpha"), body(route))))
		of := word(r.via(cluster, method, r.address(route, "alpha"), body(route)))
		fmt.Fprintf(&b, " %s\n", of)
		if of != "403" && !strings.HasPrefix(path, "/api/v1/appliance") && !isForEveryToken(route) {
			t.Errorf("the token of a cluster is let in: %s", route)
		}
	}
	const golden = "testdata/roles.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	compareLines(t, string(want), b.String())
}

// isForEveryToken names what even the token of a cluster may ask, and what nobody need log in for.
func isForEveryToken(route string) bool {
	return slices.Contains([]string{
		"/api/v1/me GET", "/api/v1/version GET", "/api/v1/logins POST", "/api/v1/logins/security-key POST", "/api/v1/logins/offers GET",
		"/api/v1/logins/oidc GET", "/api/v1/logins/oidc/callback GET", "/healthz GET", "/readyz GET",
	}, route)
}

// compareLines names the lines in which two tables differ.
func compareLines(t *testing.T, want, got string) {
	t.Helper()
	had := map[string]bool{}
	for l := range strings.Lines(want) {
		had[l] = true
	}
	for l := range strings.Lines(got) {
		if !had[l] {
			t.Errorf("not in the table: %s", l)
		}
		delete(had, l)
	}
	for l := range had {
		t.Errorf("no longer so: %s", l)
	}
}
