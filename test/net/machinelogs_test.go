package net_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/web/client"
)

// TestPostgreSQLLogsOfMachinesAreReadAfterATakeover has a machine send a log to the leader. After a takeover it lies on the disk of an
// instance that does not lead. People read it at each instance while that one runs, and read whose disk has it while it does not.
func TestPostgreSQLLogsOfMachinesAreReadAfterATakeover(t *testing.T) {
	needsLong(t, "20 seconds")
	both := newInstances(t, "a", "b")
	a, b := both[0], both[1]
	ctx := t.Context()
	a.Start()
	b.follow(a)
	a.Good(a.Boot(ctx, simulate.Config{Hosts: 1, Seed: 3, Expect: simulate.StageWaiting}))
	var s inventory.BootSession
	for one, err := range a.API.Sessions.All(ctx, client.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		s = one
	}
	a.lab.In(a.Net.Client, "ip", "addr", "add", s.Address.String()+"/16", "dev", a.Net.ClientIf)
	const text = "the disk sda clicks"
	said := a.lab.In(a.Net.Client, "curl", "-s", "-S", "-m", "10", "--interface", s.Address.String(), "-w", "%{http_code}",
		"--data-binary", text, "http://10.77.0.1/boot/"+string(s.ID)+"/report?step=progress")
	if !strings.HasSuffix(said, "200") {
		t.Fatalf("the report of the machine is answered %s", said)
	}
	// log returns what the event of the report says at an instance.
	log := func(at *appliance) string {
		page, err := at.API.Events(ctx, client.EventQuery{Limit: 1000, Session: s.ID})
		if err != nil {
			return err.Error()
		}
		for _, e := range page.Items {
			data, _ := e.Data.(map[string]any)
			if data["logRef"] == nil {
				continue
			}
			if away, _ := data["logAway"].(string); away != "" {
				return "away: " + away
			}
			text, _ := data["log"].(string)
			return text
		}
		return "no event has a log"
	}
	reads := func(what string, at *appliance, want string) {
		t.Helper()
		within(t, 15*time.Second, what, func() (bool, string) {
			said := log(at)
			return said == want, said
		})
	}
	reads("at the leader", a, text)
	reads("at the other one", b, text)

	a.Process.Kill(syscall.SIGTERM)
	b.Process.WaitFor("API on", 1)
	reads("while a is stopped", b, "away: a")
	a.Launch()
	a.Process.WaitFor("this one serves on its behalf", 1)
	reads("at the new leader, of the old one's disk", b, text)
	reads("at the old leader, by way of the new one", a, text)
	a.Process.Kill(syscall.SIGKILL)
	reads("while a is dead", b, "away: a")
}
