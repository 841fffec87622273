package sqlstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	findRevisionSQL  = `SELECT kind, name, n, body, created_at FROM revisions WHERE kind = $1 AND name = $2 AND n = $3`
	listRevisionsSQL = `SELECT kind, name, n, body, created_at FROM revisions
WHERE kind = $1 AND name = $2 AND n < $3 ORDER BY n DESC LIMIT $4`
	insertRevisionSQL = `INSERT INTO revisions (kind, name, n, body, created_at) VALUES ($1, $2, $3, $4, $5)`
)

func readRevision(s scan) (r inventory.Revision, err error) {
	err = s(&r.Kind, &r.Name, &r.N, jsonColumn(&r.Body), timeColumn(&r.CreatedAt))
	return r, err
}

// FindRevision implements inventory.ConfigTx.
func (t *tx) FindRevision(k inventory.RevisionKind, name string, n int) (inventory.Revision, error) {
	r, err := find(t, readRevision, "revision", fmt.Sprintf("%d of %s %s", n, k, name), findRevisionSQL, string(k), name, n)
	if inventory.IsKind(err, inventory.NotFound) {
		return r, inventory.Errorf(inventory.NotFound, "there is no revision %d of %s %s", n, k, name).
			WithHint("list them with: slipway %s revisions %s", k, name)
	}
	return r, err
}

// ListRevisions implements inventory.ConfigTx.
func (t *tx) ListRevisions(k inventory.RevisionKind, name string, before, n int) ([]inventory.Revision, error) {
	return list(t, readRevision, listRevisionsSQL, string(k), name, limit(before), limit(n))
}

// reviseProfile adds p as a revision, unless its content is that of the newest one, and fills in the number.
func (t *tx) reviseProfile(p *inventory.Profile) error {
	return revise(t, inventory.RevisionOfProfile, p.Name, p, p.UpdatedAt, &p.Revision, func(p inventory.Profile) inventory.Profile {
		p.Revision, p.Version, p.CreatedAt, p.UpdatedAt, p.SavedBy = 0, 0, time.Time{}, time.Time{}, ""
		return p
	})
}

// reviseLayer does the same for a layer.
func (t *tx) reviseLayer(l *inventory.Layer) error {
	return revise(t, inventory.RevisionOfLayer, l.Key(), l, l.UpdatedAt, &l.Revision, func(l inventory.Layer) inventory.Layer {
		l.Revision, l.Version, l.CreatedAt, l.UpdatedAt, l.SavedBy = 0, 0, time.Time{}, time.Time{}, ""
		return l
	})
}

// revise compares v with the newest revision of the same name, both stripped of all that is not content, and adds it as
// the next one if it differs. number points into v.
func revise[T any](t *tx, k inventory.RevisionKind, name string, v *T, now time.Time, number *int, strip func(T) T) error {
	newest, err := t.ListRevisions(k, name, 0, 1)
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
	_, err = t.write(insertRevisionSQL, string(k), name, *number, string(body), ms(now))
	return err
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
