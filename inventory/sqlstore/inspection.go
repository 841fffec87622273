package sqlstore

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// keptInspections is how many of the newest inspections of a host are never forgotten.
const keptInspections = 10

const (
	inspectionColumns = `host_id, n, at, hardware, changes, faults, golden, operation`

	findInspectionSQL  = `SELECT ` + inspectionColumns + ` FROM inspections WHERE host_id = $1 AND n = $2`
	listInspectionsSQL = `SELECT ` + inspectionColumns + ` FROM inspections WHERE host_id = $1 ORDER BY n DESC LIMIT $2`
	// The last numbers come from the primary key alone.
	listHeardSQL = `SELECT i.host_id, l.n - i.n, i.at, i.hardware
FROM (SELECT host_id, MAX(n) AS n FROM inspections GROUP BY host_id) AS l
JOIN inspections AS i ON i.host_id = l.host_id AND i.n >= l.n - 1`
	lastInspectionSQL = `SELECT COALESCE(MAX(n), 0) FROM inspections WHERE host_id = $1`
	addInspectionSQL  = `INSERT INTO inspections (` + inspectionColumns + `, is_old) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)`
	oldInspectionSQL  = `UPDATE inspections SET is_old = 1 WHERE host_id = $1 AND n = $2`

	forgetInspectionsSQL = `DELETE FROM inspections WHERE (host_id, n) IN (
SELECT i.host_id, i.n FROM inspections AS i WHERE i.is_old = 1 AND i.at < $1 ORDER BY i.at LIMIT $2)`
)

func readInspection(s scan) (i inventory.Inspection, err error) {
	err = s(&i.HostID, &i.N, timeColumn(&i.At), jsonColumn(&i.Hardware), jsonColumn(&i.Changes), jsonColumn(&i.Faults),
		&i.Golden, &i.Operation)
	return i, err
}

// FindInspection implements inventory.HardwareTx.
func (t *tx) FindInspection(h inventory.HostID, n int) (inventory.Inspection, error) {
	if n == 0 {
		return find(t, readInspection, "inspection", "of host "+string(h), listInspectionsSQL, string(h), 1)
	}
	return find(t, readInspection, "inspection", fmt.Sprintf("%d of host %s", n, h), findInspectionSQL, string(h), n)
}

// ListInspections implements inventory.HardwareTx.
func (t *tx) ListInspections(h inventory.HostID, n int) ([]inventory.Inspection, error) {
	return list(t, readInspection, listInspectionsSQL, string(h), limit(n))
}

// ListHeard implements inventory.HardwareTx.
func (t *tx) ListHeard() (map[inventory.HostID]inventory.Heard, error) {
	all := map[inventory.HostID]inventory.Heard{}
	err := t.each(func(s scan) error {
		var (
			id    inventory.HostID
			age   int
			at    time.Time
			ports []inventory.Port
		)
		if err := s(&id, &age, timeColumn(&at), heardColumn(&ports)); err != nil || ports == nil {
			return err
		}
		h := all[id]
		if age == 0 {
			h.At, h.Now = at, ports
		} else {
			h.Before = ports
		}
		all[id] = h
		return nil
	}, listHeardSQL)
	return all, err
}

// heardColumn reads the ports of hardware that heard anything, and none of the rest: reading JSON is what a list of
// cables costs. In a text of JSON each quote has a backslash before it, so that what looks like a key is one.
func heardColumn(ports *[]inventory.Port) column {
	return func(v any) error {
		s, ok := v.(string)
		if !ok {
			return fmt.Errorf("JSON column holds %T", v)
		}
		_, from, has := strings.Cut(s, `"ports":`)
		if !has || !strings.Contains(from, `"neighbour":`) {
			return nil
		}
		return json.NewDecoder(strings.NewReader(from)).Decode(ports)
	}
}

// SaveInspection implements inventory.HardwareTx.
func (t *tx) SaveInspection(i *inventory.Inspection) error {
	if err := t.hasHost(i.HostID); err != nil {
		return err
	}
	texts, err := jsonTexts(i.Hardware, i.Changes, i.Faults)
	if err != nil {
		return err
	}
	var last int
	if _, err := t.row([]any{&last}, lastInspectionSQL, string(i.HostID)); err != nil {
		return err
	}
	_, err = t.write(addInspectionSQL, string(i.HostID), last+1, ms(i.At), texts[0], texts[1], texts[2], i.Golden, i.Operation)
	if err != nil {
		return err
	}
	i.N = last + 1
	_, err = t.write(oldInspectionSQL, string(i.HostID), i.N-keptInspections)
	return err
}

// hasHost is NotFound when there is no such host.
func (t *tx) hasHost(id inventory.HostID) error {
	var version int64
	found, err := t.row([]any{&version}, hostVersionSQL, string(id))
	if err == nil && !found {
		err = absent("host", string(id))
	}
	return err
}
