package web

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/hosts"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

func TestBulkActsOnEachHostAlone(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(200, nil, "POST", "/api/v1/hosts/r1-u01/protect", `{"on":true}`)
	const body = `{"verb":"protect","on":true,"hosts":["r1-u01","r2-u01","nobody","r2-u01"]}`
	var out wire.BulkResult
	for _, dry := range []string{"?dryRun=true", ""} {
		r.must(200, &out, "POST", "/api/v1/hosts/bulk"+dry, body)
		if out.ActsN != 1 || out.SkipsN != 2 || !out.Items[1].Acts || !strings.Contains(out.Items[0].Reason, "already") || !strings.Contains(out.Items[2].Reason, "nobody") {
			t.Errorf("%q: %+v", dry, out)
		}
		var h inventory.Host
		r.must(200, &h, "GET", "/api/v1/hosts/r2-u01", "")
		if h.IsProtected != (dry == "") {
			t.Errorf("%q: protected is %t", dry, h.IsProtected)
		}
	}
	r.must(200, &out, "POST", "/api/v1/hosts/bulk", `{"verb":"delete","selector":"rack=r1"}`)
	if out.ActsN != 0 || len(out.Items) == 0 || !strings.Contains(out.Items[0].Reason, "protected") {
		t.Errorf("delete: %+v", out)
	}
	r.must(200, &out, "POST", "/api/v1/hosts/bulk?dryRun=true", `{"verb":"set","hosts":["r2-u01"],"set":{"labels":{"tier":"web"}}}`)
	if out.ActsN != 1 {
		t.Errorf("set: %+v", out)
	}
	for _, wrong := range []string{
		`{"verb":"accept"}`, `{"verb":"accept","hosts":["a"],"selector":"rack=r1"}`, `{"verb":"power","hosts":["a"]}`, `{"verb":"protect","hosts":["a"]}`,
		`{"verb":"set","hosts":["a"]}`, `{"verb":"set","hosts":["a"],"set":{"name":"b"}}`, `{"verb":"dance","hosts":["a"]}`,
	} {
		r.must(422, nil, "POST", "/api/v1/hosts/bulk", wrong)
	}
}

func TestBulkLightsTheLEDsOfHostsThatHaveOne(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(200, nil, "PUT", "/api/v1/hosts/r1-u01/bmc", `{"driver":"fake","system":"a"}`)
	for _, dry := range []string{"?dryRun=true", ""} {
		var out wire.BulkResult
		r.must(200, &out, "POST", "/api/v1/hosts/bulk"+dry, `{"verb":"locate","on":true,"hosts":["r1-u01","r2-u01"]}`)
		if out.ActsN != 1 || out.SkipsN != 1 || !out.Items[0].Acts || out.Items[1].Reason == "" {
			t.Errorf("%q: %+v", dry, out)
		}
	}
	r.must(422, nil, "POST", "/api/v1/hosts/bulk", `{"verb":"locate","hosts":["r1-u01"]}`)
}

func TestABusyHostIsForgottenByForceOnly(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	var h inventory.Host
	r.must(200, &h, "GET", "/api/v1/hosts/r2-u01", "")
	err := r.store.Write(t.Context(), func(tx inventory.Tx) error {
		return tx.CreateOperation(&inventory.Operation{ID: "op-1", HostID: h.ID, Kind: inventory.OpPower, State: inventory.OpRunning}, testStart)
	})
	if err != nil {
		t.Fatal(err)
	}
	if p := r.ask("DELETE", "/api/v1/hosts/r2-u01", "").problem(t); p.Status != 409 || !strings.Contains(p.Hint, "--force") {
		t.Errorf("without force: %+v", p)
	}
	if p := r.ask("DELETE", "/api/v1/hosts/r2-u01?dryRun=true", "").problem(t); p.Status != 409 {
		t.Errorf("without force, tried: %+v", p)
	}
	r.must(200, nil, "DELETE", "/api/v1/hosts/r2-u01?force=true&dryRun=true", "")
	r.must(200, nil, "GET", "/api/v1/hosts/r2-u01", "")
	r.must(204, nil, "DELETE", "/api/v1/hosts/r2-u01?force=true", "")
	r.must(404, nil, "GET", "/api/v1/hosts/r2-u01", "")
	r.must(200, nil, "POST", "/api/v1/hosts/r1-u01/protect", `{"on":true}`)
	r.must(403, nil, "DELETE", "/api/v1/hosts/r1-u01?force=true", "")
}

func TestHostRowsAreReadWholeAndByID(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	var all, some rest.List[hosts.HostRow]
	r.must(200, &all, "GET", "/api/v1/hostrows", "")
	if len(all.Items) < 2 || all.Items[0].Name == "" || len(all.Items[0].MACs) == 0 {
		t.Fatalf("rows: %+v", all)
	}
	r.must(200, &some, "GET", "/api/v1/hostrows?ids=gone,"+string(all.Items[1].ID), "")
	if len(some.Items) != 1 || some.Items[0].Name != all.Items[1].Name {
		t.Errorf("by id: %+v", some)
	}
	r.must(422, nil, "GET", "/api/v1/hostrows?ids="+strings.Repeat("a,", 200)+"a", "")
}

func TestAViewIsKept(t *testing.T) {
	r := newRig(t, nil)
	const path = "/api/v1/views/Rack%203"
	var v wire.KeptView
	r.must(200, &v, "PUT", path, `{"isShared":true,"query":"rack=R3","columns":["name"]}`)
	if v.Name != "Rack 3" || !v.IsShared || v.Version != 1 {
		t.Errorf("stored: %+v", v)
	}
	r.must(412, nil, "PUT", path, `{"isShared":true,"query":"x"}`, "If-Match", `"9"`)
	r.must(422, nil, "PUT", path, `{"isShared":true,"query":"`+strings.Repeat("x", 1001)+`"}`)
	var all rest.List[wire.KeptView]
	r.must(200, &all, "GET", "/api/v1/views", "")
	if len(all.Items) != 1 || all.Items[0].Query != "rack=R3" {
		t.Errorf("listed: %+v", all)
	}
	r.must(204, nil, "DELETE", path, "")
	r.must(404, nil, "GET", path, "")
}
