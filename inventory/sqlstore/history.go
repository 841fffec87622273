package sqlstore

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

const (
	sessionColumns = `id, host_id, mac, address, arch, firmware, subnet, boot, reason, profile, image, config, step, outcome,
started_at, last_at, ended_at, operation, machine_uuid, port, proof, refs`

	findSessionSQL     = `SELECT ` + sessionColumns + ` FROM sessions WHERE id = $1`
	findOpenSessionSQL = `SELECT ` + sessionColumns + ` FROM sessions WHERE mac = $1 AND outcome = '' ORDER BY started_at DESC, id DESC LIMIT 1`
	listSessionsSQL    = `SELECT ` + sessionColumns + ` FROM sessions WHERE (started_at, id) < ($1, $2) ORDER BY started_at DESC, id DESC LIMIT $3`
	hostSessionsSQL    = `SELECT ` + sessionColumns + ` FROM sessions WHERE host_id = $1 AND (started_at, id) < ($2, $3) ORDER BY started_at DESC, id DESC LIMIT $4`
	// The index of the open ones has when they began, before anything else of them: only rows of old ones are read. The plus
	// keeps SQLite from the index of all by when they began.
	listOpenSessionsSQL = `SELECT ` + sessionColumns + ` FROM sessions WHERE outcome = '' AND +started_at < $1 AND last_at < $2 ORDER BY last_at, id`

	// SQLite writes an index anew for each of its columns that a statement names. A boot that goes on keeps what the
	// indexes of its session have, but for the configuration that it is given once.
	goOnSQL = `UPDATE sessions SET ` + sessionProgress + `
WHERE config = $17 AND id = $18 AND host_id = $19 AND mac = $20 AND outcome = $21 AND started_at = $22`
	giveConfigSQL = `UPDATE sessions SET ` + sessionProgress + `, config = $17
WHERE id = $18 AND host_id = $19 AND mac = $20 AND outcome = $21 AND started_at = $22`
	// The UUID that an agent has said stays: whoever stores a session may have read it before that.
	sessionProgress = `address = $1, arch = $2, firmware = $3, subnet = $4, boot = $5, reason = $6, profile = $7, image = $8,
step = $9, last_at = $10, ended_at = $11, operation = $12, machine_uuid = COALESCE(NULLIF($13, ''), machine_uuid),
port = $14, proof = $15, refs = $16`

	saveSessionSQL = `INSERT INTO sessions (` + sessionColumns + `)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
ON CONFLICT (id) DO UPDATE SET host_id = excluded.host_id, mac = excluded.mac, address = excluded.address,
arch = excluded.arch, firmware = excluded.firmware, subnet = excluded.subnet, boot = excluded.boot,
reason = excluded.reason, profile = excluded.profile, image = excluded.image, config = excluded.config, step = excluded.step,
outcome = excluded.outcome, started_at = excluded.started_at, last_at = excluded.last_at, ended_at = excluded.ended_at,
operation = excluded.operation, machine_uuid = COALESCE(NULLIF(excluded.machine_uuid, ''), sessions.machine_uuid),
port = excluded.port, proof = excluded.proof, refs = excluded.refs`
)

func readSession(s database.Scan) (b inventory.BootSession, err error) {
	err = s(&b.ID, &b.HostID, &b.MAC, column.Address(&b.Address), &b.Arch, &b.Firmware, &b.Subnet, &b.Boot, &b.Reason,
		&b.Profile, &b.Image, &b.Config, &b.Step, &b.Outcome, column.Time(&b.StartedAt), column.Time(&b.LastAt), column.Time(&b.EndedAt),
		&b.Operation, &b.MachineUUID, &b.Port, &b.Proof, column.JSON(&b.Refs))
	return b, err
}

// FindSession implements inventory.HistoryTx.
func (t historyTx) FindSession(id inventory.SessionID) (inventory.BootSession, error) {
	return find(t.tx, readSession, "session", string(id), findSessionSQL, string(id))
}

// FindOpenSession implements inventory.HistoryTx.
func (t historyTx) FindOpenSession(mac inventory.MAC) (inventory.BootSession, error) {
	return find(t.tx, readSession, "session", "of "+string(mac), findOpenSessionSQL, string(mac))
}

