package sqlstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

const layerKeysSQL = `SELECT key FROM layers`

var layerTable = newTable(noun.Layers, table[inventory.Layer]{
	key: "key", isDerived: true,
	fixed:  columns(`scope name`),
	edited: columns(`config revision saved_by saved_by_admin`),
	cells: func(l *inventory.Layer) []column.Column {
		return []column.Column{
			column.Text(&l.Scope), column.Text(&l.Name), column.Text(&l.Config), column.Number(&l.Revision), column.Text(&l.SavedBy),
			column.Bool(&l.SavedByAdmin),
		}
	},
})

// layers keep revisions. Those that boots ask for are kept.
type layers struct{ records[inventory.Layer] }

// Layers implements inventory.RecordTx.
func (t recordTx) Layers() inventory.Records[inventory.Layer] {
	return layers{records[inventory.Layer]{table: layerTable, tx: t.tx, may: t.mayBeLayer}}
}

// Find implements inventory.Records.
func (x layers) Find(key string) (inventory.Layer, error) {
	read := func() (inventory.Layer, error) { return x.records.Find(key) }
	has, err := setting(x.tx, "layers", ownSelf, x.tx.configs().layerKeys)
	switch {
	case err != nil:
		return inventory.Layer{}, err
	case !has[key]: // most hosts have none of their own
		return inventory.Layer{}, absent("layer", key)
	case strings.HasPrefix(key, string(inventory.ScopeHost)+"/"):
		return read()
	}
	return setting(x.tx, "layer/"+key, ownSelf, read)
}

// Update implements inventory.Records.
func (x layers) Update(l *inventory.Layer, now time.Time) error {
	old, err := x.Find(l.Key())
	if err != nil {
		return err
	}
	return x.records.revise(l, old.Version, old.CreatedAt, now)
}

// mayBeLayer refuses the layer of a host that is not stored, and keeps the text as a revision.
func (t recordTx) mayBeLayer(l *inventory.Layer, isNew bool) error {
	if isNew && l.Scope == inventory.ScopeHost {
		if found, err := t.Row([]any{new(int64)}, hostVersionSQL, l.Name); err != nil {
			return err
		} else if !found {
			return inventory.Errorf(inventory.Invalid, "layer %s names host %s, which does not exist", l.Key(), l.Name).
				WithHint("list them with: slipway host list")
		}
	}
	return t.configs().reviseLayer(l)
}

// layerKeys are the keys of all layers.
func (t configTx) layerKeys() (map[string]bool, error) {
	all := map[string]bool{}
	return all, t.Each(func(s database.Scan) error {
		var key string
		err := s(&key)
		all[key] = true
		return err
	}, layerKeysSQL)
}

const (
	findRevisionSQL  = `SELECT kind, name, n, body, created_at FROM revisions WHERE kind = $1 AND name = $2 AND n = $3`
	listRevisionsSQL = `SELECT kind, name, n, body, created_at FROM revisions
WHERE kind = $1 AND name = $2 AND n < $3 ORDER BY n DESC LIMIT $4`
	insertRevisionSQL = `INSERT INTO revisions (kind, name, n, body, created_at) VALUES ($1, $2, $3, $4, $5)`
)

func readRevision(s database.Scan) (r inventory.Revision, err error) {
	err = s(&r.Kind, &r.Name, &r.N, column.JSON(&r.Body), column.Time(&r.CreatedAt))
	return r, err
}

// FindRevision implements inventory.ConfigTx.
func (t configTx) FindRevision(k inventory.RevisionKind, name string, n int) (inventory.Revision, error) {
	r, err := find(t.tx, readRevision, "revision", fmt.Sprintf("%d of %s %s", n, k, name), findRevisionSQL, string(k), name, n)
	if inventory.IsKind(err, inventory.NotFound) {
		return r, inventory.Errorf(inventory.NotFound, "there is no revision %d of %s %s", n, k, name).
			WithHint("list them with: slipway %s revisions %s", k, name)
	}
	return r, err
}

// ListRevisions implements inventory.ConfigTx.
func (t configTx) ListRevisions(k inventory.RevisionKind, name string, before, n int) ([]inventory.Revision, error) {
	return list(t.tx, readRevision, listRevisionsSQL, string(k), name, limit(before), limit(n))
}

// reviseProfile adds p as a revision, unless its content is that of the newest one, and fills in the number.
func (t configTx) reviseProfile(p *inventory.Profile) error {
	return revise(t.tx, inventory.RevisionOfProfile, p.Name, p, p.UpdatedAt, &p.Revision, func(p inventory.Profile) inventory.Profile {
		p.Revision, p.Version, p.CreatedAt, p.UpdatedAt, p.SavedBy = 0, 0, time.Time{}, time.Time{}, ""
		return p
	})
}

// reviseLayer does the same for a layer.
func (t configTx) reviseLayer(l *inventory.Layer) error {
	return revise(t.tx, inventory.RevisionOfLayer, l.Key(), l, l.UpdatedAt, &l.Revision, func(l inventory.Layer) inventory.Layer {
		l.Revision, l.Version, l.CreatedAt, l.UpdatedAt, l.SavedBy = 0, 0, time.Time{}, time.Time{}, ""
		return l
	})
}

