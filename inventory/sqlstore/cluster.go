package sqlstore

import (
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	clusterColumns = `name, kubeconfig, modes, namespaces, watch_filter, takes_over, state, reason, hint, uid, kubernetes, seen_at,
created_at, updated_at, version`

	findClusterSQL    = `SELECT ` + clusterColumns + ` FROM clusters WHERE name = $1`
	listClustersSQL   = `SELECT ` + clusterColumns + ` FROM clusters ORDER BY name`
	clusterVersionSQL = `SELECT version FROM clusters WHERE name = $1`
	clusterSecretSQL  = `SELECT name FROM clusters WHERE kubeconfig = $1 ORDER BY name LIMIT 1`
	insertClusterSQL  = `INSERT INTO clusters (name, kubeconfig, modes, namespaces, watch_filter, takes_over, state, reason, hint, uid, kubernetes,
seen_at, created_at, updated_at, version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 1)`
	updateClusterSQL = `UPDATE clusters SET kubeconfig = $1, modes = $2, namespaces = $3, watch_filter = $4, takes_over = $5,
updated_at = $6, version = version + 1 WHERE name = $7 AND version = $8`
	noteClusterSQL = `UPDATE clusters SET state = $1, reason = $2, hint = $3, uid = $4, kubernetes = $5, seen_at = $6,
takes_over = $7 WHERE name = $8`
	deleteClusterSQL = `DELETE FROM clusters WHERE name = $1`
)

func readCluster(s scan) (c inventory.Cluster, err error) {
	err = s(&c.Name, &c.Kubeconfig, jsonColumn(&c.Modes), jsonColumn(&c.Namespaces), &c.WatchFilter, &c.TakesOver, &c.State, &c.Reason, &c.Hint,
		&c.UID, &c.Kubernetes, timeColumn(&c.SeenAt), timeColumn(&c.CreatedAt), timeColumn(&c.UpdatedAt), &c.Version)
	return c, err
}

// FindCluster implements inventory.ClusterTx.
func (t *tx) FindCluster(name string) (inventory.Cluster, error) {
	return find(t, readCluster, "cluster", name, findClusterSQL, name)
}

// ListClusters implements inventory.ClusterTx.
func (t *tx) ListClusters() ([]inventory.Cluster, error) {
	return list(t, readCluster, listClustersSQL)
}

// CreateCluster implements inventory.ClusterTx.
func (t *tx) CreateCluster(c *inventory.Cluster, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, clusterVersionSQL, c.Name); err != nil {
		return err
	} else if found {
		return taken("cluster", c.Name)
	}
	args, err := t.clusterArgs(c)
	if err != nil {
		return err
	}
	now = stamp(now)
	args = append([]any{c.Name}, args...)
	args = append(args, string(c.State), c.Reason, c.Hint, c.UID, c.Kubernetes, ms(c.SeenAt), ms(now), ms(now))
	if _, err := t.write(insertClusterSQL, args...); err != nil {
		return err
	}
	c.CreatedAt, c.UpdatedAt, c.Version = now, now, 1
	return nil
}

// UpdateCluster implements inventory.ClusterTx.
func (t *tx) UpdateCluster(c *inventory.Cluster, now time.Time) error {
	args, err := t.clusterArgs(c)
	if err != nil {
		return err
	}
	now = stamp(now)
	n, err := t.write(updateClusterSQL, append(args, ms(now), c.Name, c.Version)...)
	if err := t.updated(n, err, "cluster", c.Name, c.Version, clusterVersionSQL, c.Name); err != nil {
		return err
	}
	c.UpdatedAt = now
	c.Version++
	return nil
}

// clusterArgs refuses a secret that is not stored, and returns the arguments that insert and update share.
func (t *tx) clusterArgs(c *inventory.Cluster) ([]any, error) {
	var version int64
	if found, err := t.row([]any{&version}, secretVersionSQL, c.Kubeconfig); err != nil {
		return nil, err
	} else if !found {
		return nil, inventory.Errorf(inventory.Invalid, "cluster %s names secret %s as its kubeconfig, which does not exist", c.Name, c.Kubeconfig).
			WithHint("store it first: slipway secret set %s --file KUBECONFIG", c.Kubeconfig)
	}
	texts, err := jsonTexts(c.Modes, c.Namespaces)
	if err != nil {
		return nil, err
	}
	return []any{c.Kubeconfig, texts[0], texts[1], c.WatchFilter, c.TakesOver}, nil
}

// NoteCluster implements inventory.ClusterTx.
func (t *tx) NoteCluster(c *inventory.Cluster) error {
	n, err := t.write(noteClusterSQL, string(c.State), c.Reason, c.Hint, c.UID, c.Kubernetes, ms(c.SeenAt), c.TakesOver, c.Name)
	return changed(n, err, "cluster", c.Name)
}

// DeleteCluster implements inventory.ClusterTx.
func (t *tx) DeleteCluster(name string) error {
	n, err := t.write(deleteClusterSQL, name)
	return changed(n, err, "cluster", name)
}
