package sqlstore

import (
	"slipway.dev/slipway/inventory"
)

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

func readRendering(s scan) (r inventory.Rendering, err error) {
	err = s(&r.Digest, &r.HostID, &r.Profile, &r.Revision, &r.Image, &r.Format, jsonColumn(&r.Documents), jsonColumn(&r.Args), jsonColumn(&r.Uses),
		timeColumn(&r.CreatedAt))
	return r, err
}

// FindRendering implements inventory.ConfigTx. Hosts that were given the same share its digest; the latest is returned.
func (t *tx) FindRendering(d inventory.Digest) (inventory.Rendering, error) {
	return find(t, readRendering, "rendering", string(d), findRenderingSQL, string(d))
}

// ListRenderings implements inventory.ConfigTx.
func (t *tx) ListRenderings(host inventory.HostID, n int) ([]inventory.Rendering, error) {
	return list(t, readRendering, listRenderingsSQL, string(host), limit(n))
}

// HasRendering implements inventory.ConfigTx.
func (t *tx) HasRendering(host inventory.HostID, d inventory.Digest) (bool, error) {
	var one int
	return t.row([]any{&one}, hasRenderingSQL, string(d), string(host))
}

// SaveRendering implements inventory.ConfigTx. What is the newest already stays as it is.
func (t *tx) SaveRendering(r inventory.Rendering) error {
	var newest string
	var last int64
	if _, err := t.row([]any{&newest, &last}, lastRenderingSQL, string(r.HostID)); err != nil {
		return err
	}
	if newest == string(r.Digest) {
		return nil
	}
	texts, err := jsonTexts(r.Documents, r.Args, r.Uses)
	if err != nil {
		return err
	}
	_, err = t.write(insertRenderingSQL, string(r.Digest), string(r.HostID), r.Profile, r.Revision, r.Image, r.Format,
		texts[0], texts[1], texts[2], ms(r.CreatedAt), last+1)
	return err
}

// FindDelivery implements inventory.SecretTx.
func (t *tx) FindDelivery(s inventory.SessionID, document string) (inventory.Delivery, error) {
	return find(t, func(s scan) (d inventory.Delivery, err error) {
		err = s(&d.SessionID, &d.Document, textColumn(&d.Source), &d.FetchN, timeColumn(&d.FirstAt), timeColumn(&d.LastAt), &d.IsBurnt)
		return d, err
	}, "delivery", document, findDeliverySQL, string(s), document)
}

// SaveDelivery implements inventory.SecretTx.
func (t *tx) SaveDelivery(d inventory.Delivery) error {
	_, err := t.write(saveDeliverySQL, string(d.SessionID), d.Document, addressText(d.Source), d.FetchN, ms(d.FirstAt),
		ms(d.LastAt), bit(d.IsBurnt))
	return err
}
