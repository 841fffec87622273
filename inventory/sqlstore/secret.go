package sqlstore

import (
	"cmp"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

const (
	joinTokenColumns = `id, target, host_id, session_id, node_name, sealed, state, csr, created_at, expires_at`

	findJoinTokenSQL   = `SELECT ` + joinTokenColumns + ` FROM join_tokens WHERE id = $1`
	findJoinTokenOfSQL = `SELECT ` + joinTokenColumns + ` FROM join_tokens
WHERE session_id = $1 AND target = $2 AND state IN ('minted', 'spent') ORDER BY created_at DESC, id DESC LIMIT 1`
	listJoinTokensSQL   = `SELECT ` + joinTokenColumns + ` FROM join_tokens ORDER BY created_at DESC, id DESC`
	targetJoinTokensSQL = `SELECT ` + joinTokenColumns + ` FROM join_tokens WHERE target = $1 ORDER BY created_at DESC, id DESC`
	saveJoinTokenSQL    = `INSERT INTO join_tokens (` + joinTokenColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (id) DO UPDATE SET target = excluded.target, host_id = excluded.host_id, session_id = excluded.session_id,
node_name = excluded.node_name, sealed = excluded.sealed, state = excluded.state, csr = excluded.csr,
created_at = excluded.created_at, expires_at = excluded.expires_at`
)

func readJoinToken(s database.Scan) (k inventory.JoinToken, err error) {
	err = s(&k.ID, &k.Target, &k.HostID, &k.SessionID, &k.NodeName, &k.Sealed, &k.State, &k.CSR,
		column.Time(&k.CreatedAt), column.Time(&k.ExpiresAt))
	return k, err
}

// FindJoinToken implements inventory.SecretTx.
func (t secretTx) FindJoinToken(id string) (inventory.JoinToken, error) {
	return find(t.tx, readJoinToken, "join token", id, findJoinTokenSQL, id)
}

// FindJoinTokenOf implements inventory.SecretTx.
func (t secretTx) FindJoinTokenOf(s inventory.SessionID, target string) (inventory.JoinToken, error) {
	return find(t.tx, readJoinToken, "join token", "for target "+target, findJoinTokenOfSQL, string(s), target)
}

// ListJoinTokens implements inventory.SecretTx.
func (t secretTx) ListJoinTokens(target string, states ...inventory.JoinTokenState) ([]inventory.JoinToken, error) {
	query, args := listJoinTokensSQL, []any(nil)
	if target != "" {
		query, args = targetJoinTokensSQL, []any{target}
	}
	all, err := list(t.tx, readJoinToken, query, args...)
	if err != nil || len(states) == 0 {
		return all, err
	}
	return slices.DeleteFunc(all, func(k inventory.JoinToken) bool { return !slices.Contains(states, k.State) }), nil
}

// SaveJoinToken implements inventory.SecretTx.
func (t secretTx) SaveJoinToken(k inventory.JoinToken) error {
	return t.Later(nil, saveJoinTokenSQL, k.ID, k.Target, string(k.HostID), string(k.SessionID), k.NodeName, column.Blob(k.Sealed),
		string(cmp.Or(k.State, inventory.TokenMinted)), k.CSR, column.MS(k.CreatedAt), column.MS(k.ExpiresAt))
}

const (
	findLockSQL  = `SELECT name, host_id, session_id, since_at FROM locks WHERE name = $1`
	listLocksSQL = `SELECT name, host_id, session_id, since_at FROM locks ORDER BY name`
	saveLockSQL  = `INSERT INTO locks (name, host_id, session_id, since_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE SET host_id = excluded.host_id, session_id = excluded.session_id, since_at = excluded.since_at`
	deleteLockSQL = `DELETE FROM locks WHERE name = $1`
)

func readLock(s database.Scan) (l inventory.Lock, err error) {
	err = s(&l.Name, &l.HostID, &l.SessionID, column.Time(&l.SinceAt))
	return l, err
}

// FindLock implements inventory.SecretTx.
func (t secretTx) FindLock(name string) (inventory.Lock, error) {
	return find(t.tx, readLock, "lock", name, findLockSQL, name)
}

// ListLocks implements inventory.SecretTx.
func (t secretTx) ListLocks() ([]inventory.Lock, error) { return list(t.tx, readLock, listLocksSQL) }

// SaveLock implements inventory.SecretTx.
func (t secretTx) SaveLock(l inventory.Lock) error {
	return t.Later(nil, saveLockSQL, l.Name, string(l.HostID), string(l.SessionID), column.MS(l.SinceAt))
}

// DeleteLock implements inventory.SecretTx.
func (t secretTx) DeleteLock(name string) error {
	n, err := t.Write(deleteLockSQL, name)
	return changed(n, err, "lock", name)
}

const (
	findSiteKeySQL = `SELECT name, public, sealed, since_at FROM site_keys WHERE name = $1`
	saveSiteKeySQL = `INSERT INTO site_keys (name, public, sealed, since_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE SET public = excluded.public, sealed = excluded.sealed, since_at = excluded.since_at`
	deleteSiteKeySQL = `DELETE FROM site_keys WHERE name = $1`
)

// FindSiteKey implements inventory.SecretTx.
func (t secretTx) FindSiteKey(name string) (inventory.SiteKey, error) {
	return find(t.tx, func(s database.Scan) (k inventory.SiteKey, err error) {
		err = s(&k.Name, &k.Public, &k.Sealed, column.Time(&k.SinceAt))
		return k, err
	}, "site key", name, findSiteKeySQL, name)
}

// SaveSiteKey implements inventory.SecretTx.
func (t secretTx) SaveSiteKey(k inventory.SiteKey) error {
	return t.Later(nil, saveSiteKeySQL, k.Name, k.Public, column.Blob(k.Sealed), column.MS(k.SinceAt))
}

// DeleteSiteKey implements inventory.SecretTx.
func (t secretTx) DeleteSiteKey(name string) error {
	n, err := t.Write(deleteSiteKeySQL, name)
	return changed(n, err, "site key", name)
}
