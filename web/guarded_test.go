package web

import (
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
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
			secret := NewSecret()
			if err := r.store.Write(t.Context(), func(tx inventory.Tx) error {
				return tx.CreateToken(&inventory.Token{Name: c.name, User: "ben", Hash: HashToken(secret), Grants: inventory.AdminEverywhere()}, testStart)
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
