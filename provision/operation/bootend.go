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

// FoundOff notes that a controller, asked at some time, says that its host is off. A packet of the machine from a moment
// before counts more, until the controller reports off again. A packet of a machine that may be another one does not count.
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
