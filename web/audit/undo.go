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

// addUndo registers the undo of edits.
func (l *Log) addUndo() {
	rest.Register(l.frame, rest.Operation{
		Method: http.MethodPost, Path: "/audit/{id}/undo", ID: "undo-audit", Scope: rest.OfPools, Tag: "audit", Dry: true, Result: inventory.Audit{}, Within: checkFor,
		Summary: "Take back an edit: delete what it created, bring back what it deleted or how the thing was before",
		About: "It goes through the same checks as the edit, needs the same role, and is an entry itself, which it answers. A Conflict says " +
			"that the thing has changed since, or why that edit cannot be undone.",
		Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden},
	}, l.undo)
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
