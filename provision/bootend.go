package provision

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// switchedOff notes that a machine was switched off or restarted by us, or by a person who says so: what began before that
// runs no more.
func (e *Engine) switchedOff(h inventory.HostID, began time.Time) {
	e.agents.forget(h)
	e.ledger.EndBoots(h, inventory.OutcomeAbandoned, "the power went off", func(b *inventory.BootSession) bool {
		return b.StartedAt.Before(began) && b.Proof != inventory.ProofNone
	})
}

// foundOff notes that a controller, asked at some time, says that its host is off. A machine that was heard a moment before
// is believed more, until the controller says so again; and one that may be another machine is no matter of this host's power.
func (e *Engine) foundOff(h inventory.HostID, asked time.Time) {
	e.ledger.EndBoots(h, inventory.OutcomeAbandoned, "its controller says that the power is off", func(b *inventory.BootSession) bool {
		return b.LastAt.Before(asked.Add(-hereFor)) && b.Proof != inventory.ProofNone
	})
}

// begins ends the boots that a host began before at other ports: it has one boot at a time.
func (e *Engine) begins(s *inventory.BootSession) {
	e.ledger.EndBoots(s.HostID, inventory.OutcomeAbandoned, fmt.Sprintf("it boots from %s instead", s.MAC), func(b *inventory.BootSession) bool {
		return b.ID != s.ID && b.MAC != s.MAC && b.StartedAt.Before(s.StartedAt)
	})
}

// endBootsOf ends the boots that were for an operation which has ended: what they booted runs and reports nothing, or our
// agent has left.
func (j *job) endBootsOf() {
	isHere, outcome := j.isHere(), inventory.OutcomeAbandoned
	if j.op.State == inventory.OpDone {
		outcome = inventory.OutcomeArrived
	}
	j.e.ledger.EndBoots(j.host.ID, outcome, describeOperation(&j.op)+" is "+string(j.op.State), func(b *inventory.BootSession) bool {
		return b.Operation == j.op.ID && (b.Boot == string(pxe.BootImage) || b.Boot == string(pxe.BootAgent) && !isHere)
	})
}
