package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

func TestWrongRequestsAreAnsweredWithAProblem(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	huge := `{"name":"x","labels":{"a":"` + strings.Repeat("x", 2<<20) + `"}}`
	for _, tc := range []struct {
		name, method, path, body string
		status                   int
		want                     string // in detail, hint or a field's error
	}{
		{"broken JSON", "POST", "/hosts", `{"name":`, 400, "unexpected end of JSON"},
		{"no body", "POST", "/hosts", ``, 400, "body is required"},
		{"JSON of another kind", "POST", "/hosts", `[1,2]`, 422, "expected object"},
		{"an unknown field", "POST", "/hosts", `{"name":"a","nics":[{"mac":"52:54:00:00:00:01"}],"colour":"red"}`, 422, "body.colour"},
		{"an unknown field deep inside", "POST", "/hosts", `{"name":"a","nics":[{"mac":"52:54:00:00:00:01","speed":1}]}`, 422, "body.nics[0].speed"},
		{"a number for a text", "POST", "/hosts", `{"name":7,"nics":[{"mac":"52:54:00:00:00:01"}]}`, 422, "body.name"},
		{"a text for a number", "POST", "/subnets", `{"name":"a","cidr":"10.1.0.0/24","mtu":"big"}`, 422, "body.mtu"},
		{"a fraction for a number", "PATCH", "/hosts/r1-u01", `{"place":{"unit":1.5}}`, 422, "body.place.unit"},
		{"a huge body", "POST", "/hosts", huge, 413, "too large"},
		{"another media type", "POST", "/hosts", `<host/>`, 415, ""},
		{"a bad MAC", "POST", "/hosts", `{"name":"a","nics":[{"mac":"52:54:00:00:00"}]}`, 422, "is not a MAC address"},
		{"a taken MAC", "POST", "/hosts", `{"name":"a","nics":[{"mac":"525400AA0001"}]}`, 409, "r1-u01"},
		{"a MAC twice", "POST", "/hosts", `{"name":"a","nics":[{"mac":"525400AA0101"},{"mac":"52:54:00:aa:01:01"}]}`, 422, "twice"},
		{"a taken name", "POST", "/hosts", `{"name":"r1-u01","nics":[{"mac":"52:54:00:00:00:01"}]}`, 409, "r1-u01"},
		{"no NIC", "POST", "/hosts", `{"name":"a","nics":[]}`, 422, "no NIC"},
		{"a bad name", "POST", "/hosts", `{"name":"A_b","nics":[{"mac":"52:54:00:00:00:01"}]}`, 422, "is not a name"},
		{"another name in the body than in the address", "PUT", "/profiles/worker", `{"name":"other","image":"debian"}`, 422, "other"},
		{"a bad label", "PATCH", "/hosts/r1-u01", `{"labels":{"a b":"c"}}`, 422, "not allowed"},
		{"a profile that is not there", "PATCH", "/hosts/r1-u01", `{"profile":"nope"}`, 404, "nope"},
		{"an unknown state in a filter", "GET", "/hosts?state=happy", "", 422, "query.state"},
		{"an unknown filter", "GET", "/hosts?colour=red", "", 422, "query.colour"},
		{"a bad selector", "GET", "/hosts?selector=%3D%3D", "", 422, "is not a term"},
		{"a limit out of bounds", "GET", "/hosts?limit=100000", "", 422, "query.limit"},
		{"a limit that is no number", "GET", "/hosts?limit=ten", "", 422, "query.limit"},
		{"a CIDR with host bits", "POST", "/subnets", `{"name":"a","cidr":"10.1.0.1/24"}`, 422, "write 10.1.0.0/24"},
		{"no CIDR", "POST", "/subnets", `{"name":"a","cidr":"ten"}`, 422, "ParsePrefix"},
		{"an overlapping subnet", "POST", "/subnets", `{"name":"a","cidr":"10.0.0.0/16"}`, 409, "rack1"},
		{"overlapping ranges", "PUT", "/subnets/rack1/ranges/10.0.0.150-10.0.0.250", "", 422, "overlap"},
		{"a range outside", "PUT", "/subnets/rack1/ranges/10.9.0.1-10.9.0.2", "", 422, "not a range inside"},
		{"a range that is none", "PUT", "/subnets/rack1/ranges/ten", "", 422, "is not a range"},
		{"a range that is not there", "DELETE", "/subnets/rack1/ranges/10.0.0.1-10.0.0.2", "", 404, "no range"},
		{"an unknown mode", "POST", "/subnets", `{"name":"a","cidr":"10.1.0.0/24","mode":"magic"}`, 422, "body.mode"},
		{"a bad duration", "POST", "/subnets", `{"name":"a","cidr":"10.1.0.0/24","leaseFor":"a day"}`, 422, "not a duration"},
		{"a bad address", "POST", "/reservations", `{"address":"10.0.0.300","mac":"52:54:00:00:00:01"}`, 422, "body.address"},
		{"a reservation outside of all subnets", "POST", "/reservations", `{"address":"10.7.0.3","mac":"52:54:00:00:00:01"}`, 404, "no subnet"},
		{"a reservation for nobody", "POST", "/reservations", `{"address":"10.0.0.3"}`, 422, "exactly one"},
		{"an address that is none", "GET", "/leases/ten", "", 422, "is not an address"},
		{"a digest that is none", "GET", "/artefacts/sha256:12", "", 422, "not a sha256 digest"},
		{"an issue that is no number", "GET", "/issues/ten", "", 422, "not the number"},
		{"an event id out of bounds", "GET", "/events?after=9999999999999999999", "", 422, "not the id of an event"},
		{"an event kind that is none", "GET", "/events?kind=%25", "", 422, "query.kind"},
		{"events of a host that is not there", "GET", "/events?host=nobody", "", 404, "nobody"},
		{"a profile without image", "POST", "/profiles", `{"name":"a","image":"nope"}`, 422, "nope"},
		{"arguments with a line end", "POST", "/profiles", `{"name":"a","image":"debian","kernelArgs":["a\nboot"]}`, 422, "control character"},
		{"an argument with a variable that does not exist", "POST", "/profiles", `{"name":"a","image":"debian","kernelArgs":["x=${nope}"]}`, 422, "nope"},
		{"a profile in use", "DELETE", "/images/debian", "", 409, "worker"},
		{"a rule that accepts nothing", "POST", "/acceptrules", `{"name":"a","selector":" "}`, 422, "no selector"},
		{"a token that has expired before it begins", "POST", "/tokens", `{"name":"a","expiresAt":"2020-01-01T00:00:00Z"}`, 422, "expired already"},
		{"a time that is none", "POST", "/tokens", `{"name":"a","expiresAt":"tomorrow"}`, 422, "body.expiresAt"},
		{"an import file with an unknown key", "POST", "/transfer?file=h.yaml", "hosts:\n- name: a\n  macs: [52:54:00:00:00:01]\n  colour: red\n", 422, "h.yaml:4"},
		{"an export of nothing", "GET", "/transfer", "", 422, "query.noun"},
		{"an export of all as CSV", "GET", "/transfer?noun=all&format=csv", "", 422, "one noun"},
		{"an ETag that is none", "PATCH", "/hosts/r1-u01", `{}`, 412, "has changed"},
		{"a host that is not there", "GET", "/hosts/nobody", "", 404, "nobody"},
		{"a thing that is not there", "GET", "/hosts/r1-u01/colour", "", 404, "nothing at"},
		{"a noun that is not there", "GET", "/colours", "", 404, "nothing at"},
		{"a method that is not possible", "PATCH", "/subnets/rack1", `{}`, 405, "not possible"},
		{"a path that climbs", "GET", "/hosts/..%2f..%2fetc%2fpasswd", "", 404, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var headers []string
			switch tc.name {
			case "another media type":
				headers = []string{"Content-Type", "application/xml"}
			case "an ETag that is none":
				headers = []string{"If-Match", "latest"}
			}
			a := r.ask(tc.method, "/api/v1"+tc.path, tc.body, headers...)
			if a.status != tc.status {
				t.Fatalf("status %d, want %d: %s", a.status, tc.status, a.body)
			}
			p := a.problem(t)
			if a.header.Get("Content-Type") != "application/problem+json" || p.Status != tc.status || p.Title == "" || p.RequestID == "" || p.Kind == "" {
				t.Errorf("incomplete as %s: %+v", a.header.Get("Content-Type"), p)
			}
			if a.header.Get("X-Request-ID") != p.RequestID {
				t.Errorf("request id %q in the header and %q in the body", a.header.Get("X-Request-ID"), p.RequestID)
			}
			if all := p.Detail + p.Hint + fmt.Sprint(p.Errors); !strings.Contains(all, tc.want) {
				t.Errorf("%q is not in %s", tc.want, all)
			}
			if len(a.body) > 4000 {
				t.Errorf("the answer echoes the request: %d bytes", len(a.body))
			}
		})
	}
}

