package attack_test

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// TestAnOperatorNamesNoSecretOfOthers lets operators name secrets that they may not read, in all that they may save.
func TestAnOperatorNamesNoSecretOfOthers(t *testing.T) {
	a := victim(t)
	ctx, value := t.Context(), "attack-canary"
	for _, name := range []string{"other-teams-db-root", "cluster-prod"} {
		if _, err := a.API.SetSecret(ctx, name, wire.SecretInput{Value: &value}); err != nil {
			t.Fatal(err)
		}
	}
	a.ImportLive()
	for _, pool := range []string{"web", "db"} {
		if _, err := a.API.Pools.Create(ctx, wire.Pool{Pool: inventory.Pool{Name: pool, Selector: "pool=" + pool}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.API.Profiles.Create(ctx, inventory.Profile{Name: "shared", Image: "live"}); err != nil {
		t.Fatal(err)
	}
	web := as(a, "web-operator", inventory.Grant{Role: inventory.Operator, Pool: "web"})
	everywhere := as(a, "operator", inventory.Grant{Role: inventory.Operator})
	if _, err := web.Secrets.Get(ctx, "other-teams-db-root"); err == nil {
		t.Fatal("the operator may read the secret: this test attacks nothing")
	}
	for name, config := range map[string]string{
		"a field":               "files: [{path: /etc/x, secret: 'secret://other-teams-db-root'}]",
		"a template function":   "files: [{path: /etc/x, text: '{{ secret \"other-teams-db-root\" }}'}]",
		"a secret of a cluster": "files: [{path: /etc/x, secret: 'secret://cluster-prod'}]",
	} {
		if _, err := web.Machines.Create(ctx, inventory.Machine{Name: "web-1", Profile: "shared", Pool: "web", Config: config}); !isRefused(err) {
			t.Errorf("%s, in a machine: %v", name, err)
		}
		if _, err := everywhere.SetLayer(ctx, "global", config); !isRefused(err) {
			t.Errorf("%s, in a layer: %v", name, err)
		}
		if _, err := everywhere.Profiles.Create(ctx, inventory.Profile{Name: "mine", Image: "live", Config: config}); !isRefused(err) {
			t.Errorf("%s, in a profile: %v", name, err)
		}
		if _, err := everywhere.Profiles.Put(ctx, "shared", inventory.Profile{Name: "shared", Image: "live", Config: config}); !isRefused(err) {
			t.Errorf("%s, in a profile of others: %v", name, err)
		}
	}
	event(a, "reference.refused", "other-teams-db-root")
	event(a, "reference.refused", "cluster-prod")
	refused, err := a.API.Audit.List(ctx, client.Query{Outcome: "refused", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	named := false
	for _, e := range refused.Items {
		named = named || e.Actor == "token web-operator" && e.Noun == "machine" && strings.Contains(e.Detail, "other-teams-db-root")
	}
	if !named {
		t.Errorf("the audit does not name the operator: %+v", refused.Items)
	}

	// The neighbours: an admin's profile that names the secret, a machine of the operator without one, and one with its own.
	admins := inventory.Profile{Name: "database", Image: "live", Config: "files: [{path: /etc/x, secret: 'secret://other-teams-db-root'}]"}
	if _, err := a.API.Profiles.Create(ctx, admins); err != nil {
		t.Errorf("the admin's own profile is refused: %v", err)
	}
	own := wire.SecretInput{Value: &value, Consumers: &inventory.Consumers{Pools: []string{"web"}}}
	if _, err := a.API.SetSecret(ctx, "web-own", own); err != nil {
		t.Fatal(err)
	}
	config := "files: [{path: /etc/x, secret: 'secret://web-own'}]"
	if _, err := web.Machines.Create(ctx, inventory.Machine{Name: "web-1", Profile: "shared", Pool: "web", Config: config}); err != nil {
		t.Errorf("the operator's machine with the secret of its pool is refused: %v", err)
	}
}
