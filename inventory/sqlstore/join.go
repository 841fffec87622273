package sqlstore

import (
	"cmp"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	joinTargetColumns = `name, endpoint, kubernetes, ca, COALESCE(kubeconfig, ''), COALESCE(token, ''), COALESCE(pki, ''),
COALESCE(certificate_key, ''), token_for, vip, vip_interface, vip_image, pod_cidr, service_cidr, worker_parallelism, owner,
is_init, initialized_at, consumers, created_at, updated_at, version`

	findJoinTargetSQL    = `SELECT ` + joinTargetColumns + ` FROM join_targets WHERE name = $1`
	listJoinTargetsSQL   = `SELECT ` + joinTargetColumns + ` FROM join_targets WHERE name > $1 ORDER BY name LIMIT $2`
	joinTargetVersionSQL = `SELECT version FROM join_targets WHERE name = $1`
	insertJoinTargetSQL  = `INSERT INTO join_targets (name, endpoint, kubernetes, ca, kubeconfig, token, pki, certificate_key,
token_for, vip, vip_interface, vip_image, pod_cidr, service_cidr, worker_parallelism, owner, is_init, initialized_at,
consumers, created_at, updated_at, version)
VALUES ($1, $2, $3, $4, NULLIF($5, ''), NULLIF($6, ''), NULLIF($7, ''), NULLIF($8, ''), $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, 1)`
	updateJoinTargetSQL = `UPDATE join_targets SET endpoint = $1, kubernetes = $2, ca = $3, kubeconfig = NULLIF($4, ''),
token = NULLIF($5, ''), pki = NULLIF($6, ''), certificate_key = NULLIF($7, ''), token_for = $8, vip = $9, vip_interface = $10,
vip_image = $11, pod_cidr = $12, service_cidr = $13, worker_parallelism = $14, owner = $15, is_init = $16,
initialized_at = $17, consumers = $18, updated_at = $19, version = version + 1 WHERE name = $20 AND version = $21`
	deleteJoinTargetSQL = `DELETE FROM join_targets WHERE name = $1`

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

func readJoinTarget(s scan) (j inventory.JoinTarget, err error) {
	err = s(&j.Name, &j.Endpoint, &j.Kubernetes, &j.CA, &j.Kubeconfig, &j.Token, &j.PKI, &j.CertificateKey,
		durationColumn(&j.TokenFor), textColumn(&j.VIP), &j.VIPInterface, &j.VIPImage, &j.PodCIDR, &j.ServiceCIDR,
		&j.WorkerParallelism, &j.Owner, &j.IsInit, timeColumn(&j.InitializedAt), jsonColumn(&j.Consumers), timeColumn(&j.CreatedAt), timeColumn(&j.UpdatedAt), &j.Version)
	return j, err
}

// FindJoinTarget implements inventory.SecretTx.
func (t *tx) FindJoinTarget(name string) (inventory.JoinTarget, error) {
	return find(t, readJoinTarget, "target", name, findJoinTargetSQL, name)
}

// ListJoinTargets implements inventory.SecretTx.
func (t *tx) ListJoinTargets(p inventory.Page) ([]inventory.JoinTarget, error) {
	read := func() ([]inventory.JoinTarget, error) {
		return list(t, readJoinTarget, listJoinTargetsSQL, p.After, limit(p.Limit))
	}
	if p != (inventory.Page{}) {
		return read()
	}
	return setting(t, "join targets", slices.Clone[[]inventory.JoinTarget], read)
}

// CreateJoinTarget implements inventory.SecretTx.
func (t *tx) CreateJoinTarget(j *inventory.JoinTarget, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, joinTargetVersionSQL, j.Name); err != nil {
		return err
	} else if found {
		return taken("target", j.Name)
	}
	args, err := t.joinTargetArgs(j)
	if err != nil {
		return err
	}
	now = stamp(now)
	args = append([]any{j.Name}, args...)
	if _, err := t.write(insertJoinTargetSQL, append(args, ms(now), ms(now))...); err != nil {
		return err
	}
	j.CreatedAt, j.UpdatedAt, j.Version = now, now, 1
	return nil
}

