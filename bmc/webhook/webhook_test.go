package webhook_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/bmctest"
	"slipway.dev/slipway/bmc/webhook"
	"slipway.dev/slipway/inventory"
)

const password = "open-sesame-77"

// pdu is a power strip that is switched over HTTP.
type pdu struct {
	mu   sync.Mutex
	on   map[string]bool // by outlet
	boot string
	seen []string // requests, in short
}

func (p *pdu) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	p.seen = append(p.seen, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, body)))
	if user, pw, _ := r.BasicAuth(); user != "admin" || pw != password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	outlet, verb, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/outlets/"), "/")
	if _, ok := p.on[outlet]; !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	switch verb {
	case "on", "off":
		p.on[outlet] = verb == "on"
	case "boot":
		p.boot = string(body)
	}
	fmt.Fprintf(w, `{"outlets": [{"name": %q, "state": %v, "draw": 0}]}`, outlet, map[bool]string{true: `"ON"`, false: `"OFF"`}[p.on[outlet]])
}

func options(more map[string]string) map[string]string {
	o := map[string]string{
		"on.path": "/outlets/{{.System}}/on", "off.path": "/outlets/{{.System}}/off", "pause": "1ms",
		"status.path": "/outlets/{{.System}}", "status.pointer": "/outlets/0/state",
	}
	maps.Copy(o, more)
	return o
}

func target(address string, o map[string]string) bmc.Target {
	return bmc.Target{
		BMC:      inventory.BMC{Driver: inventory.Webhook, Address: address, System: "7", Username: "admin", Options: o},
		Password: password, HostName: "web-1", HostMACs: []inventory.MAC{"52:54:00:aa:00:01"},
	}
}

func open(t *testing.T, to bmc.Target) bmc.Driver {
	t.Helper()
	d, err := webhook.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// always answers every request alike.
func always(code int, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = io.WriteString(w, body) })
}

func TestWebhooksPassTheConformanceSuite(t *testing.T) {
	strip := func(on bool) *pdu { return &pdu{on: map[string]bool{"7": on}} }
	boot := map[string]string{"boot.path": "/outlets/{{.System}}/boot", "boot.body": `{"device": "{{.Device}}"}`}
	bmctest.Run(t, bmctest.Case{
		Password: password,
		Refuses:  []bmc.Action{bmc.Shutdown, bmc.Reset},
		Open: func(t *testing.T, is inventory.PowerState) bmc.Driver {
			return open(t, target(serve(t, strip(is == inventory.PowerOn))+"/api/", options(boot)))
		},
		Boots: []bmc.Boot{{Device: bmc.PXE}, {Device: bmc.Disk, IsPersistent: true, Mode: inventory.UEFI}},
		Unreachable: func(t *testing.T) bmc.Driver {
			s := httptest.NewServer(strip(true))
			s.Close()
			return open(t, target(s.URL, options(boot)))
		},
		Silent: func(t *testing.T) bmc.Driver {
			end := make(chan struct{})
			t.Cleanup(func() { close(end) })
			return open(t, target(serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				select {
				case <-end:
				case <-r.Context().Done():
				}
			})), options(boot)))
		},
		Unauthorized: func(t *testing.T) bmc.Driver {
			to := target(serve(t, strip(true))+"/api", options(boot))
			to.Password = "wrong"
			return open(t, to)
		},
		Missing: func(t *testing.T) bmc.Driver {
			to := target(serve(t, strip(true))+"/api", options(boot))
			to.System = "8"
			return open(t, to)
		},
	})
}

