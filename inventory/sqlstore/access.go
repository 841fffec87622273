package sqlstore

import (
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

const (
	tokenColumns       = `name, hash, user_name, grants, cluster, namespaces, created_at, expires_at, last_used_at`
	findTokenSQL       = `SELECT ` + tokenColumns + ` FROM tokens WHERE name = $1`
	findTokenByHashSQL = `SELECT ` + tokenColumns + ` FROM tokens WHERE hash = $1`
	listTokensSQL      = `SELECT ` + tokenColumns + ` FROM tokens ORDER BY name`
	insertTokenSQL     = `INSERT INTO tokens (` + tokenColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	touchTokenSQL      = `UPDATE tokens SET last_used_at = $1 WHERE name = $2`
	deleteTokenSQL     = `DELETE FROM tokens WHERE name = $1`
)

func readToken(s database.Scan) (k inventory.Token, err error) {
	k.Grants = inventory.Grants{}
	err = s(&k.Name, &k.Hash, &k.User, column.JSON(&k.Grants), &k.Cluster, column.JSON(&k.Namespaces), column.Time(&k.CreatedAt),
		column.Time(&k.ExpiresAt), column.Time(&k.LastUsedAt))
	return k, err
}

// FindToken implements inventory.AccessTx.
func (t accessTx) FindToken(name string) (inventory.Token, error) {
	return find(t.tx, readToken, "token", name, findTokenSQL, name)
}

// FindTokenByHash implements inventory.AccessTx.
func (t accessTx) FindTokenByHash(hash string) (inventory.Token, error) {
	return find(t.tx, readToken, "token", "with that secret", findTokenByHashSQL, hash)
}

// ListTokens implements inventory.AccessTx.
func (t accessTx) ListTokens() ([]inventory.Token, error) {
	return list(t.tx, readToken, listTokensSQL)
}

// CreateToken implements inventory.AccessTx.
func (t accessTx) CreateToken(k *inventory.Token, now time.Time) error {
	if _, err := find(t.tx, readToken, "token", k.Name, findTokenSQL, k.Name); err == nil {
		return taken("token", k.Name)
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	if k.User != "" {
		if _, err := t.records().Users().Find(k.User); err != nil {
			return err
		}
	}
	texts, err := t.jsonTexts(k.Grants, k.Namespaces)
	if err != nil {
		return err
	}
	now = stamp(now)
	if err := t.Later(nil, insertTokenSQL, k.Name, k.Hash, k.User, texts[0], k.Cluster, texts[1], column.MS(now), column.MS(k.ExpiresAt), column.MS(k.LastUsedAt)); err != nil {
		return err
	}
	k.CreatedAt = now
	return nil
}

// TouchToken implements inventory.AccessTx.
func (t accessTx) TouchToken(name string, now time.Time) error {
	n, err := t.Write(touchTokenSQL, column.MS(now), name)
	return changed(n, err, "token", name)
}

// DeleteToken implements inventory.AccessTx.
func (t accessTx) DeleteToken(name string) error {
	if err := t.Later(nil, deleteLoginsOfTokenSQL, name); err != nil {
		return err
	}
	n, err := t.Write(deleteTokenSQL, name)
	return changed(n, err, "token", name)
}

const (
	saveFactorsSQL = `UPDATE users SET factors = $1 WHERE name = $2`
	noteLoginSQL   = `UPDATE users SET login_at = $1 WHERE name = $2`

	loginColumns = `id, hash, user_name, token_name, source, agent, created_at, seen_at, expires_at`

	findLoginSQL       = `SELECT ` + loginColumns + ` FROM logins WHERE id = $1`
	findLoginByHashSQL = `SELECT ` + loginColumns + ` FROM logins WHERE hash = $1`
	listLoginsSQL      = `SELECT ` + loginColumns + ` FROM logins WHERE ($1 = '' OR user_name = $2) AND ($3 = '' OR token_name = $4)
ORDER BY created_at DESC, id`
	insertLoginSQL         = `INSERT INTO logins (` + loginColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	touchLoginSQL          = `UPDATE logins SET seen_at = $1 WHERE id = $2`
	deleteLoginSQL         = `DELETE FROM logins WHERE id = $1`
	deleteLoginsOfUserSQL  = `DELETE FROM logins WHERE user_name = $1`
	deleteLoginsOfTokenSQL = `DELETE FROM logins WHERE token_name = $1`
	forgetLoginsSQL        = `DELETE FROM logins WHERE id IN (SELECT id FROM logins WHERE expires_at <= $1 OR seen_at < $2 LIMIT $3)`
)

func readLogin(s database.Scan) (l inventory.Login, err error) {
	err = s(&l.ID, &l.Hash, &l.User, &l.Token, &l.Source, &l.Agent, column.Time(&l.CreatedAt), column.Time(&l.SeenAt),
		column.Time(&l.ExpiresAt))
	return l, err
}

// FindLoginByHash implements inventory.AccessTx.
func (t accessTx) FindLoginByHash(hash string) (inventory.Login, error) {
	return find(t.tx, readLogin, "login", "with that cookie", findLoginByHashSQL, hash)
}

// ListLogins implements inventory.AccessTx.
func (t accessTx) ListLogins(f inventory.LoginFilter) ([]inventory.Login, error) {
	return list(t.tx, readLogin, listLoginsSQL, f.User, f.User, f.Token, f.Token)
}

// CreateLogin implements inventory.AccessTx.
func (t accessTx) CreateLogin(l *inventory.Login, now time.Time) error {
	if _, err := find(t.tx, readLogin, "login", l.ID, findLoginSQL, l.ID); err == nil {
		return taken("login", l.ID)
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	now = stamp(now)
	if err := t.Later(nil, insertLoginSQL, l.ID, l.Hash, l.User, l.Token, l.Source, l.Agent, column.MS(now), column.MS(now), column.MS(l.ExpiresAt)); err != nil {
		return err
	}
	l.CreatedAt, l.SeenAt = now, now
	return nil
}

// TouchLogin implements inventory.AccessTx.
func (t accessTx) TouchLogin(id string, now time.Time) error {
	n, err := t.Write(touchLoginSQL, column.MS(stamp(now)), id)
	return changed(n, err, "login", id)
}

// DeleteLogin implements inventory.AccessTx.
func (t accessTx) DeleteLogin(id string) error {
	n, err := t.Write(deleteLoginSQL, id)
	return changed(n, err, "login", id)
}

// ForgetLogins implements inventory.AccessTx.
func (t accessTx) ForgetLogins(now, idle time.Time, limit int) (int, error) {
	n, err := t.Write(forgetLoginsSQL, column.MS(now), column.MS(idle), limit)
	return int(n), err
}

var findUserBySubjectSQL = users.from + ` WHERE issuer = $1 AND subject = $2 AND issuer <> ''`

// FindUserBySubject implements inventory.AccessTx.
func (t accessTx) FindUserBySubject(issuer, subject string) (inventory.User, error) {
	return find(t.tx, users.readOne, "user", "with that subject", findUserBySubjectSQL, issuer, subject)
}

// SaveFactors implements inventory.AccessTx.
func (t accessTx) SaveFactors(user string, sealed []byte) error {
	n, err := t.Write(saveFactorsSQL, column.Blob(sealed), user)
	return changed(n, err, "user", user)
}

// NoteLogin implements inventory.AccessTx.
func (t accessTx) NoteLogin(name string, now time.Time) error {
	n, err := t.Write(noteLoginSQL, column.MS(stamp(now)), name)
	return changed(n, err, "user", name)
}

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

func readAccess(s database.Scan) (a inventory.ClusterAccess, err error) {
	err = s(&a.UID, column.JSON(&a.TakesFrom), column.JSON(&a.Pools), column.JSON(&a.Authority), column.Time(&a.UpdatedAt))
	return a, err
}

// FindClusterAccess implements inventory.ClusterTx.
func (t clusterTx) FindClusterAccess(uid string) (inventory.ClusterAccess, error) {
	all, err := list(t.tx, readAccess, findAccessSQL, uid)
	if err != nil || len(all) == 0 {
		return inventory.ClusterAccess{UID: uid}, err
	}
	return all[0], nil
}

// ListClusterAccess implements inventory.ClusterTx.
func (t clusterTx) ListClusterAccess() ([]inventory.ClusterAccess, error) {
	return list(t.tx, readAccess, listAccessSQL)
}

// SaveClusterAccess implements inventory.ClusterTx.
func (t clusterTx) SaveClusterAccess(a *inventory.ClusterAccess, now time.Time) error {
	a.UpdatedAt = stamp(now)
	if a.IsZero() {
		return t.Later(nil, deleteAccessSQL, a.UID)
	}
	texts, err := t.jsonTexts(a.TakesFrom, a.Pools, a.Authority)
	if err != nil {
		return err
	}
	return t.Later(nil, saveAccessSQL, a.UID, texts[0], texts[1], texts[2], column.MS(a.UpdatedAt))
}

// NoteCluster implements inventory.ClusterTx.
func (t clusterTx) NoteCluster(c *inventory.Cluster) error {
	n, err := t.Write(noteClusterSQL, string(c.State), c.Reason, c.Hint, c.UID, c.Kubernetes, column.MS(c.SeenAt), c.TakesOver, c.Name)
	return changed(n, err, "cluster", c.Name)
}
