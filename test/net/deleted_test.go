package net_test

import (
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// TestPostgreSQLADeletedInstanceThatRunsOnIsRefused takes the database away from an instance that does not lead, and deletes it. It still
// reaches the leader, which answers it no more. With the database back, it ends, and is an instance again after its next start.
func TestPostgreSQLADeletedInstanceThatRunsOnIsRefused(t *testing.T) {
	needsLong(t, "20 seconds")
	j := newJoining(t)
	a, b := j.first, j.second
	b.Env = []string{a.Env[0], instanceEnv + "=b"}
	b.follow(a)
	a.awaits(t, 5*time.Second, "a alive leads, b alive")
	if _, err := b.API.AcceptRules.Create(t.Context(), inventory.AcceptRule{Name: "one", Selector: "mac"}); err != nil {
		t.Fatal(err)
	}
	route := func(verb string) {
		b.lab.In(b.Net.Server, "ip", "route", verb, "unreachable", "10.77.0.250/32")
	}
	route("add")
	a.awaits(t, 20*time.Second, "a alive leads, b silent")
	if _, err := b.API.AcceptRules.Create(t.Context(), inventory.AcceptRule{Name: "two", Selector: "mac"}); err != nil {
		t.Errorf("an instance without its database, which was not deleted, passes nothing on: %v", err)
	}
	within(t, 15*time.Second, "b is deleted", func() (bool, string) {
		err := a.API.Instances.Delete(t.Context(), "b")
		return err == nil, errText(err)
	})
	b.Process.WaitFor(`is not in the list: an admin has deleted it`, 1)
	_, err := b.API.AcceptRules.Create(t.Context(), inventory.AcceptRule{Name: "three", Selector: "mac"})
	if !inventory.IsKind(err, inventory.Unavailable) || !strings.Contains(err.Error(), "an admin has deleted it") {
		t.Errorf("a person at the deleted instance: %v", err)
	}
	said := b.lab.In(b.Net.Server, "curl", "-s", "-m", "20", "http://10.77.0.2/boot/script?mac=52:54:00:00:00:01")
	if !strings.Contains(said, "an admin has deleted it") {
		t.Errorf("a machine at the deleted instance reads %s", said)
	}
	if said := a.instances(t); said != "a alive leads" {
		t.Errorf("the list: %s", said)
	}

	route("del")
	select {
	case err := <-b.Process.Done:
		b.Process.Done <- err
	case <-time.After(20 * time.Second):
		t.Fatalf("the deleted instance goes on with the database:\n%s", b.Process.Text())
	}
	if said := b.Process.Text(); !strings.Contains(said, "its row was deleted") {
		t.Errorf("it does not say why it ends:\n%s", said)
	}
	b.Launch() // as systemd does
	a.awaits(t, 15*time.Second, "a alive leads, b alive")
}
