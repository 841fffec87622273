package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/hosts"
	"slipway.dev/slipway/web/wire"
)

// secretsOf are words that only who may see a team's things may read.
func secretsOf(team string) []string {
	mac := map[string]string{"alpha": "52:54:00:a1", "beta": "52:54:00:b2"}[team]
	return []string{team + "-1", team + "-m", mac, strings.ReplaceAll(mac, ":", ""), team + "-session", team + "-lease", team + " is ill", team + "-rack", team + "-layer", team + "-view"}
}

// TestNoReadTellsOfAnotherPool reads every route as somebody with a role in one pool, by the names of the other pool too,
// and looks for words of the other.
func TestNoReadTellsOfAnotherPool(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	r.must(200, nil, "PUT", "/api/v1/hosts/beta-1", `{"name":"beta-1","labels":{"team":"beta"},"nics":[{"mac":"52:54:00:b2:00:01"}]}`) // an event more
	for _, role := range inventory.Roles() {
		who := r.as("only-"+string(role), inventory.Grant{Role: role, Pool: "alpha"})
		seen := ""
		for _, route := range r.routes() {
			path, method, _ := strings.Cut(route, " ")
			if method != http.MethodGet || strings.Contains(path, "console") {
				continue
			}
			for _, team := range []string{"alpha", "beta"} {
				asked := r.address(route, team)
				a := r.via(who, method, asked, "")
				body := strings.ReplaceAll(a.body, asked[strings.LastIndex(asked, "/")+1:], "") // a refusal repeats what was asked
				if a.status < 400 {
					seen += a.body
					body = a.body
				} else {
					body = strings.NewReplacer("beta-1", "", "beta-m", "", "beta-session", "", "beta-view", "").Replace(body)
				}
				for _, word := range secretsOf("beta") {
					if strings.Contains(body, word) {
						t.Errorf("%s in pool alpha: GET %s (%d) tells %q: %.300s", role, asked, a.status, word, body)
					}
				}
			}
		}
		for _, word := range []string{"alpha-1", "alpha-m", "52:54:00:a1:00:01", "alpha-session", "alpha-lease", "alpha is ill", "alpha-view"} {
			if !strings.Contains(seen, word) {
				t.Errorf("%s in pool alpha does not see %q of its own", role, word)
			}
		}
	}
}

func TestAStreamTellsNothingOfAnotherPool(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	base, _ := r.serve()
	who := r.as("looker", inventory.Grant{Role: inventory.Viewer, Pool: "alpha"})
	s := r.streamOf(base, strings.TrimPrefix(who[1], "Bearer "), "?after=0")
	r.must(200, nil, "POST", "/api/v1/hosts/beta-1/maintain", `{"on":true}`)
	r.must(200, nil, "PATCH", "/api/v1/machines/beta-m", `{"hostname":"beta-name"}`)
	r.must(200, nil, "POST", "/api/v1/hosts/alpha-1/maintain", `{"on":true}`)
	heard := ""
	for !strings.Contains(heard, "maintenance") && !strings.Contains(heard, "maintain") {
		line, err := s.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %s", err, heard)
		}
		heard += line
	}
	for _, word := range append(secretsOf("beta"), "beta-name") {
		if strings.Contains(heard, word) {
			t.Errorf("the stream tells %q", word)
		}
	}
	if !strings.Contains(heard, "alpha-1") {
		t.Errorf("the stream is silent about its own: %s", heard)
	}
}

