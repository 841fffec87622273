package provision

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// endBoots ends the boots of a host that isOver says are over: its power is off, another boot has begun, or the operation
// that they were for has ended.
func (e *Engine) endBoots(h inventory.HostID, outcome inventory.Outcome, why string, isOver func(*inventory.BootSession) bool) {
	for _, b := range e.sessions.Boots(h) {
		if !b.EndedAt.IsZero() || !isOver(&b.BootSession) {
			continue
		}
		if b.Boot != string(pxe.BootAgent) { // our agent may still say its last words
			e.sessions.Close(b.MAC, b.ID)
		}
		e.end(b.BootSession, outcome, why)
	}
}

// switchedOff notes that a machine was switched off or restarted by us, or by a person who says so: what began before that
// runs no more.
func (e *Engine) switchedOff(h inventory.HostID, began time.Time) {
	e.agents.forget(h)
	e.endBoots(h, inventory.OutcomeAbandoned, "the power went off", func(b *inventory.BootSession) bool {
		return b.StartedAt.Before(began) && b.Proof != inventory.ProofNone
	})
}

// foundOff notes that a controller, asked at some time, says that its host is off. A machine that was heard a moment before
// is believed more, until the controller says so again; and one that may be another machine is no matter of this host's power.
func (e *Engine) foundOff(h inventory.HostID, asked time.Time) {
	e.endBoots(h, inventory.OutcomeAbandoned, "its controller says that the power is off", func(b *inventory.BootSession) bool {
		return b.LastAt.Before(asked.Add(-hereFor)) && b.Proof != inventory.ProofNone
	})
}

// begins ends the boots that a host began before at other ports: it has one boot at a time.
func (e *Engine) begins(s *inventory.BootSession) {
	e.endBoots(s.HostID, inventory.OutcomeAbandoned, fmt.Sprintf("it boots from %s instead", s.MAC), func(b *inventory.BootSession) bool {
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
	j.e.endBoots(j.host.ID, outcome, describeOperation(&j.op)+" is "+string(j.op.State), func(b *inventory.BootSession) bool {
		return b.Operation == j.op.ID && (b.Boot == string(pxe.BootImage) || b.Boot == string(pxe.BootAgent) && !isHere)
	})
}
