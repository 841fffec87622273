package operation

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

const (
	// drainAgain and forgetAgain are the pauses between two calls; nodeCallFor bounds one.
	drainAgain  = 5 * time.Second
	forgetAgain = 10 * time.Second
	nodeCallFor = 30 * time.Second
)

// tend asks how far a node is, outside of every transaction, and moves the operation on.
func (o *Operator) tend(ctx context.Context, op inventory.Operation, h inventory.Host) error {
	var m *inventory.Machine
	err := o.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		m, err = nodeStep{&Job{o: o, Tx: tx, op: op, Host: h, P: ParamsOf(&op)}}.node()
		return err
	})
	if err != nil {
		return err
	}
	var state inventory.DrainState
	var problem error
	if m != nil {
		nctx, cancel := context.WithTimeout(ctx, nodeCallFor)
		defer cancel()
		switch {
		case op.Step == inventory.StepForget:
			problem = o.cfg.Nodes.Forget(nctx, *m, h)
		case m.Drain.IsSkipped:
		default:
			state, problem = o.cfg.Nodes.Drain(nctx, *m, h, progressOf(&op).DrainAt)
		}
		if ctx.Err() != nil {
			return nil // the server stops; the operation is still due when it starts again
		}
	}
	return o.atStep(ctx, op, func(j *Job) error {
		n := nodeStep{j}
		m, err := n.node()
		if err != nil {
			return err
		}
		if m == nil {
			return j.forward()
		}
		if j.op.Step == inventory.StepForget {
			return n.forgotten(m, problem)
		}
		return n.drained(m, state, problem)
	})
}

// drained notes how far the node is: it is empty, it takes more time, or the time for it is over.
func (j nodeStep) drained(m *inventory.Machine, state inventory.DrainState, problem error) error {
	if m.Drain.IsSkipped {
		if err := j.note("node "+m.Drain.Node+" is not emptied: its pods are left where they are", nil); err != nil {
			return err
		}
		return j.forward()
	}
	p := progressOf(&j.op)
	if problem != nil {
		state = inventory.DrainState{Reason: "WorkloadClusterUnreachable", Detail: inventory.Clean(ledger.PublicMessage(problem), 300)}
	}
	if len(state.BlockedBy) > 16 {
		state.BlockedBy = state.BlockedBy[:16]
	}
	limit := time.Duration(m.Drain.Timeout)
	isLate := !state.IsDone && limit > 0 && j.o.cfg.Now().Sub(p.DrainAt) >= limit
	if isLate {
		state.Reason = "DrainTimeout"
	}
	isNews := p.Drain == nil || !reflect.DeepEqual(*p.Drain, state)
	p.Drain = &state
	if err := j.keepNode(p); err != nil {
		return err
	}
	said := ledger.Because("node "+m.Drain.Node+" is being emptied", state.Detail)
	switch {
	case state.IsDone:
		if err := j.note("node "+m.Drain.Node+" is empty", drainData(state)); err != nil {
			return err
		}
		return j.forward()
	case isLate && !m.Drain.IsBlocking:
		if err := j.note(fmt.Sprintf("node %s is not empty after %s, and is fenced anyway: %s", m.Drain.Node, m.Drain.Timeout, state.Detail), drainData(state)); err != nil {
			return err
		}
		return j.forward()
	case isLate:
		return j.wait(fmt.Sprintf("node %s is not empty after %s: %s", m.Drain.Node, m.Drain.Timeout, state.Detail),
			"repair what keeps its pods; or delete the machine with --force", drainAgain)
	}
	return j.goOn(said, isNews, drainData(state), drainAgain)
}

func drainData(s inventory.DrainState) map[string]any {
	return map[string]any{"reason": s.Reason, "blockedBy": s.BlockedBy}
}

// forgotten notes that the node's object is gone, or that it will not go.
func (j nodeStep) forgotten(m *inventory.Machine, problem error) error {
	p := progressOf(&j.op)
	limit := time.Duration(m.Drain.ForgetTimeout)
	line := "node " + m.Drain.Node + " is deleted in cluster " + m.Drain.Target
	if problem != nil {
		line = ledger.Because("node "+m.Drain.Node+" is not deleted in cluster "+m.Drain.Target, inventory.Clean(ledger.PublicMessage(problem), 300))
		if limit == 0 || j.o.cfg.Now().Sub(p.ForgetAt) < limit {
			return j.goOn(line, j.op.Reason != line, map[string]any{"reason": "WorkloadClusterUnreachable"}, forgetAgain)
		}
		line += fmt.Sprintf("; after %s it is left to people", m.Drain.ForgetTimeout)
	}
	p.IsForgotten = true
	if err := j.keepNode(p); err != nil {
		return err
	}
	if err := j.note(line, nil); err != nil {
		return err
	}
	return j.forward()
}

// goOn leaves a step as it is, with the reason that everybody sees, and looks again after a while.
func (j nodeStep) goOn(reason string, isNews bool, data map[string]any, again time.Duration) error {
	j.op.State, j.op.Reason, j.op.Hint, j.op.NextAt = inventory.OpRunning, reason, "", j.o.cfg.Now().Add(again)
	if isNews {
		if err := j.note(reason, data); err != nil {
			return err
		}
	}
	return j.save()
}
