package sqlstore

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	issueColumns = `id, key, type, severity, host_ids, subnet, cause, hint, opened_at, seen_at, seen_n, closed_at`

	openIssueSQL = `INSERT INTO issues (key, type, severity, host_ids, subnet, cause, hint, opened_at, seen_at, seen_n, closed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, 0)
ON CONFLICT (key) WHERE closed_at = 0 DO UPDATE SET severity = excluded.severity, host_ids = excluded.host_ids,
subnet = excluded.subnet, cause = excluded.cause, hint = excluded.hint, seen_at = excluded.seen_at,
seen_n = issues.seen_n + 1
RETURNING id, opened_at, seen_n`
	closeIssueSQL     = `UPDATE issues SET closed_at = $1 WHERE key = $2 AND closed_at = 0`
	findIssueSQL      = `SELECT ` + issueColumns + ` FROM issues WHERE id = $1`
	listIssuesSQL     = `SELECT ` + issueColumns + ` FROM issues ORDER BY id DESC`
	openIssuesSQL     = `SELECT ` + issueColumns + ` FROM issues WHERE closed_at = 0 ORDER BY id DESC`
	hostIssuesSQL     = `SELECT ` + issueColumns + ` FROM issues WHERE id IN (SELECT issue_id FROM issue_hosts WHERE host_id = $1) ORDER BY id DESC`
	openHostIssuesSQL = `SELECT ` + issueColumns + ` FROM issues WHERE id IN (SELECT issue_id FROM issue_hosts WHERE host_id = $1) AND closed_at = 0 ORDER BY id DESC`

	issueHostsSQL       = `SELECT host_id FROM issue_hosts WHERE issue_id = $1 ORDER BY host_id`
	insertIssueHostSQL  = `INSERT INTO issue_hosts (issue_id, host_id) VALUES ($1, $2)`
	deleteIssueHostsSQL = `DELETE FROM issue_hosts WHERE issue_id = $1`
)

func readIssue(s scan) (i inventory.Issue, err error) {
	err = s(&i.ID, &i.Key, &i.Type, &i.Severity, jsonColumn(&i.HostIDs), &i.Subnet, &i.Cause, &i.Hint,
		timeColumn(&i.OpenedAt), timeColumn(&i.SeenAt), &i.SeenN, timeColumn(&i.ClosedAt))
	return i, err
}

// OpenIssue implements inventory.HistoryTx. Seen again, an issue takes over the newer cause, hint and hosts.
func (t *tx) OpenIssue(i *inventory.Issue, now time.Time) (bool, error) {
	if t.isRead {
		return false, inventory.Errorf(inventory.Internal, "a Read must not write")
	}
	hosts := slices.Compact(slices.Sorted(slices.Values(i.HostIDs)))
	text, err := jsonText(hosts)
	if err != nil {
		return false, err
	}
	now = stamp(now)
	found, err := t.row([]any{&i.ID, timeColumn(&i.OpenedAt), &i.SeenN}, openIssueSQL, i.Key, i.Type, string(i.Severity),
		text, i.Subnet, i.Cause, i.Hint, ms(now), ms(now))
	if err != nil {
		return false, err
	}
	if !found {
		return false, fmt.Errorf("open issue %s: no row came back", i.Key)
	}
	i.HostIDs, i.SeenAt, i.ClosedAt = hosts, now, time.Time{}
	return i.SeenN == 1, t.saveIssueHosts(i)
}

func (t *tx) saveIssueHosts(i *inventory.Issue) error {
	has, err := list(t, func(s scan) (id inventory.HostID, err error) {
		err = s(&id)
		return id, err
	}, issueHostsSQL, i.ID)
	if err != nil || slices.Equal(has, i.HostIDs) {
		return err
	}
	if _, err := t.write(deleteIssueHostsSQL, i.ID); err != nil {
		return err
	}
	for _, id := range i.HostIDs {
		if _, err := t.write(insertIssueHostSQL, i.ID, string(id)); err != nil {
			return err
		}
	}
	return nil
}

// CloseIssue implements inventory.HistoryTx.
func (t *tx) CloseIssue(key string, now time.Time) (bool, error) {
	n, err := t.write(closeIssueSQL, ms(now), key)
	return n > 0, err
}

// FindIssue implements inventory.HistoryTx.
func (t *tx) FindIssue(id int64) (inventory.Issue, error) {
	return find(t, readIssue, "issue", strconv.FormatInt(id, 10), findIssueSQL, id)
}

// ListIssues implements inventory.HistoryTx.
func (t *tx) ListIssues(all bool, host inventory.HostID) ([]inventory.Issue, error) {
	switch {
	case host == "" && all:
		return list(t, readIssue, listIssuesSQL)
	case host == "":
		return list(t, readIssue, openIssuesSQL)
	case all:
		return list(t, readIssue, hostIssuesSQL, string(host))
	}
	return list(t, readIssue, openHostIssuesSQL, string(host))
}
