package scoped

import (
	"strconv"
	"time"

	"slipway.dev/slipway/inventory"
)

// hardwareTx shows hardware, reports and controllers of hosts in reach.
type hardwareTx struct{ *sight }

// FindInspection implements inventory.HardwareTx.
func (t hardwareTx) FindInspection(h inventory.HostID, n int) (inventory.Inspection, error) {
	return ofHost(t.sight, h, func() (inventory.Inspection, error) { return t.all.FindInspection(h, n) })
}

// LastInspection implements inventory.HardwareTx.
func (t hardwareTx) LastInspection(h inventory.HostID) (int, error) {
	return ofHost(t.sight, h, func() (int, error) { return t.all.LastInspection(h) })
}

// ListInspections implements inventory.HardwareTx.
func (t hardwareTx) ListInspections(h inventory.HostID, limit int) ([]inventory.Inspection, error) {
	return ofHost(t.sight, h, func() ([]inventory.Inspection, error) { return t.all.ListInspections(h, limit) })
}

// ListHeard implements inventory.HardwareTx.
func (t hardwareTx) ListHeard() (map[inventory.HostID]inventory.Heard, error) {
	all, err := t.all.ListHeard()
	if err != nil {
		return nil, err
	}
	for id := range all {
		ok, err := t.seesHost(id)
		if err != nil {
			return nil, err
		}
		if !ok {
			delete(all, id)
		}
	}
	return all, nil
}

// ListReports implements inventory.HardwareTx.
func (t hardwareTx) ListReports(h inventory.HostID, kind string, limit int) ([]inventory.Report, error) {
	return ofHost(t.sight, h, func() ([]inventory.Report, error) { return t.all.ListReports(h, kind, limit) })
}

// FindBMC implements inventory.HardwareTx.
func (t hardwareTx) FindBMC(h inventory.HostID) (inventory.BMC, error) {
	b, err := ofHost(t.sight, h, func() (inventory.BMC, error) { return t.all.FindBMC(h) })
	t.tellBMC(&b)
	return b, err
}

// ListBMCs implements inventory.HardwareTx.
func (t hardwareTx) ListBMCs(p inventory.Page) ([]inventory.BMC, error) {
	return keptPages(p, t.all.ListBMCs, func(b inventory.BMC) string { return string(b.HostID) },
		func(b *inventory.BMC) (bool, error) {
			t.tellBMC(b)
			return t.seesHost(b.HostID)
		})
}

// The rest is of the engine.

func (t hardwareTx) SaveInspection(i *inventory.Inspection) error  { return t.all.SaveInspection(i) }
func (t hardwareTx) SaveReport(r inventory.Report) error           { return t.all.SaveReport(r) }
func (t hardwareTx) SaveBMC(b *inventory.BMC, now time.Time) error { return t.all.SaveBMC(b, now) }
func (t hardwareTx) DeleteBMC(h inventory.HostID) error            { return t.all.DeleteBMC(h) }

// historyTx shows sessions, events and issues of what is in reach.
type historyTx struct{ *sight }

// seesIssue wants all hosts of an issue in reach: its text names each of them.
func (t historyTx) seesIssue(i *inventory.Issue) (bool, error) {
	for _, id := range i.HostIDs {
		if ok, err := t.seesHost(id); err != nil || !ok {
			return false, err
		}
	}
	return len(i.HostIDs) > 0, nil
}

// FindSession implements inventory.HistoryTx.
func (t historyTx) FindSession(id inventory.SessionID) (inventory.BootSession, error) {
	b, err := t.all.FindSession(id)
	b, err = seen(t.sight, b, err, func(b inventory.BootSession) (bool, error) { return t.seesHost(b.HostID) }, "session", string(id))
	t.tellSession(&b)
	return b, err
}

// ListSessions implements inventory.HistoryTx.
func (t historyTx) ListSessions(host inventory.HostID, p inventory.Page) ([]inventory.BootSession, error) {
	return keptPages(p, func(p inventory.Page) ([]inventory.BootSession, error) { return t.all.ListSessions(host, p) },
		func(b inventory.BootSession) string { return string(b.ID) },
		func(b *inventory.BootSession) (bool, error) {
			t.tellSession(b)
			return t.seesHost(b.HostID)
		})
}

// FindIssue implements inventory.HistoryTx.
func (t historyTx) FindIssue(id int64) (inventory.Issue, error) {
	i, err := t.all.FindIssue(id)
	if i, err = seen(t.sight, i, err, func(i inventory.Issue) (bool, error) { return t.seesIssue(&i) }, "issue", strconv.FormatInt(id, 10)); err != nil {
		return i, err
	}
	err = t.tellIssue(&i)
	return i, err
}

// ListIssues implements inventory.HistoryTx.
func (t historyTx) ListIssues(all bool, host inventory.HostID) ([]inventory.Issue, error) {
	rows, err := t.all.ListIssues(all, host)
	if err != nil {
		return nil, err
	}
	if rows, err = kept(rows, t.seesIssue); err != nil {
		return nil, err
	}
	for i := range rows {
		if err := t.tellIssue(&rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// ListEvents implements inventory.HistoryTx.
func (t historyTx) ListEvents(f inventory.EventFilter, after int64, limit int) ([]inventory.Event, error) {
	isDown := f.Before > 0 // newest first: what comes next has lower ids
	first := inventory.Page{After: strconv.FormatInt(after, 10), Limit: limit}
	if isDown {
		first.After = "0"
	}
	rows, err := keptPages(first,
		func(p inventory.Page) ([]inventory.Event, error) {
			at, _ := strconv.ParseInt(p.After, 10, 64) // we wrote it
			if isDown {
				if at > 0 {
					f.Before = at
				}
				at = after
			}
			return t.all.ListEvents(f, at, p.Limit)
		},
		func(e inventory.Event) string { return strconv.FormatInt(e.ID, 10) },
		func(e *inventory.Event) (bool, error) { return t.SeesEvent(*e) })
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if err := t.TellEvent(&rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// What writes history is of the engine.

func (t historyTx) FindOpenSession(mac inventory.MAC) (inventory.BootSession, error) {
	return t.all.FindOpenSession(mac)
}

func (t historyTx) ListOpenSessions(before time.Time) ([]inventory.BootSession, error) {
	return t.all.ListOpenSessions(before)
}
func (t historyTx) SaveSession(s inventory.BootSession) error { return t.all.SaveSession(s) }
func (t historyTx) AddEvent(events ...*inventory.Event) error { return t.all.AddEvent(events...) }
func (t historyTx) LastEventID() (int64, error)               { return t.all.LastEventID() }
func (t historyTx) ForgetHistory(before time.Time, limit int) (int, error) {
	return t.all.ForgetHistory(before, limit)
}

func (t historyTx) OpenIssue(i *inventory.Issue, now time.Time) (bool, error) {
	return t.all.OpenIssue(i, now)
}

func (t historyTx) CloseIssue(key string, now time.Time) (bool, error) {
	return t.all.CloseIssue(key, now)
}
