package web

import (
	"strings"
	"testing"

	"slipway.dev/slipway/web/rest"
)

func TestADeletionSaysBeforeWhatItDoes(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	r.must(201, nil, "POST", "/api/v1/users", `{"name":"eve","grants":[{"role":"viewer"}]}`)
	r.must(201, nil, "POST", "/api/v1/tokens", `{"name":"ci","user":"eve","grants":[{"role":"viewer"}]}`)
	r.must(200, nil, "PUT", "/api/v1/secrets/db", `{"value":"x"}`)
	r.must(201, nil, "POST", "/api/v1/pools", `{"name":"gamma","selector":"label:team=alpha"}`)
	for _, tc := range []struct{ path, says string }{
		{"/subnets/rack1", "nobody in subnet rack1 gets an address or a boot from this server any more; 2 reservations and 2 leases are lost"},
		{"/reservations/10.0.0.10", "10.0.0.10 is not reserved any more"},
		{"/leases/10.0.0.20", "10.0.0.20 is free for the next machine that asks"},
		{"/pools/gamma", "pool gamma is deleted, with its budgets and its wipe mode; nothing changes on 1 host in it"},
		{"/secrets/db", "the value of db is lost, and nobody can undo that"},
		{"/users/eve", "user eve cannot log in any more; 1 token and no login end at once"},
		{"/tokens/ci", "Slipway refuses every program that uses token ci from now on"},
		{"/hosts/alpha-1/bmc", "Slipway deletes the controller of host alpha-1"},
		{"/machines/alpha-m", "machine alpha-m is deleted; it has no host, so Slipway switches nothing off and wipes nothing"},
	} {
		var d rest.Diff
		r.must(200, &d, "DELETE", "/api/v1"+tc.path+"?dryRun=true", "")
		if !strings.HasPrefix(d.Does, tc.says) || strings.HasSuffix(d.Does, ".") {
			t.Errorf("%s says %q", tc.path, d.Does)
		}
		r.must(200, nil, "GET", "/api/v1"+tc.path, "")
	}
	var d rest.Diff
	r.must(200, &d, "PUT", "/api/v1/users/eve?dryRun=true", `{"grants":[{"role":"viewer"}],"isDisabled":true}`)
	if !strings.Contains(d.Does, "no login and 1 token stop working until somebody enables the user again") {
		t.Errorf("disabling says %q", d.Does)
	}
	r.must(200, &d, "PUT", "/api/v1/users/eve?dryRun=true", `{"grants":[{"role":"operator"}]}`)
}
