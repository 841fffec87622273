package ledger

import (
	"context"

	"slipway.dev/slipway/inventory"
)

// JoinAlarm is something that was noticed about a join target.
type JoinAlarm struct {
	Target    string
	HostID    inventory.HostID // "" when it is about the target
	SessionID inventory.SessionID
	Detail    string
	Hint      string
	IsOver    bool // the target can be reached again
}

// NoteJoin puts an alarm into the timeline and opens or closes its issue.
func (l *Ledger) NoteJoin(ctx context.Context, a JoinAlarm) error {
	return l.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		i := inventory.Issue{
			Key: inventory.IssueTargetUnreachable + "/" + a.Target, Type: inventory.IssueTargetUnreachable,
			Severity: inventory.SeverityError, Cause: a.Detail, Hint: a.Hint,
		}
		// A refusal is about one host. Each host has an issue of its own, so that one that joins closes no other.
		if a.HostID != "" {
			i.Key, i.Type = inventory.IssueJoinRefused+"/"+string(a.HostID), inventory.IssueJoinRefused
			i.HostIDs = []inventory.HostID{a.HostID}
			err := tx.AddEvent(&inventory.Event{
				At: l.cfg.Now(), Kind: inventory.EventJoinRefused, HostID: a.HostID, SessionID: a.SessionID,
				Subject: "target/" + a.Target, Detail: inventory.Clean(a.Detail, 500), Data: map[string]any{"hint": a.Hint},
			})
			if err != nil {
				return err
			}
		}
		if a.IsOver {
			return l.CloseIssue(tx, i, a.Detail)
		}
		return l.OpenIssue(tx, i)
	})
}
