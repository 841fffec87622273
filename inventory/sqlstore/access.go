package sqlstore

import (
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	findAcceptRuleSQL    = `SELECT name, selector, created_at, updated_at, version FROM accept_rules WHERE name = $1`
	listAcceptRulesSQL   = `SELECT name, selector, created_at, updated_at, version FROM accept_rules ORDER BY name`
	acceptRuleVersionSQL = `SELECT version FROM accept_rules WHERE name = $1`
	insertAcceptRuleSQL  = `INSERT INTO accept_rules (name, selector, created_at, updated_at, version) VALUES ($1, $2, $3, $4, 1)`
	updateAcceptRuleSQL  = `UPDATE accept_rules SET selector = $1, updated_at = $2, version = version + 1 WHERE name = $3 AND version = $4`
	deleteAcceptRuleSQL  = `DELETE FROM accept_rules WHERE name = $1`

	tokenColumns       = `name, hash, user_name, grants, cluster, namespaces, created_at, expires_at, last_used_at`
	findTokenSQL       = `SELECT ` + tokenColumns + ` FROM tokens WHERE name = $1`
	findTokenByHashSQL = `SELECT ` + tokenColumns + ` FROM tokens WHERE hash = $1`
	listTokensSQL      = `SELECT ` + tokenColumns + ` FROM tokens ORDER BY name`
	insertTokenSQL     = `INSERT INTO tokens (` + tokenColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	touchTokenSQL      = `UPDATE tokens SET last_used_at = $1 WHERE name = $2`
	deleteTokenSQL     = `DELETE FROM tokens WHERE name = $1`
)

func readAcceptRule(s scan) (r inventory.AcceptRule, err error) {
	err = s(&r.Name, &r.Selector, timeColumn(&r.CreatedAt), timeColumn(&r.UpdatedAt), &r.Version)
	return r, err
}

// FindAcceptRule implements inventory.AccessTx.
func (t *tx) FindAcceptRule(name string) (inventory.AcceptRule, error) {
	return find(t, readAcceptRule, "acceptrule", name, findAcceptRuleSQL, name)
}

// ListAcceptRules implements inventory.AccessTx.
func (t *tx) ListAcceptRules() ([]inventory.AcceptRule, error) {
	return setting(t, "accept rules", slices.Clone[[]inventory.AcceptRule], func() ([]inventory.AcceptRule, error) {
		return list(t, readAcceptRule, listAcceptRulesSQL)
	})
}

// CreateAcceptRule implements inventory.AccessTx.
func (t *tx) CreateAcceptRule(r *inventory.AcceptRule, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, acceptRuleVersionSQL, r.Name); err != nil {
		return err
	} else if found {
		return taken("acceptrule", r.Name)
	}
	now = stamp(now)
	if _, err := t.write(insertAcceptRuleSQL, r.Name, r.Selector, ms(now), ms(now)); err != nil {
		return err
	}
	r.CreatedAt, r.UpdatedAt, r.Version = now, now, 1
	return nil
}

// UpdateAcceptRule implements inventory.AccessTx.
func (t *tx) UpdateAcceptRule(r *inventory.AcceptRule, now time.Time) error {
	now = stamp(now)
	n, err := t.write(updateAcceptRuleSQL, r.Selector, ms(now), r.Name, r.Version)
	if err := t.updated(n, err, "acceptrule", r.Name, r.Version, acceptRuleVersionSQL, r.Name); err != nil {
		return err
	}
	r.UpdatedAt = now
	r.Version++
	return nil
}

// DeleteAcceptRule implements inventory.AccessTx.
func (t *tx) DeleteAcceptRule(name string) error {
	n, err := t.write(deleteAcceptRuleSQL, name)
	return changed(n, err, "acceptrule", name)
}

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
		if _, err := t.FindUser(k.User); err != nil {
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
