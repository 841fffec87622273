package sqlstore

import (
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	accessColumns = `uid, takes_from, pools, authority, updated_at`

	findAccessSQL = `SELECT ` + accessColumns + ` FROM cluster_access WHERE uid = $1`
	listAccessSQL = `SELECT ` + accessColumns + ` FROM cluster_access ORDER BY uid`
	saveAccessSQL = `INSERT INTO cluster_access (` + accessColumns + `) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (uid) DO UPDATE SET takes_from = excluded.takes_from, pools = excluded.pools, authority = excluded.authority,
updated_at = excluded.updated_at`
	noteClusterSQL = `UPDATE clusters SET state = $1, reason = $2, hint = $3, uid = $4, kubernetes = $5, seen_at = $6,
takes_over = $7 WHERE name = $8`
	deleteAccessSQL = `DELETE FROM cluster_access WHERE uid = $1`
)

func readAccess(s scan) (a inventory.ClusterAccess, err error) {
	err = s(&a.UID, jsonColumn(&a.TakesFrom), jsonColumn(&a.Pools), jsonColumn(&a.Authority), timeColumn(&a.UpdatedAt))
	return a, err
}

// FindClusterAccess implements inventory.ClusterTx.
func (t *tx) FindClusterAccess(uid string) (inventory.ClusterAccess, error) {
	all, err := list(t, readAccess, findAccessSQL, uid)
	if err != nil || len(all) == 0 {
		return inventory.ClusterAccess{UID: uid}, err
	}
	return all[0], nil
}

// ListClusterAccess implements inventory.ClusterTx.
func (t *tx) ListClusterAccess() ([]inventory.ClusterAccess, error) {
	return list(t, readAccess, listAccessSQL)
}

// SaveClusterAccess implements inventory.ClusterTx.
func (t *tx) SaveClusterAccess(a *inventory.ClusterAccess, now time.Time) error {
	a.UpdatedAt = stamp(now)
	if a.IsZero() {
		_, err := t.write(deleteAccessSQL, a.UID)
		return err
	}
	texts, err := jsonTexts(a.TakesFrom, a.Pools, a.Authority)
	if err != nil {
		return err
	}
	_, err = t.write(saveAccessSQL, a.UID, texts[0], texts[1], texts[2], ms(a.UpdatedAt))
	return err
}

// NoteCluster implements inventory.ClusterTx.
func (t *tx) NoteCluster(c *inventory.Cluster) error {
	n, err := t.write(noteClusterSQL, string(c.State), c.Reason, c.Hint, c.UID, c.Kubernetes, ms(c.SeenAt), c.TakesOver, c.Name)
	return changed(n, err, "cluster", c.Name)
}
