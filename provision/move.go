package provision

import (
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// move is the only place where a host changes state: it stores the host as it is in h, in its new state, together
// with the event that says why.
func (e *Engine) move(tx inventory.Tx, h *inventory.Host, on inventory.Trigger, s inventory.SessionID, reason string) error {
	to, err := h.State.Next(on)
	if err != nil {
		return err
	}
	now, from := e.cfg.Now(), h.State
	if to != from {
		h.StateSinceAt = now
	}
	h.State, h.StateReason = to, inventory.Clean(reason, 500)
	if err := tx.UpdateHost(h, now); err != nil {
		return fmt.Errorf("store host %s: %w", h.Name, err)
	}
	if to == from {
		return nil
	}
	if to == inventory.Available {
		e.hasFreed.Store(true)
		if err := e.freeLeft(tx, h); err != nil {
			return err
		}
	}
	return tx.AddEvent(&inventory.Event{
		At: now, Kind: inventory.EventStateChanged, HostID: h.ID, SessionID: s,
		Detail: fmt.Sprintf("%s → %s: %s", from, to, h.StateReason), Data: map[string]any{"from": from, "to": to, "on": on},
	})
}

// openIssue opens an issue, with its event when it was not open yet.
func (e *Engine) openIssue(tx inventory.Tx, i inventory.Issue) error {
	now := e.cfg.Now()
	i, isTold, err := e.gather(tx, i)
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
	e.cfg.Log.Warn("issue opened", "type", i.Type, "cause", i.Cause, "hint", i.Hint)
	return tx.AddEvent(issueEvent(i, inventory.EventIssueOpened, i.Type+": "+i.Cause, e))
}

// closeIssue closes the issue with that key, with its event, if it is open.
func (e *Engine) closeIssue(tx inventory.Tx, i inventory.Issue, why string) error {
	closed, err := tx.CloseIssue(i.Key, e.cfg.Now())
	if key := e.ungather(&i); err == nil && !closed && key != "" {
		i.Key = key
		closed, err = tx.CloseIssue(key, e.cfg.Now())
	}
	if err != nil || !closed {
		return err
	}
	return tx.AddEvent(issueEvent(i, inventory.EventIssueClosed, i.Type+": "+why, e))
}

func issueEvent(i inventory.Issue, kind, detail string, e *Engine) *inventory.Event {
	ev := &inventory.Event{At: e.cfg.Now(), Kind: kind, Detail: inventory.Clean(detail, 500), Data: map[string]any{"key": i.Key, "hint": i.Hint}}
	if len(i.HostIDs) > 0 {
		ev.HostID = i.HostIDs[0]
	}
	if i.Subnet != "" {
		ev.Subject = "subnet/" + i.Subnet
	}
	return ev
}

// refusal is the issue that a host cannot be given its boot.
func refusal(id inventory.HostID, subnet string, d pxe.Decision) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueBootRefused + "/" + string(id), Type: inventory.IssueBootRefused,
		Severity: inventory.SeverityError, HostIDs: []inventory.HostID{id}, Subnet: subnet, Cause: d.Reason, Hint: d.Hint,
	}
}

// loop is the issue that a host booted too often without arriving.
func loop(id inventory.HostID, cause, hint string) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueBootLoop + "/" + string(id), Type: inventory.IssueBootLoop,
		Severity: inventory.SeverityError, HostIDs: []inventory.HostID{id}, Cause: cause, Hint: hint,
	}
}

// secretRefused is the issue that somebody asked for a host's secrets who may not have them.
func secretRefused(id inventory.HostID, cause, hint string) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueSecretRefused + "/" + string(id), Type: inventory.IssueSecretRefused,
		Severity: inventory.SeverityError, HostIDs: []inventory.HostID{id}, Cause: cause, Hint: hint,
	}
}
