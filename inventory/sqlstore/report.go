package sqlstore

import (
	"slipway.dev/slipway/inventory"
)

const (
	reportColumns = `id, host_id, kind, machine, body, created_at`

	saveReportSQL = `INSERT INTO reports (` + reportColumns + `) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET host_id = excluded.host_id, kind = excluded.kind, machine = excluded.machine,
body = excluded.body, created_at = excluded.created_at`
	listReportsSQL = `SELECT ` + reportColumns + ` FROM reports WHERE host_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2`
	kindReportsSQL = `SELECT ` + reportColumns + ` FROM reports WHERE host_id = $1 AND kind = $2
ORDER BY created_at DESC, id DESC LIMIT $3`
)

func readReport(s scan) (r inventory.Report, err error) {
	err = s(&r.ID, &r.HostID, &r.Kind, &r.Machine, rawColumn(&r.Body), timeColumn(&r.CreatedAt))
	return r, err
}

// SaveReport implements inventory.HardwareTx.
func (t *tx) SaveReport(r inventory.Report) error {
	body, err := rawText(r.Body)
	if err != nil {
		return err
	}
	_, err = t.write(saveReportSQL, r.ID, string(r.HostID), r.Kind, r.Machine, body, ms(r.CreatedAt))
	return err
}

// ListReports implements inventory.HardwareTx.
func (t *tx) ListReports(h inventory.HostID, kind string, n int) ([]inventory.Report, error) {
	if kind == "" {
		return list(t, readReport, listReportsSQL, string(h), limit(n))
	}
	return list(t, readReport, kindReportsSQL, string(h), kind, limit(n))
}