// ListSessions implements inventory.HistoryTx.
func (t historyTx) ListSessions(host inventory.HostID, p inventory.Page) ([]inventory.BootSession, error) {
	startedMS, id := limit(0), p.After // after every session there can be
	if p.After != "" {
		last, err := t.FindSession(inventory.SessionID(p.After))
		if err != nil {
			return nil, err
		}
		startedMS = column.MS(last.StartedAt)
	}
	if host == "" {
		return list(t.tx, readSession, listSessionsSQL, startedMS, id, limit(p.Limit))
	}
	return list(t.tx, readSession, hostSessionsSQL, string(host), startedMS, id, limit(p.Limit))
}

// ListOpenSessions implements inventory.HistoryTx.
func (t historyTx) ListOpenSessions(before time.Time) ([]inventory.BootSession, error) {
	return list(t.tx, readSession, listOpenSessionsSQL, column.MS(before), column.MS(before))
}

// SaveSession implements inventory.HistoryTx.
func (t historyTx) SaveSession(b inventory.BootSession) error {
	refs, err := t.jsonTexts(b.Refs)
	if err != nil {
		return err
	}
	save := func() error {
		return t.Later(nil, saveSessionSQL, string(b.ID), string(b.HostID), string(b.MAC), column.AddressText(b.Address),
			string(b.Arch), string(b.Firmware), b.Subnet, b.Boot, b.Reason, b.Profile, b.Image, string(b.Config), b.Step, string(b.Outcome),
			column.MS(b.StartedAt), column.MS(b.LastAt), column.MS(b.EndedAt), b.Operation, b.MachineUUID, b.Port, string(b.Proof), refs[0])
	}
	if t.store.server() != nil { // PostgreSQL looks at the values to see which indexes to write, and nobody waits
		return save()
	}
	args := []any{
		column.AddressText(b.Address), string(b.Arch), string(b.Firmware), b.Subnet, b.Boot, b.Reason, b.Profile,
		b.Image, b.Step, column.MS(b.LastAt), column.MS(b.EndedAt), b.Operation, b.MachineUUID, b.Port, string(b.Proof), refs[0],
		string(b.Config), string(b.ID), string(b.HostID), string(b.MAC), string(b.Outcome), column.MS(b.StartedAt),
	}
	n, err := t.Write(goOnSQL, args...) // nearly always this one suffices: a boot that goes on
	if err == nil && n == 0 && b.Config != "" {
		n, err = t.Write(giveConfigSQL, args...)
	}
	if err != nil || n > 0 {
		return err
	}
	return save()
}

const (
	eventColumns   = `id, at, kind, host_id, session_id, mac, subject, detail, data, refs`
	lastEventIDSQL = `SELECT COALESCE(MAX(id), 0) FROM events`
	nextKindSQL    = `SELECT kind FROM events WHERE kind > $1 ORDER BY kind LIMIT 1`

	// Only the oldest rows are looked at, so that there is nothing to pay when nothing is old enough.
	forgetEventsSQL = `DELETE FROM events WHERE id IN (
SELECT o.id FROM (SELECT id, at FROM events ORDER BY id LIMIT $1) AS o WHERE o.at < $2 AND o.id < (SELECT MAX(id) FROM events))`
	forgetSessionsSQL = `DELETE FROM sessions WHERE id IN (
SELECT o.id FROM (SELECT id, started_at, outcome FROM sessions ORDER BY started_at, id LIMIT $1) AS o WHERE o.started_at < $2 AND o.outcome <> '')`
	forgetIssuesSQL = `DELETE FROM issues WHERE id IN (
SELECT o.id FROM (SELECT id, closed_at FROM issues ORDER BY id LIMIT $1) AS o WHERE o.closed_at > 0 AND o.closed_at < $2)`

	// What belongs to a boot goes with its session: what was fetched, its tokens. A rendering stays while a session or
	// the next preview of its host asks for it.
	forgetDeliveriesSQL = `DELETE FROM deliveries WHERE (session_id, document) IN (
SELECT d.session_id, d.document FROM deliveries AS d
WHERE d.last_at < $1 AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = d.session_id) LIMIT $2)`
	forgetJoinTokensSQL = `DELETE FROM join_tokens WHERE id IN (
SELECT k.id FROM join_tokens AS k
WHERE k.created_at < $1 AND k.expires_at < $2 AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.id = k.session_id)
ORDER BY k.created_at, k.id LIMIT $3)`
	forgetRenderingsSQL = `DELETE FROM renderings WHERE (digest, host_id) IN (
SELECT r.digest, r.host_id FROM renderings AS r
WHERE r.created_at < $1 AND NOT EXISTS (SELECT 1 FROM sessions AS s WHERE s.config = r.digest AND s.config <> '')
AND (NOT EXISTS (SELECT 1 FROM hosts AS h WHERE h.id = r.host_id)
OR r.position < (SELECT MAX(n.position) FROM renderings AS n WHERE n.host_id = r.host_id))
ORDER BY r.created_at, r.digest, r.host_id LIMIT $2)`
)

