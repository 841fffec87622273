package sqlstore

import (
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	sessionColumns = `id, host_id, mac, address, arch, firmware, subnet, boot, reason, profile, image, config, step, outcome,
started_at, last_at, ended_at, operation, machine_uuid, port, proof`

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
WHERE config = $16 AND id = $17 AND host_id = $18 AND mac = $19 AND outcome = $20 AND started_at = $21`
	giveConfigSQL = `UPDATE sessions SET ` + sessionProgress + `, config = $16
WHERE id = $17 AND host_id = $18 AND mac = $19 AND outcome = $20 AND started_at = $21`
	// The UUID that an agent has said stays: whoever stores a session may have read it before that.
	sessionProgress = `address = $1, arch = $2, firmware = $3, subnet = $4, boot = $5, reason = $6, profile = $7, image = $8,
step = $9, last_at = $10, ended_at = $11, operation = $12, machine_uuid = COALESCE(NULLIF($13, ''), machine_uuid),
port = $14, proof = $15`

	saveSessionSQL = `INSERT INTO sessions (` + sessionColumns + `)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
ON CONFLICT (id) DO UPDATE SET host_id = excluded.host_id, mac = excluded.mac, address = excluded.address,
arch = excluded.arch, firmware = excluded.firmware, subnet = excluded.subnet, boot = excluded.boot,
reason = excluded.reason, profile = excluded.profile, image = excluded.image, config = excluded.config, step = excluded.step,
outcome = excluded.outcome, started_at = excluded.started_at, last_at = excluded.last_at, ended_at = excluded.ended_at,
operation = excluded.operation, machine_uuid = COALESCE(NULLIF(excluded.machine_uuid, ''), machine_uuid),
port = excluded.port, proof = excluded.proof`
)

func readSession(s scan) (b inventory.BootSession, err error) {
	err = s(&b.ID, &b.HostID, &b.MAC, textColumn(&b.Address), &b.Arch, &b.Firmware, &b.Subnet, &b.Boot, &b.Reason,
		&b.Profile, &b.Image, &b.Config, &b.Step, &b.Outcome, timeColumn(&b.StartedAt), timeColumn(&b.LastAt), timeColumn(&b.EndedAt),
		&b.Operation, &b.MachineUUID, &b.Port, &b.Proof)
	return b, err
}

// FindSession implements inventory.HistoryTx.
func (t *tx) FindSession(id inventory.SessionID) (inventory.BootSession, error) {
	return find(t, readSession, "session", string(id), findSessionSQL, string(id))
}

// FindOpenSession implements inventory.HistoryTx.
func (t *tx) FindOpenSession(mac inventory.MAC) (inventory.BootSession, error) {
	return find(t, readSession, "session", "of "+string(mac), findOpenSessionSQL, string(mac))
}

// ListSessions implements inventory.HistoryTx.
func (t *tx) ListSessions(host inventory.HostID, p inventory.Page) ([]inventory.BootSession, error) {
	startedMS, id := limit(0), p.After // after every session there can be
	if p.After != "" {
		last, err := t.FindSession(inventory.SessionID(p.After))
		if err != nil {
			return nil, err
		}
		startedMS = ms(last.StartedAt)
	}
	if host == "" {
		return list(t, readSession, listSessionsSQL, startedMS, id, limit(p.Limit))
	}
	return list(t, readSession, hostSessionsSQL, string(host), startedMS, id, limit(p.Limit))
}

// ListOpenSessions implements inventory.HistoryTx.
func (t *tx) ListOpenSessions(before time.Time) ([]inventory.BootSession, error) {
	return list(t, readSession, listOpenSessionsSQL, ms(before), ms(before))
}

// SaveSession implements inventory.HistoryTx.
func (t *tx) SaveSession(b inventory.BootSession) error {
	args := []any{
		addressText(b.Address), string(b.Arch), string(b.Firmware), b.Subnet, b.Boot, b.Reason, b.Profile,
		b.Image, b.Step, ms(b.LastAt), ms(b.EndedAt), b.Operation, b.MachineUUID, b.Port, string(b.Proof),
		string(b.Config), string(b.ID), string(b.HostID), string(b.MAC), string(b.Outcome), ms(b.StartedAt),
	}
	n, err := t.write(goOnSQL, args...)
	if err == nil && n == 0 && b.Config != "" {
		n, err = t.write(giveConfigSQL, args...)
	}
	if err != nil || n > 0 {
		return err
	}
	_, err = t.write(saveSessionSQL, string(b.ID), string(b.HostID), string(b.MAC), addressText(b.Address),
		string(b.Arch), string(b.Firmware), b.Subnet, b.Boot, b.Reason, b.Profile, b.Image, string(b.Config), b.Step, string(b.Outcome),
		ms(b.StartedAt), ms(b.LastAt), ms(b.EndedAt), b.Operation, b.MachineUUID, b.Port, string(b.Proof))
	return err
}
