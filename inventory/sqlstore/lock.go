package sqlstore

import (
	"slipway.dev/slipway/inventory"
)

const (
	findLockSQL  = `SELECT name, host_id, session_id, since_at FROM locks WHERE name = $1`
	listLocksSQL = `SELECT name, host_id, session_id, since_at FROM locks ORDER BY name`
	saveLockSQL  = `INSERT INTO locks (name, host_id, session_id, since_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE SET host_id = excluded.host_id, session_id = excluded.session_id, since_at = excluded.since_at`
	deleteLockSQL = `DELETE FROM locks WHERE name = $1`
)

func readLock(s scan) (l inventory.Lock, err error) {
	err = s(&l.Name, &l.HostID, &l.SessionID, timeColumn(&l.SinceAt))
	return l, err
}

// FindLock implements inventory.SecretTx.
func (t *tx) FindLock(name string) (inventory.Lock, error) {
	return find(t, readLock, "lock", name, findLockSQL, name)
}

// ListLocks implements inventory.SecretTx.
func (t *tx) ListLocks() ([]inventory.Lock, error) { return list(t, readLock, listLocksSQL) }

// SaveLock implements inventory.SecretTx.
func (t *tx) SaveLock(l inventory.Lock) error {
	_, err := t.write(saveLockSQL, l.Name, string(l.HostID), string(l.SessionID), ms(l.SinceAt))
	return err
}

// DeleteLock implements inventory.SecretTx.
func (t *tx) DeleteLock(name string) error {
	n, err := t.write(deleteLockSQL, name)
	return changed(n, err, "lock", name)
}
