package sqlstore

import (
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	findSecretSQL    = `SELECT name, about, owner, consumers, sealed, created_at, updated_at, version FROM secrets WHERE name = $1`
	listSecretsSQL   = `SELECT name, about, owner, consumers, created_at, updated_at, version FROM secrets WHERE name > $1 ORDER BY name LIMIT $2`
	secretVersionSQL = `SELECT version FROM secrets WHERE name = $1`
	secretUserSQL    = `SELECT name FROM join_targets WHERE $1 IN (kubeconfig, token, pki, certificate_key) ORDER BY name LIMIT 1`
	insertSecretSQL  = `INSERT INTO secrets (name, about, owner, consumers, sealed, created_at, updated_at, version) VALUES ($1, $2, $3, $4, $5, $6, $7, 1)`
	updateSecretSQL  = `UPDATE secrets SET about = $1, owner = $2, consumers = $3, sealed = $4, updated_at = $5, version = version + 1
WHERE name = $6 AND version = $7`
	deleteSecretSQL = `DELETE FROM secrets WHERE name = $1`
)

// FindSecret implements inventory.SecretTx.
func (t *tx) FindSecret(name string) (inventory.Secret, error) {
	return find(t, func(s scan) (x inventory.Secret, err error) {
		err = s(&x.Name, &x.About, &x.Owner, jsonColumn(&x.Consumers), &x.Sealed, timeColumn(&x.CreatedAt), timeColumn(&x.UpdatedAt), &x.Version)
		return x, err
	}, "secret", name, findSecretSQL, name)
}

// ListSecrets implements inventory.SecretTx.
func (t *tx) ListSecrets(p inventory.Page) ([]inventory.Secret, error) {
	read := func() ([]inventory.Secret, error) {
		return list(t, func(s scan) (x inventory.Secret, err error) {
			err = s(&x.Name, &x.About, &x.Owner, jsonColumn(&x.Consumers), timeColumn(&x.CreatedAt), timeColumn(&x.UpdatedAt), &x.Version)
			return x, err
		}, listSecretsSQL, p.After, limit(p.Limit))
	}
	if p != (inventory.Page{}) {
		return read()
	}
	return setting(t, "secrets", slices.Clone[[]inventory.Secret], read)
}

// CreateSecret implements inventory.SecretTx.
func (t *tx) CreateSecret(s *inventory.Secret, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, secretVersionSQL, s.Name); err != nil {
		return err
	} else if found {
		return taken("secret", s.Name)
	}
	consumers, err := jsonText(s.Consumers)
	if err != nil {
		return err
	}
	now = stamp(now)
	if _, err := t.write(insertSecretSQL, s.Name, s.About, s.Owner, consumers, blob(s.Sealed), ms(now), ms(now)); err != nil {
		return err
	}
	s.CreatedAt, s.UpdatedAt, s.Version = now, now, 1
	return nil
}

// UpdateSecret implements inventory.SecretTx.
func (t *tx) UpdateSecret(s *inventory.Secret, now time.Time) error {
	consumers, err := jsonText(s.Consumers)
	if err != nil {
		return err
	}
	now = stamp(now)
	n, err := t.write(updateSecretSQL, s.About, s.Owner, consumers, blob(s.Sealed), ms(now), s.Name, s.Version)
	if err := t.updated(n, err, "secret", s.Name, s.Version, secretVersionSQL, s.Name); err != nil {
		return err
	}
	s.UpdatedAt = now
	s.Version++
	return nil
}

// DeleteSecret implements inventory.SecretTx.
func (t *tx) DeleteSecret(name string) error {
	if err := t.unused("secret", name, "target", secretUserSQL); err != nil {
		return err
	}
	if err := t.unused("secret", name, "cluster", clusterSecretSQL); err != nil {
		return err
	}
	n, err := t.write(deleteSecretSQL, name)
	return changed(n, err, "secret", name)
}

// blob keeps no bytes apart from NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
