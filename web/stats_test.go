package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/web/wire"
)

func TestStatsAreWhatWasSampled(t *testing.T) {
	var asked time.Duration
	r := newRig(t, func(c *Config) {
		c.Samples = func(step time.Duration) []wire.Sample {
			asked = step
			return []wire.Sample{{At: testStart, DHCPReplies: 12.5}}
		}
	})
	var got wire.Stats
	r.must(http.StatusOK, &got, "GET", "/api/v1/stats", "")
	if asked != time.Minute || got.StepSeconds != 60 || len(got.Samples) != 1 || got.Samples[0].DHCPReplies != 12.5 {
		t.Errorf("asked for %s, got %+v", asked, got)
	}
	r.must(http.StatusOK, &got, "GET", "/api/v1/stats?step=5", "")
	if asked != 5*time.Second || got.StepSeconds != 5 {
		t.Errorf("asked for %s, got %+v", asked, got)
	}
	r.must(http.StatusUnprocessableEntity, nil, "GET", "/api/v1/stats?step=7", "")
}

func TestTheStateOfTheDatabaseIsShown(t *testing.T) {
	r := newRig(t, nil)
	r.must(http.StatusServiceUnavailable, nil, "GET", "/api/v1/database", "")
	no := false
	r = newRig(t, func(c *Config) {
		c.Database = func() wire.Database {
			return wire.Database{Kind: wire.DatabasePostgreSQL, IsReachable: true, IsDurable: &no, Risks: []wire.DatabaseRisk{{Cause: "fsync is off"}}, Standbys: []wire.DatabaseStandby{}}
		}
	})
	var got wire.Database
	r.must(http.StatusOK, &got, "GET", "/api/v1/database", "")
	if got.Kind != "postgresql" || !got.IsReachable || got.IsDurable == nil || *got.IsDurable || len(got.Risks) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestAboutNamesWhatIsBuiltIn(t *testing.T) {
	r := newRig(t, nil)
	var got wire.About
	r.must(http.StatusOK, &got, "GET", "/api/v1/about", "")
	if got.Version != "test" || !strings.HasPrefix(got.Go, "go") || !got.StartedAt.Equal(testStart) {
		t.Errorf("got %+v", got)
	}
}