// revise compares v with the newest revision of the same name, both stripped of all that is not content, and adds it as
// the next one if it differs. number points into v.
func revise[T any](t *tx, k inventory.RevisionKind, name string, v *T, now time.Time, number *int, strip func(T) T) error {
	newest, err := t.configs().ListRevisions(k, name, 0, 1)
	if err != nil {
		return err
	}
	*number = 1
	if len(newest) > 0 {
		var was T
		if err := json.Unmarshal(newest[0].Body, &was); err != nil {
			return fmt.Errorf("decode revision %d of %s %s: %w", newest[0].N, k, name, err)
		}
		is, err := sameJSON(strip(was), strip(*v))
		if err != nil {
			return err
		}
		if *number = newest[0].N; is {
			return nil
		}
		*number++
	}
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s %s: %w", k, name, err)
	}
	return t.Later(nil, insertRevisionSQL, string(k), name, *number, string(body), column.MS(now))
}

// sameJSON compares as the revisions are kept: empty lists and absent ones are the same.
func sameJSON(a, b any) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("encode %T: %w", a, err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		return false, fmt.Errorf("encode %T: %w", b, err)
	}
	return bytes.Equal(x, y), nil
}

const (
	renderingColumns = `digest, host_id, profile, revision, image, format, documents, args, uses, created_at`

	findRenderingSQL   = `SELECT ` + renderingColumns + ` FROM renderings WHERE digest = $1 ORDER BY created_at DESC, host_id LIMIT 1`
	listRenderingsSQL  = `SELECT ` + renderingColumns + ` FROM renderings WHERE host_id = $1 ORDER BY position DESC LIMIT $2`
	hasRenderingSQL    = `SELECT 1 FROM renderings WHERE digest = $1 AND host_id = $2`
	lastRenderingSQL   = `SELECT digest, position FROM renderings WHERE host_id = $1 ORDER BY position DESC LIMIT 1`
	insertRenderingSQL = `INSERT INTO renderings (digest, host_id, profile, revision, image, format, documents, args, uses, created_at, position)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (digest, host_id) DO UPDATE SET position = excluded.position`

	findDeliverySQL = `SELECT session_id, document, source, fetch_n, first_at, last_at, is_burnt FROM deliveries
WHERE session_id = $1 AND document = $2`
	saveDeliverySQL = `INSERT INTO deliveries (session_id, document, source, fetch_n, first_at, last_at, is_burnt)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (session_id, document) DO UPDATE SET source = excluded.source,
fetch_n = excluded.fetch_n, first_at = excluded.first_at, last_at = excluded.last_at, is_burnt = excluded.is_burnt`
)

func readRendering(s database.Scan) (r inventory.Rendering, err error) {
	err = s(&r.Digest, &r.HostID, &r.Profile, &r.Revision, &r.Image, &r.Format, column.JSON(&r.Documents), column.JSON(&r.Args),
		column.JSON(&r.Uses),
		column.Time(&r.CreatedAt))
	return r, err
}

// FindRendering implements inventory.ConfigTx. Hosts that were given the same share its digest; the latest is returned.
func (t configTx) FindRendering(d inventory.Digest) (inventory.Rendering, error) {
	return find(t.tx, readRendering, "rendering", string(d), findRenderingSQL, string(d))
}

// ListRenderings implements inventory.ConfigTx.
func (t configTx) ListRenderings(host inventory.HostID, n int) ([]inventory.Rendering, error) {
	return list(t.tx, readRendering, listRenderingsSQL, string(host), limit(n))
}

// HasRendering implements inventory.ConfigTx.
func (t configTx) HasRendering(host inventory.HostID, d inventory.Digest) (bool, error) {
	var one int
	return t.Row([]any{&one}, hasRenderingSQL, string(d), string(host))
}

// SaveRendering implements inventory.ConfigTx. If the content equals the newest revision, nothing is written.
func (t configTx) SaveRendering(r inventory.Rendering) error {
	var newest string
	var last int64
	if _, err := t.Row([]any{&newest, &last}, lastRenderingSQL, string(r.HostID)); err != nil {
		return err
	}
	if newest == string(r.Digest) {
		return nil
	}
	texts, err := t.jsonTexts(r.Documents, r.Args, r.Uses)
	if err != nil {
		return err
	}
	return t.Later(nil, insertRenderingSQL, string(r.Digest), string(r.HostID), r.Profile, r.Revision, r.Image, r.Format,
		texts[0], texts[1], texts[2], column.MS(r.CreatedAt), last+1)
}

// FindDelivery implements inventory.SecretTx.
func (t secretTx) FindDelivery(s inventory.SessionID, document string) (inventory.Delivery, error) {
	return find(t.tx, func(s database.Scan) (d inventory.Delivery, err error) {
		err = s(&d.SessionID, &d.Document, column.Address(&d.Source), &d.FetchN, column.Time(&d.FirstAt), column.Time(&d.LastAt),
			&d.IsBurnt)
		return d, err
	}, "delivery", document, findDeliverySQL, string(s), document)
}

// SaveDelivery implements inventory.SecretTx.
func (t secretTx) SaveDelivery(d inventory.Delivery) error {
	return t.Later(nil, saveDeliverySQL, string(d.SessionID), d.Document, column.AddressText(d.Source), d.FetchN, column.MS(d.FirstAt),
		column.MS(d.LastAt), column.Bit(d.IsBurnt))
}