func TestCallsAreMadeAsDescribed(t *testing.T) {
	type request struct{ Line, Type, Auth, Extra, Body string }
	for name, c := range map[string]struct {
		change func(*bmc.Target)
		want   request
	}{
		"plain": {
			func(*bmc.Target) {},
			request{Line: "POST /p", Auth: "Basic YWRtaW46b3Blbi1zZXNhbWUtNzc="},
		},
		"words in the path are escaped": {
			func(t *bmc.Target) {
				t.System, t.Options["on.path"] = "a/b?c&d e", "/p/{{.System}}?m={{ .MAC }}&h={{.Host}}"
			},
			request{Line: "POST /p/a%2Fb%3Fc%26d%20e?m=52%3A54%3A00%3Aaa%3A00%3A01&h=web-1", Auth: "Basic YWRtaW46b3Blbi1zZXNhbWUtNzc="},
		},
		"words in JSON are escaped, and a token is sent": {
			func(t *bmc.Target) {
				t.System, t.Username = `x"},{"y`, ""
				t.Options["on.body"], t.Options["on.method"] = `{"outlet": "{{.System}}"}`, "put"
			},
			request{Line: "PUT /p", Type: "application/json", Auth: "Bearer " + password, Body: `{"outlet": "x\"},{\"y"}`},
		},
		"a form, and a key in a header": {
			func(t *bmc.Target) {
				t.System = "1&cmd=2"
				t.Options["on.body"], t.Options["auth"], t.Options["header.X-Extra"] = "outlet={{.System}}&cmd=on", "none", "key {{.Password}}"
			},
			request{Line: "POST /p", Type: "application/x-www-form-urlencoded", Extra: "key " + password, Body: "outlet=1%26cmd%3D2&cmd=on"},
		},
		"a content type of one's own": {
			func(t *bmc.Target) {
				t.Options["on.body"], t.Options["auth"], t.Options["header.Content-Type"] = "<on/>", "none", "text/xml"
			},
			request{Line: "POST /p", Type: "text/xml", Body: "<on/>"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got request
			to := target(serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = request{r.Method + " " + r.RequestURI, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.Header.Get("X-Extra"), string(body)}
			})), map[string]string{"on.path": "/p"})
			c.change(&to)
			if err := open(t, to).SetPower(t.Context(), bmc.On); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestACycleIsOffAndOnUnlessThereIsACall(t *testing.T) {
	for want, more := range map[string]map[string]string{
		"POST /api/outlets/7/off, POST /api/outlets/7/on": nil,
		"POST /api/outlets/7/cycle":                       {"cycle.path": "/outlets/7/cycle"},
	} {
		p := &pdu{on: map[string]bool{"7": true}}
		if err := open(t, target(serve(t, p)+"/api", options(more))).SetPower(t.Context(), bmc.Cycle); err != nil {
			t.Error(err)
		}
		if got := strings.Join(p.seen, ", "); got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}

func TestAnswersThatAreNoSuccess(t *testing.T) {
	for code, want := range map[int]inventory.Kind{
		301: inventory.Invalid, 400: inventory.Invalid, 401: inventory.Unauthorized, 403: inventory.Forbidden, 404: inventory.NotFound,
		405: inventory.Invalid, 409: inventory.Unavailable, 429: inventory.Unavailable, 500: inventory.Unavailable, 501: inventory.Invalid,
		503: inventory.Unavailable,
	} {
		d := open(t, target(serve(t, always(code, password)), options(nil)))
		err := d.SetPower(t.Context(), bmc.On)
		if bmc.KindOf(err) != want {
			t.Errorf("%d: kind %s, want %s: %v", code, bmc.KindOf(err), want, err)
		}
		if err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("%d: the error repeats what the device says", code)
		}
	}
	d := open(t, target(serve(t, always(302, "")), options(map[string]string{"on.expect": "200, 302"})))
	if err := d.SetPower(t.Context(), bmc.On); err != nil {
		t.Errorf("302 is expected: %v", err)
	}
}

func TestStatesAreFoundInAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		more   map[string]string
		want   string
	}{
		"a word":                          {`{"outlets":[{"state":"on"}]}`, nil, "on"},
		"a number":                        {`{"outlets":[{"state":0}]}`, nil, "off"},
		"a truth":                         {`{"outlets":[{"state":true}]}`, nil, "on"},
		"the whole answer":                {`1`, map[string]string{"status.pointer": ""}, "on"},
		"escaped names":                   {`{"a/b":{"~":"OFF"}}`, map[string]string{"status.pointer": "/a~1b/~0"}, "off"},
		"values of one's own":             {`{"outlets":[{"state":"Energised"}]}`, map[string]string{"status.on": "energised, warm", "status.off": "cold"}, "on"},
		"a value in between":              {`{"outlets":[{"state":"rebooting"}]}`, nil, "unknown"},
		"no such place":                   {`{"outlets":[]}`, nil, "unavailable"},
		"an object":                       {`{"outlets":[{"state":{}}]}`, nil, "unavailable"},
		"no JSON":                         {`<html>`, nil, "unavailable"},
		"nothing":                         {``, nil, "unavailable"},
		"a group of a regular expression": {"outlet 7: POWER=Off;", map[string]string{"status.pointer": "-", "status.regexp": `7: POWER=(\w+)`}, "off"},
		"a regular expression as a whole": {"it is ON now", map[string]string{"status.pointer": "-", "status.regexp": `ON|OFF`}, "on"},
		"no match":                        {"login:", map[string]string{"status.pointer": "-", "status.regexp": `ON|OFF`}, "unavailable"},
		"an answer without end":           {strings.Repeat(" ", 300<<10) + `1`, map[string]string{"status.pointer": ""}, "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(c.more)
			if o["status.pointer"] == "-" {
				delete(o, "status.pointer")
			}
			is, err := open(t, target(serve(t, always(200, c.answer)), o)).Power(t.Context())
			got := string(is)
			if err != nil {
				got = string(bmc.KindOf(err))
			}
			if got != c.want {
				t.Errorf("%s (%v); want %s", got, err, c.want)
			}
		})
	}
}