func readEvent(s database.Scan) (e inventory.Event, err error) {
	err = s(&e.ID, column.Time(&e.At), &e.Kind, &e.HostID, &e.SessionID, &e.MAC, &e.Subject, &e.Detail, column.JSON(&e.Data),
		column.JSON(&e.Refs))
	return e, err
}

// addEventsSQL adds n events.
func addEventsSQL(n int) string {
	rows := make([]string, n)
	for i := range rows {
		at := i * 9
		rows[i] = fmt.Sprintf("($%d, $%d, $%d, $%d, $%d, $%d, $%d, $%d, $%d)", at+1, at+2, at+3, at+4, at+5, at+6, at+7, at+8, at+9)
	}
	return `INSERT INTO events (at, kind, host_id, session_id, mac, subject, detail, data, refs) VALUES ` + strings.Join(rows, ", ")
}

var addEventSQL, addTwoEventsSQL = addEventsSQL(1), addEventsSQL(2)

// AddEvent implements inventory.HistoryTx.
func (t historyTx) AddEvent(events ...*inventory.Event) error {
	for pair := range slices.Chunk(events, 2) {
		args := make([]any, 0, 9*len(pair))
		for _, e := range pair {
			refs, err := t.pooled(e.References())
			if err != nil {
				return err
			}
			e.Refs = refs // who follows events gets this one
			texts, err := t.jsonTexts(e.Data, refs)
			if err != nil {
				return err
			}
			args = append(args, column.MS(e.At), e.Kind, string(e.HostID), string(e.SessionID), string(e.MAC), e.Subject,
				e.Detail, texts[0], texts[1])
		}
		query := addEventSQL
		if len(pair) == 2 {
			query = addTwoEventsSQL
		}
		err := t.Insert(func(last int64) {
			for i, e := range pair { // rows get their ids as they come
				e.ID = last - int64(len(pair)-1-i)
			}
		}, query, args...)
		if err != nil {
			return err
		}
		t.Wake()
	}
	return nil
}

// ListEvents implements inventory.HistoryTx. For a family of kinds, it reads each kind by itself and merges the results, so
// that events of other kinds cost nothing.
func (t historyTx) ListEvents(f inventory.EventFilter, after int64, n int) ([]inventory.Event, error) {
	if f.HostID != "" || f.SessionID != "" || f.Kind == "" || strings.Contains(f.Kind, ".") {
		query, args := eventsSQL(f)
		return list(t.tx, readEvent, query, append(args, after, limit(n))...)
	}
	kinds, err := t.kindsOf(f.Kind)
	if err != nil {
		return nil, err
	}
	var all []inventory.Event
	for _, f.Kind = range kinds {
		query, args := eventsSQL(inventory.EventFilter{Kind: f.Kind + ".", Before: f.Before})
		args[0] = f.Kind // which may have no dot
		some, err := list(t.tx, readEvent, query, append(args, after, limit(n))...)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b inventory.Event) int {
		if f.Before > 0 {
			a, b = b, a
		}
		return cmp.Compare(a.ID, b.ID)
	})
	if n > 0 && len(all) > n {
		all = all[:n]
	}
	return all, nil
}

