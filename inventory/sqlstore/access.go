package sqlstore

import (
	"time"

	"slipway.dev/slipway/inventory"
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

func readToken(s scan) (k inventory.Token, err error) {
	k.Grants = inventory.Grants{}
	err = s(&k.Name, &k.Hash, &k.User, jsonColumn(&k.Grants), &k.Cluster, jsonColumn(&k.Namespaces), timeColumn(&k.CreatedAt), timeColumn(&k.ExpiresAt), timeColumn(&k.LastUsedAt))
	return k, err
}

// FindToken implements inventory.AccessTx.
func (t *tx) FindToken(name string) (inventory.Token, error) {
	return find(t, readToken, "token", name, findTokenSQL, name)
}

// FindTokenByHash implements inventory.AccessTx.
func (t *tx) FindTokenByHash(hash string) (inventory.Token, error) {
	return find(t, readToken, "token", "with that secret", findTokenByHashSQL, hash)
}

// ListTokens implements inventory.AccessTx.
func (t *tx) ListTokens() ([]inventory.Token, error) { return list(t, readToken, listTokensSQL) }

// CreateToken implements inventory.AccessTx.
func (t *tx) CreateToken(k *inventory.Token, now time.Time) error {
	if _, err := find(t, readToken, "token", k.Name, findTokenSQL, k.Name); err == nil {
		return taken("token", k.Name)
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	if k.User != "" {
		if _, err := t.Users().Find(k.User); err != nil {
			return err
		}
	}
	texts, err := jsonTexts(k.Grants, k.Namespaces)
	if err != nil {
		return err
	}
	now = stamp(now)
	if _, err := t.write(insertTokenSQL, k.Name, k.Hash, k.User, texts[0], k.Cluster, texts[1], ms(now), ms(k.ExpiresAt), ms(k.LastUsedAt)); err != nil {
		return err
	}
	k.CreatedAt = now
	return nil
}

// TouchToken implements inventory.AccessTx.
func (t *tx) TouchToken(name string, now time.Time) error {
	n, err := t.write(touchTokenSQL, ms(now), name)
	return changed(n, err, "token", name)
}

// DeleteToken implements inventory.AccessTx.
func (t *tx) DeleteToken(name string) error {
	if _, err := t.write(deleteLoginsOfTokenSQL, name); err != nil {
		return err
	}
	n, err := t.write(deleteTokenSQL, name)
	return changed(n, err, "token", name)
}