// UpdateJoinTarget implements inventory.SecretTx.
func (t *tx) UpdateJoinTarget(j *inventory.JoinTarget, now time.Time) error {
	args, err := t.joinTargetArgs(j)
	if err != nil {
		return err
	}
	now = stamp(now)
	n, err := t.write(updateJoinTargetSQL, append(args, ms(now), j.Name, j.Version)...)
	if err := t.updated(n, err, "target", j.Name, j.Version, joinTargetVersionSQL, j.Name); err != nil {
		return err
	}
	j.UpdatedAt = now
	j.Version++
	return nil
}

// joinTargetArgs refuses a secret that is not stored, and returns the arguments that insert and update share.
func (t *tx) joinTargetArgs(j *inventory.JoinTarget) ([]any, error) {
	for _, u := range []struct{ field, secret string }{
		{"kubeconfig", j.Kubeconfig},
		{"token", j.Token},
		{"pki", j.PKI},
		{"certificateKey", j.CertificateKey},
	} {
		if u.secret == "" {
			continue
		}
		var version int64
		if found, err := t.row([]any{&version}, secretVersionSQL, u.secret); err != nil {
			return nil, err
		} else if !found {
			return nil, inventory.Errorf(inventory.Invalid, "target %s names secret %s as its %s, which does not exist", j.Name, u.secret, u.field).
				WithHint("store it first: slipway secret set %s", u.secret)
		}
	}
	consumers, err := jsonText(j.Consumers)
	if err != nil {
		return nil, err
	}
	return []any{
		j.Endpoint, j.Kubernetes, j.CA, j.Kubeconfig, j.Token, j.PKI, j.CertificateKey, durationMS(j.TokenFor),
		addressText(j.VIP), j.VIPInterface, j.VIPImage, j.PodCIDR, j.ServiceCIDR,
		j.WorkerParallelism, j.Owner, bit(j.IsInit), ms(j.InitializedAt), consumers,
	}, nil
}

// DeleteJoinTarget implements inventory.SecretTx. Its tokens stay, as history.
func (t *tx) DeleteJoinTarget(name string) error {
	n, err := t.write(deleteJoinTargetSQL, name)
	return changed(n, err, "target", name)
}

func readJoinToken(s scan) (k inventory.JoinToken, err error) {
	err = s(&k.ID, &k.Target, &k.HostID, &k.SessionID, &k.NodeName, &k.Sealed, &k.State, &k.CSR,
		timeColumn(&k.CreatedAt), timeColumn(&k.ExpiresAt))
	return k, err
}

// FindJoinToken implements inventory.SecretTx.
func (t *tx) FindJoinToken(id string) (inventory.JoinToken, error) {
	return find(t, readJoinToken, "join token", id, findJoinTokenSQL, id)
}

// FindJoinTokenOf implements inventory.SecretTx.
func (t *tx) FindJoinTokenOf(s inventory.SessionID, target string) (inventory.JoinToken, error) {
	return find(t, readJoinToken, "join token", "for target "+target, findJoinTokenOfSQL, string(s), target)
}

// ListJoinTokens implements inventory.SecretTx.
func (t *tx) ListJoinTokens(target string, states ...inventory.JoinTokenState) ([]inventory.JoinToken, error) {
	query, args := listJoinTokensSQL, []any(nil)
	if target != "" {
		query, args = targetJoinTokensSQL, []any{target}
	}
	all, err := list(t, readJoinToken, query, args...)
	if err != nil || len(states) == 0 {
		return all, err
	}
	return slices.DeleteFunc(all, func(k inventory.JoinToken) bool { return !slices.Contains(states, k.State) }), nil
}

// SaveJoinToken implements inventory.SecretTx.
func (t *tx) SaveJoinToken(k inventory.JoinToken) error {
	_, err := t.write(saveJoinTokenSQL, k.ID, k.Target, string(k.HostID), string(k.SessionID), k.NodeName, blob(k.Sealed),
		string(cmp.Or(k.State, inventory.TokenMinted)), k.CSR, ms(k.CreatedAt), ms(k.ExpiresAt))
	return err
}
