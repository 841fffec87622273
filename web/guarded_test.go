package web

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// TestAStreamEndsWithItsToken: who may no longer come in hears no more, however long the connection is open already.
func TestAStreamEndsWithItsToken(t *testing.T) {
	r := newRig(t, func(c *Config) { c.HeartbeatFor = 5 * time.Millisecond })
	r.seed()
	base, _ := r.serve()
	for _, c := range []struct{ name, method, path, body string }{
		{"gone", "DELETE", "/api/v1/tokens/gone", ""},
		{"less", "PUT", "/api/v1/users/ben", `{"grants":[{"role":"viewer","pool":"default"}]}`},
	} {
		var who []string
		if c.name == "less" {
			r.user("ben", inventory.Grant{Role: inventory.Viewer})
			secret := access.NewSecret()
			if err := r.store.Write(t.Context(), func(tx inventory.Tx) error {
				return tx.CreateToken(&inventory.Token{Name: c.name, User: "ben", Hash: access.HashToken(secret), Grants: inventory.AdminEverywhere()}, testStart)
			}); err != nil {
				t.Fatal(err)
			}
			who = []string{"", "Bearer " + secret}
		} else {
			who = r.as(c.name, inventory.Grant{Role: inventory.Viewer})
		}
		s := r.streamOf(base, strings.TrimPrefix(who[1], "Bearer "), "?after=0")
		for alive := false; !alive; {
			line, err := s.ReadString('\n')
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			alive = strings.HasPrefix(line, ": alive")
		}
		if a := r.ask(c.method, c.path, c.body); a.status >= 300 {
			t.Fatalf("%s: %d %s", c.name, a.status, a.body)
		}
		ended := false
		for n := 0; n < 2000 && !ended; n++ {
			_, err := s.ReadString('\n')
			ended = err != nil
		}
		if !ended {
			t.Errorf("%s: the stream goes on", c.name)
		}
	}
}

// TestWhoOnlyLooksSharesNoView: a view that all share is everybody's; one's own is nobody else's business.
func TestWhoOnlyLooksSharesNoView(t *testing.T) {
	r := newRig(t, nil)
	r.user("vera", inventory.Grant{Role: inventory.Viewer})
	vera := r.in("vera")
	r.must(200, nil, "PUT", "/api/v1/views/failing", `{"name":"failing","isShared":true,"query":"state=failed"}`)
	for _, c := range []struct {
		who          []string
		method, path string
		body         string
		want         int
	}{
		{vera, "PUT", "/views/failing", `{"name":"failing","isShared":true,"query":"x"}`, 403},
		{vera, "DELETE", "/views/failing?shared=true", "", 403},
		{vera, "PUT", "/views/failing", `{"name":"failing","isShared":false,"query":"x"}`, 200},
		{r.as("looks", inventory.Grant{Role: inventory.Viewer}), "PUT", "/views/mine", `{"name":"mine","isShared":false,"query":"x"}`, 403}, // a token of nobody has none of its own
		{r.as("works", inventory.Grant{Role: inventory.Operator}), "PUT", "/views/failing", `{"name":"failing","isShared":true,"query":"y"}`, 200},
	} {
		if a := r.via(c.who, c.method, "/api/v1"+c.path, c.body); a.status != c.want {
			t.Errorf("%s %s %s: %d, want %d: %s", c.method, c.path, c.body, a.status, c.want, a.body)
		}
	}
}

// TestOnesOwnTokensOnly: whoever is no admin sees and ends no token of another.
func TestOnesOwnTokensOnly(t *testing.T) {
	r := newRig(t, nil)
	r.user("vera", inventory.Grant{Role: inventory.Operator})
	vera := r.in("vera")
	r.as("of-nobody", inventory.Grant{Role: inventory.Admin})
	r.mustAs(vera, 201, "POST", "/api/v1/tokens", `{"name":"of-vera"}`)
	if a := r.via(vera, "GET", "/api/v1/tokens", ""); a.status != 200 || !strings.Contains(a.body, "of-vera") || strings.Contains(a.body, "of-nobody") {
		t.Errorf("she sees %d %s", a.status, a.body)
	}
	r.mustAs(vera, 404, "DELETE", "/api/v1/tokens/of-nobody", "")
	r.mustAs(vera, 204, "DELETE", "/api/v1/tokens/of-vera", "")
}

