package audit

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

type undoInput struct {
	DryRun bool  `query:"dryRun" doc:"Check everything and show what would change, but change nothing"`
	ID     int64 `path:"id" minimum:"1"`
}

// undo takes back what an entry says was done.
func (l *Log) undo(req *rest.Request, in *undoInput) (*rest.Written, error) {
	a, err := l.findAudit(req, in.ID)
	if err != nil {
		return nil, err
	}
	t := req.Trail
	t.About(a.Noun, a.Name)
	t.Concern(a.HostID)
	t.Undoes(a.ID)
	if err := l.mayUndo(req, a); err != nil {
		return nil, err
	}
	w, err := l.frame.Undoer(a.Noun)(req, a, in.DryRun)
	if with, ok := errors.AsType[*rest.StatusError](err); ok && with.Status == http.StatusPreconditionFailed {
		return nil, rest.ChangedSince(a, "")
	}
	var said *inventory.Error
	if errors.As(err, &said) && said.Kind == inventory.NotFound { // it is gone, or what it needs is
		return nil, inventory.Errorf(inventory.Conflict, "entry %d cannot be undone: %s", a.ID, said.Msg).Naming(said.Refs...)
	}
	if err != nil || in.DryRun {
		return w, err
	}
	l.frame.Finish(req, http.StatusOK, "")
	return &rest.Written{Status: http.StatusOK, Body: t.Entry()}, nil
}

// mayUndo says why an entry cannot be undone, as far as that shows without trying.
func (l *Log) mayUndo(req *rest.Request, a inventory.Audit) error {
	if why := l.whyFixed(a); why != "" {
		return inventory.Errorf(inventory.Conflict, "entry %d cannot be undone: %s", a.ID, why)
	}
	host := a.HostID
	if a.Noun == "host" { // it may be gone; the undo itself finds it, as far as the caller may
		host = ""
	}
	back := map[inventory.AuditChange]string{inventory.AuditCreate: "delete-", inventory.AuditDelete: "create-", inventory.AuditUpdate: "put-"}[a.Change] + a.Noun
	isKnown, err := l.frame.Permits(req, a.Operation, host)
	if err != nil {
		return err
	}
	if !isKnown { // an older version wrote the entry: nobody can say which role the edit needs
		return inventory.Errorf(inventory.Conflict, "entry %d cannot be undone: this version has no operation %s", a.ID, a.Operation).
			WithHint("make the edit again by hand; slipway audit show %d has the values before and after", a.ID)
	}
	if _, err := l.frame.Permits(req, back, host); err != nil { // not every noun has this operation
		return err
	}
	if slices.Contains([]string{"host", "machine", "bmc"}, a.Noun) { // these change by themselves: their fields are compared
		return nil
	}
	return l.frame.Store.Read(req, func(tx inventory.Tx) error {
		rows, err := tx.ListAudits(inventory.AuditFilter{Noun: a.Noun, Name: a.Name, IsChange: true}, inventory.Page{Limit: 1})
		if err == nil && len(rows) > 0 && rows[0].ID != a.ID {
			err = rest.ChangedSince(a, fmt.Sprintf(" by %s (entry %d)", rows[0].Actor, rows[0].ID))
		}
		return err
	})
}

// whyFixed says why an entry can never be undone; "" when it may be.
func (l *Log) whyFixed(a inventory.Audit) string {
	switch {
	case a.IsRefused():
		return "it was refused, so that nothing changed"
	case a.Change == "":
		return "it is no edit, and what was done is done"
	case a.Fixed != "":
		return a.Fixed
	case l.frame.Undoer(a.Noun) == nil:
		return "the values that the API does not show are not kept"
	case a.Noun == "machine" && a.Change == inventory.AuditCreate:
		return "a machine ends by being deleted, which wipes its host"
	case a.Noun == "machine" && a.Change == inventory.AuditDelete:
		return "its host was let go of; create it again for another"
	}
	return ""
}