// TestAPoolsOperatorActsInThePool tries ways out of it.
func TestAPoolsOperatorActsInThePool(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	who := r.as("op", inventory.Grant{Role: inventory.Operator, Pool: "alpha"}, inventory.Grant{Role: inventory.Viewer, Pool: "beta"})
	for _, tc := range []struct {
		name, method, path, body string
		want                     int
	}{
		{"a verb in the pool", "POST", "/api/v1/hosts/alpha-1/maintain", `{"on":false}`, 200},
		{"a verb where one looks only", "POST", "/api/v1/hosts/beta-1/maintain", `{"on":false}`, 403},
		{"looking there", "GET", "/api/v1/hosts/beta-1", "", 200},
		{"a label that leaves the pool", "PATCH", "/api/v1/hosts/alpha-1", `{"labels":{"team":"beta"}}`, 403},
		{"a label that stays", "PATCH", "/api/v1/hosts/alpha-1", `{"labels":{"colour":"red"}}`, 200},
		{"a host outside", "POST", "/api/v1/hosts", `{"name":"n","nics":[{"mac":"52:54:00:00:00:99"}]}`, 403},
		{"a machine in another pool", "POST", "/api/v1/machines", `{"name":"n","profile":"worker","pool":"beta"}`, 403},
		{"a machine in no pool", "POST", "/api/v1/machines", `{"name":"n","profile":"worker"}`, 403},
		{"a machine on a host of another pool", "POST", "/api/v1/machines", `{"name":"n","profile":"worker","pool":"alpha","placement":{"host":"beta-1"}}`, 403},
		{"a machine of an owner", "POST", "/api/v1/machines", `{"name":"n","profile":"worker","pool":"alpha","owner":"x"}`, 403},
		{"a machine moved to another pool", "PATCH", "/api/v1/machines/alpha-m", `{"pool":"beta"}`, 403},
		{"a machine pinned to a host of another pool", "PATCH", "/api/v1/machines/alpha-m", `{"placement":{"host":"beta-1"}}`, 403},
		{"a machine of another pool retried", "POST", "/api/v1/machines/beta-m/retry", `{}`, 403},
		{"a machine of another pool ended", "DELETE", "/api/v1/machines/beta-m", "", 403},
		{"a machine in the pool", "POST", "/api/v1/machines", `{"name":"n","profile":"worker","pool":"alpha"}`, 201},
		{"a profile, which all share", "POST", "/api/v1/profiles", `{"name":"p","image":"debian"}`, 403},
		{"reading one", "GET", "/api/v1/profiles/worker", "", 200},
		{"a controller's password, for admins", "PUT", "/api/v1/hosts/alpha-1/bmc", `{"driver":"fake","system":"alpha-bmc"}`, 403},
	} {
		if a := r.via(who, tc.method, tc.path, tc.body); a.status != tc.want {
			t.Errorf("%s: %d, want %d: %s", tc.name, a.status, tc.want, a.body)
		}
	}
	a := r.via(who, "POST", "/api/v1/hosts/beta-1/maintain", `{"on":false}`)
	if p := a.problem(t); p.Kind != inventory.Forbidden || !strings.Contains(p.Detail, "needs role operator") || !strings.Contains(p.Detail, "you are viewer") || !strings.Contains(p.Hint, "slipway user grant") {
		t.Errorf("the refusal: %+v", p)
	}
	var accepted wire.BulkResult
	if err := json.Unmarshal([]byte(r.via(who, "POST", "/api/v1/hosts/bulk", `{"verb":"accept","selector":"state=discovered"}`).body), &accepted); err != nil || accepted.ActsN != 0 {
		t.Errorf("accepted %v, %v", accepted, err)
	}
}

