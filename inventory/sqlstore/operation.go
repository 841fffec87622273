package sqlstore

import (
	"errors"
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

const (
	operationColumns = `id, kind, host_id, machine, machine_uid, claim_id, pool, step, state, reason, hint, attempt_n, task, task_n,
progress, params, result, by, started_at, granted_at, step_at, deadline_at, next_at, updated_at, ended_at, version, refs`

	findOperationSQL     = `SELECT ` + operationColumns + ` FROM operations WHERE id = $1`
	findOpenOperationSQL = `SELECT ` + operationColumns + ` FROM operations WHERE host_id = $1 AND is_open = 1`
	listDueOperationsSQL = `SELECT ` + operationColumns + ` FROM operations
WHERE is_open = 1 AND next_at > 0 AND next_at <= $1 ORDER BY next_at, id LIMIT $2`
	nextOperationSQL    = `SELECT next_at FROM operations WHERE is_open = 1 AND next_at > 0 ORDER BY next_at LIMIT 1`
	operationVersionSQL = `SELECT version FROM operations WHERE id = $1`
	openOperationSQL    = `SELECT id, kind FROM operations WHERE host_id = $1 AND is_open = 1`
	insertOperationSQL  = `INSERT INTO operations (id, kind, host_id, machine, machine_uid, claim_id, pool, step, state, is_open,
reason, hint, attempt_n, task, task_n, progress, params, result, by, started_at, granted_at, step_at, deadline_at, next_at,
ended_at, refs, updated_at, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, 1)`
	updateOperationSQL = `UPDATE operations SET kind = $1, host_id = $2, machine = $3, machine_uid = $4, claim_id = $5, pool = $6,
step = $7, state = $8, is_open = $9, reason = $10, hint = $11, attempt_n = $12, task = $13, task_n = $14, progress = $15,
params = $16, result = $17, by = $18, started_at = $19, granted_at = $20, step_at = $21, deadline_at = $22, next_at = $23,
ended_at = $24, refs = $25, updated_at = $26, version = version + 1 WHERE id = $27 AND version = $28`

	// forgetOperationsSQL looks at ended ones only, the longest ended first.
	forgetOperationsSQL = `DELETE FROM operations WHERE id IN (
SELECT o.id FROM operations AS o WHERE o.is_open = 0 AND o.ended_at < $1 ORDER BY o.ended_at, o.id LIMIT $2)`
)

func readOperation(s database.Scan) (o inventory.Operation, err error) {
	err = s(&o.ID, &o.Kind, &o.HostID, &o.Machine, &o.MachineUID, &o.ClaimID, &o.Pool, &o.Step, &o.State, &o.Reason, &o.Hint,
		&o.AttemptN, &o.Task, &o.TaskN, column.JSON(&o.Progress), column.Raw(&o.Params), column.Raw(&o.Result), &o.By,
		column.Time(&o.StartedAt), column.Time(&o.GrantedAt), column.Time(&o.StepAt), column.Time(&o.DeadlineAt), column.Time(&o.NextAt),
		column.Time(&o.UpdatedAt), column.Time(&o.EndedAt), &o.Version, column.JSON(&o.Refs))
	return o, err
}

// FindOperation implements inventory.OperationTx.
func (t operationTx) FindOperation(id string) (inventory.Operation, error) {
	o, err := find(t.tx, readOperation, "operation", id, findOperationSQL, id)
	return o, t.readOperation(&o, err)
}

// FindOpenOperation implements inventory.OperationTx.
func (t operationTx) FindOpenOperation(h inventory.HostID) (inventory.Operation, error) {
	noun, key := "operation", "under way on host "+string(h)
	if t.idle == h && h != "" { // asked before in this transaction; only CreateOperation and UpdateOperation can change it
		return inventory.Operation{}, absent(noun, key)
	}
	o, err := find(t.tx, readOperation, noun, key, findOpenOperationSQL, string(h))
	if said, ok := errors.AsType[*inventory.Error](err); ok && said.Kind == inventory.NotFound {
		t.idle = h
	}
	return o, t.readOperation(&o, err)
}

// ListOperations implements inventory.OperationTx.
func (t operationTx) ListOperations(f inventory.OperationFilter, p inventory.Page) ([]inventory.Operation, error) {
	startedMS, id := limit(0), p.After // after every operation there can be
	if p.After != "" {
		last, err := t.FindOperation(p.After)
		if err != nil {
			return nil, err
		}
		startedMS = column.MS(last.StartedAt)
	}
	query, args := operationsSQL(f)
	return list(t.tx, readOperation, query, append(args, startedMS, id, limit(p.Limit))...)
}

// operationsSQL asks for filtered operations; the arguments that it leaves to the caller are the last three: start and
// id of the one that comes before the page, and the limit.
func operationsSQL(f inventory.OperationFilter) (query string, args []any) {
	var w column.Where
	w.Is("host_id", string(f.HostID))
	w.Is("machine", f.Machine)
	w.Is("kind", string(f.Kind))
	if f.IsOpen {
		w.Text += "is_open = 1 AND "
	}
	n := len(w.Args)
	return fmt.Sprintf(`SELECT %s FROM operations WHERE %s(started_at, id) < ($%d, $%d) ORDER BY started_at DESC, id DESC LIMIT $%d`,
		operationColumns, w.Text, n+1, n+2, n+3), w.Args
}

// ListDueOperations implements inventory.OperationTx.
func (t operationTx) ListDueOperations(now time.Time, n int) ([]inventory.Operation, error) {
	return list(t.tx, readOperation, listDueOperationsSQL, column.MS(now), limit(n))
}

// NextDueAt implements inventory.OperationTx.
func (t operationTx) NextDueAt() (next time.Time, err error) {
	for _, query := range []string{nextOperationSQL, nextMachineSQL} {
		var at time.Time
		found, err := t.Row([]any{column.Time(&at)}, query)
		if err != nil {
			return time.Time{}, err
		}
		if found && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next, nil
}

// CountOpenOperations implements inventory.OperationTx. Without kinds it counts all. Each kind is a query of its own, so
// that each is answered by one look into an index.
func (t operationTx) CountOpenOperations(pool string, kinds ...inventory.OperationKind) (n int, lastAt time.Time, err error) {
	if len(kinds) == 0 {
		kinds = []inventory.OperationKind{""}
	}
	for _, kind := range kinds {
		var more int
		var at time.Time
		query, args := grantedSQL(pool, kind)
		if _, err := t.Row([]any{&more, column.Time(&at)}, query, args...); err != nil {
			return 0, time.Time{}, err
		}
		if n += more; at.After(lastAt) {
			lastAt = at
		}
	}
	return n, lastAt, nil
}

// grantedSQL counts operations that their budget has let go, and asks for the latest moment at which it did.
func grantedSQL(pool string, kind inventory.OperationKind) (query string, args []any) {
	var count column.Where
	count.Is("kind", string(kind))
	count.Is("pool", pool)
	last := column.Where{Args: count.Args}
	last.Is("kind", string(kind))
	last.Is("pool", pool)
	return `SELECT (SELECT COUNT(*) FROM operations WHERE ` + count.Text + `is_open = 1 AND step <> 'budget'),
(SELECT COALESCE(MAX(granted_at), 0) FROM operations WHERE ` + last.Text + `granted_at > 0)`, last.Args
}

// CreateOperation implements inventory.OperationTx. After a restart, the engine knows an operation by its row alone, and goes on at its
// step. So it writes the row before it acts.
func (t operationTx) CreateOperation(o *inventory.Operation, now time.Time) error {
	next := *o
	now = stamp(now)
	if next.StartedAt.IsZero() {
		next.StartedAt = now
	}
	if next.StepAt.IsZero() {
		next.StepAt = next.StartedAt
	}
	args, err := t.operationArgs(&next, now)
	if err != nil {
		return err
	}
	t.idle = ""
	if err := t.Later(ifTaken("operation", o.ID), insertOperationSQL, append([]any{o.ID}, args...)...); err != nil {
		return err
	}
	next.Version = 1
	*o = next
	return t.readOperation(o, nil)
}

// UpdateOperation implements inventory.OperationTx.
func (t operationTx) UpdateOperation(o *inventory.Operation, now time.Time) error {
	next := *o
	args, err := t.operationArgs(&next, stamp(now))
	if err != nil {
		return err
	}
	t.idle = ""
	isRead := t.lastOperation.ID == o.ID && t.lastOperation.Version == o.Version
	if err := t.update(isRead, "operation", o.ID, o.Version, updateOperationSQL, operationVersionSQL, append(args, o.ID, o.Version)...); err != nil {
		return err
	}
	next.Version++
	*o = next
	return t.readOperation(o, nil)
}

// operationArgs refuses a second open operation of a host, stamps the times that now gives, and returns the arguments
// that insert and update share, in the order of the columns from kind to updated_at.
func (t operationTx) operationArgs(o *inventory.Operation, now time.Time) ([]any, error) {
	o.UpdatedAt = now
	if o.IsOpen() {
		if err := t.checkIdle(o); err != nil {
			return nil, err
		}
	} else if o.EndedAt.IsZero() {
		o.EndedAt = now
	}
	texts, err := t.jsonTexts(o.Progress, o.Refs)
	if err != nil {
		return nil, err
	}
	params, err := column.RawText(o.Params)
	if err != nil {
		return nil, err
	}
	result, err := column.RawText(o.Result)
	if err != nil {
		return nil, err
	}
	return []any{
		string(o.Kind), string(o.HostID), o.Machine, o.MachineUID, string(o.ClaimID), o.Pool, string(o.Step), string(o.State),
		column.Bit(o.IsOpen()), o.Reason, o.Hint, o.AttemptN, o.Task, o.TaskN, texts[0], params, result, o.By, column.MS(o.StartedAt),
		column.MS(o.GrantedAt), column.MS(o.StepAt), column.MS(o.DeadlineAt), column.MS(o.NextAt), column.MS(o.EndedAt), texts[1],
		column.MS(now),
	}, nil
}

// checkIdle refuses an operation on a host on which another one is open. The unique index operations_open refuses it, too, but
// cannot name the other one.
func (t operationTx) checkIdle(o *inventory.Operation) error {
	if last := &t.lastOperation; last.ID == o.ID && last.HostID == o.HostID && last.IsOpen() { // it is the one
		return nil
	}
	var id, kind string
	found, err := t.Row([]any{&id, &kind}, openOperationSQL, string(o.HostID))
	if err != nil || !found || id == o.ID {
		return err
	}
	return inventory.Errorf(inventory.Conflict, "host %s is busy with operation %s (%s)", t.hostName(o.HostID), id, kind).
		WithHint("wait for it, or cancel it: slipway operation cancel %s", id)
}
