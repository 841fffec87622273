package provision

import (
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

func TestABootOfTheAgentIsOverWhenTheOperationIsPastItsWork(t *testing.T) {
	for _, c := range []struct {
		name  string
		step  inventory.Step
		state inventory.OperationState
		want  bool
	}{
		{"it wipes", inventory.StepWipe, inventory.OpRunning, false},
		{"it inspects", inventory.StepInspect, inventory.OpRunning, false},
		{"it is restarted to try again", inventory.StepPower, inventory.OpRunning, false},
		{"it is waited for", inventory.StepNetboot, inventory.OpRunning, false},
		{"it goes into what it wrote", inventory.StepReboot, inventory.OpRunning, true},
		{"that is waited for", inventory.StepFirstBoot, inventory.OpRunning, true},
		{"hooks are waited for after the wipe", inventory.StepPreRelease, inventory.OpWaiting, true},
		{"it is switched off", inventory.StepRest, inventory.OpRunning, true},
		{"all is done", inventory.StepRest, inventory.OpDone, true},
		{"all is done with its last task", inventory.StepInspect, inventory.OpDone, true},
		{"it failed", inventory.StepWipe, inventory.OpFailed, false},
		{"it failed after it", inventory.StepRest, inventory.OpFailed, false},
		{"it was cancelled", inventory.StepRest, inventory.OpCancelled, false},
	} {
		if got := ledger.IsAfterAgent(&inventory.Operation{Step: c.step, State: c.state}); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