// TestARoleIsThatInTheHostsPool: what the server says of a role on a host is what it does.
func TestARoleIsThatInTheHostsPool(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	in := func(role inventory.UserRole, pool string) inventory.Grant {
		return inventory.Grant{Role: role, Pool: pool}
	}
	for name, c := range map[string]struct {
		grants      []inventory.Grant
		alpha, beta string
	}{
		"of one":              {[]inventory.Grant{in("operator", "alpha")}, "operator", ""},
		"looks everywhere":    {[]inventory.Grant{in("viewer", ""), in("operator", "alpha")}, "operator", "viewer"},
		"of both":             {[]inventory.Grant{in("viewer", "alpha"), in("admin", "beta")}, "viewer", "admin"},
		"everywhere":          {[]inventory.Grant{in("operator", "")}, "operator", "operator"},
		"more in one":         {[]inventory.Grant{in("operator", ""), in("admin", "beta")}, "operator", "admin"},
		"admin of all":        {[]inventory.Grant{in("admin", "")}, "admin", "admin"},
		"of one that is gone": {[]inventory.Grant{in("viewer", ""), in("admin", "gamma")}, "viewer", "viewer"},
	} {
		who := r.as(strings.ReplaceAll(name, " ", "-"), c.grants...)
		for host, want := range map[string]string{"alpha-1": c.alpha, "beta-1": c.beta} {
			var has hosts.HostRole
			a := r.via(who, "GET", "/api/v1/hosts/"+host+"/role", "")
			_ = json.Unmarshal([]byte(a.body), &has)
			if string(has.Role) != want || (a.status == http.StatusOK) != (want != "") {
				t.Errorf("%s on %s: %d %q, want %q", name, host, a.status, has.Role, want)
			}
			may := r.via(who, "POST", "/api/v1/hosts/"+host+"/cordon", `{"on":true}`).status < 400
			if may != has.Role.Allows(inventory.Operator) {
				t.Errorf("%s on %s: acts %v, and is told %q", name, host, may, has.Role)
			}
		}
	}
}

// TestAPoolIsWhatItsHostsAreNow: what is remembered of a host that met requirements ends with the next inspection, with a change of
// the host, and with one of the pool.
func TestAPoolIsWhatItsHostsAreNow(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	who := r.as("gamma", inventory.Grant{Role: inventory.Viewer, Pool: "gamma"})
	var h inventory.Host
	r.must(200, &h, "GET", "/api/v1/hosts/alpha-1", "")
	inspected := func(memory int64) func() {
		return func() {
			err := r.store.Write(t.Context(), func(tx inventory.Tx) error {
				return tx.SaveInspection(&inventory.Inspection{HostID: h.ID, At: testStart, Hardware: inventory.Hardware{MemoryBytes: memory}})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	ask := func(method, path, body string, want int) func() {
		return func() { r.must(want, nil, method, "/api/v1"+path, body) }
	}
	const wants = `"requirements":{"memoryBytes":100}`
	for _, c := range []struct {
		what string
		do   func()
		want int
	}{
		{"a host that was inspected without memory", ask("POST", "/pools", `{"name":"gamma",`+wants+`}`, 201), 404},
		{"inspected with enough", inspected(200), 200},
		{"inspected with less", inspected(50), 404},
		{"a pool that wants less", ask("PUT", "/pools/gamma", `{"requirements":{"memoryBytes":40}}`, 200), 200},
		{"a pool that wants a label", ask("PUT", "/pools/gamma", `{"requirements":{"expression":"'rank' in host.labels"}}`, 200), 404},
		{"with that label", ask("PATCH", "/hosts/alpha-1", `{"labels":{"rank":"1"}}`, 200), 200},
		{"a dry run that takes it away", ask("PATCH", "/hosts/alpha-1?dryRun=true", `{"labels":{"rank":null}}`, 200), 200},
		{"without it", ask("PATCH", "/hosts/alpha-1", `{"labels":{"rank":null}}`, 200), 404},
		{"a pool that is gone", ask("DELETE", "/pools/gamma", "", 204), 404},
		{"and made again", ask("POST", "/pools", `{"name":"gamma","requirements":{"memoryBytes":40}}`, 201), 200},
	} {
		c.do()
		for range 2 { // the second time it is remembered
			if a := r.via(who, "GET", "/api/v1/hosts/alpha-1", ""); a.status != c.want {
				t.Errorf("%s: %d, want %d: %s", c.what, a.status, c.want, a.body)
			}
		}
	}
}
