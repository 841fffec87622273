package audit

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// auditQuery narrows the audit.
type auditQuery struct {
	rest.ByHost
	After     string    `query:"after" doc:"Only what comes after this key: the next of the page before" pattern:"^[1-9][0-9]{0,17}$"`
	Limit     int       `query:"limit" doc:"Most items in the answer" default:"100" minimum:"1" maximum:"1000"`
	Actor     string    `query:"actor" doc:"Who asked, as the entries name it: user NAME, token NAME" maxLength:"255"`
	Noun      string    `query:"noun" doc:"What it was about, in the singular" maxLength:"63"`
	Name      string    `query:"name" doc:"Which of them" maxLength:"255"`
	Operation string    `query:"operation" doc:"Id of the operation in the description of the API, such as power-host" maxLength:"63"`
	Since     time.Time `query:"since" doc:"Not before this time"`
	Until     time.Time `query:"until" doc:"Before this time"`
	Outcome   string    `query:"outcome" enum:"change,refused" doc:"Only edits that were made, or only what was refused"`
}

type auditInput struct {
	ID int64 `path:"id" minimum:"1"`
}

// Log is the audit as callers read it.
type Log struct{ frame *rest.Frame }

// checkFor is how long a look at the whole chain may take, and the checks of what an undo brings back.
const checkFor = time.Minute

// addEntries registers what can be read of the entries.
func (l *Log) addEntries() {
	rest.Register(l.frame, rest.Operation{
		Method: http.MethodGet, Path: "/audit", ID: "list-audit", Scope: rest.OfPools, Tag: "audit",
		Summary: "List the requests to this API, latest first",
		About: "Without before and after. An admin sees everything; others see what concerned the hosts that they may see, and what they " +
			"asked themselves. A host that is gone is found by its id.",
	}, l.listAudit)
	rest.Register(l.frame, rest.Operation{
		Method: http.MethodGet, Path: "/audit/{id}", ID: "get-audit", Scope: rest.OfPools, Tag: "audit",
		Summary: "Show an entry of the audit with what it changed", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *auditInput) (*rest.One[wire.AuditEntry], error) {
			a, err := l.findAudit(req, in.ID)
			if err != nil {
				return nil, err
			}
			e := wire.AuditEntry{Audit: a, Changes: []wire.Difference{}, NotUndoable: l.whyFixed(a)}
			if a.Change != "" {
				e.Changes = rest.Compare(rawOrNil(a.Before), rawOrNil(a.After))
			}
			return &rest.One[wire.AuditEntry]{Body: e}, nil
		})
}

// rawOrNil is JSON for diff, to which no text is no thing.
func rawOrNil(text json.RawMessage) any {
	if len(text) == 0 {
		return nil
	}
	return text
}

// Key is where a page of the audit goes on after an entry.
func Key(a inventory.Audit) string { return strconv.FormatInt(a.ID, 10) }

// auditor reports whether the caller sees the whole audit.
func auditor(req *rest.Request) bool {
	return req.Caller.Grants.Everywhere().Allows(inventory.Admin)
}

// maySee reports whether the caller may see an entry. The transaction shows only hosts that the caller may see.
func maySee(req *rest.Request, tx inventory.Tx, a *inventory.Audit) (bool, error) {
	if auditor(req) || a.Actor == req.By() {
		return true, nil
	}
	if a.HostID == "" {
		return false, nil
	}
	_, err := tx.FindHost(a.HostID)
	if inventory.IsKind(err, inventory.NotFound) || inventory.IsKind(err, inventory.Forbidden) {
		return false, nil
	}
	return err == nil, err
}

func (l *Log) listAudit(req *rest.Request, in *auditQuery) (out *rest.Listed[inventory.Audit], err error) {
	err = l.frame.Store.Read(req, func(tx inventory.Tx) error {
		host, err := in.HostID(tx)
		if inventory.IsKind(err, inventory.NotFound) && auditor(req) {
			host, err = inventory.HostID(in.Host), nil // it may be gone
		}
		if err != nil {
			return err
		}
		f := inventory.AuditFilter{
			Actor: in.Actor, Noun: in.Noun, Name: in.Name, HostID: host, Operation: in.Operation, Since: in.Since, Until: in.Until,
			IsRefused: in.Outcome == "refused", IsChange: in.Outcome == "change",
		}
		rows, next, err := visible(req, tx, f, inventory.Page{After: in.After, Limit: in.Limit + 1})
		out = rest.PageOf(rows, in.Limit, Key)
		out.Body.Next = cmp.Or(out.Body.Next, next)
		return err
	})
	return out, err
}

// auditScan bounds how many entries one request of somebody who may not see all looks at; the next page goes on from there.
const auditScan = 10_000

// visible lists entries that the caller may see. When it has looked at enough without filling the page, next says where
// to go on.
func visible(req *rest.Request, tx inventory.Tx, f inventory.AuditFilter, p inventory.Page) (rows []inventory.Audit, next string, err error) {
	if auditor(req) {
		rows, err = tx.ListAudits(f, p)
		return rows, "", err
	}
	step := inventory.Page{After: p.After, Limit: 500}
	for seen := 0; seen < auditScan; seen += step.Limit {
		some, err := tx.ListAudits(f, step)
		if err != nil {
			return nil, "", err
		}
		for i := range some {
			step.After = Key(some[i])
			ok, err := maySee(req, tx, &some[i])
			if err != nil {
				return nil, "", err
			}
			if !ok {
				continue
			}
			if rows = append(rows, some[i]); len(rows) == p.Limit {
				return rows, "", nil
			}
		}
		if len(some) < step.Limit {
			return rows, "", nil
		}
	}
	return rows, step.After, nil
}

// findAudit finds an entry that the caller may see.
func (l *Log) findAudit(req *rest.Request, id int64) (a inventory.Audit, err error) {
	none := inventory.Errorf(inventory.NotFound, "there is no entry %d in the audit", id).WithHint("slipway audit list shows them")
	err = l.frame.Store.Read(req, func(tx inventory.Tx) error {
		if a, err = tx.FindAudit(id); inventory.IsKind(err, inventory.NotFound) {
			return none
		} else if err != nil {
			return err
		}
		ok, err := maySee(req, tx, &a)
		if err == nil && !ok {
			err = none
		}
		return err
	})
	return a, err
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
