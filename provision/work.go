package provision

import (
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// workOf says what an open operation wants of the host's next boot, nil for nothing in particular. It is pure.
func workOf(o *inventory.Operation, h *inventory.Host) *pxe.Work {
	what := describeOperation(o)
	agent := &pxe.Work{Boot: pxe.BootAgent, Reason: what + ": " + string(o.Step)}
	disk := &pxe.Work{Boot: pxe.BootDisk, Reason: what + ": " + string(o.Step) + "; it boots from its own disk"}
	road := paramsOf(o).Road
	image := &pxe.Work{Boot: pxe.BootImage, Reason: what}
	switch o.Step {
	case inventory.StepPreDrain, inventory.StepDrain, inventory.StepPreFence: // its system runs on until it is fenced
		if road == RoadLive {
			return image
		}
		return disk
	case inventory.StepFence, inventory.StepForget: // any boot of a host that is to be fenced ends in our agent: that is a fence as well
		if o.Kind == inventory.OpRemediate {
			return disk
		}
		return agent
	case inventory.StepReboot, inventory.StepFirstBoot, inventory.StepPostJoin:
		if road == RoadLive {
			return image
		}
		disk.Reason = "installed: it boots from its own disk; its report to Slipway is due"
		if o.Kind == inventory.OpRemediate {
			disk.Reason = what + ": it boots from its own disk; its report to Slipway is due"
		}
		return disk
	case inventory.StepSet:
		return nil
	case inventory.StepBudget, inventory.StepPreBoot, inventory.StepPreClean, inventory.StepPreRelease:
		if o.State == inventory.OpWaiting {
			return &pxe.Work{Boot: pxe.BootWait, Reason: fmt.Sprintf("%s: %s", what, o.Reason), Hint: o.Hint}
		}
	case inventory.StepRest:
		return &pxe.Work{Boot: pxe.BootWait, Reason: what + " is done", Hint: "it is switched off, or waits for a machine that claims it"}
	}
	switch {
	case o.Kind == inventory.OpRemediate:
		return disk
	case headingFor(o) == inventory.StepWrite && road == RoadDisk, needsAgent(headingFor(o)):
		return agent
	}
	return image
}
