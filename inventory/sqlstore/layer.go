package sqlstore

import (
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	layerColumns = `scope, name, config, revision, saved_by, saved_by_admin, created_at, updated_at, version`

	findLayerSQL    = `SELECT ` + layerColumns + ` FROM layers WHERE key = $1`
	listLayersSQL   = `SELECT ` + layerColumns + ` FROM layers WHERE key > $1 ORDER BY key LIMIT $2`
	layerKeysSQL    = `SELECT key FROM layers`
	layerVersionSQL = `SELECT version FROM layers WHERE key = $1`
	insertLayerSQL  = `INSERT INTO layers (key, scope, name, config, revision, saved_by, saved_by_admin, created_at, updated_at, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1)`
	updateLayerSQL = `UPDATE layers SET config = $1, revision = $2, saved_by = $3, saved_by_admin = $4, updated_at = $5, version = version + 1
WHERE key = $6 AND version = $7`
	deleteLayerSQL = `DELETE FROM layers WHERE key = $1`
)

func readLayer(s scan) (l inventory.Layer, err error) {
	err = s(&l.Scope, &l.Name, &l.Config, &l.Revision, &l.SavedBy, &l.SavedByAdmin, timeColumn(&l.CreatedAt), timeColumn(&l.UpdatedAt), &l.Version)
	return l, err
}

// FindLayer implements inventory.ConfigTx.
func (t *tx) FindLayer(s inventory.Scope, name string) (inventory.Layer, error) {
	key := (&inventory.Layer{Scope: s, Name: name}).Key()
	read := func() (inventory.Layer, error) { return find(t, readLayer, "layer", key, findLayerSQL, key) }
	has, err := setting(t, "layers", ownSelf, t.layerKeys)
	switch {
	case err != nil:
		return inventory.Layer{}, err
	case !has[key]: // most hosts have none of their own
		return inventory.Layer{}, absent("layer", key)
	case s == inventory.ScopeHost:
		return read()
	}
	return setting(t, "layer/"+key, ownSelf, read)
}

// layerKeys are the keys of all layers.
func (t *tx) layerKeys() (map[string]bool, error) {
	all := map[string]bool{}
	return all, t.each(func(s scan) error {
		var key string
		err := s(&key)
		all[key] = true
		return err
	}, layerKeysSQL)
}

// ListLayers implements inventory.ConfigTx.
func (t *tx) ListLayers(p inventory.Page) ([]inventory.Layer, error) {
	return list(t, readLayer, listLayersSQL, p.After, limit(p.Limit))
}

// CreateLayer implements inventory.ConfigTx. The layer of a host needs its host.
func (t *tx) CreateLayer(l *inventory.Layer, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, layerVersionSQL, l.Key()); err != nil {
		return err
	} else if found {
		return taken("layer", l.Key())
	}
	if l.Scope == inventory.ScopeHost {
		if found, err := t.row([]any{&version}, hostVersionSQL, l.Name); err != nil {
			return err
		} else if !found {
			return inventory.Errorf(inventory.Invalid, "layer %s names host %s, which does not exist", l.Key(), l.Name).
				WithHint("list them with: slipway host list")
		}
	}
	next := *l
	now = stamp(now)
	next.CreatedAt, next.UpdatedAt, next.Version = now, now, 1
	if err := t.reviseLayer(&next); err != nil {
		return err
	}
	_, err := t.write(insertLayerSQL, next.Key(), string(next.Scope), next.Name, next.Config, next.Revision,
		next.SavedBy, bit(next.SavedByAdmin), ms(now), ms(now))
	if err != nil {
		return err
	}
	*l = next
	return nil
}

// UpdateLayer implements inventory.ConfigTx.
func (t *tx) UpdateLayer(l *inventory.Layer, now time.Time) error {
	old, err := t.FindLayer(l.Scope, l.Name)
	if err != nil {
		return err
	}
	if old.Version != l.Version { // before a revision is kept
		return t.updated(0, nil, "layer", l.Key(), l.Version, layerVersionSQL, l.Key())
	}
	next := *l
	now = stamp(now)
	next.CreatedAt, next.UpdatedAt, next.Version = old.CreatedAt, now, l.Version+1
	if err := t.reviseLayer(&next); err != nil {
		return err
	}
	n, err := t.write(updateLayerSQL, next.Config, next.Revision, next.SavedBy, bit(next.SavedByAdmin), ms(now), l.Key(), l.Version)
	if err := t.updated(n, err, "layer", l.Key(), l.Version, layerVersionSQL, l.Key()); err != nil {
		return err
	}
	*l = next
	return nil
}

// DeleteLayer implements inventory.ConfigTx.
func (t *tx) DeleteLayer(s inventory.Scope, name string) error {
	key := (&inventory.Layer{Scope: s, Name: name}).Key()
	n, err := t.write(deleteLayerSQL, key)
	return changed(n, err, "layer", key)
}
