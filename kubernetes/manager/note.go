package manager

import (
	"context"
	"time"

	"slipway.dev/slipway/inventory"
)

// seenEvery is how often it is written that a cluster still answers.
const seenEvery = time.Minute

// note stores the state of a cluster with its event and issue, when it differs from the stored one. It ignores a
// cluster that was detached meanwhile, or detached and attached again: the creation time tells.
func (a *Attacher) note(ctx context.Context, c inventory.Cluster, change func(*inventory.Cluster)) {
	err := a.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		stored, err := tx.Clusters().Find(c.Name)
		if inventory.KindOf(err) == inventory.NotFound || err == nil && !stored.CreatedAt.Equal(c.CreatedAt) {
			return nil
		}
		if err != nil {
			return err
		}
		is := stored
		change(&is)
		is.Reason, is.Hint = inventory.Clean(is.Reason, 500), inventory.Clean(is.Hint, 500)
		isSame := is.State == stored.State && is.Reason == stored.Reason && is.Hint == stored.Hint && is.UID == stored.UID && is.Kubernetes == stored.Kubernetes
		// Each probe comes here. Without this each would be a write to the disk that says nothing new.
		if isSame && is.SeenAt.Sub(stored.SeenAt) < seenEvery {
			return nil
		}
		if err := tx.NoteCluster(&is); err != nil || isSame {
			return err
		}
		if is.State != stored.State {
			detail := "cluster " + is.Name + " is " + string(is.State)
			if is.Reason != "" {
				detail += ": " + is.Reason
			}
			err := tx.AddEvent(&inventory.Event{
				At: a.cfg.Now(), Kind: inventory.EventCluster, Subject: "cluster/" + is.Name, Detail: detail,
				Data: map[string]any{"from": stored.State, "to": is.State},
			})
			if err != nil {
				return err
			}
		}
		return a.mindIssue(tx, is)
	})
	if err != nil && ctx.Err() == nil {
		a.cfg.Log.Warn("state of a cluster not stored", "cluster", c.Name, "err", err)
	}
}

// mindIssue opens or closes the issue of a cluster.
func (a *Attacher) mindIssue(tx inventory.Tx, c inventory.Cluster) error {
	// Attaching opens and closes nothing: whether it works is not known yet.
	switch c.State {
	case inventory.ClusterUnreachable, inventory.ClusterFailed:
		i := inventory.Issue{
			Key: issueKey(c.Name), Type: inventory.IssueCluster, Severity: inventory.SeverityError, Cause: c.Reason, Hint: c.Hint,
		}
		opened, err := tx.OpenIssue(&i, a.cfg.Now())
		if err != nil || !opened {
			return err
		}
		return a.issueEvent(tx, inventory.EventIssueOpened, c.Name, i.Type+": "+i.Cause, i.Hint)
	case inventory.ClusterAttached, inventory.ClusterStandby:
		return a.closeIssue(tx, c.Name, "cluster "+c.Name+" answers")
	}
	return nil
}

func (a *Attacher) closeIssue(tx inventory.Tx, name, why string) error {
	closed, err := tx.CloseIssue(issueKey(name), a.cfg.Now())
	if err != nil || !closed {
		return err
	}
	return a.issueEvent(tx, inventory.EventIssueClosed, name, inventory.IssueCluster+": "+why, "")
}

func (a *Attacher) issueEvent(tx inventory.Tx, kind, name, detail, hint string) error {
	return tx.AddEvent(&inventory.Event{
		At: a.cfg.Now(), Kind: kind, Subject: "cluster/" + name, Detail: inventory.Clean(detail, 500),
		Data: map[string]any{"key": issueKey(name), "hint": hint},
	})
}

func issueKey(name string) string { return inventory.IssueCluster + "/" + name }
