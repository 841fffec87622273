package web

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/boot"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

func TestAHostIsFoundByNameIDAndMAC(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	var h inventory.Host
	r.must(200, &h, "GET", "/api/v1/hosts/r1-u01", "")
	for _, ref := range []string{string(h.ID), "52:54:00:aa:00:01", "52-54-00-AA-00-01", "525400aa0001"} {
		var again inventory.Host
		r.must(200, &again, "GET", "/api/v1/hosts/"+ref, "")
		if again.ID != h.ID {
			t.Errorf("%s is host %s, want %s", ref, again.Name, h.Name)
		}
	}
	if h.State != inventory.Available || h.NICs[0].MAC != "52:54:00:aa:00:01" || h.NICs[0].Vendor != "QEMU" {
		t.Errorf("host as stored: %+v", h)
	}
}

func TestAPatchChangesWhatItNamesAndNothingElse(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	var h inventory.Host
	r.must(200, &h, "PATCH", "/api/v1/hosts/r1-u01", `{"labels":{"env":"prod","role":null},"place":{"unit":7},"profile":"worker","isAdopted":true}`)
	want := map[string]any{"labels.env": "prod", "place.unit": json.Number("7"), "place.rack": "r1", "profile": "worker", "isAdopted": true, "name": "r1-u01"}
	got := rest.Fields(h)
	for k, v := range want {
		if !cmp.Equal(got[k], v) {
			t.Errorf("%s is %v, want %v", k, got[k], v)
		}
	}
	if _, ok := h.Labels["role"]; ok {
		t.Error("label role is still there")
	}
	h = inventory.Host{}
	r.must(200, &h, "PATCH", "/api/v1/hosts/r1-u01", `{"macs":["52:54:00:aa:00:01","52:54:00:aa:00:11"],"profile":""}`)
	if len(h.NICs) != 2 || h.Profile != "" {
		t.Errorf("after adding a MAC and unpinning: %+v", h)
	}
}

