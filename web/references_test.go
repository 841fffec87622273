package web

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestAnOperatorNamesNoSecretOfAnother(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(200, nil, "PUT", "/api/v1/secrets/db-root", `{"value":"`+canary+`","consumers":{"pools":["db"]}}`)
	r.must(200, nil, "PUT", "/api/v1/secrets/plain", `{"value":"`+canary+`"}`)
	r.must(200, nil, "PUT", "/api/v1/secrets/cluster-lab", `{"value":"`+canary+`"}`)
	operator := r.as("op", inventory.Grant{Role: inventory.Operator})
	const layer = "/api/v1/layers/global"
	for name, config := range map[string]string{
		"a field":    `files: [{path: /etc/x, secret: 'secret://plain'}]`,
		"a template": `files: [{path: /etc/x, text: '{{ if false }}{{ secret \"plain\" }}{{ end }}'}]`,
		"a cluster":  `files: [{path: /etc/x, secret: 'secret://cluster-lab'}]`,
	} {
		a := r.via(operator, "PUT", layer, `{"config":"`+config+`"}`)
		if a.status != 403 && a.status != 422 || !strings.Contains(a.body, "may name") {
			t.Errorf("%s in a layer: %d %s", name, a.status, a.body)
		}
		a = r.via(operator, "PUT", "/api/v1/profiles/mine", `{"image":"debian","config":"`+config+`"}`)
		if a.status != 403 && a.status != 422 || !strings.Contains(a.body, "may name") {
			t.Errorf("%s in a profile: %d %s", name, a.status, a.body)
		}
	}
	events := r.ask("GET", "/api/v1/events?limit=1000", "")
	if !strings.Contains(events.body, inventory.EventReferenceRefused) {
		t.Error("no event of the refusal")
	}
	// Nothing that the body says makes it an admin's.
	a := r.via(operator, "PUT", layer, `{"config":"files: [{path: /etc/x, secret: 'secret://plain'}]","savedByAdmin":true,"savedBy":"user root"}`)
	if a.status < 400 {
		t.Errorf("a body that says who saved it: %d %s", a.status, a.body)
	}
	// An admin's may name it, but no secret of the system.
	if a := r.ask("PUT", layer, `{"config":"files: [{path: /etc/x, secret: 'secret://cluster-lab'}]"}`); a.status < 400 || !strings.Contains(a.body, "no configuration may name it") {
		t.Errorf("an admin names a kubeconfig: %d %s", a.status, a.body)
	}
	r.must(200, nil, "PUT", layer, `{"config":"files: [{path: /etc/x, secret: 'secret://plain'}]"}`)
	// What an operator changes of it then is the operator's word.
	a = r.via(operator, "PUT", layer, `{"config":"files: [{path: /etc/x, mode: '0644', secret: 'secret://plain'}]"}`)
	if a.status < 400 {
		t.Errorf("an operator changes an admin's: %d %s", a.status, a.body)
	}
	if a := r.ask("GET", "/api/v1/secrets/db-root", ""); !strings.Contains(a.body, `"consumers":{"pools":["db"]}`) {
		t.Errorf("secret %s", a.body)
	}
}
