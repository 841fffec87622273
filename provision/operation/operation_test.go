package operation

import (
	"slices"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// TestNoOperationBootsOurAgentToCleanNothing: a host whose disks stay as they are is fenced, and not started again.
func TestNoOperationBootsOurAgentToCleanNothing(t *testing.T) {
	for mode, want := range map[inventory.CleanMode]bool{inventory.CleanNone: false, inventory.CleanQuick: true} {
		way := Steps(inventory.OpRelease, Params{Clean: mode, MustInspect: true})
		if !slices.Contains(way, inventory.StepFence) {
			t.Errorf("%s: the way has no fence: %v", mode, way)
		}
		if got := slices.ContainsFunc(way, needsAgent); got != want {
			t.Errorf("%s: our agent is needed: %v, want %v: %v", mode, got, want, way)
		}
	}
}

func TestAnAgentThatWasHeardBeforeItsMachineWasSwitchedOffIsNotBelieved(t *testing.T) {
	var a agents
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	s := &inventory.BootSession{ID: "s", StartedAt: now}
	before := a.count()
	if !a.heard("h", s, now, before) || !a.isHere("h", now) {
		t.Fatal("the agent is not known to run")
	}
	a.forget("h")
	if a.heard("h", s, now, a.count()) || a.isHere("h", now) {
		t.Error("the boot of before counts")
	}
	if a.heard("h", &inventory.BootSession{ID: "t"}, now, before) {
		t.Error("a request that came in before counts")
	}
}