func TestADryRunShowsTheChangesAndStoresNothing(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	before := r.ask("GET", "/api/v1/hosts/r1-u01", "").body
	for _, tc := range []struct {
		name, method, path, body string
		want                     []wire.Difference
	}{
		{
			"patch", "PATCH", "/api/v1/hosts/r1-u01", `{"place":{"rack":"r9"},"labels":{"role":null,"env":"x"}}`,
			[]wire.Difference{{Field: "labels.env", From: nil, To: "x"}, {Field: "labels.role", From: "db", To: nil}, {Field: "place.rack", From: "r1", To: "r9"}},
		},
		{
			"put of a new profile", "PUT", "/api/v1/profiles/new", `{"image":"debian"}`,
			[]wire.Difference{{Field: "image", From: nil, To: "debian"}, {Field: "name", From: nil, To: "new"}, {Field: "priority", From: nil, To: 0.0}},
		},
		{"delete", "DELETE", "/api/v1/acceptrules/none", "", nil},
		{
			"range", "PUT", "/api/v1/subnets/rack1/ranges/10.0.0.10-10.0.0.20", "",
			[]wire.Difference{{
				Field: "ranges",
				From:  []any{map[string]any{"first": "10.0.0.100", "last": "10.0.0.199"}},
				To:    []any{map[string]any{"first": "10.0.0.10", "last": "10.0.0.20"}, map[string]any{"first": "10.0.0.100", "last": "10.0.0.199"}},
			}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := r.ask(tc.method, tc.path+"?dryRun=true", tc.body)
			if tc.want == nil {
				if a.status != 404 {
					t.Errorf("status %d, want 404: a dry run fails like the write", a.status)
				}
				return
			}
			var d rest.Diff
			if err := json.Unmarshal([]byte(a.body), &d); err != nil || a.status != 200 || !d.IsDryRun {
				t.Fatalf("status %d, %v: %s", a.status, err, a.body)
			}
			if diff := cmp.Diff(tc.want, d.Changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
	var d rest.Diff
	r.must(200, &d, "DELETE", "/api/v1/hosts/r1-u01?dryRun=true", "")
	if after := r.ask("GET", "/api/v1/hosts/r1-u01", "").body; after != before {
		t.Errorf("the dry runs changed the host from\n%s to\n%s", before, after)
	}
	r.must(404, nil, "GET", "/api/v1/profiles/new", "")
}

func TestWritesWithAnOldVersionAreRefused(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	for _, tc := range []struct{ path, put string }{
		{"/api/v1/hosts/r1-u01", `{"nics":[{"mac":"52:54:00:aa:00:01"}],"place":{"rack":"r5"}}`},
		{"/api/v1/subnets/rack1", `{"cidr":"10.0.0.0/24","mtu":1400}`},
		{"/api/v1/profiles/worker", `{"image":"debian","priority":4}`},
	} {
		a := r.ask("GET", tc.path, "")
		tag := a.header.Get("ETag")
		if tag == "" {
			t.Fatalf("%s has no ETag", tc.path)
		}
		first := r.ask("PUT", tc.path, tc.put, "If-Match", tag)
		if first.status != 200 || first.header.Get("ETag") == tag {
			t.Fatalf("PUT %s with the right version: %d, ETag %s: %s", tc.path, first.status, first.header.Get("ETag"), first.body)
		}
		for _, method := range []string{"PUT", "DELETE"} {
			body := tc.put
			if method == "DELETE" {
				body = ""
			}
			second := r.ask(method, tc.path, body, "If-Match", tag)
			if p := second.problem(t); second.status != 412 || p.Kind != inventory.Conflict || p.Hint == "" {
				t.Errorf("%s %s with an old version: %d %+v", method, tc.path, second.status, p)
			}
		}
		if again := r.ask("PUT", tc.path, tc.put); again.status != 200 || again.header.Get("ETag") != first.header.Get("ETag") {
			t.Errorf("the same PUT again made another version of %s: %s", tc.path, again.body)
		}
		r.must(412, nil, "PUT", tc.path+"x", tc.put, "If-Match", tag)
	}
}

func TestWhatWasReadCanBeSentBack(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(201, nil, "POST", "/api/v1/reservations", `{"address":"10.0.0.7","mac":"52:54:00:aa:00:01"}`)
	r.must(201, nil, "POST", "/api/v1/acceptrules", `{"name":"dell","selector":"manufacturer=~Dell.*"}`)
	for _, path := range []string{
		"/api/v1/hosts/r1-u01", "/api/v1/hosts/host-525400aa000a", "/api/v1/subnets/rack1", "/api/v1/profiles/worker",
		"/api/v1/reservations/10.0.0.7", "/api/v1/acceptrules/dell",
	} {
		before := r.must(200, nil, "GET", path, "")
		after := r.must(200, nil, "PUT", path, before.body, "If-Match", before.header.Get("ETag"))
		if diff := cmp.Diff(before.body, after.body); diff != "" {
			t.Errorf("PUT of what GET %s gave changed it (-before +after):\n%s", path, diff)
		}
	}
}

func TestListsArePaged(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	for i := range 25 {
		r.must(201, nil, "POST", "/api/v1/hosts", fmt.Sprintf(`{"name":"n%02d","nics":[{"mac":"52:54:00:bb:00:%02x"}],"place":{"rack":"r7"}}`, i, i))
		r.must(201, nil, "POST", "/api/v1/reservations", fmt.Sprintf(`{"address":"10.0.0.%d","mac":"52:54:00:bb:00:%02x"}`, 10+i, i))
		r.must(201, nil, "POST", "/api/v1/acceptrules", fmt.Sprintf(`{"name":"rule%02d","selector":"rack=r%d"}`, i, i))
	}
	for _, tc := range []struct {
		path string
		want int
	}{
		{"hosts?rack=r7", 25},
		{"hosts?selector=" + url.QueryEscape("rack=r7,name=~n1.*"), 10},
		{"hosts?state=discovered", 1},
		{"hosts?label=role=db", 1},
		{"hosts?search=BB:00", 25},
		{"hosts", 28},
		{"reservations?subnet=rack1", 25},
		{"acceptrules", 25},
		{"profiles", 1},
		{"subnets", 1},
		{"images", 1},
		{"artefacts", 1},
		{"tokens", 0},
		{"leases", 0},
		{"sessions", 0},
		{"issues", 0},
		{"events?kind=host", 27},
		{"catalogue", -1},
	} {
		seen, after := map[string]bool{}, ""
		for pages := 0; ; pages++ {
			sep := "?"
			if strings.Contains(tc.path, "?") {
				sep = "&"
			}
			var page rest.List[json.RawMessage]
			q := "limit=4"
			if after != "" {
				q += "&after=" + url.QueryEscape(after)
			}
			r.must(200, &page, "GET", "/api/v1/"+tc.path+sep+q, "")
			if page.Items == nil || len(page.Items) > 4 {
				t.Fatalf("%s: page of %d items, null=%v", tc.path, len(page.Items), page.Items == nil)
			}
			for _, item := range page.Items {
				if seen[string(item)] {
					t.Errorf("%s: twice: %s", tc.path, item)
				}
				seen[string(item)] = true
			}
			if after = page.Next; after == "" {
				break
			}
			if pages > 100 {
				t.Fatalf("%s has no end", tc.path)
			}
		}
		if tc.want >= 0 && len(seen) != tc.want {
			t.Errorf("%s: %d items over all pages, want %d", tc.path, len(seen), tc.want)
		}
	}
}

func TestVerbsAskTheEngine(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	var h inventory.Host
	r.must(200, &h, "POST", "/api/v1/hosts/52:54:00:aa:00:0a/accept", "")
	if h.State != inventory.Available {
		t.Errorf("after accept it is %s", h.State)
	}
	if p := r.must(409, nil, "POST", "/api/v1/hosts/host-525400aa000a/accept", "").problem(t); p.Kind != inventory.Conflict || p.Hint == "" {
		t.Errorf("accepting twice: %+v", p)
	}
	r.must(200, &h, "POST", "/api/v1/hosts/r1-u01/maintain", `{"on":true}`)
	r.must(200, &h, "POST", "/api/v1/hosts/r1-u01/protect", `{"on":true}`)
	if !h.InMaintenance || !h.IsProtected {
		t.Errorf("after maintain and protect: %+v", h)
	}
	if p := r.must(403, nil, "DELETE", "/api/v1/hosts/r1-u01", "").problem(t); !strings.Contains(p.Hint, "--off") {
		t.Errorf("deleting a protected host: %+v", p)
	}
	r.must(403, nil, "POST", "/api/v1/hosts/r1-u01/install", `{}`)
	var x boot.Explanation
	r.must(200, &x, "GET", "/api/v1/hosts/r1-u01/explain", "")
	if x.Boot != "disk" || !strings.Contains(x.Reason, "maintenance") {
		t.Errorf("explanation: %+v", x)
	}
	if a := r.must(200, nil, "GET", "/api/v1/hosts/r1-u01/script", ""); !strings.HasPrefix(a.body, "#!ipxe") || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
		t.Errorf("script as %s: %s", a.header.Get("Content-Type"), a.body)
	}
	var events rest.List[inventory.Event]
	r.must(200, &events, "GET", "/api/v1/events?host=r1-u01", "")
	if n := len(events.Items); n < 3 || !strings.Contains(events.Items[n-1].Detail, "(local)") {
		t.Errorf("the timeline does not say who did it: %+v", events.Items)
	}
}

func TestBulkAcceptTakesWhatItCanAndSaysWhyNot(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	accept := func(query, which string) (acted []string, out wire.BulkResult) {
		t.Helper()
		r.must(200, &out, "POST", "/api/v1/hosts/bulk"+query, `{"verb":"accept",`+which+`}`)
		for _, i := range out.Items {
			if i.Acts {
				acted = append(acted, i.Host)
			}
		}
		return acted, out
	}
	if acted, out := accept("?dryRun=true", `"selector":"state=discovered"`); !out.IsDryRun || !cmp.Equal(acted, []string{"host-525400aa000a"}) {
		t.Errorf("dry run: %+v", out)
	}
	if acted, out := accept("", `"hosts":["host-525400aa000a","r1-u01","nobody"]`); !cmp.Equal(acted, []string{"host-525400aa000a"}) || out.SkipsN != 2 || out.Items[1].Reason == "" {
		t.Errorf("by name: %+v", out)
	}
	if acted, out := accept("", `"selector":"manufacturer=QEMU,state=discovered"`); len(acted) != 0 {
		t.Errorf("a second time: %+v", out)
	}
	r.must(422, nil, "POST", "/api/v1/hosts/bulk", `{"verb":"accept"}`)
	r.must(422, nil, "POST", "/api/v1/hosts/bulk", `{"verb":"accept","hosts":["r1-u01"],"selector":"mac"}`)
}

func TestHostileTextsStayTexts(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	for _, text := range []string{"'; DROP TABLE hosts; --", "${net0/mac}", "a\u2028b", "<script>alert(1)</script>", "$(reboot)", "\u202eevil", "..%2f..%2fetc", "🚢"} {
		body, _ := json.Marshal(map[string]any{"serial": text, "place": map[string]string{"row": text}})
		var h inventory.Host
		r.must(200, &h, "PATCH", "/api/v1/hosts/r1-u01", string(body))
		r.must(200, &h, "GET", "/api/v1/hosts/r1-u01", "")
		if h.Serial != text || h.Place.Row != text {
			t.Errorf("%q came back as %q and %q", text, h.Serial, h.Place.Row)
		}
		a := r.ask("GET", "/api/v1/hosts?search="+url.QueryEscape(text), "")
		if a.status != 200 {
			t.Errorf("search for %q: %d %s", text, a.status, a.body)
		}
		if a := r.ask("GET", "/api/v1/hosts/"+url.PathEscape(text), ""); a.status != 404 {
			t.Errorf("a host called %q: %d", text, a.status)
		}
	}
	for _, text := range []string{"a\x00b", "a\x1b[31mred", "a\rb"} {
		body, _ := json.Marshal(map[string]any{"serial": text})
		if p := r.must(422, nil, "PATCH", "/api/v1/hosts/r1-u01", string(body)).problem(t); !strings.Contains(p.Detail, "control character") {
			t.Errorf("%q: %+v", text, p)
		}
	}
	if a := r.ask("GET", "/api/v1/hosts", ""); !strings.Contains(a.body, "r1-u01") {
		t.Error("the hosts are gone")
	}
}
