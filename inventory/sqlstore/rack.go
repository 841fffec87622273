package sqlstore

import (
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	rackColumns = `site, row, name, height, numbering, notes, cables, created_at, updated_at, version`

	findRackSQL    = `SELECT ` + rackColumns + ` FROM racks WHERE id = $1`
	listRacksSQL   = `SELECT ` + rackColumns + ` FROM racks ORDER BY site, row, name`
	rackVersionSQL = `SELECT version FROM racks WHERE id = $1`
	insertRackSQL  = `INSERT INTO racks (height, numbering, notes, cables, id, site, row, name, created_at, updated_at, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1)`
	updateRackSQL = `UPDATE racks SET height = $1, numbering = $2, notes = $3, cables = $4, updated_at = $5, version = version + 1
WHERE id = $6 AND version = $7`
	deleteRackSQL = `DELETE FROM racks WHERE id = $1`
)

func readRack(s scan) (r inventory.Rack, err error) {
	err = s(&r.Site, &r.Row, &r.Name, &r.Height, &r.Numbering, &r.Notes, jsonColumn(&r.Cables),
		timeColumn(&r.CreatedAt), timeColumn(&r.UpdatedAt), &r.Version)
	return r, err
}

// FindRack implements inventory.RackTx.
func (t *tx) FindRack(id string) (inventory.Rack, error) {
	return find(t, readRack, "rack", id, findRackSQL, id)
}

// ListRacks implements inventory.RackTx.
func (t *tx) ListRacks() ([]inventory.Rack, error) { return list(t, readRack, listRacksSQL) }

// CreateRack implements inventory.RackTx.
func (t *tx) CreateRack(r *inventory.Rack, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, rackVersionSQL, r.ID()); err != nil {
		return err
	} else if found {
		return taken("rack", r.ID())
	}
	args, err := rackArgs(r)
	if err != nil {
		return err
	}
	now = stamp(now)
	if _, err := t.write(insertRackSQL, append(args, r.ID(), r.Site, r.Row, r.Name, ms(now), ms(now))...); err != nil {
		return err
	}
	r.CreatedAt, r.UpdatedAt, r.Version = now, now, 1
	return nil
}

// UpdateRack implements inventory.RackTx.
func (t *tx) UpdateRack(r *inventory.Rack, now time.Time) error {
	args, err := rackArgs(r)
	if err != nil {
		return err
	}
	now = stamp(now)
	n, err := t.write(updateRackSQL, append(args, ms(now), r.ID(), r.Version)...)
	if err := t.updated(n, err, "rack", r.ID(), r.Version, rackVersionSQL, r.ID()); err != nil {
		return err
	}
	r.UpdatedAt = now
	r.Version++
	return nil
}

// rackArgs returns the arguments that insert and update share.
func rackArgs(r *inventory.Rack) ([]any, error) {
	cables, err := jsonText(r.Cables)
	return []any{r.Height, string(r.Numbering), r.Notes, cables}, err
}

// DeleteRack implements inventory.RackTx.
func (t *tx) DeleteRack(id string) error {
	n, err := t.write(deleteRackSQL, id)
	return changed(n, err, "rack", id)
}
