package storetest

import (
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// forgetting writes a day of history for each of ten days, with a session that never ended and an issue that is open on
// the first, and forgets all but the last three days.
func forgetting(t *testing.T, s inventory.Store) {
	day := func(n int) time.Time { return Now.Truncate(time.Millisecond).Add(time.Duration(n) * 24 * time.Hour) }
	for n := range 10 {
		write(t, s, func(tx inventory.Tx) error {
			done := session(n, "h1")
			done.StartedAt, done.Outcome = day(n), inventory.OutcomeArrived
			if err := tx.SaveSession(done); err != nil {
				return err
			}
			e := event(inventory.EventDHCPAck, "h1", done.ID)
			e.At = day(n)
			if err := tx.AddEvent(e); err != nil {
				return err
			}
			if _, err := tx.OpenIssue(&inventory.Issue{Key: string(done.ID), Type: inventory.IssueBootLoop, HostIDs: []inventory.HostID{"h1"}}, day(n)); err != nil {
				return err
			}
			_, err := tx.CloseIssue(string(done.ID), day(n))
			return err
		})
	}
	write(t, s, func(tx inventory.Tx) error {
		running := session(99, "h1")
		running.StartedAt = day(0)
		if err := tx.SaveSession(running); err != nil {
			return err
		}
		_, err := tx.OpenIssue(&inventory.Issue{Key: "open", Type: inventory.IssueBootLoop}, day(0))
		return err
	})
	forget := func(before time.Time, limit, want int) {
		t.Helper()
		write(t, s, func(tx inventory.Tx) error {
			n, err := tx.ForgetHistory(before, limit)
			same(t, "rows forgotten", want, n)
			return err
		})
	}
	forget(day(0), 100, 0)
	forget(day(7), 2, 5) // two of each, but the running session is among the two oldest
	forget(day(7), 100, 16)
	forget(day(100), 100, 8) // the newest event stays
	read(t, s, func(tx inventory.Tx) error {
		events, err := tx.ListEvents(inventory.EventFilter{}, 0, 100)
		if err != nil {
			return err
		}
		sessions, err := tx.ListSessions("", inventory.Page{})
		if err != nil {
			return err
		}
		issues, err := tx.ListIssues(true, "")
		same(t, "events, sessions and issues left", []int{1, 1, 1}, []int{len(events), len(sessions), len(issues)})
		return err
	})
}
