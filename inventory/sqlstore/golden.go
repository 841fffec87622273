package sqlstore

import (
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	goldenColumns = `name, selector, requirements, firmware, disk_n, port_n, dimm_n, is_strict, created_at, updated_at, version`

	findGoldenSQL    = `SELECT ` + goldenColumns + ` FROM goldens WHERE name = $1`
	listGoldensSQL   = `SELECT ` + goldenColumns + ` FROM goldens ORDER BY name`
	goldenVersionSQL = `SELECT version FROM goldens WHERE name = $1`
	insertGoldenSQL  = `INSERT INTO goldens (name, selector, requirements, firmware, disk_n, port_n, dimm_n, is_strict, created_at,
updated_at, version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1)`
	updateGoldenSQL = `UPDATE goldens SET selector = $1, requirements = $2, firmware = $3, disk_n = $4, port_n = $5, dimm_n = $6,
is_strict = $7, updated_at = $8, version = version + 1 WHERE name = $9 AND version = $10`
	deleteGoldenSQL = `DELETE FROM goldens WHERE name = $1`
)

func readGolden(s scan) (g inventory.Golden, err error) {
	err = s(&g.Name, &g.Selector, jsonColumn(&g.Requirements), jsonColumn(&g.Firmware), &g.DiskN, &g.PortN, &g.DIMMN,
		&g.IsStrict, timeColumn(&g.CreatedAt), timeColumn(&g.UpdatedAt), &g.Version)
	return g, err
}

// FindGolden implements inventory.HardwareTx.
func (t *tx) FindGolden(name string) (inventory.Golden, error) {
	return find(t, readGolden, "golden", name, findGoldenSQL, name)
}

// ListGoldens implements inventory.HardwareTx.
func (t *tx) ListGoldens() ([]inventory.Golden, error) { return list(t, readGolden, listGoldensSQL) }

// CreateGolden implements inventory.HardwareTx.
func (t *tx) CreateGolden(g *inventory.Golden, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, goldenVersionSQL, g.Name); err != nil {
		return err
	} else if found {
		return taken("golden", g.Name)
	}
	args, err := goldenArgs(g)
	if err != nil {
		return err
	}
	now = stamp(now)
	args = append([]any{g.Name}, args...)
	if _, err := t.write(insertGoldenSQL, append(args, ms(now), ms(now))...); err != nil {
		return err
	}
	g.CreatedAt, g.UpdatedAt, g.Version = now, now, 1
	return nil
}

// UpdateGolden implements inventory.HardwareTx.
func (t *tx) UpdateGolden(g *inventory.Golden, now time.Time) error {
	args, err := goldenArgs(g)
	if err != nil {
		return err
	}
	now = stamp(now)
	n, err := t.write(updateGoldenSQL, append(args, ms(now), g.Name, g.Version)...)
	if err := t.updated(n, err, "golden", g.Name, g.Version, goldenVersionSQL, g.Name); err != nil {
		return err
	}
	g.UpdatedAt = now
	g.Version++
	return nil
}

// goldenArgs returns the arguments that insert and update share.
func goldenArgs(g *inventory.Golden) ([]any, error) {
	texts, err := jsonTexts(g.Requirements, g.Firmware)
	if err != nil {
		return nil, err
	}
	return []any{g.Selector, texts[0], texts[1], g.DiskN, g.PortN, g.DIMMN, bit(g.IsStrict)}, nil
}

// DeleteGolden implements inventory.HardwareTx.
func (t *tx) DeleteGolden(name string) error {
	n, err := t.write(deleteGoldenSQL, name)
	return changed(n, err, "golden", name)
}
