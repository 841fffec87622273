package net_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/test/line"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/test/postgres"
)

// TestPostgreSQLASlowDatabaseOnlyDelays has two instances whose database answers 200 ms later than it could. Machines that boot then get
// their addresses and scripts, people can change things, and no instance takes a duty from another.
func TestPostgreSQLASlowDatabaseOnlyDelays(t *testing.T) {
	needsLong(t, "two minutes")
	l := newLab(t)
	pg := postgres.Start(t, postgres.Options{})
	of := pg.Database(t)
	var both []*appliance
	var lines []*line.Line
	for i, a := range netlab.NewAppliances(l.Lab, "a", "b") {
		way := line.New(t, pg.Address())
		a.Env = []string{databaseEnv + "=" + way.SocketURL(t, of), instanceEnv + "=" + []string{"a", "b"}[i]}
		both, lines = append(both, &appliance{a, l}), append(lines, way)
	}
	leads, other := both[0], both[1]
	leads.Start()
	other.follow(leads)
	if _, err := leads.API.AcceptRules.Create(t.Context(), inventory.AcceptRule{Name: "all", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
	boots := simulate.Config{Hosts: 3, Seed: 1, Expect: simulate.StageWaiting, Timeout: 2 * time.Minute}
	leads.Good(leads.Boot(t.Context(), boots))

	for _, way := range lines {
		way.Slow(t, line.Answers, 200*time.Millisecond, 0)
	}
	changed := make(chan time.Duration, 1)
	go func() {
		var worst time.Duration
		for n := range 5 {
			began := time.Now()
			if _, err := other.API.AcceptRules.Create(t.Context(), inventory.AcceptRule{Name: fmt.Sprint("slow-", n), Selector: "mac"}); err != nil {
				t.Errorf("a change with a slow database: %v", err)
			}
			worst = max(worst, time.Since(began))
		}
		changed <- worst
	}()
	for seed := range uint64(3) {
		boots.Seed = 2 + seed
		r := leads.Boot(t.Context(), boots)
		leads.Good(r)
		for _, s := range r.Steps {
			t.Logf("%s: %s at most", s.Step, s.Max.Round(10*time.Millisecond))
		}
	}
	t.Logf("a change took %s at most", (<-changed).Round(10*time.Millisecond))
	if said := leads.Process.Text() + other.Process.Text(); strings.Count(said, "took duty") != 2 { // of the start
		t.Errorf("a duty has moved:\n%s", said)
	}
}
