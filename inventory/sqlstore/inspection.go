package sqlstore

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
)

// keptInspections is how many of the newest inspections of a host are never forgotten.
const keptInspections = 10

const (
	inspectionColumns = `host_id, n, at, hardware, changes, faults, golden, operation`

	findInspectionSQL  = `SELECT ` + inspectionColumns + ` FROM inspections WHERE host_id = $1 AND n = $2`
	listInspectionsSQL = `SELECT ` + inspectionColumns + ` FROM inspections WHERE host_id = $1 ORDER BY n DESC LIMIT $2`
	listHeardSQL       = `SELECT host_id, at, ports, before FROM heard WHERE ports <> '' OR before <> ''`
	lastInspectionSQL  = `SELECT COALESCE(MAX(n), 0) FROM inspections WHERE host_id = $1`
	addInspectionSQL   = `INSERT INTO inspections (` + inspectionColumns + `, is_old) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)`
	oldInspectionSQL   = `UPDATE inspections SET is_old = 1 WHERE host_id = $1 AND n = $2`
	heardAgainSQL      = `UPDATE heard SET before = ports, ports = $1, at = $2 WHERE host_id = $3`
	heardFirstSQL      = `INSERT INTO heard (host_id, at, ports, before) VALUES ($1, $2, $3, '')`

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

// LastInspection implements inventory.HardwareTx.
func (t *tx) LastInspection(h inventory.HostID) (n int, err error) {
	_, err = t.row([]any{&n}, lastInspectionSQL, string(h))
	return n, err
}

// ListHeard implements inventory.HardwareTx. Cables are seldom moved: what was heard twice is read once.
func (t *tx) ListHeard() (map[inventory.HostID]inventory.Heard, error) {
	all := map[inventory.HostID]inventory.Heard{}
	err := t.each(func(s scan) error {
		var (
			id          inventory.HostID
			h           inventory.Heard
			now, before string
		)
		if err := s(&id, timeColumn(&h.At), &now, &before); err != nil {
			return err
		}
		if now == "" {
			h.At = time.Time{}
		}
		if err := jsonColumn(&h.Now)(now); err != nil {
			return err
		}
		if h.Before = h.Now; before != now {
			h.Before = nil
			if err := jsonColumn(&h.Before)(before); err != nil {
				return err
			}
		}
		all[id] = h
		return nil
	}, listHeardSQL)
	return all, err
}

// saveHeard keeps what ports heard beside the inspection, so that a list of cables need not read that.
func (t *tx) saveHeard(i *inventory.Inspection) error {
	var heard []inventory.Port
	for _, p := range i.Hardware.Ports {
		if p.Neighbour != nil {
			heard = append(heard, inventory.Port{Name: p.Name, MAC: p.MAC, SpeedMbps: p.SpeedMbps, Neighbour: p.Neighbour})
		}
	}
	text, err := jsonText(heard)
	if err != nil {
		return err
	}
	n, err := t.write(heardAgainSQL, text, ms(i.At), string(i.HostID))
	if err != nil || n > 0 || text == "" {
		return err
	}
	_, err = t.write(heardFirstSQL, string(i.HostID), ms(i.At), text)
	return err
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
	last, err := t.LastInspection(i.HostID)
	if err != nil {
		return err
	}
	_, err = t.write(addInspectionSQL, string(i.HostID), last+1, ms(i.At), texts[0], texts[1], texts[2], i.Golden, i.Operation)
	if err != nil {
		return err
	}
	i.N = last + 1
	if _, err = t.write(oldInspectionSQL, string(i.HostID), i.N-keptInspections); err != nil {
		return err
	}
	return t.saveHeard(i)
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
