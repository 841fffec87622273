package web

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

// Names other than secret://NAME that would be resolved with the server's rights.
func TestAnOperatorNamesNoTargetOwnerOrPoolOfOthers(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(200, nil, "PUT", "/api/v1/secrets/admin", `{"value":"`+canary+`"}`)
	r.must(201, nil, "POST", "/api/v1/targets", `{"name":"prod","endpoint":"k:6443","kubeconfig":"admin"}`)
	r.must(201, nil, "POST", "/api/v1/pools", `{"name":"web","selector":"pool=web"}`)
	r.must(201, nil, "POST", "/api/v1/pools", `{"name":"db","selector":"pool=db"}`)
	r.must(200, nil, "PATCH", "/api/v1/hosts/r1-u01", `{"labels":{"pool":"web"}}`)
	r.must(200, nil, "POST", "/api/v1/hosts/r2-u01/adopt", `{"on":true}`)
	everywhere := r.as("op", inventory.Grant{Role: inventory.Operator})
	web := r.as("web-op", inventory.Grant{Role: inventory.Operator, Pool: "web"})
	for name, c := range map[string]struct {
		who                []string
		method, path, body string
		why                string
	}{
		"the target that a node is emptied in": {everywhere, "POST", "/api/v1/machines", `{"name":"m-1","profile":"worker","drain":{"target":"prod","node":"n"}}`, "prod"},
		"a target to join":                     {everywhere, "POST", "/api/v1/machines", `{"name":"m-2","profile":"worker","config":"bootstrap: {kind: kubeadm, target: prod}"}`, "prod"},
		"a control plane of a target":          {everywhere, "POST", "/api/v1/machines", `{"name":"m-3","profile":"worker","config":"bootstrap: {kind: kubeadm, target: prod, role: control-plane}"}`, "prod"},
		"an owner":                             {everywhere, "POST", "/api/v1/machines", `{"name":"m-4","profile":"worker","owner":"cluster-b/uid"}`, "owner"},
		"an owner of what runs already":        {everywhere, "POST", "/api/v1/machines/adopt", `{"name":"m-5","profile":"worker","host":"r2-u01","owner":"cluster-b/uid"}`, "owner"},
		"a pool by a label":                    {web, "PATCH", "/api/v1/hosts/r1-u01", `{"labels":{"pool":"db"}}`, "another pool"},
	} {
		t.Run(name, func(t *testing.T) {
			a := r.via(c.who, c.method, c.path, c.body)
			if a.status != 403 && a.status != 422 || !strings.Contains(a.body, c.why) {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	// An admin may, so what refuses them is who they are.
	r.must(201, nil, "POST", "/api/v1/machines", `{"name":"m-1","profile":"worker","drain":{"target":"prod","node":"n"}}`)
	if a := r.via(web, "PATCH", "/api/v1/hosts/r1-u01", `{"labels":{"rack":"r9"}}`); a.status != 200 {
		t.Errorf("a label that changes no pool: %d %s", a.status, a.body)
	}
}

func TestWhatUsesASecretCountsMachinesAndLayers(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(200, nil, "PUT", "/api/v1/secrets/db-root", `{"value":"`+canary+`"}`)
	r.must(200, nil, "PUT", "/api/v1/secrets/db-root-2", `{"value":"`+canary+`"}`)
	const config = `"config":"files: [{path: /etc/x, secret: 'secret://db-root'}]"`
	r.must(201, nil, "POST", "/api/v1/profiles", `{"name":"database","image":"debian",`+config+`}`)
	r.must(201, nil, "POST", "/api/v1/machines", `{"name":"db-1","profile":"worker",`+config+`}`)
	r.must(200, nil, "PUT", "/api/v1/layers/global", `{`+config+`}`)
	a := r.ask("GET", "/api/v1/secrets/db-root/uses", "")
	for _, user := range []string{"profile database", "machine db-1", "layer global"} {
		if !strings.Contains(a.body, user) {
			t.Errorf("%s is missing: %s", user, a.body)
		}
	}
	if a := r.ask("GET", "/api/v1/secrets/db-root-2/uses", ""); strings.Contains(a.body, "db-1") {
		t.Errorf("a name that begins like it: %s", a.body)
	}
}
