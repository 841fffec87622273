package lab

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/inventory"
)

// takeLife takes over the machines and the operations on their hosts.
func (b *board) takeLife(machines []inventory.Machine, ops []inventory.Operation) {
	for _, r := range b.rows {
		r.Op, r.Phase = inventory.Operation{}, ""
		for _, o := range ops {
			if o.HostID == r.HostID {
				r.Op = o
			}
		}
		for _, m := range machines {
			if m.Name != r.MachineName() {
				continue
			}
			r.Phase = m.Phase
			if m.Phase == inventory.MachineFailed {
				r.Problem = strings.TrimSuffix("machine "+m.Name+" failed: "+m.Reason+"; "+m.Hint, "; ")
			}
		}
	}
}

// lifeStep returns the step of an installed machine that an event completes, or -1.
func (r *row) lifeStep(ev inventory.Event) step {
	switch ev.Kind {
	case inventory.EventHostDiscovered, inventory.EventSessionStarted, inventory.EventDHCPDiscover:
		return stepHeard
	case inventory.EventInspected:
		return stepInspected
	case inventory.EventClaimed:
		return stepClaimed
	case inventory.EventAgentStarted:
		if r.At[stepClaimed] > 0 {
			return stepAgent
		}
	case inventory.EventOperation:
		if s := inventory.Step(datum(ev, "step")); s == inventory.StepReboot || s == inventory.StepFirstBoot {
			return stepWritten
		}
	case inventory.EventWiped:
		return stepWiped
	case inventory.EventStateChanged:
		from, to := inventory.State(datum(ev, "from")), inventory.State(datum(ev, "to"))
		switch {
		case from == inventory.Discovered:
			return stepAccepted
		case to == inventory.Active:
			return stepRunning
		case to == inventory.Cleaning:
			return stepFenced
		case from == inventory.Cleaning && to == inventory.Available:
			return stepFree
		}
	}
	return -1
}

// datum returns a text in the data of an event, or "".
func datum(ev inventory.Event, key string) string {
	m, _ := ev.Data.(map[string]any)
	text, _ := m[key].(string)
	return text
}

// progress describes how far the present operation is.
func (r row) progress() string {
	if r.Op.ID == "" {
		return ""
	}
	text := fmt.Sprintf("%s: %s", r.Op.Kind, r.Op.Step)
	if p := r.Op.Progress; p.Total > 0 || p.Bytes > 0 {
		text += fmt.Sprintf(" %.1f", float64(p.Bytes)/1e6)
		if p.Total > 0 {
			text += fmt.Sprintf(" of %.1f", float64(p.Total)/1e6)
		}
		text += fmt.Sprintf(" MB, %.1f MB/s", p.BytesPerSecond/1e6)
	}
	switch {
	case r.Op.State == inventory.OpWaiting:
		text += ", waits: " + r.Op.Reason
	case r.Op.AttemptN > 1:
		text += fmt.Sprintf(", attempt %d: %s", r.Op.AttemptN, r.Op.Reason)
	case r.Op.Progress.Detail != "":
		text += ", " + r.Op.Progress.Detail
	}
	return text
}

// lifeWord is the line below an installed machine.
func lifeWord(r row) string {
	switch {
	case r.Problem != "":
		return "stopped: " + r.Problem
	case r.Op.ID != "":
		return r.progress()
	case r.At[stepFree] > 0:
		return "wiped and free again"
	case r.At[stepRunning] > 0:
		return "machine " + r.MachineName() + " runs: " + strings.TrimPrefix(reportLine(r), "up: ")
	case r.Message != "":
		return r.Message
	}
	return "switched on, nothing heard yet"
}
