package sqlstore

import (
	"fmt"
	"strconv"

	"slipway.dev/slipway/inventory"
)

const (
	auditColumns = `id, at, actor, role, via, source, request_id, operation, noun, name, host_id, change, status, detail, version, undo_of, fixed`
	addAuditSQL  = `INSERT INTO audit (at, actor, role, via, source, request_id, operation, noun, name, host_id, change, status, detail,
version, undo_of, fixed, before, after)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`
	findAuditSQL = `SELECT ` + auditColumns + `, before, after FROM audit WHERE id = $1`
)

// auditDest are the columns that lists have, too.
func auditDest(a *inventory.Audit) []any {
	return []any{
		&a.ID, timeColumn(&a.At), &a.Actor, &a.Role, &a.Via, &a.Source, &a.RequestID, &a.Operation, &a.Noun, &a.Name, &a.HostID,
		&a.Change, &a.Status, &a.Detail, &a.Version, &a.UndoOf, &a.Fixed,
	}
}

func readAuditLine(s scan) (a inventory.Audit, err error) {
	err = s(auditDest(&a)...)
	return a, err
}

func readAudit(s scan) (a inventory.Audit, err error) {
	err = s(append(auditDest(&a), rawColumn(&a.Before), rawColumn(&a.After))...)
	return a, err
}

// AddAudit implements inventory.AuditTx.
func (t *tx) AddAudit(a *inventory.Audit) error {
	before, err := rawText(a.Before)
	if err != nil {
		return err
	}
	after, err := rawText(a.After)
	if err != nil {
		return err
	}
	a.At = stamp(a.At)
	a.ID, err = t.insert(addAuditSQL, ms(a.At), a.Actor, a.Role, a.Via, a.Source, a.RequestID, a.Operation, a.Noun, a.Name,
		string(a.HostID), string(a.Change), a.Status, a.Detail, a.Version, a.UndoOf, a.Fixed, before, after)
	return err
}

// FindAudit implements inventory.AuditTx.
func (t *tx) FindAudit(id int64) (inventory.Audit, error) {
	return find(t, readAudit, "audit", strconv.FormatInt(id, 10), findAuditSQL, id)
}

// ListAudits implements inventory.AuditTx.
func (t *tx) ListAudits(f inventory.AuditFilter, p inventory.Page) ([]inventory.Audit, error) {
	before := limit(0) // after every id there can be
	if p.After != "" {
		id, err := strconv.ParseInt(p.After, 10, 64)
		if err != nil || id < 1 {
			return nil, inventory.Errorf(inventory.Invalid, "after is the id of an entry of the audit")
		}
		before = id
	}
	query, args := auditsSQL(f)
	return list(t, readAuditLine, query, append(args, before, limit(p.Limit))...)
}

// auditsSQL asks for filtered entries; the arguments that it leaves to the caller are the last two: the id of the one
// before the page, and the limit.
func auditsSQL(f inventory.AuditFilter) (query string, args []any) {
	var where string
	term := func(column, op string, value any) {
		args = append(args, value)
		where += fmt.Sprintf("%s %s $%d AND ", column, op, len(args))
	}
	for _, t := range []struct{ column, value string }{
		{"actor", f.Actor}, {"noun", f.Noun}, {"name", f.Name}, {"host_id", string(f.HostID)}, {"operation", f.Operation},
	} {
		if t.value != "" {
			term(t.column, "=", t.value)
		}
	}
	if !f.Since.IsZero() {
		term("at", ">=", ms(f.Since))
	}
	if !f.Until.IsZero() {
		term("at", "<", ms(f.Until))
	}
	if f.IsRefused {
		where += "status >= 400 AND "
	}
	if f.IsChange {
		where += "status < 400 AND change <> '' AND "
	}
	n := len(args)
	return fmt.Sprintf(`SELECT %s FROM audit WHERE %sid < $%d ORDER BY id DESC LIMIT $%d`, auditColumns, where, n+1, n+2), args
}
