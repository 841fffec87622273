package web

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
)

// document is as much of the description as the tests look at.
type document struct {
	Paths map[string]map[string]struct {
		OperationID string   `yaml:"operationId"`
		Summary     string   `yaml:"summary"`
		Tags        []string `yaml:"tags"`
		Responses   map[string]struct {
			Content map[string]struct {
				Schema map[string]any `yaml:"schema"`
			} `yaml:"content"`
		} `yaml:"responses"`
	} `yaml:"paths"`
	Components struct {
		Schemas map[string]struct {
			Properties map[string]map[string]any `yaml:"properties"`
			Required   []string                  `yaml:"required"`
		} `yaml:"schemas"`
	} `yaml:"components"`
}

func describe(t *testing.T) (d document) {
	t.Helper()
	text, err := Spec()
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEveryOperationIsDescribed(t *testing.T) {
	ids := map[string]bool{}
	for path, item := range describe(t).Paths {
		for method, op := range item {
			if op.Summary == "" || op.OperationID == "" || ids[op.OperationID] || len(op.Tags) != 1 {
				t.Errorf("%s %s: id %q, summary %q, tags %v", method, path, op.OperationID, op.Summary, op.Tags)
			}
			ids[op.OperationID] = true
			wanted := []string{"401", "422", "429", "500", "503"}
			if strings.Contains(path, "{") && path != "/api/v1/profiles/{name}" {
				wanted = append(wanted, "404")
			}
			for _, status := range wanted {
				if op.Responses[status].Content["application/problem+json"].Schema["$ref"] != "#/components/schemas/Problem" {
					t.Errorf("%s %s does not describe status %s", method, path, status)
				}
			}
			success := 0
			for status := range op.Responses {
				if status[0] == '2' || status == "302" || status == "303" { // what sends the browser on is done, too
					success++
				}
			}
			if success == 0 {
				t.Errorf("%s %s does not describe success", method, path)
			}
		}
	}
}

func TestTextTypesAreTextsInTheDescription(t *testing.T) {
	d := describe(t)
	for name, fields := range map[string][]string{
		"Subnet": {"cidr", "gateway", "leaseFor", "bootLeaseFor", "createdAt"}, "Range": {"first", "last"}, "Route": {"to", "via"},
		"NIC": {"mac"}, "Reservation": {"address", "mac", "uuid"}, "Lease": {"address", "startsAt"}, "BootSession": {"address", "startedAt"},
		"Artefact": {"digest"}, "Event": {"at", "mac"},
	} {
		for _, field := range fields {
			if got := d.Components.Schemas[name].Properties[field]["type"]; got != "string" {
				t.Errorf("%s.%s is %v", name, field, got)
			}
		}
	}
	if h := d.Components.Schemas["Host"]; !slices.Contains(h.Required, "id") || slices.Contains(h.Required, "place") || h.Properties["state"]["readOnly"] != true {
		t.Errorf("required of a host: %v; state: %v", h.Required, h.Properties["state"])
	}
	if e := d.Components.Schemas["Subnet"].Properties["mode"]["enum"]; len(e.([]any)) != 4 {
		t.Errorf("modes: %v", e)
	}
}

func TestAnswersAreAsDescribed(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	r.must(201, nil, "POST", "/api/v1/reservations", `{"address":"10.0.0.7","mac":"52:54:00:aa:00:01"}`)
	r.must(201, nil, "POST", "/api/v1/acceptrules", `{"name":"dell","selector":"manufacturer=~Dell.*"}`)
	r.must(200, nil, "PUT", "/api/v1/layers/global", `{"config":"host: {locale: C}\n"}`)
	r.must(200, nil, "PUT", "/api/v1/secrets/db", `{"value":"hunter2","about":"of the database"}`)
	r.must(201, nil, "POST", "/api/v1/targets", `{"name":"prod","endpoint":"10.0.0.9:6443","kubernetes":"1.35.0","kubeconfig":"db"}`)
	r.rendering("r1-u01")
	r.furnish()
	r.token()
	samples := map[string]string{}
	for _, n := range noun.All() {
		about, key := n.About(), n.KeyOf(n.New())
		samples["/api/v1/"+about.Many+"/{name}"] = "/api/v1/" + about.Many + "/" + url.PathEscape(key)
		err := r.store.Write(t.Context(), func(tx inventory.Tx) error {
			sample := n.New()
			return n.Of(tx).Create(&sample, testStart)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// The description as it is written, before the server takes requests more lightly.
	api := New(Config{Version: "1"}).rest.API.OpenAPI()
	check := func(path, body, template string) {
		schema := api.Paths[template].Get.Responses["200"].Content["application/json"].Schema
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		var res huma.ValidateResult
		huma.Validate(api.Components.Schemas, schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, v, &res)
		for _, err := range res.Errors {
			t.Errorf("%s: %v", path, err)
		}
	}
	n := 0
	for template, item := range api.Paths {
		if item.Get == nil || item.Get.Responses["200"] == nil || item.Get.Responses["200"].Content["application/json"] == nil {
			continue
		}
		path := cmp.Or(samples[template], template)
		for _, p := range []struct{ prefix, name string }{
			{"/api/v1/hosts/", "r1-u01"},
			{"/api/v1/subnets/", "rack1"},
			{"/api/v1/reservations/", "10.0.0.7"},
			{"/api/v1/acceptrules/", "dell"},
			{"/api/v1/profiles/", "worker"},
			{"/api/v1/images/", "debian"},
			{"/api/v1/imports/", "job1"},
			{"/api/v1/tokens/", "test"},
			{"/api/v1/artefacts/", strings.Repeat("a", 64)},
			{"/api/v1/layers/", "global"},
			{"/api/v1/secrets/", "db"},
			{"/api/v1/targets/", "prod"},
			{"/api/v1/renderings/", strings.Repeat("b", 64)},
			{"/api/v1/machines/", "web-1"},
			{"/api/v1/pools/", "big"},
			{"/api/v1/goldens/", "dell"},
			{"/api/v1/operations/", r.operation},
		} {
			if strings.HasPrefix(template, p.prefix) {
				path = pathParameter.ReplaceAllString(strings.ReplaceAll(template, "{revision}", "1"), p.name)
			}
		}
		if strings.Contains(path, "{") || slices.Contains([]string{"/api/v1/backup/status", "/api/v1/database", "/api/v1/logins", "/api/v1/stats", "/api/v1/subnets/rack1/snippets"}, path) {
			continue // the rig has no sessions, leases and issues, whose lists are empty, no backups, samples, interfaces and database server,
			// and nobody who has logged in
		}
		n++
		a := r.ask("GET", path, "")
		if a.status != http.StatusOK {
			t.Errorf("GET %s: status %d, want 200: %s", path, a.status, a.body)
			continue
		}
		check(path, a.body, template)
	}
	if n < 60 {
		t.Errorf("only %d answers were checked", n)
	}
}

// TestARequestNeedsNothingThatOnlyTheServerKnows has every noun that a body may name: a form knows no version before the first save.
func TestARequestNeedsNothingThatOnlyTheServerKnows(t *testing.T) {
	r := newRig(t, nil)
	schemas := r.srv.rest.API.OpenAPI().Components.Schemas.Map()
	looked := 0
	for path, item := range r.srv.rest.API.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Post, item.Put} {
			if op == nil || op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
				continue
			}
			s := op.RequestBody.Content["application/json"].Schema
			s = schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
			if s == nil {
				continue
			}
			looked++
			for _, field := range []string{"createdAt", "updatedAt", "version"} {
				if p := s.Properties[field]; p != nil && slices.Contains(s.Required, field) && !p.ReadOnly {
					t.Errorf("%s wants %s", path, field)
				}
			}
		}
	}
	if looked < 50 {
		t.Errorf("only %d bodies were looked at", looked)
	}
	r.must(201, nil, "POST", "/api/v1/classes", `{"name":"switches","vendorClasses":["onie_vendor:*"],"options":[{"code":114,"value":"http://192.0.2.9/onie"}]}`)
	r.must(200, nil, "PUT", "/api/v1/classes/switches", `{"vendorClasses":["onie_vendor:*"]}`, "If-Match", `"1"`)
}

func TestScreensNameFieldsOfTheirNouns(t *testing.T) {
	r := newRig(t, nil)
	schemas := r.srv.rest.API.OpenAPI().Components.Schemas.Map()
	has := func(s *huma.Schema, path string) bool {
		for name := range strings.SplitSeq(path, ".") {
			if s = s.Properties[name]; s == nil {
				return false
			}
			if s.Ref != "" {
				s = schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
			}
		}
		return true
	}
	looked := 0
	for _, n := range noun.Screens() {
		screen := n.Screen
		looked++
		s := schemas[n.Type]
		if s.Extensions["x-noun"] == nil {
			t.Errorf("the description does not have the screen of %s", n.Many)
		}
		for _, f := range screen.Fields {
			if !has(s, f.Name) {
				t.Errorf("the screen of %s has a field %q, which its records do not have", n.Many, f.Name)
			}
		}
		for _, c := range screen.Columns {
			for _, f := range c.Fields {
				if !has(s, f) {
					t.Errorf("column %s of %s shows %q, which its records do not have", c.Name, n.Many, f)
				}
			}
		}
	}
	if looked < 10 {
		t.Errorf("only %d screens were looked at", looked)
	}
}

// FuzzQuery holds that no query makes the server fail: it answers, or says what is wrong with it.
func FuzzQuery(f *testing.F) {
	r := newRigFor(f, nil)
	paths := []string{"hosts", "events", "reservations", "leases", "sessions", "issues", "catalogue", "subnets", "tokens", "transfer", "imports/job1", "machines", "pools", "goldens", "operations", "bmcs"}
	for i, q := range []string{
		"", "state=discovered&limit=3", "after=-3&kind=dhcp", "subnet=rack1&after=10.0.0.1", "host=r1-u01", "all=true", "selector=rack%3Dr1",
		"limit=0", "after=%00", "noun=all&format=yaml", "a=1&a=2", "%zz", "label=a=b=c", "selector=mac%3D~(((", "search=%25_", "dryRun=maybe",
	} {
		f.Add(uint8(i), q)
	}
	f.Fuzz(func(t *testing.T, which uint8, query string) {
		path := "/api/v1/" + paths[int(which)%len(paths)]
		u := &url.URL{Path: path, RawQuery: query}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(query, "revision") {
			return // waits as it should
		}
		req.URL.RawQuery = u.RawQuery
		a := serveOnce(r.srv.SocketHandler(), req)
		switch a.status {
		case 200:
		case 404, 422:
			a.problem(t)
		default:
			t.Errorf("GET %s?%q: status %d: %s", path, query, a.status, a.body)
		}
	})
}

// FuzzBody holds that no body makes the server fail.
func FuzzBody(f *testing.F) {
	r := newRigFor(f, nil)
	writes := []struct{ method, path string }{
		{"POST", "hosts"},
		{"PUT", "hosts/x1"},
		{"PATCH", "hosts/r1-u01"},
		{"POST", "subnets"},
		{"POST", "reservations"},
		{"POST", "profiles"},
		{"POST", "acceptrules"},
		{"POST", "hosts/bulk"},
		{"POST", "transfer"},
		{"POST", "imports"},
		{"PUT", "subnets/rack1"},
		{"POST", "machines"},
		{"PUT", "machines/x1"},
		{"POST", "pools"},
		{"POST", "goldens"},
	}
	for i, b := range []string{
		`{"name":"a","nics":[{"mac":"525400aa0101"}]}`, `{"nics":[{"mac":"525400aa0101"}]}`, `{"labels":{"a":null},"place":{"unit":3},"macs":["x"]}`,
		`{"name":"n","cidr":"10.1.0.0/24","routes":[{"to":"0.0.0.0/0","via":"10.1.0.1"}],"leaseFor":"1h"}`, `{"address":"10.0.0.9","mac":"525400aa0101"}`,
		`{"name":"p","image":"debian","parameters":{"a":"b"},"kernelArgs":["x"]}`, `{"name":"r","selector":"mac=~(5|6).*"}`, `{"all":true}`,
		"hosts:\n- name: a\n  macs: [52:54:00:aa:01:01]\n", `{"name":"i","os":"debian","release":"12"}`, `{"cidr":"10.0.0.0/24","ranges":null,"dns":[""]}`,
		`{"name":"m","profile":"worker","hooks":[{"step":"pre-boot","owner":"a"}]}`, `{"profile":"worker","placement":{"requirements":{"expression":"host.cpu.threads > 1"}}}`,
		`{"name":"p","selector":"rack=r1","budget":{"destroyInterval":"1m"}}`, `{"name":"g","selector":"mac","requirements":{"arch":"arm64"}}`,
	} {
		f.Add(uint8(i), b)
	}
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		w := writes[int(which)%len(writes)]
		a := ask(t, r.srv.SocketHandler(), w.method, "/api/v1/"+w.path+"?dryRun=true", body)
		if w.path == "imports" {
			a = ask(t, r.srv.SocketHandler(), w.method, "/api/v1/"+w.path, body)
		}
		switch a.status {
		case 200, 202:
		case 400, 404, 409, 413, 422:
			a.problem(t)
		default:
			t.Errorf("%s %s with %q: status %d: %s", w.method, w.path, body, a.status, a.body)
		}
	})
}
