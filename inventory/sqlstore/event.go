package sqlstore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	eventColumns   = `id, at, kind, host_id, session_id, mac, subject, detail, data`
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

func readEvent(s scan) (e inventory.Event, err error) {
	err = s(&e.ID, timeColumn(&e.At), &e.Kind, &e.HostID, &e.SessionID, &e.MAC, &e.Subject, &e.Detail, jsonColumn(&e.Data))
	return e, err
}

// addEventsSQL adds n events.
func addEventsSQL(n int) string {
	rows := make([]string, n)
	for i := range rows {
		at := i * 8
		rows[i] = fmt.Sprintf("($%d, $%d, $%d, $%d, $%d, $%d, $%d, $%d)", at+1, at+2, at+3, at+4, at+5, at+6, at+7, at+8)
	}
	return `INSERT INTO events (at, kind, host_id, session_id, mac, subject, detail, data) VALUES ` + strings.Join(rows, ", ")
}

var addEventSQL, addTwoEventsSQL = addEventsSQL(1), addEventsSQL(2)

// AddEvent implements inventory.HistoryTx.
func (t *tx) AddEvent(events ...*inventory.Event) error {
	for pair := range slices.Chunk(events, 2) {
		args := make([]any, 0, 16)
		for _, e := range pair {
			data, err := jsonText(e.Data)
			if err != nil {
				return err
			}
			args = append(args, ms(e.At), e.Kind, string(e.HostID), string(e.SessionID), string(e.MAC), e.Subject, e.Detail, data)
		}
		query := addEventSQL
		if len(pair) == 2 {
			query = addTwoEventsSQL
		}
		last, err := t.insert(query, args...)
		if err != nil {
			return err
		}
		for i, e := range pair { // rows get their ids as they come
			e.ID = last - int64(len(pair)-1-i)
		}
		t.eventN += len(pair)
	}
	return nil
}

// ListEvents implements inventory.HistoryTx. Of a part of the kinds, each kind is read by itself and what is wanted of them
// put together, so that events of other kinds cost nothing.
func (t *tx) ListEvents(f inventory.EventFilter, after int64, n int) ([]inventory.Event, error) {
	if f.HostID != "" || f.SessionID != "" || f.Kind == "" || strings.Contains(f.Kind, ".") {
		query, args := eventsSQL(f)
		return list(t, readEvent, query, append(args, after, limit(n))...)
	}
	kinds, err := t.kindsOf(f.Kind)
	if err != nil {
		return nil, err
	}
	var all []inventory.Event
	for _, f.Kind = range kinds {
		query, args := eventsSQL(inventory.EventFilter{Kind: f.Kind + ".", Before: f.Before})
		args[0] = f.Kind // which may have no dot
		some, err := list(t, readEvent, query, append(args, after, limit(n))...)
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
func (t *tx) kindsOf(part string) (kinds []string, err error) {
	kinds = []string{part}
	for after := part + "."; ; {
		var kind string
		found, err := t.row([]any{&kind}, nextKindSQL, after)
		if err != nil || !found || kind >= part+"/" {
			return kinds, err
		}
		kinds, after = append(kinds, kind), kind
	}
}

// eventsSQL asks for filtered events; the arguments that it leaves to the caller are the last two, after and limit.
func eventsSQL(f inventory.EventFilter) (query string, args []any) {
	where, args := eventWhere(f)
	if f.Before > 0 {
		args = append(args, f.Before)
		return fmt.Sprintf(`SELECT %s FROM events WHERE %sid < $%d AND id > $%d ORDER BY id DESC LIMIT $%d`,
			eventColumns, where, len(args), len(args)+1, len(args)+2), args
	}
	return fmt.Sprintf(`SELECT %s FROM events WHERE %sid > $%d ORDER BY id LIMIT $%d`, eventColumns, where, len(args)+1, len(args)+2), args
}

// eventWhere writes a filter as terms, each followed by AND, with its arguments. Of one host or session the kind is looked
// at in each event; it must not lead to the index of kinds, which has those of all hosts.
func eventWhere(f inventory.EventFilter) (where string, args []any) {
	term := func(column, value string) {
		args = append(args, value)
		where += fmt.Sprintf("%s = $%d AND ", column, len(args))
	}
	kind := "kind"
	if f.HostID != "" {
		term("host_id", string(f.HostID))
		kind = "kind || ''"
	}
	if f.SessionID != "" {
		term("session_id", string(f.SessionID))
		kind = "kind || ''"
	}
	switch {
	case f.Kind == "":
	case strings.Contains(f.Kind, "."):
		term(kind, f.Kind)
	default: // as in kindsOf
		args = append(args, f.Kind, f.Kind+".", f.Kind+"/")
		where += fmt.Sprintf("(%[1]s = $%[2]d OR (%[1]s >= $%[3]d AND %[1]s < $%[4]d)) AND ", kind, len(args)-2, len(args)-1, len(args))
	}
	return where, args
}

// ForgetHistory implements inventory.HistoryTx. What belonged to sessions that are gone goes after them.
func (t *tx) ForgetHistory(before time.Time, n int) (forgotten int, err error) {
	for _, query := range []string{forgetEventsSQL, forgetSessionsSQL, forgetIssuesSQL} {
		gone, err := t.write(query, n, ms(before))
		if err != nil {
			return forgotten, err
		}
		forgotten += int(gone)
	}
	for _, of := range []struct {
		query string
		args  []any
	}{
		{forgetDeliveriesSQL, []any{ms(before), n}},
		{forgetJoinTokensSQL, []any{ms(before), ms(before), n}},
		{forgetRenderingsSQL, []any{ms(before), n}},
		{forgetOperationsSQL, []any{ms(before), n}},
		{forgetInspectionsSQL, []any{ms(before), n}},
	} {
		gone, err := t.write(of.query, of.args...)
		if err != nil {
			return forgotten, err
		}
		forgotten += int(gone)
	}
	return forgotten, nil
}

// LastEventID implements inventory.HistoryTx.
func (t *tx) LastEventID() (id int64, err error) {
	_, err = t.row([]any{&id}, lastEventIDSQL)
	return id, err
}
