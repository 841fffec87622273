package net_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// TestPostgreSQLAnInstanceWhoseClockIsSetGoesOn sets the clocks of both instances of a database while they run. They judge as before what
// has ended.
func TestPostgreSQLAnInstanceWhoseClockIsSetGoesOn(t *testing.T) {
	both := newInstances(t, "a", "b")
	a, b := &sufferer{appliance: both[0]}, &sufferer{appliance: both[1]}
	a.Start()
	b.follow(a.appliance)
	a.takeClock(t, 0)
	b.takeClock(t, 0)
	token := func(name string, goodFor time.Duration) string {
		var made struct{ Secret string }
		until := time.Now().Add(goodFor).UTC().Format(time.RFC3339Nano)
		said := a.lab.In(a.Net.Server, "curl", "-s", "-m", "20", "--unix-socket", a.Data+"/slipway.sock",
			"-H", "Content-Type: application/json",
			"-d", fmt.Sprintf(`{"name": %q, "grants": [{"role": "viewer"}], "expiresAt": %q}`, name, until),
			"http://slipway/api/v1/tokens")
		if err := json.Unmarshal([]byte(said), &made); err != nil || made.Secret == "" {
			t.Fatalf("no token: %s", said)
		}
		return made.Secret
	}
	reads := func(at *sufferer, secret string) string {
		said := at.lab.In(at.Net.Server, "curl", "-s", "-m", "20", "-w", " %{http_code}", "-H", "Authorization: Bearer "+secret,
			"http://127.0.0.1:8067/api/v1/hosts")
		return said[max(0, len(said)-3):]
	}
	long, short := token("long", time.Hour), token("short", 4*time.Second)
	if got := reads(b, short); got != "200" {
		t.Errorf("with a token that is good, b answers %s", got)
	}
	b.must(b.clock.Set(-2 * time.Hour))
	a.must(a.clock.Set(2 * time.Hour))
	if got := reads(a, long); got != "200" {
		t.Errorf("with a token that is good for an hour, a, whose clock is ahead, answers %s", got)
	}
	for _, of := range []struct{ name, says string }{{"a", "is 2h ahead of"}, {"b", "is 2h behind"}} {
		within(t, 15*time.Second, "the clock of "+of.name+" is an issue", func() (bool, string) {
			said := a.issueOf(t, inventory.IssueClockWrong, of.name)
			return strings.Contains(said, of.says), said
		})
	}
	// Both have looked at the clock of the database since.
	if got := reads(b, short); got != "401" {
		t.Errorf("with a token that has ended, b, whose clock is behind, answers %s", got)
	}
	if got := reads(a, long); got != "200" {
		t.Errorf("with a token that is good for an hour, a, whose clock is ahead, answers %s later", got)
	}
	a.must(a.clock.Set(-2 * time.Hour))
	b.must(b.clock.Set(2 * time.Hour))
	within(t, 15*time.Second, "all is well", func() (bool, string) {
		said := a.issueOf(t, inventory.IssueClockWrong, "a") + a.issueOf(t, inventory.IssueClockWrong, "b")
		return said == "", said
	})
	if got := reads(b, short) + reads(b, long) + reads(a, long); got != "401200200" {
		t.Errorf("in the end they answer %s", got)
	}
}