// kindsOf returns the kinds of events there are of a part: "dhcp" itself, and all from "dhcp." to "dhcp.zzz"; '/' follows
// '.'. It steps from kind to kind along the index.
func (t historyTx) kindsOf(part string) (kinds []string, err error) {
	kinds = []string{part}
	for after := part + "."; ; {
		var kind string
		found, err := t.Row([]any{&kind}, nextKindSQL, after)
		if err != nil || !found || kind >= part+"/" {
			return kinds, err
		}
		kinds, after = append(kinds, kind), kind
	}
}

// eventsSQL asks for filtered events; the arguments that it leaves to the caller are the last two, after and limit.
func eventsSQL(f inventory.EventFilter) (query string, args []any) {
	where, args := column.EventWhere(f)
	if f.Before > 0 {
		args = append(args, f.Before)
		return fmt.Sprintf(`SELECT %s FROM events WHERE %sid < $%d AND id > $%d ORDER BY id DESC LIMIT $%d`,
			eventColumns, where, len(args), len(args)+1, len(args)+2), args
	}
	return fmt.Sprintf(`SELECT %s FROM events WHERE %sid > $%d ORDER BY id LIMIT $%d`, eventColumns, where, len(args)+1, len(args)+2), args
}

// ForgetHistory implements inventory.HistoryTx. After the sessions, it deletes what belonged to them. The limit bounds the time for which
// other writes wait; callers call it again until nothing is left. If the process dies in between, what belonged to a session that is gone
// waits for the next call: it is found by that.
func (t historyTx) ForgetHistory(before time.Time, n int) (forgotten int, err error) {
	for _, query := range []string{forgetEventsSQL, forgetSessionsSQL, forgetIssuesSQL} {
		gone, err := t.Write(query, n, column.MS(before))
		if err != nil {
			return forgotten, err
		}
		forgotten += int(gone)
	}
	for _, of := range []struct {
		query string
		args  []any
	}{
		{forgetDeliveriesSQL, []any{column.MS(before), n}},
		{forgetJoinTokensSQL, []any{column.MS(before), column.MS(before), n}},
		{forgetRenderingsSQL, []any{column.MS(before), n}},
		{forgetOperationsSQL, []any{column.MS(before), n}},
		{forgetInspectionsSQL, []any{column.MS(before), n}},
	} {
		gone, err := t.Write(of.query, of.args...)
		if err != nil {
			return forgotten, err
		}
		forgotten += int(gone)
	}
	return forgotten, nil
}

// LastEventID implements inventory.HistoryTx.
func (t historyTx) LastEventID() (id int64, err error) {
	_, err = t.Row([]any{&id}, lastEventIDSQL)
	return id, err
}

const (
	issueColumns = `id, key, type, severity, host_ids, subnet, cause, hint, opened_at, seen_at, seen_n, closed_at, refs, instance`

	openOfKeySQL = `SELECT id, opened_at, seen_n, host_ids FROM issues WHERE key = $1 AND closed_at = 0`
	openIssueSQL = `INSERT INTO issues (key, type, severity, host_ids, subnet, cause, hint, opened_at, seen_at, seen_n, closed_at, refs,
instance) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, 0, $10, $11)`
	seeIssueSQL = `UPDATE issues SET severity = $1, host_ids = $2, subnet = $3, cause = $4, hint = $5, refs = $6, seen_at = $7,
instance = $8, seen_n = seen_n + 1 WHERE key = $9 AND closed_at = 0`
	closeIssueSQL     = `UPDATE issues SET closed_at = $1 WHERE key = $2 AND closed_at = 0`
	findIssueSQL      = `SELECT ` + issueColumns + ` FROM issues WHERE id = $1`
	listIssuesSQL     = `SELECT ` + issueColumns + ` FROM issues ORDER BY id DESC`
	openIssuesSQL     = `SELECT ` + issueColumns + ` FROM issues WHERE closed_at = 0 ORDER BY id DESC`
	hostIssuesSQL     = `SELECT ` + issueColumns + ` FROM issues WHERE id IN (SELECT issue_id FROM issue_hosts WHERE host_id = $1) ORDER BY id DESC`
	openHostIssuesSQL = `SELECT ` + issueColumns + ` FROM issues WHERE id IN (SELECT issue_id FROM issue_hosts WHERE host_id = $1) AND closed_at = 0 ORDER BY id DESC`

	insertIssueHostSQL  = `INSERT INTO issue_hosts (issue_id, host_id) SELECT id, $1 FROM issues WHERE key = $2 AND closed_at = 0`
	deleteIssueHostsSQL = `DELETE FROM issue_hosts WHERE issue_id = $1`
)