func TestCertificatesAreChecked(t *testing.T) {
	s := httptest.NewTLSServer(&pdu{on: map[string]bool{"7": true}})
	defer s.Close()
	s.Config.ErrorLog = nil
	sum := sha256.Sum256(s.Certificate().Raw)
	for name, c := range map[string]struct {
		change func(*bmc.Target)
		want   inventory.Kind
	}{
		"an unknown certificate":    {func(*bmc.Target) {}, inventory.Unauthorized},
		"the pinned certificate":    {func(t *bmc.Target) { t.Fingerprint = strings.ToUpper(hex.EncodeToString(sum[:])) }, ""},
		"another certificate":       {func(t *bmc.Target) { t.Fingerprint = strings.Repeat("ab", 32) }, inventory.Unauthorized},
		"a pin beats taking any":    {func(t *bmc.Target) { t.Fingerprint, t.InsecureSkipVerify = strings.Repeat("ab", 32), true }, inventory.Unauthorized},
		"any certificate, as asked": {func(t *bmc.Target) { t.InsecureSkipVerify = true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			to := target(s.URL+"/api", options(nil))
			c.change(&to)
			_, err := open(t, to).Power(t.Context())
			if err == nil && c.want != "" || err != nil && bmc.KindOf(err) != c.want {
				t.Errorf("%v; want kind %q", err, c.want)
			}
		})
	}
}

func TestOptionsAreStrict(t *testing.T) {
	for name, more := range map[string]map[string]string{
		"unknown":                 {"colour": "blue"},
		"unknown call":            {"explode.path": "/x"},
		"unknown field":           {"on.colour": "blue"},
		"unknown status field":    {"status.colour": "blue"},
		"another server":          {"on.path": "//evil.example/on"},
		"no path":                 {"on.path": "outlets"},
		"a call without path":     {"cycle.method": "PUT"},
		"method":                  {"on.method": "BREW"},
		"body of a GET":           {"on.method": "GET", "on.body": "x"},
		"expect":                  {"on.expect": "yes"},
		"expect range":            {"on.expect": "99"},
		"auth":                    {"auth": "kerberos"},
		"timeout":                 {"timeout": "2h"},
		"pause":                   {"pause": "0s"},
		"header with a secret":    {"header.authorization": "Bearer x"},
		"header name":             {"header.a b": "x"},
		"password in a path":      {"on.path": "/x?pw={{.Password}}"},
		"unknown word":            {"on.body": "{{.Colour}}"},
		"boot word in on":         {"on.body": "{{.Device}}"},
		"open word":               {"on.body": "{{.Host"},
		"pointer":                 {"status.pointer": "outlets"},
		"regexp":                  {"status.regexp": "("},
		"pointer and regexp":      {"status.regexp": "x"},
		"a value that means both": {"status.on": "1,yes", "status.off": "0,1"},
		"no values":               {"status.on": " , "},
	} {
		_, err := webhook.Open(target("http://127.0.0.1:1", options(more)))
		if bmc.KindOf(err) != inventory.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, to := range map[string]bmc.Target{
		"no calls":          target("http://127.0.0.1:1", nil),
		"no URL":            target("pdu", options(nil)),
		"user in the URL":   target("http://a:b@pdu", options(nil)),
		"bad fingerprint":   {BMC: inventory.BMC{Address: "https://pdu", Fingerprint: "abc", Options: options(nil)}},
		"bearer of nothing": {BMC: inventory.BMC{Address: "https://pdu", Options: options(map[string]string{"auth": "bearer"})}},
	} {
		if _, err := webhook.Open(to); bmc.KindOf(err) != inventory.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnlyABootCallMakesABooter(t *testing.T) {
	for path, want := range map[string]bool{"": false, "/boot": true} {
		o := options(nil)
		if path != "" {
			o["boot.path"] = path
		}
		got := slices.Contains(bmc.Capabilities(open(t, target("http://127.0.0.1:1", o))), "boot")
		if got != want {
			t.Errorf("boot.path %q: a booter %v; want %v", path, got, want)
		}
	}
}