func TestNothingIsHalfDone(t *testing.T) {
	r := newRig(t, nil)
	r.seed()
	file := "hosts:\n- name: new1\n  macs: [52:54:00:cc:00:01]\n- name: new2\n  macs: [52:54:00:aa:00:01, 52:54:00:aa:00:02]\n"
	if a := r.ask("POST", "/api/v1/transfer?file=h.yaml", file); a.status < 400 {
		t.Fatalf("a file with a MAC of each of two hosts: %d %s", a.status, a.body)
	}
	r.must(404, nil, "GET", "/api/v1/hosts/new1", "")
}

func TestEveryKindHasOneStatus(t *testing.T) {
	for kind, want := range map[inventory.Kind]int{
		inventory.Invalid: 422, inventory.NotFound: 404, inventory.Conflict: 409, inventory.Unauthorized: 401,
		inventory.Forbidden: 403, inventory.Unavailable: 503, inventory.Internal: 500, "unheard of": 500,
	} {
		if got := rest.StatusOf(kind); got != want {
			t.Errorf("%s has status %d, want %d", kind, got, want)
		}
		if kind != "unheard of" && rest.KindOf(want) != kind {
			t.Errorf("status %d is kind %s, want %s", want, rest.KindOf(want), kind)
		}
	}
}

func TestInternalErrorsTellTheLogAndNotTheClient(t *testing.T) {
	r := newRig(t, func(c *Config) { c.SelfCheck = nil }) // a nil function panics
	a := r.ask("GET", "/api/v1/selfcheck", "")
	p := a.problem(t)
	if a.status != http.StatusInternalServerError || strings.Contains(a.body, "nil pointer") || !strings.Contains(p.Hint, p.RequestID) {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	if log := r.logged(); !strings.Contains(log, p.RequestID) || !strings.Contains(log, "nil pointer") {
		t.Errorf("the log does not tell: %s", log)
	}
}
