package web

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// ownReads are the operations that an instance answers that is not the leader. One that is missing here is missed when no instance
// leads. One that is too many may show what was true some time ago, because the leader has the newer state in memory.
var ownReads = []string{
	"about",
	"draw-rack", "get-acceptrule", "get-artefact", "get-cabling", "get-class", "get-database", "get-golden", "get-hardware", "get-host", "get-host-role",
	"get-image", "get-layer", "get-layer-revision", "get-lease", "get-machine", "get-operation", "get-pool", "get-profile",
	"get-profile-revision", "get-rack", "get-rendering", "get-report", "get-report-page", "get-reservation", "get-secret", "get-session",
	"get-subnet", "get-subnet-usage", "get-view", "list-acceptrules", "list-addresses", "list-artefacts", "list-classes", "list-disks",
	"list-goldens", "list-hostrows", "list-hosts", "list-hosts-of-profile", "list-images", "list-inspections", "list-layer-revisions",
	"list-layers", "list-leases", "list-machines", "list-operations", "list-pools", "list-profile-revisions", "list-profiles", "list-racks",
	"list-renderings", "list-reports", "list-reservations", "list-secrets", "list-sessions", "list-subnets", "list-views", "self-check",
}

func TestAnInstanceAnswersReadsAsTheLeaderDoes(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	reads := NewReads(r.readsConfig())
	const passed = 999
	h := reads.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(passed) }))
	people := map[string][]string{
		"admin":  r.as("root", inventory.Grant{Role: inventory.Admin}),
		"viewer": r.as("viewer", inventory.Grant{Role: inventory.Viewer}),
		"alpha":  r.as("alpha", inventory.Grant{Role: inventory.Operator, Pool: "alpha"}),
		"none":   r.as("none"),
	}
	answered := map[string]bool{}
	for _, route := range r.routes() {
		_, method, _ := strings.Cut(route, " ")
		path, op := r.address(route, "beta"), r.operationAt(route)
		if rest.IsProbe(path) { // each instance has its own
			continue
		}
		for name, who := range people {
			got := ask(t, h, method, path, "", who...)
			if got.status == passed {
				continue
			}
			if method != http.MethodGet {
				t.Errorf("%s %s was answered here with %d", method, path, got.status)
				continue
			}
			answered[op.OperationID] = true
			if want := r.via(who, method, path, ""); got.status != want.status || unnumbered(got.body) != unnumbered(want.body) {
				t.Errorf("%s to %s: this instance answered %d %s\nthe leader %d %s", path, name, got.status, got.body, want.status, want.body)
			}
		}
	}
	if got := slices.Sorted(maps.Keys(answered)); !slices.Equal(got, ownReads) {
		t.Errorf("this instance answers %q\nwant %q", got, ownReads)
	}
}

// unnumbered takes the id of the request out of a problem.
func unnumbered(body string) string {
	before, after, ok := strings.Cut(body, `"requestID":"`)
	if !ok {
		return body
	}
	_, after, _ = strings.Cut(after, `"`)
	return before + after
}

func TestAnInstanceLeavesStrangersToTheLeader(t *testing.T) {
	r := newRig(t, nil)
	r.teams()
	reads := NewReads(r.readsConfig())
	h := reads.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(w.Header()) > 0 {
			t.Errorf("%s is passed on with the headers %v of this instance", r.URL, w.Header())
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	viewer := r.as("viewer", inventory.Grant{Role: inventory.Viewer})
	for _, c := range []struct {
		name, path string
		who        []string
		want       int
	}{
		{"known", "/api/v1/hosts", viewer, http.StatusOK},
		{"without a token", "/api/v1/hosts", nil, http.StatusTeapot},
		{"a wrong token", "/api/v1/hosts", []string{"Authorization", "Bearer x"}, http.StatusTeapot},
		{"a cookie of no login", "/api/v1/hosts", []string{"Cookie", "slipway-login=x"}, http.StatusTeapot},
		{"a cluster", "/api/v1/hosts", r.asCluster("mgmt", "aaaaaaaa-0000-4000-8000-000000000001"), http.StatusTeapot},
		{"issues, some of which the leader could not store", "/api/v1/issues", viewer, http.StatusTeapot},
		{"events, which may be a stream", "/api/v1/events", viewer, http.StatusTeapot},
		{"the instances", "/api/v1/instances", viewer, http.StatusTeapot},
		{"a path that leads elsewhere", "/api/v1/hosts/../issues", viewer, http.StatusTeapot},
		{"what nobody knows", "/api/v1/nothing", viewer, http.StatusTeapot},
		{"a name with a slash", "/api/v1/layers/host%2Falpha-1", viewer, http.StatusOK},
	} {
		if got := ask(t, h, http.MethodGet, c.path, "", c.who...); got.status != c.want {
			t.Errorf("%s: answered %d %s, want %d", c.name, got.status, got.body, c.want)
		}
	}
	if err := r.store.Write(t.Context(), func(tx inventory.Tx) error { return tx.DeleteToken("viewer") }); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, h, http.MethodGet, "/api/v1/hosts", "", viewer...); got.status != http.StatusTeapot {
		t.Errorf("a token that an admin has deleted got %d", got.status)
	}
}

func TestAnInstanceSaysItselfWhetherItIsReady(t *testing.T) {
	r := newRig(t, nil)
	cfg := r.readsConfig()
	leads := ReadyPart{Name: "leader", IsReady: true}
	cfg.Ready = func() []ReadyPart { return []ReadyPart{{Name: "dhcp", IsReady: true}, leads} }
	h := NewReads(cfg).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	if got := ask(t, h, http.MethodGet, "/healthz", ""); got.status != http.StatusOK {
		t.Errorf("/healthz answers %d %s", got.status, got.body)
	}
	if got := ask(t, h, http.MethodGet, "/readyz", ""); got.status != http.StatusOK {
		t.Errorf("/readyz answers %d %s", got.status, got.body)
	}
	leads = ReadyPart{Name: "leader", Reason: "no instance has the engine at the moment"}
	if got := ask(t, h, http.MethodGet, "/readyz", ""); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, leads.Reason) {
		t.Errorf("/readyz without a leader answers %d %s", got.status, got.body)
	}
	if got := ask(t, h, http.MethodGet, "/readyz/dhcp", ""); got.status != http.StatusOK {
		t.Errorf("/readyz/dhcp without a leader answers %d %s", got.status, got.body)
	}
}

func TestAnInstanceHasThePagesOfTheUI(t *testing.T) {
	r := newRig(t, nil)
	cfg := r.readsConfig()
	cfg.UI = fstest.MapFS{"index.html": {Data: []byte("<title>Slipway</title>")}}
	h := NewReads(cfg).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for path, want := range map[string]int{
		"/": http.StatusOK, "/instances": http.StatusOK, "/metrics": http.StatusTeapot, "/api/v1/me": http.StatusTeapot,
	} {
		if got := ask(t, h, http.MethodGet, path, ""); got.status != want {
			t.Errorf("%s: answered %d %s, want %d", path, got.status, got.body, want)
		}
	}
}

// readsConfig is what an instance has that shares the inventory of the rig.
func (r *rig) readsConfig() Config {
	return Config{
		SelfCheck: r.srv.cfg.SelfCheck, Database: r.srv.cfg.Database, Store: r.store, Secrets: r.box, Now: r.clock,
		Log: r.srv.cfg.Log, Version: "test",
	}
}
