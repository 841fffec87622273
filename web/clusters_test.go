package web

import (
	"context"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/wire"
)

// attacher notes what it is asked.
type attacher struct {
	store    inventory.Store
	asked    []string
	refusal  error
	kubeconf string
}

func (a *attacher) CheckCluster(_ context.Context, c inventory.Cluster, text []byte) wire.ClusterCheck {
	a.kubeconf = string(text)
	return wire.ClusterCheck{Cluster: c.Name, Results: []wire.TargetCheckResult{{Name: "server", IsGood: true, Detail: "answers"}, {Name: "rights", Detail: "may not", Hint: "bind it"}}}
}

func (a *attacher) DetachCluster(ctx context.Context, name string, purge, force bool, by string) error {
	if a.refusal != nil {
		return a.refusal
	}
	text := name + " by " + by
	if purge {
		text += " purge"
	}
	if force {
		text += " force"
	}
	a.asked = append(a.asked, text)
	return a.store.Write(ctx, func(tx inventory.Tx) error { return tx.Clusters().Delete(name) })
}

func TestClustersAreAttachedLookedOverAndDetached(t *testing.T) {
	a := &attacher{}
	r := newRig(t, func(c *Config) { a.store, c.Clusters = c.Store, a })
	ask := func(want int, method, path, body string, words ...string) {
		t.Helper()
		got := r.ask(method, path, body)
		if got.status != want {
			t.Fatalf("%s %s: %d, want %d: %s", method, path, got.status, want, got.body)
		}
		for _, w := range words {
			if !strings.Contains(got.body, w) {
				t.Errorf("%s %s: %s does not say %s", method, path, got.body, w)
			}
		}
	}
	ask(422, "PUT", "/api/v1/clusters/lab", `{"kubeconfig":"cluster-lab"}`, "does not exist", "slipway secret set")
	ask(200, "PUT", "/api/v1/secrets/cluster-lab", `{"value":"`+canary+`"}`)
	ask(422, "PUT", "/api/v1/clusters/lab", `{"kubeconfig":"cluster-lab","modes":["both"]}`, "not a mode")
	ask(200, "PUT", "/api/v1/clusters/lab?dryRun=true", `{"kubeconfig":"cluster-lab"}`, `"isDryRun":true`)
	ask(404, "GET", "/api/v1/clusters/lab", "")
	ask(200, "PUT", "/api/v1/clusters/lab", `{"kubeconfig":"cluster-lab","modes":["standalone"],"state":"attached"}`, `"state":"attaching"`, `"version":1`)
	ask(409, "DELETE", "/api/v1/secrets/cluster-lab", "", "cluster lab")

	stored := inventory.Cluster{Name: "lab", State: inventory.ClusterAttached, UID: "u-1", Kubernetes: "v1.36.3"}
	if err := a.store.Write(context.Background(), func(tx inventory.Tx) error { return tx.NoteCluster(&stored) }); err != nil {
		t.Fatal(err)
	}
	ask(200, "PUT", "/api/v1/clusters/lab", `{"kubeconfig":"cluster-lab","modes":["standalone"]}`, `"state":"attached"`, `"version":1`)
	ask(200, "PUT", "/api/v1/clusters/lab", `{"kubeconfig":"cluster-lab"}`, `"state":"attaching"`, `"uid":"u-1"`, `"version":2`)
	ask(200, "GET", "/api/v1/clusters", "", `"name":"lab"`, `"state":"attaching"`)
	ask(200, "GET", "/api/v1/clusters/lab/check", "", `"isGood":false`, "bind it")
	if a.kubeconf != "" {
		t.Errorf("the stored kubeconfig was not used: %q", a.kubeconf)
	}
	ask(200, "POST", "/api/v1/clusters/check", `{"name":"other","kubeconfig":"text of it"}`, `"cluster":"other"`)
	if a.kubeconf != "text of it" {
		t.Errorf("checked with %q", a.kubeconf)
	}
	ask(422, "POST", "/api/v1/clusters/check", `{"name":"Other","kubeconfig":"text of it"}`)

	ask(200, "DELETE", "/api/v1/clusters/lab?dryRun=true", "", `"isDryRun":true`)
	ask(404, "DELETE", "/api/v1/clusters/other", "")
	a.refusal = inventory.Errorf(inventory.Unavailable, "it does not answer").WithHint("use force")
	ask(503, "DELETE", "/api/v1/clusters/lab", "", "use force")
	a.refusal = nil
	ask(204, "DELETE", "/api/v1/clusters/lab?purge=true&force=true", "")
	if len(a.asked) != 1 || !strings.HasPrefix(a.asked[0], "lab by ") || !strings.HasSuffix(a.asked[0], " purge force") {
		t.Errorf("asked for %q", a.asked)
	}
	ask(404, "GET", "/api/v1/clusters/lab", "")
}
