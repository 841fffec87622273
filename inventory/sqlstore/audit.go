package sqlstore

import (
	"fmt"
	"strconv"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/auditchain"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

const (
	auditColumns = `id, at, actor, role, via, source, request_id, operation, noun, name, host_id, change, status, detail, version,
undo_of, fixed, hash, refs`
	addAuditSQL = `INSERT INTO audit (` + auditColumns + `, before, after)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`
	findAuditSQL  = `SELECT ` + auditColumns + `, before, after FROM audit WHERE id = $1`
	walkAuditsSQL = `SELECT ` + auditColumns + `, before, after FROM audit WHERE id > $1 ORDER BY id LIMIT $2`
	lastAuditSQL  = `SELECT id, hash FROM audit ORDER BY id DESC LIMIT 1`
)

// auditDest are the columns that lists have, too.
func auditDest(a *inventory.Audit) []any {
	return []any{
		&a.ID, column.Time(&a.At), &a.Actor, &a.Role, &a.Via, &a.Source, &a.RequestID, &a.Operation, &a.Noun, &a.Name, &a.HostID,
		&a.Change, &a.Status, &a.Detail, &a.Version, &a.UndoOf, &a.Fixed, &a.Hash, column.JSON(&a.Refs),
	}
}

func readAuditLine(s database.Scan) (a inventory.Audit, err error) {
	err = s(auditDest(&a)...)
	return a, err
}

func readAudit(s database.Scan) (a inventory.Audit, err error) {
	err = s(append(auditDest(&a), column.Raw(&a.Before), column.Raw(&a.After))...)
	return a, err
}

// AddAudit implements inventory.AuditTx. The store has one writer, so that no other entry comes between the last hash and this
// one. An entry that is rolled back leaves no gap in the chain.
func (t auditTx) AddAudit(a *inventory.Audit) error {
	before, err := column.RawText(a.Before)
	if err != nil {
		return err
	}
	after, err := column.RawText(a.After)
	if err != nil {
		return err
	}
	refs, err := t.jsonTexts(a.Refs)
	if err != nil {
		return err
	}
	last, hash, err := t.lastAudit()
	if err != nil {
		return err
	}
	a.At, a.ID = stamp(a.At), last+1
	a.Hash = auditchain.HashAfter(a, hash)
	return t.Later(nil, addAuditSQL, a.ID, column.MS(a.At), a.Actor, a.Role, a.Via, a.Source, a.RequestID, a.Operation, a.Noun, a.Name,
		string(a.HostID), string(a.Change), a.Status, a.Detail, a.Version, a.UndoOf, a.Fixed, a.Hash, refs[0], before, after)
}

// lastAudit returns the newest entry and the hash of the chain there. Entries of versions without the chain have none: what they
// would have goes into that of the first that has.
func (t auditTx) lastAudit() (id int64, hash string, err error) {
	found, err := t.Row([]any{&id, &hash}, lastAuditSQL)
	if err != nil || !found || hash != "" {
		return id, hash, err
	}
	for after := int64(0); after < id; {
		some, err := t.WalkAudits(after, 20) // each may hold megabytes
		if err != nil || len(some) == 0 {
			return id, hash, err
		}
		for i := range some {
			after, hash = some[i].ID, auditchain.HashAfter(&some[i], hash)
		}
	}
	return id, hash, nil
}

// WalkAudits implements inventory.AuditTx.
func (t auditTx) WalkAudits(after int64, n int) ([]inventory.Audit, error) {
	return list(t.tx, readAudit, walkAuditsSQL, after, limit(n))
}

// FindAudit implements inventory.AuditTx.
func (t auditTx) FindAudit(id int64) (inventory.Audit, error) {
	return find(t.tx, readAudit, "audit", strconv.FormatInt(id, 10), findAuditSQL, id)
}

// ListAudits implements inventory.AuditTx.
func (t auditTx) ListAudits(f inventory.AuditFilter, p inventory.Page) ([]inventory.Audit, error) {
	before := limit(0) // after every id there can be
	if p.After != "" {
		id, err := strconv.ParseInt(p.After, 10, 64)
		if err != nil || id < 1 {
			return nil, inventory.Errorf(inventory.Invalid, "after is the id of an entry of the audit")
		}
		before = id
	}
	query, args := auditsSQL(f)
	return list(t.tx, readAuditLine, query, append(args, before, limit(p.Limit))...)
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
		term("at", ">=", column.MS(f.Since))
	}
	if !f.Until.IsZero() {
		term("at", "<", column.MS(f.Until))
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
