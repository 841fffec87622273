package access

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestOIDCSettings(t *testing.T) {
	good := OIDC{Issuer: "https://login.example.org/realms/x", ClientID: "slipway", ExternalURL: "https://slipway.example.org", Groups: map[string]inventory.Grants{"a": {{Role: inventory.Viewer}}}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*OIDC){
		"issuer without TLS":  func(o *OIDC) { o.Issuer = "http://login.example.org" },
		"issuer that is none": func(o *OIDC) { o.Issuer = "login.example.org" },
		"issuer of loopback":  func(o *OIDC) { o.Issuer = "http://127.0.0.1.example.org" },
		"no client":           func(o *OIDC) { o.ClientID = "" },
		"no external URL":     func(o *OIDC) { o.ExternalURL = "" },
		"external path":       func(o *OIDC) { o.ExternalURL += "/slipway" },
		"external http":       func(o *OIDC) { o.ExternalURL = "http://slipway.example.org" },
		"no group":            func(o *OIDC) { o.Groups = nil },
		"unknown role":        func(o *OIDC) { o.Groups = map[string]inventory.Grants{"a": {{Role: "root"}}} },
		"group without role":  func(o *OIDC) { o.Groups = map[string]inventory.Grants{"a": {}} },
		"CA that is none":     func(o *OIDC) { o.CA = []byte("x") },
	} {
		o := good
		edit(&o)
		if o.Validate() == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestGrantsOfGroups(t *testing.T) {
	o := OIDC{Groups: map[string]inventory.Grants{
		"a": {{Role: inventory.Viewer}, {Role: inventory.Operator, Pool: "x"}},
		"b": {{Role: inventory.Viewer, Pool: "x"}, {Role: inventory.Operator}},
	}}
	for groups, want := range map[string]string{
		"":    "",
		"c":   "",
		"a":   "viewer everywhere, operator in x",
		"a b": "operator everywhere, operator in x",
		"b a": "operator everywhere, operator in x",
	} {
		got := o.grantsOf(strings.Fields(groups))
		var parts []string
		for _, g := range got {
			where := "everywhere"
			if g.Pool != "" {
				where = "in " + g.Pool
			}
			parts = append(parts, string(g.Role)+" "+where)
		}
		if s := strings.Join(parts, ", "); s != want {
			t.Errorf("%q: %q, want %q", groups, s, want)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%q: %v", groups, err)
		}
	}
}

func TestClaims(t *testing.T) {
	const said = `{"preferred_username":"Ann","roles":["a",1,"b"],"one":"a","realm_access":{"roles":["r"]},"https://x.example/groups":["u"],"n":7}`
	for claim, want := range map[string]string{
		"roles": "a b", "one": "a", "realm_access.roles": "r", "https://x.example/groups": "u", "n": "", "none": "", "roles.a": "", "realm_access": "",
	} {
		var all map[string]any
		if err := json.Unmarshal([]byte(said), &all); err != nil {
			t.Fatal(err)
		}
		who, err := identityOf(OIDC{NameClaim: "preferred_username", GroupsClaim: claim}, "s", all)
		if got := strings.Join(who.groups, " "); err != nil || got != want || who.name != "ann" {
			t.Errorf("%s: %q %+v %v", claim, got, who, err)
		}
	}
	// Groups that are left out are not the same as none: roles would be missing without a word.
	many := make([]any, groupsMax+1)
	for what, said := range map[string]map[string]any{
		"at another place": {"preferred_username": "ann", "_claim_names": map[string]any{"groups": "src1"}},
		"too many":         {"preferred_username": "ann", "groups": many},
	} {
		if who, err := identityOf(OIDC{NameClaim: "preferred_username", GroupsClaim: "groups"}, "s", said); !inventory.IsKind(err, inventory.Forbidden) {
			t.Errorf("groups %s: %+v, %v", what, who, err)
		}
	}
	if _, err := identityOf(OIDC{NameClaim: "n"}, "s", map[string]any{"n": 7.0}); err == nil {
		t.Error("somebody without a name is taken")
	}
}

func FuzzUserName(f *testing.F) {
	for _, s := range []string{"anna", "Anna.Berg@example.org", "@", "-", strings.Repeat("a-", 200), "Änne", "a\x00b", "DOMAIN\\user"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if name := userName(s); name != "" {
			if err := inventory.CheckName("user", name); err != nil {
				t.Errorf("%q makes %v", s, err)
			}
		}
	})
}

func FuzzLanding(f *testing.F) {
	for _, s := range []string{"/", "/hosts?q=a b", "//evil.example", "/\\evil.example", "https://evil.example", "/a/../..//x", "/%2f/evil.example", "/api/v1/logins", "javascript:alert(1)", "/\t/evil", "\n/x", "/x\r\nSet-Cookie: a=b"} {
		f.Add(s)
	}
	base, _ := url.Parse("https://slipway.example/login")
	f.Fuzz(func(t *testing.T, s string) {
		to := landing(s)
		u, err := url.Parse(to)
		if err != nil || strings.ContainsAny(to, "\\\r\n\t") || strings.HasPrefix(to, "//") {
			t.Fatalf("%q lands on %q", s, to)
		}
		if at := base.ResolveReference(u); at.Host != "slipway.example" || at.Scheme != "https" {
			t.Errorf("%q lands on %s", s, at)
		}
	})
}
