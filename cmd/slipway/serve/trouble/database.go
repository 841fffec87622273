package trouble

import (
	"errors"
	"fmt"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/instance"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/postgres"
)

// databaseIssues are the issues about where the inventory is: that nothing can be stored, and what PostgreSQL says about itself.
func databaseIssues(h *Health) (all []inventory.Issue) {
	if i, ok := unwritable(h); ok {
		all = append(all, i)
	}
	if h.Database == nil {
		return all
	}
	for _, r := range h.Database.Risks {
		all = append(all, inventory.Issue{
			Key: inventory.IssueNotDurable + "/" + r.Name, Type: inventory.IssueNotDurable, Severity: inventory.SeverityWarning,
			Cause: inventory.Clean("changes that Slipway has acknowledged can be lost: "+r.Cause, CauseAtMost), Hint: r.Hint,
		})
	}
	if n := h.Database.LostN; n > 0 {
		all = append(all, inventory.Issue{
			Key: inventory.IssueLostChanges, Type: inventory.IssueLostChanges, Severity: inventory.SeverityError,
			Cause: fmt.Sprintf("%d commits that Slipway had acknowledged are gone from the database, noticed at %s: "+
				"the standby that is the primary now did not have them", n, h.Database.LostAt.UTC().Format(time.RFC3339)),
			Hint: "compare leases, hosts and operations of the minutes before with the machines; " +
				"then set synchronous_standby_names on the primary. This closes after a day",
		})
	}
	return all
}

// unwritable is the issue that nothing can be stored.
func unwritable(h *Health) (i inventory.Issue, ok bool) {
	const nothing = "so no machine is given an address and nothing is recorded: "
	if h.Database != nil && h.Database.Err != nil {
		return inventory.Issue{
			Key: inventory.IssueDatabase, Type: inventory.IssueDatabase, Severity: inventory.SeverityError,
			Cause: inventory.Clean("the database cannot be used, "+nothing+h.Database.Err.Error(), CauseAtMost),
			Hint:  hintOf(h.Database.Err),
		}, true
	}
	// The last write failed before the server came back. The next write shows whether the server takes any.
	isBack := h.Database != nil && !h.Database.BackAt.IsZero() && h.Database.At.Sub(h.Database.BackAt) < 2*WatchEvery
	if h.Store == nil || isBack {
		return i, false
	}
	i = inventory.Issue{
		Key: storeIssueKey, Type: inventory.IssueStore, Severity: inventory.SeverityError,
		Cause: "the database cannot be written, " + nothing + h.Store.Error(),
		Hint: "look at the disk of the data directory (df, dmesg), and whether another program has the database open (fuser slipway.db); " +
			"it goes on by itself",
	}
	if h.Database != nil {
		i.Hint = "look at the log of PostgreSQL, and whether another program holds locks in the database; it goes on by itself"
		if hint := hintOf(h.Store); hint != "" {
			i.Hint = hint
		}
		if what := h.Database.Health.WaitsFor(); what != "" {
			i.Cause += "; each commit waits for " + what
			i.Hint = "start the standby, or take it out of synchronous_standby_names; it goes on by itself"
		}
	}
	i.Cause = inventory.Clean(i.Cause, CauseAtMost)
	return i, true
}

// offBy is by how much the clock of this machine is certainly ahead of that of the database, or behind; 0: they agree.
func offBy(d *postgres.Health) time.Duration {
	if d.Ahead.Abs()-d.RoundTrip/2 <= instance.ClockLimit {
		return 0
	}
	return d.Ahead
}

// asksDatabase reports whether the clock of the database is known. Then it does not matter that somebody has set that of this machine.
func asksDatabase(h *Health) bool {
	return h.Database != nil && !h.Database.At.IsZero() && h.Database.Err == nil
}

// clockWrong is the issue that the clocks of this machine and of the database are apart.
func clockWrong(h *Health) (i inventory.Issue, ok bool) {
	if !asksDatabase(h) {
		return i, false
	}
	off, where := offBy(&h.Database.Health), "ahead of"
	if off == 0 {
		return i, false
	}
	if off < 0 {
		where = "behind"
	}
	return inventory.Issue{
		Key: inventory.IssueClockWrong, Type: inventory.IssueClockWrong, Severity: inventory.SeverityError,
		Cause: fmt.Sprintf("the clock of this machine is %s %s that of the database. "+
			"Slipway goes on by its own count of time. It does not start again before the clocks agree; times in its log are wrong",
			inventory.Duration(off.Abs().Round(time.Second)), where),
		Hint: "let NTP set the clocks of both machines: timedatectl set-ntp true. " +
			"If all instances have this issue, the clock of the database is wrong",
	}, true
}

func hintOf(err error) string {
	if said, ok := errors.AsType[*inventory.Error](err); ok {
		return said.Hint
	}
	return ""
}