// TestAViewOfPoolsIsTheirs: what a shared view is called and looks for tells of its pools.
func TestAViewOfPoolsIsTheirs(t *testing.T) {
	r := newRig(t, nil)
	r.must(201, nil, "POST", "/api/v1/pools", `{"name":"alpha","selector":"label:team=alpha"}`)
	r.must(201, nil, "POST", "/api/v1/pools", `{"name":"beta","selector":"label:team=beta"}`)
	alpha := r.as("alpha", inventory.Grant{Role: inventory.Operator, Pool: "alpha"}, inventory.Grant{Role: inventory.Viewer, Pool: "beta"})
	beta := r.as("beta", inventory.Grant{Role: inventory.Operator, Pool: "beta"})
	all := r.as("all", inventory.Grant{Role: inventory.Operator})
	looks := r.as("looks", inventory.Grant{Role: inventory.Viewer})
	other := r.as("other", inventory.Grant{Role: inventory.Admin, Pool: "gamma"})
	r.user("alma", inventory.Grant{Role: inventory.Operator})
	put := func(name, more string) string { return `{"name":"` + name + `","isShared":true` + more + `}` }
	for _, c := range []struct {
		why          string
		who          []string
		method, path string
		body         string
		want         int
	}{
		{"of one's own pools", alpha, "PUT", "/views/mine", put("mine", `,"query":"name=alpha-1"`), 200},
		{"of all", all, "PUT", "/views/ours", put("ours", ""), 200},
		{"of both, by one who may in one", alpha, "PUT", "/views/both", put("both", `,"pools":["alpha","beta"]`), 403},
		{"of both", all, "PUT", "/views/both", put("both", `,"pools":["beta","alpha","beta"]`), 200},
		{"of all, changed by one of a pool", alpha, "PUT", "/views/ours", put("ours", `,"query":"x"`), 403},
		{"of all, deleted by one of a pool", alpha, "DELETE", "/views/ours", "", 403},
		{"of both, taken for oneself", alpha, "PUT", "/views/both", put("both", ""), 403},
		{"of both, deleted by one of a pool", beta, "DELETE", "/views/both", "", 403},
		{"a name that another pool has", beta, "PUT", "/views/mine", put("mine", ""), 409},
		{"a view of another pool", beta, "GET", "/views/mine", "", 404},
		{"a view of another pool deleted", beta, "DELETE", "/views/mine", "", 404},
		{"who looks everywhere", looks, "GET", "/views/mine", "", 200},
		{"who looks everywhere changes none", looks, "PUT", "/views/mine", put("mine", `,"query":"x"`), 403},
		{"a view of the pool", alpha, "GET", "/views/mine", "", 200},
		{"one's own names no pools", r.in("alma"), "PUT", "/views/hers", `{"name":"hers","isShared":false,"pools":["alpha"]}`, 422},
		{"no name of a pool", all, "PUT", "/views/bad", put("bad", `,"pools":["No Pool"]`), 422},
	} {
		if a := r.via(c.who, c.method, "/api/v1"+c.path, c.body); a.status != c.want {
			t.Errorf("%s: %d, want %d: %s", c.why, a.status, c.want, a.body)
		}
	}
	for _, c := range []struct{ why, pools, want string }{
		{"no pools named", "", "alpha beta"},
		{"others named", `,"pools":["alpha"]`, "alpha"},
		{"none named again", "", "alpha"},
		{"all named", `,"pools":[]`, ""},
		{"two named", `,"pools":["alpha","beta"]`, "alpha beta"},
	} {
		var v wire.KeptView
		if r.must(200, &v, "PUT", "/api/v1/views/both", put("both", c.pools+`,"query":"`+c.why+`"`)); strings.Join(v.Pools, " ") != c.want {
			t.Errorf("%s: it is of pools %q, want %q", c.why, v.Pools, c.want)
		}
	}
	for _, c := range []struct {
		name string
		who  []string
		want string
	}{{"alpha", alpha, "both mine ours"}, {"beta", beta, "both ours"}, {"other", other, "ours"}, {"looks", looks, "both mine ours"}, {"all", all, "both mine ours"}} {
		var list rest.List[wire.KeptView]
		if err := json.Unmarshal([]byte(r.via(c.who, "GET", "/api/v1/views", "").body), &list); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, v := range list.Items {
			names = append(names, v.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s sees %q, want %q", c.name, got, c.want)
		}
	}
	var both wire.KeptView
	r.must(200, &both, "GET", "/api/v1/views/both", "")
	if got := strings.Join(both.Pools, " "); got != "alpha beta" {
		t.Errorf("pools of both: %q", got)
	}
}
