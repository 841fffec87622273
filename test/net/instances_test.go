package net_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// instances says in words what an appliance tells of all instances.
func (a *appliance) instances(t *testing.T) string {
	var all []string
	for i, err := range a.API.Instances.All(t.Context(), client.Query{}) {
		if err != nil {
			return err.Error()
		}
		said := i.Name + " " + i.Life
		if i.IsDrained {
			said += " drained"
		}
		if i.IsLeader {
			said += " leads"
		}
		all = append(all, said)
	}
	return strings.Join(all, ", ")
}

// awaits waits until an appliance tells so of the instances.
func (a *appliance) awaits(t *testing.T, limit time.Duration, want string) {
	t.Helper()
	within(t, limit, want, func() (bool, string) {
		said := a.instances(t)
		return said == want, said
	})
}

// silence returns the open issue that an instance gives no sign of life.
func (a *appliance) silence(t *testing.T) (cause string) {
	for i, err := range a.API.Issues.All(t.Context(), client.Query{}) {
		if err != nil {
			return err.Error()
		}
		if i.Type == inventory.IssueInstance {
			cause = i.Cause
		}
	}
	return cause
}

// TestPostgreSQLAnInstanceIsDrainedForItsUpdate takes the leader out for maintenance and back. Then the leader dies,
// and its silence is an issue until it is deleted.
func TestPostgreSQLAnInstanceIsDrainedForItsUpdate(t *testing.T) {
	both := newInstances(t, "a", "other")
	s, other := &sufferer{appliance: both[0]}, both[1]
	s.Start()
	ctx := t.Context()
	var self wire.Instance
	for i, err := range s.API.Instances.All(ctx, client.Query{}) {
		if err != nil || !i.IsThis {
			t.Fatalf("%+v: %v", i, err)
		}
		self = i
	}
	if _, err := s.API.Instances.Drain(ctx, self.Name); err == nil || !strings.Contains(err.Error(), "no other instance is alive") {
		t.Fatalf("the only instance is drained: %v", err)
	}
	other.follow(both[0])
	with := func(a, b string) string { return "a " + a + ", other " + b }
	s.awaits(t, 5*time.Second, with("alive leads", "alive"))
	if k, ok := s.check("instances"); !ok || k.Status != "ok" || !strings.Contains(k.Detail, "2 of 2 are alive") {
		t.Errorf("the self-check says %+v", k)
	}

	if _, err := s.API.Instances.Drain(ctx, self.Name); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "the other one leads", func() (bool, string) {
		said := other.Process.Text()
		return strings.Contains(said, "API on"), said
	})
	select {
	case err := <-s.Process.Done:
		s.Process.Done <- err
	case <-time.After(10 * time.Second):
		t.Fatal("the drained server goes on")
	}
	s.Launch() // as systemd does
	other.awaits(t, 10*time.Second, with("alive drained", "alive leads"))
	if _, err := other.API.Instances.Drain(ctx, "other"); err == nil || !strings.Contains(err.Error(), self.Name+" is drained") {
		t.Errorf("the last one is drained: %v", err)
	}
	if err := other.API.Instances.Delete(ctx, self.Name); err == nil || !strings.Contains(err.Error(), "it runs") {
		t.Errorf("one that runs is deleted: %v", err)
	}
	if _, err := other.API.Instances.Undrain(ctx, self.Name); err != nil {
		t.Fatal(err)
	}
	other.awaits(t, 5*time.Second, with("alive", "alive leads"))

	other.Process.Kill(syscall.SIGKILL)
	within(t, 15*time.Second, "the first one leads again", func() (bool, string) {
		said := s.Process.Text()
		return strings.Contains(said, "API on"), said
	})
	within(t, 20*time.Second, "the silence is an issue", func() (bool, string) {
		said := s.silence(t)
		took := fmt.Sprintf("instance %s took its duty engine", self.Name)
		return strings.HasPrefix(said, "instance other gives no sign of life since 2") && strings.Contains(said, took), said
	})
	if i, err := s.API.Instances.Get(ctx, self.Name); err != nil || len(i.Duties) == 0 || i.Duties[0].Former != "other" ||
		!strings.Contains(i.Duties[0].Reason, "instance other gave no sign of life for 9s") {
		t.Errorf("it says %+v: %v", i, err)
	}
	if k, ok := s.check("instances"); !ok || k.Status != "warning" || !strings.Contains(k.Detail, "other is silent") {
		t.Errorf("the self-check says %+v", k)
	}
	metrics := s.lab.In(s.Net.Server, "curl", "-s", "-H", "Authorization: Bearer "+s.firstToken(), "http://127.0.0.1:8067/metrics")
	for _, want := range []string{
		`slipway_instances{life="silent"} 1`, `slipway_instance_leader{instance="` + self.Name + `"} 1`,
		`slipway_duty_epoch{duty="engine"} 3`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if err := s.API.Instances.Delete(ctx, "other"); err != nil {
		t.Fatal(err)
	}
	within(t, 15*time.Second, "no instance is missed", func() (bool, string) {
		said := s.silence(t)
		return said == "", said
	})
}