func readIssue(s database.Scan) (i inventory.Issue, err error) {
	err = s(&i.ID, &i.Key, &i.Type, &i.Severity, column.JSON(&i.HostIDs), &i.Subnet, &i.Cause, &i.Hint,
		column.Time(&i.OpenedAt), column.Time(&i.SeenAt), &i.SeenN, column.Time(&i.ClosedAt), column.JSON(&i.Refs), &i.Instance)
	return i, err
}

// OpenIssue implements inventory.HistoryTx. Seen again, an issue takes over the newer cause, hint and hosts.
func (t historyTx) OpenIssue(i *inventory.Issue, now time.Time) (bool, error) {
	if t.IsRead() {
		return false, inventory.Errorf(inventory.Internal, "a Read must not write")
	}
	hosts := slices.Compact(slices.Sorted(slices.Values(i.HostIDs)))
	texts, err := t.jsonTexts(hosts, i.Refs)
	if err != nil {
		return false, err
	}
	now = stamp(now)
	var is inventory.Issue
	var has string
	isOpen, err := t.Row([]any{&is.ID, column.Time(&is.OpenedAt), &is.SeenN, &has}, openOfKeySQL, i.Key)
	if err != nil {
		return false, err
	}
	if i.ID = is.ID; isOpen {
		err = t.Later(nil, seeIssueSQL, string(i.Severity), texts[0], i.Subnet, i.Cause, i.Hint, texts[1], column.MS(now), i.Instance, i.Key)
	} else {
		is.OpenedAt = now
		err = t.Insert(func(id int64) { i.ID = id }, openIssueSQL, i.Key, i.Type, string(i.Severity), texts[0], i.Subnet, i.Cause, i.Hint,
			column.MS(now), column.MS(now), texts[1], i.Instance)
	}
	if err != nil {
		return false, err
	}
	i.HostIDs, i.OpenedAt, i.SeenAt, i.SeenN, i.ClosedAt = hosts, is.OpenedAt, now, is.SeenN+1, time.Time{}
	if isOpen && has == texts[0] { // an issue is seen again and again with the same hosts
		return false, nil
	}
	return !isOpen, t.saveIssueHosts(i, isOpen)
}

func (t historyTx) saveIssueHosts(i *inventory.Issue, hasOthers bool) error {
	if hasOthers {
		if err := t.Later(nil, deleteIssueHostsSQL, i.ID); err != nil {
			return err
		}
	}
	for _, id := range i.HostIDs {
		if err := t.Later(nil, insertIssueHostSQL, string(id), i.Key); err != nil {
			return err
		}
	}
	return nil
}

// CloseIssue implements inventory.HistoryTx. Most boots close an issue that nobody has opened.
func (t historyTx) CloseIssue(key string, now time.Time) (bool, error) {
	isOpen, err := t.Row([]any{new(int64), new(int64), new(int64), new(string)}, openOfKeySQL, key)
	if err != nil || !isOpen {
		return false, err
	}
	return true, t.Later(nil, closeIssueSQL, column.MS(now), key)
}

// FindIssue implements inventory.HistoryTx.
func (t historyTx) FindIssue(id int64) (inventory.Issue, error) {
	return find(t.tx, readIssue, "issue", strconv.FormatInt(id, 10), findIssueSQL, id)
}

// ListIssues implements inventory.HistoryTx.
func (t historyTx) ListIssues(all bool, host inventory.HostID) ([]inventory.Issue, error) {
	switch {
	case host == "" && all:
		return list(t.tx, readIssue, listIssuesSQL)
	case host == "":
		return list(t.tx, readIssue, openIssuesSQL)
	case all:
		return list(t.tx, readIssue, hostIssuesSQL, string(host))
	}
	return list(t.tx, readIssue, openHostIssuesSQL, string(host))
}
