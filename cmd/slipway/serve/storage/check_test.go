package storage

import (
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/inventory/sqlstore/postgres"
)

// The self-check warns about what makes answers wrong or slow, and about nothing else.
func TestTheSelfCheckJudgesADatabaseThatAnswers(t *testing.T) {
	s := Settings{URL: "postgres://slipway@127.0.0.1/slipway"}
	for name, c := range map[string]struct {
		change func(*postgres.Health)
		says   string
	}{
		"all is well":               {func(*postgres.Health) {}, ""},
		"a clock that is a bit off": {func(h *postgres.Health) { h.Ahead = -1900 * time.Millisecond }, ""},
		"a slow way is no clock":    {func(h *postgres.Health) { h.RoundTrip, h.Ahead = 6*time.Second, 4*time.Second }, ""},
		"a clock that is ahead":     {func(h *postgres.Health) { h.Ahead = time.Hour }, "the clock of this machine is 1h0m0s ahead of"},
		"a clock that is behind":    {func(h *postgres.Health) { h.Ahead = -3 * time.Second }, "3s behind"},
		"an index is missing":       {func(h *postgres.Health) { h.Slow = []string{"index leases_by_mac"} }, "index leases_by_mac is missing"},
	} {
		h := postgres.Health{FSync: true, FullPageWrites: true, SynchronousCommit: "on", RoundTrip: time.Millisecond}
		c.change(&h)
		k := s.judge(&h)
		if c.says == "" && k.Status != doctor.OK || c.says != "" && (k.Status != doctor.Warning || !strings.Contains(k.Detail, c.says) || k.Hint == "") {
			t.Errorf("%s: %+v, want %q", name, k, c.says)
		}
	}
}
