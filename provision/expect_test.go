package provision

import (
	"context"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/pxe"
)

// stalledIssues returns the open issues of a type.
func (r *rack) stalledIssues(kind string) (found []inventory.Issue) {
	r.must(r.store.Read(context.Background(), func(tx inventory.Tx) error {
		all, err := tx.ListIssues(false, "")
		for _, i := range all {
			if i.Type == kind {
				found = append(found, i)
			}
		}
		return err
	}))
	return found
}

func TestABootThatStandsStillOpensAnIssueUntilItGoesOn(t *testing.T) {
	r := newRack(t)
	m := r.machine(1)
	m.boot()
	m.accept()
	r.clock = r.clock.Add(time.Hour)
	m.dhcp(pxe.StageFirmware) // a new boot: it has its address, and fetches no loader
	look := func() { r.must(lookOver(r.engine)) }
	look()
	if open := r.stalledIssues(inventory.IssueStalled); len(open) != 0 {
		t.Fatalf("before its deadline: %+v", open)
	}
	var next *watch.Expected
	r.must(r.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		next, err = r.engine.Expects(tx, m.host())
		return err
	}))
	if next == nil || next.IsLate || next.By.IsZero() || !strings.Contains(next.What, "loader") {
		t.Errorf("expected next: %+v", next)
	}
	r.clock = r.clock.Add(61 * time.Second)
	look()
	look()
	open := r.stalledIssues(inventory.IssueStalled)
	if len(open) != 1 || open[0].SeenN != 1 || !strings.Contains(open[0].Cause, "loader") || open[0].Hint == "" {
		t.Fatalf("after its deadline: %+v", open)
	}
	m.dhcp(pxe.StageIPXE) // it goes on
	look()
	if open := r.stalledIssues(inventory.IssueStalled); len(open) != 0 {
		t.Errorf("after it went on: %+v", open)
	}
}

func TestDeadlinesAreThoseOfTheConfiguration(t *testing.T) {
	limits := operation.Limits{Deadlines: map[string]time.Duration{"netboot": time.Second, inventory.EventDHCPAck: 2 * time.Second, "wipe": time.Minute}}
	if l := limits.Of(inventory.StepNetboot); l.Within != time.Second || l.Expect == "" {
		t.Errorf("netboot: %+v", l)
	}
	if l := limits.Of(inventory.StepWipe); l.Begin() != time.Minute {
		t.Errorf("the first sign of a wipe may come %s after it is due", l.Begin())
	}
	if l := limits.Of(inventory.StepBudget); l.Within != 0 {
		t.Errorf("what waits for people has a deadline: %+v", l)
	}
	for _, name := range operation.StepNames() {
		if name == "" {
			t.Error("a step without a name")
		}
	}
}
