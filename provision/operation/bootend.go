package operation

import (
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// switchedOff notes that a machine was switched off or restarted by us, or by a person who says so: what began before that
// runs no more.
func (o *Operator) switchedOff(h inventory.HostID, began time.Time) {
	o.agents.forget(h)
	o.cfg.Ledger.EndBoots(h, inventory.OutcomeAbandoned, "the power went off", func(b *inventory.BootSession) bool {
		return b.StartedAt.Before(began) && b.Proof != inventory.ProofNone
	})
}

// FoundOff notes that a controller, asked at some time, says that its host is off. A machine that was heard a moment before
// is believed more, until the controller says so again; and one that may be another machine is no matter of this host's power.
func (o *Operator) FoundOff(h inventory.HostID, asked time.Time) {
	o.cfg.Ledger.EndBoots(h, inventory.OutcomeAbandoned, "its controller says that the power is off", func(b *inventory.BootSession) bool {
		return b.LastAt.Before(asked.Add(-hereFor)) && b.Proof != inventory.ProofNone
	})
}

// endBootsOf ends the boots that were for an operation which has ended: what they booted runs and reports nothing, or our
// agent has left.
func (j *Job) endBootsOf() {
	isHere, outcome := j.isHere(), inventory.OutcomeAbandoned
	if j.op.State == inventory.OpDone {
		outcome = inventory.OutcomeArrived
	}
	j.o.cfg.Ledger.EndBoots(j.Host.ID, outcome, Describe(&j.op)+" is "+string(j.op.State), func(b *inventory.BootSession) bool {
		return b.Operation == j.op.ID && (b.Boot == string(pxe.BootImage) || b.Boot == string(pxe.BootAgent) && !isHere)
	})
}
