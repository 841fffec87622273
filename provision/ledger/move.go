package ledger

import (
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
)

// Move is the only place where a host changes state. It stores h in its new state, together with the event that says why.
// refs is what the reason names besides the host and its machine.
func (l *Ledger) Move(tx inventory.Tx, h *inventory.Host, on inventory.Trigger, s inventory.SessionID, reason string, refs ...inventory.Ref) error {
	// The table of states decides. A trigger that the state does not know is an error, and nothing is written.
	to, err := h.State.Next(on)
	if err != nil {
		return err
	}
	now, from := l.Now(), h.State
	refs = inventory.OfMachine(h.Machine, refs...)
	if to != from {
		h.StateSinceAt = now
	}
	h.State, h.StateReason = to, inventory.Clean(reason, 500)
	h.Refs = ref.In(h.StateReason, append(h.Refs, refs...)...)
	if err := tx.UpdateHost(h, now); err != nil {
		return fmt.Errorf("store host %s: %w", h.Name, err)
	}
	if to == from {
		return nil
	}
	if to == inventory.Available {
		// In this transaction: a crash after the commit cannot leave a free host that no waiting machine was offered.
		if err := l.cfg.Freed(tx, h); err != nil {
			return err
		}
	}
	return tx.AddEvent(&inventory.Event{
		At: now, Kind: inventory.EventStateChanged, HostID: h.ID, SessionID: s,
		Detail: fmt.Sprintf("%s → %s: %s", from, to, h.StateReason), Data: map[string]any{"from": from, "to": to, "on": on}, Refs: refs,
	})
}

// OpenIssue opens an issue, with its event when it was not open yet.
func (l *Ledger) OpenIssue(tx inventory.Tx, i inventory.Issue) error {
	now := l.Now()
	i, isTold, err := l.crowds.gather(tx, i, now)
	if err != nil || isTold {
		return err
	}
	opened, err := tx.OpenIssue(&i, now)
	if err != nil {
		return fmt.Errorf("open issue %s: %w", i.Key, err)
	}
	if !opened {
		return nil
	}
	l.Log.Warn("issue opened", "type", i.Type, "cause", i.Cause, "hint", i.Hint)
	return tx.AddEvent(l.issueEvent(i, inventory.EventIssueOpened, i.Type+": "+i.Cause))
}

// CloseIssue closes the issue with that key, with its event, if it is open.
func (l *Ledger) CloseIssue(tx inventory.Tx, i inventory.Issue, why string) error {
	// The issue may be part of one about several machines, whose key the caller does not know. That one ends with its last
	// machine.
	closed, err := tx.CloseIssue(i.Key, l.Now())
	if key := l.crowds.ungather(&i); err == nil && !closed && key != "" {
		i.Key = key
		closed, err = tx.CloseIssue(key, l.Now())
	}
	if err != nil || !closed {
		return err
	}
	return tx.AddEvent(l.issueEvent(i, inventory.EventIssueClosed, i.Type+": "+why))
}

func (l *Ledger) issueEvent(i inventory.Issue, kind, detail string) *inventory.Event {
	ev := &inventory.Event{
		At: l.Now(), Kind: kind, Detail: inventory.Clean(detail, 500), Data: map[string]any{"key": i.Key, "hint": i.Hint}, Refs: i.Refs,
	}
	if len(i.HostIDs) > 0 {
		// An event belongs to one host. The first is the one that the issue began with.
		ev.HostID = i.HostIDs[0]
	}
	if i.Subnet != "" {
		ev.Subject = "subnet/" + i.Subnet
	}
	return ev
}

// MachineData adds to the data of an event which machine it is about, and whose that is.
func MachineData(m *inventory.Machine, data map[string]any) map[string]any {
	data["machine"], data["uid"] = m.Name, m.UID
	if m.Owner != "" {
		data["owner"] = m.Owner
	}
	return data
}

// Edit stores a host that keeps its state, with the event that says what was changed.
func (l *Ledger) Edit(tx inventory.Tx, h *inventory.Host, detail string) error {
	now := l.Now()
	if err := tx.UpdateHost(h, now); err != nil {
		return err
	}
	return tx.AddEvent(&inventory.Event{At: now, Kind: inventory.EventHostChanged, HostID: h.ID, Detail: detail})
}

// MoveIf moves a host as Move does, if its state knows the trigger: a person may have moved it meanwhile.
func (l *Ledger) MoveIf(tx inventory.Tx, h *inventory.Host, on inventory.Trigger, why string, refs ...inventory.Ref) error {
	if _, err := h.State.Next(on); err != nil {
		return nil
	}
	return l.Move(tx, h, on, "", why, refs...)
}

// SaveMachine stores a machine with the event that says what changed. refs is what its reason and the detail name besides it.
func (l *Ledger) SaveMachine(tx inventory.Tx, m *inventory.Machine, detail string, refs ...inventory.Ref) error {
	m.Refs = ref.In(m.Reason+" "+m.Hint, append(m.Refs, refs...)...)
	if err := tx.UpdateMachine(m, l.Now()); err != nil {
		return fmt.Errorf("store machine %s: %w", m.Name, err)
	}
	return l.NoteMachine(tx, m, detail, refs...)
}

// NoteMachine adds an event about a machine to the timeline.
func (l *Ledger) NoteMachine(tx inventory.Tx, m *inventory.Machine, detail string, refs ...inventory.Ref) error {
	return tx.AddEvent(&inventory.Event{
		At: l.Now(), Kind: inventory.EventMachine, HostID: m.HostID, Subject: "machine/" + m.Name, Detail: inventory.Clean(detail, 500),
		Data: MachineData(m, map[string]any{"phase": m.Phase, "claim": m.ClaimID}), Refs: refs,
	})
}
