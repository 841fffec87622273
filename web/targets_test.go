package web

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func TestAnAdministratorOfAClusterIsLetInForAsLongAsWasAsked(t *testing.T) {
	var asked string
	r := newRig(t, func(c *Config) {
		c.IssueKubeconfig = func(_ context.Context, target, who string, life time.Duration) ([]byte, error) {
			asked = fmt.Sprintf("%s %s %s", target, who, life)
			if target == "other" {
				return nil, inventory.Errorf(inventory.Conflict, "its authorities are not here")
			}
			return []byte("kind: Config"), nil
		}
	})
	for _, c := range []struct {
		target, body string
		status       int
		asked        string // what the cluster's side was asked for, "" for nothing
	}{
		{"lab", `{}`, 200, "lab slipway:"},
		{"lab", `{"for":"1h"}`, 200, " 1h0m0s"},
		{"lab", `{"for":"1s"}`, 422, ""},
		{"lab", `{"for":"200000h"}`, 422, ""},
		{"lab", `{"for":"soon"}`, 422, ""},
		{"other", `{}`, 409, "other "},
	} {
		asked = ""
		got := r.ask("POST", "/api/v1/targets/"+c.target+"/kubeconfig", c.body)
		if got.status != c.status || !strings.Contains(asked, c.asked) || c.asked == "" && asked != "" {
			t.Errorf("%s %s: %d %s, asked %q", c.target, c.body, got.status, got.body, asked)
		}
		if c.status == 200 && (!strings.Contains(got.body, `"kubeconfig":"kind: Config"`) || !strings.Contains(got.body, `"expiresAt":"`)) {
			t.Errorf("answer: %s", got.body)
		}
	}
	if got := newRig(t, nil).ask("POST", "/api/v1/targets/lab/kubeconfig", `{}`); got.status != 503 || !strings.Contains(got.body, "speaks to no clusters") {
		t.Errorf("without clusters: %d %s", got.status, got.body)
	}
}
