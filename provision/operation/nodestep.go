package operation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
)

// nodeStep is an operation at a step that empties or deletes the Kubernetes node of a machine.
type nodeStep struct{ *Job }

// nodeProgress is what an operation keeps of the node: see inventory.Drained, whose words it has.
type nodeProgress struct {
	inventory.Drained
	DrainAt  time.Time `json:"drainAt,omitzero"`  // since when it is emptied
	ForgetAt time.Time `json:"forgetAt,omitzero"` // since when its object is to go
}

// progressOf reads what an operation keeps of the node.
func progressOf(o *inventory.Operation) (p nodeProgress) {
	if len(o.Result) > 0 && json.Unmarshal(o.Result, &p) != nil {
		return nodeProgress{} // the outcome of another step
	}
	return p
}

func (j nodeStep) keepNode(p nodeProgress) error {
	b, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode what became of a node: %w", err)
	}
	j.op.Result = b
	return nil
}

// node returns the machine whose node the operation empties and forgets, nil when there is none. Its claim is that of the
// node: a machine that is installed anew has the next one already.
func (j nodeStep) node() (*inventory.Machine, error) {
	if j.o.cfg.Nodes == nil {
		return nil, nil
	}
	m, err := j.machine()
	if err != nil || m == nil || m.Drain.Target == "" {
		return nil, err
	}
	m.ClaimID = inventory.ClaimID(cmp.Or(string(j.P.OldClaimID), string(j.op.ClaimID)))
	m.Drain.Node = m.NodeOf()
	return m, nil
}

// enterNode begins to empty or to forget a node. What was begun before a restart or a pause goes on.
func (j nodeStep) enterNode() (passes bool, err error) {
	m, err := j.node()
	if err != nil || m == nil || j.op.Step == inventory.StepDrain && m.Drain.IsSkipped {
		return err == nil, err
	}
	now, p := j.o.cfg.Now(), progressOf(&j.op)
	if at := &p.DrainAt; j.op.Step == inventory.StepDrain && at.IsZero() {
		*at = now
	}
	if at := &p.ForgetAt; j.op.Step == inventory.StepForget && at.IsZero() {
		*at = now
	}
	j.op.NextAt = now
	return false, j.keepNode(p)
}
