package sqlstore

import (
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	poolColumns = `name, selector, requirements, budget, clean, min_spare, burn_in_for, allowed_namespaces, owner, created_at, updated_at, version`

	findPoolSQL    = `SELECT ` + poolColumns + ` FROM pools WHERE name = $1`
	listPoolsSQL   = `SELECT ` + poolColumns + ` FROM pools ORDER BY name`
	hasPoolSQL     = `SELECT name FROM pools WHERE name = $1`
	poolVersionSQL = `SELECT version FROM pools WHERE name = $1`
	poolUserSQL    = `SELECT name FROM machines WHERE pool = $1 ORDER BY name LIMIT 1`
	insertPoolSQL  = `INSERT INTO pools (name, selector, requirements, budget, clean, min_spare, burn_in_for,
allowed_namespaces, owner, created_at, updated_at, version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1)`
	updatePoolSQL = `UPDATE pools SET selector = $1, requirements = $2, budget = $3, clean = $4, min_spare = $5,
burn_in_for = $6, allowed_namespaces = $7, owner = $8, updated_at = $9, version = version + 1 WHERE name = $10 AND version = $11`
	deletePoolSQL = `DELETE FROM pools WHERE name = $1`

	// poolHosts is closed by the caller, after the condition for the pool.
	poolHosts = `id IN (SELECT host_id FROM claims WHERE machine_uid IN (SELECT uid FROM machines WHERE `
	// inDefaultPool finds the machines of inventory.DefaultPool: those that name none are taken from it as well.
	inDefaultPool = `pool IN ('` + inventory.DefaultPool + `', '')`
)

func readPool(s scan) (p inventory.Pool, err error) {
	err = s(&p.Name, &p.Selector, jsonColumn(&p.Requirements), jsonColumn(&p.Budget), &p.Clean, &p.MinSpare,
		durationColumn(&p.BurnInFor), &p.AllowedNamespaces, &p.Owner, timeColumn(&p.CreatedAt), timeColumn(&p.UpdatedAt), &p.Version)
	return p, err
}

// FindPool implements inventory.MachineTx.
func (t *tx) FindPool(name string) (inventory.Pool, error) {
	return find(t, readPool, "pool", name, findPoolSQL, name)
}

// ListPools implements inventory.MachineTx.
func (t *tx) ListPools() ([]inventory.Pool, error) { return list(t, readPool, listPoolsSQL) }

// CreatePool implements inventory.MachineTx.
func (t *tx) CreatePool(p *inventory.Pool, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, poolVersionSQL, p.Name); err != nil {
		return err
	} else if found {
		return taken("pool", p.Name)
	}
	args, err := poolArgs(p)
	if err != nil {
		return err
	}
	now = stamp(now)
	args = append([]any{p.Name}, args...)
	if _, err := t.write(insertPoolSQL, append(args, ms(now), ms(now))...); err != nil {
		return err
	}
	p.CreatedAt, p.UpdatedAt, p.Version = now, now, 1
	return nil
}

// UpdatePool implements inventory.MachineTx.
func (t *tx) UpdatePool(p *inventory.Pool, now time.Time) error {
	args, err := poolArgs(p)
	if err != nil {
		return err
	}
	now = stamp(now)
	n, err := t.write(updatePoolSQL, append(args, ms(now), p.Name, p.Version)...)
	if err := t.updated(n, err, "pool", p.Name, p.Version, poolVersionSQL, p.Name); err != nil {
		return err
	}
	p.UpdatedAt = now
	p.Version++
	return nil
}

// poolArgs returns the arguments that insert and update share.
func poolArgs(p *inventory.Pool) ([]any, error) {
	texts, err := jsonTexts(p.Requirements, p.Budget)
	if err != nil {
		return nil, err
	}
	return []any{p.Selector, texts[0], texts[1], string(p.Clean), p.MinSpare, durationMS(p.BurnInFor), p.AllowedNamespaces, p.Owner}, nil
}

// DeletePool implements inventory.MachineTx.
func (t *tx) DeletePool(name string) error {
	if err := t.unused("pool", name, "machine", poolUserSQL); err != nil {
		return err
	}
	n, err := t.write(deletePoolSQL, name)
	return changed(n, err, "pool", name)
}
