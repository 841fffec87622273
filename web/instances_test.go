package web

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/wire"
)

// addInstance stores the row of a server that does not run.
func (r *rig) addInstance(name string) {
	r.t.Helper()
	err := r.store.Write(r.t.Context(), func(tx inventory.Tx) error {
		return tx.SaveInstance(inventory.Instance{
			ID: "id-" + name, Name: name, Addresses: []string{"10.0.0.9"}, Version: "0.1.0", StartedAt: testStart, SeenAt: testStart,
			IsDrained: true, DrainedAt: testStart,
		})
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestInstancesAreListedDrainedAndDeleted(t *testing.T) {
	r := newRig(t, nil)
	r.addInstance("old")
	var all struct{ Items []wire.Instance }
	r.must(200, &all, "GET", "/api/v1/instances", "")
	if len(all.Items) != 2 {
		t.Fatalf("%+v", all.Items)
	}
	old, self := all.Items[0], all.Items[1]
	isOld := old.Life == "stopped" && old.IsDrained && old.DrainedAt.Equal(testStart) && !old.IsThis
	if !isOld || old.QuietSeconds != nil || old.Duties == nil {
		t.Errorf("%+v", old)
	}
	if self.Name != "rig" || self.Life != "alive" || !self.IsThis || self.QuietSeconds == nil {
		t.Errorf("%+v", self)
	}
	r.refused(409, "POST", "/api/v1/instances/rig/drain", "a file of SQLite has one instance")
	r.refused(409, "DELETE", "/api/v1/instances/rig", "it runs, and answers this request")
	r.refused(404, "POST", "/api/v1/instances/nothing/drain", "nothing")
	old = wire.Instance{}
	r.must(200, &old, "POST", "/api/v1/instances/old/undrain", "")
	if old.IsDrained || !old.DrainedAt.IsZero() {
		t.Errorf("%+v", old)
	}
	r.must(200, &old, "POST", "/api/v1/instances/old/undrain", "") // again, which changes nothing
	r.must(200, nil, "DELETE", "/api/v1/instances/old?dryRun=true", "")
	r.must(204, nil, "DELETE", "/api/v1/instances/old", "")
	r.refused(404, "GET", "/api/v1/instances/old", "old")
	var audit struct{ Items []inventory.Audit }
	r.must(200, &audit, "GET", "/api/v1/audit?noun=instance", "")
	var done []string
	for _, a := range audit.Items {
		done = append(done, a.Operation+" "+a.Name+" "+string(a.Change))
	}
	got := strings.Join(done, "\n")
	for _, want := range []string{
		"delete-instance old delete", "undrain-instance old update", "drain-instance rig ", "delete-instance rig ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the audit has no %q:\n%s", want, got)
		}
	}
	r.eventsSay("instance old undrained by", 1)
}

// refused expects a refusal that says why, with a hint unless there is no such thing.
func (r *rig) refused(status int, method, path, why string) {
	r.t.Helper()
	a := r.ask(method, path, "")
	if a.status != status || !strings.Contains(a.body, why) || status != 404 && !strings.Contains(a.body, `"hint"`) {
		r.t.Errorf("%s %s: %d %s, want %d with %q", method, path, a.status, a.body, status, why)
	}
}

// eventsSay expects so many events of changes with a text.
func (r *rig) eventsSay(text string, want int) {
	r.t.Helper()
	err := r.store.Read(r.t.Context(), func(tx inventory.Tx) error {
		events, err := tx.ListEvents(inventory.EventFilter{Kind: inventory.EventChanged}, 0, 1000)
		n := 0
		for _, e := range events {
			if strings.HasPrefix(e.Detail, text) {
				n++
			}
		}
		if n != want {
			r.t.Errorf("%d events say %q, want %d", n, text, want)
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}
