package sqlstore

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

const (
	bmcColumns = `host_id, driver, address, username, sealed, system, insecure_skip_verify, fingerprint, mac, options, power,
power_at, is_reachable, reason, vendor, model, firmware, capabilities, checked_at, last_check, created_at, updated_at, version,
others, refs`

	findBMCSQL    = `SELECT ` + bmcColumns + ` FROM bmcs WHERE host_id = $1`
	listBMCsSQL   = `SELECT ` + bmcColumns + ` FROM bmcs WHERE host_id > $1 ORDER BY host_id LIMIT $2`
	bmcVersionSQL = `SELECT version FROM bmcs WHERE host_id = $1`
	bmcHolderSQL  = `SELECT hosts.id, hosts.name FROM bmcs JOIN hosts ON hosts.id = bmcs.host_id
WHERE bmcs.driver = $1 AND bmcs.address = $2 AND bmcs.system = $3 AND bmcs.driver <> 'wol' AND bmcs.driver <> 'manual'
AND (bmcs.address <> '' OR bmcs.system <> '')`
	insertBMCSQL = `INSERT INTO bmcs (host_id, driver, address, username, sealed, system, insecure_skip_verify, fingerprint, mac,
options, power, power_at, is_reachable, reason, vendor, model, firmware, capabilities, checked_at, last_check, created_at, updated_at,
others, refs, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, 1)`
	updateBMCSQL = `UPDATE bmcs SET driver = $1, address = $2, username = $3, sealed = $4, system = $5, insecure_skip_verify = $6,
fingerprint = $7, mac = $8, options = $9, power = $10, power_at = $11, is_reachable = $12, reason = $13, vendor = $14, model = $15,
firmware = $16, capabilities = $17, checked_at = $18, last_check = $19, updated_at = $20, others = $21, refs = $22, version = version + 1
WHERE host_id = $23 AND version = $24`
	deleteBMCSQL = `DELETE FROM bmcs WHERE host_id = $1`
)

func readBMC(s database.Scan) (b inventory.BMC, err error) {
	err = s(&b.HostID, &b.Driver, &b.Address, &b.Username, &b.Sealed, &b.System, &b.InsecureSkipVerify, &b.Fingerprint, &b.MAC,
		column.JSON(&b.Options), &b.Power, column.Time(&b.PowerAt), &b.IsReachable, &b.Reason, &b.Vendor, &b.Model, &b.Firmware,
		column.JSON(&b.Capabilities), column.Time(&b.CheckedAt), column.JSON(&b.LastCheck), column.Time(&b.CreatedAt),
		column.Time(&b.UpdatedAt), &b.Version, column.JSON(&b.Others), column.JSON(&b.Refs))
	return b, err
}

// FindBMC implements inventory.HardwareTx.
func (t hardwareTx) FindBMC(h inventory.HostID) (inventory.BMC, error) {
	return find(t.tx, readBMC, "bmc", "of host "+string(h), findBMCSQL, string(h))
}

// ListBMCs implements inventory.HardwareTx.
func (t hardwareTx) ListBMCs(p inventory.Page) ([]inventory.BMC, error) {
	return list(t.tx, readBMC, listBMCsSQL, p.After, limit(p.Limit))
}

// SaveBMC implements inventory.HardwareTx.
func (t hardwareTx) SaveBMC(b *inventory.BMC, now time.Time) error {
	if err := t.checkBMC(b); err != nil {
		return err
	}
	texts, err := t.jsonTexts(b.Options, b.Capabilities, b.LastCheck, b.Others, b.Refs)
	if err != nil {
		return err
	}
	now = stamp(now)
	id := string(b.HostID)
	args := []any{
		string(b.Driver), b.Address, b.Username, column.Blob(b.Sealed), b.System, column.Bit(b.InsecureSkipVerify), b.Fingerprint,
		string(b.MAC), texts[0], string(b.Power), column.MS(b.PowerAt), column.Bit(b.IsReachable), b.Reason, b.Vendor, b.Model, b.Firmware,
		texts[1], column.MS(b.CheckedAt), texts[2],
	}
	if b.Version == 0 {
		args = append([]any{id}, args...)
		if err := t.Later(nil, insertBMCSQL, append(args, column.MS(now), column.MS(now), texts[3], texts[4])...); err != nil {
			return err
		}
		b.CreatedAt = now
	} else {
		n, err := t.Write(updateBMCSQL, append(args, column.MS(now), texts[3], texts[4], id, b.Version)...)
		if err := t.updated(n, err, "bmc", "of host "+id, b.Version, bmcVersionSQL, id); err != nil {
			return err
		}
	}
	b.UpdatedAt = now
	b.Version++
	return nil
}

// checkBMC refuses a controller that powers another host, and a second one for the same host.
func (t hardwareTx) checkBMC(b *inventory.BMC) error {
	var id inventory.HostID
	var name string
	found, err := t.Row([]any{&id, &name}, bmcHolderSQL, string(b.Driver), b.Address, b.System)
	if err != nil {
		return err
	}
	if found && id != b.HostID {
		return inventory.Errorf(inventory.Conflict, "the %s controller at %s powers host %s", b.Driver, b.Address, inventory.HostRef(name)).
			WithHint("one controller powers one host: correct the address, or take it away from host %s first", name)
	}
	if b.Version != 0 {
		return nil
	}
	if err := t.hasHost(b.HostID); err != nil {
		return err
	}
	var version int64
	found, err = t.Row([]any{&version}, bmcVersionSQL, string(b.HostID))
	if err == nil && found {
		err = inventory.Errorf(inventory.Conflict, "host %s has a BMC already", t.hostName(b.HostID)).
			WithHint("change that one, with its version")
	}
	return err
}

// DeleteBMC implements inventory.HardwareTx.
func (t hardwareTx) DeleteBMC(h inventory.HostID) error {
	n, err := t.Write(deleteBMCSQL, string(h))
	return changed(n, err, "bmc", "of host "+string(h))
}

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

func readInspection(s database.Scan) (i inventory.Inspection, err error) {
	err = s(&i.HostID, &i.N, column.Time(&i.At), column.JSON(&i.Hardware), column.JSON(&i.Changes), column.JSON(&i.Faults),
		&i.Golden, &i.Operation)
	return i, err
}

// FindInspection implements inventory.HardwareTx.
func (t hardwareTx) FindInspection(h inventory.HostID, n int) (inventory.Inspection, error) {
	if n == 0 {
		return find(t.tx, readInspection, "inspection", "of host "+string(h), listInspectionsSQL, string(h), 1)
	}
	return find(t.tx, readInspection, "inspection", fmt.Sprintf("%d of host %s", n, h), findInspectionSQL, string(h), n)
}

// ListInspections implements inventory.HardwareTx.
func (t hardwareTx) ListInspections(h inventory.HostID, n int) ([]inventory.Inspection, error) {
	return list(t.tx, readInspection, listInspectionsSQL, string(h), limit(n))
}

// LastInspection implements inventory.HardwareTx.
func (t hardwareTx) LastInspection(h inventory.HostID) (n int, err error) {
	_, err = t.Row([]any{&n}, lastInspectionSQL, string(h))
	return n, err
}

// ListHeard implements inventory.HardwareTx. Cables seldom move: if both inspections heard the same, it decodes that once.
func (t hardwareTx) ListHeard() (map[inventory.HostID]inventory.Heard, error) {
	all := map[inventory.HostID]inventory.Heard{}
	err := t.Each(func(s database.Scan) error {
		var (
			id          inventory.HostID
			h           inventory.Heard
			now, before string
		)
		if err := s(&id, column.Time(&h.At), &now, &before); err != nil {
			return err
		}
		if now == "" {
			h.At = time.Time{}
		}
		if err := column.JSON(&h.Now).Read(now); err != nil {
			return err
		}
		if h.Before = h.Now; before != now {
			h.Before = nil
			if err := column.JSON(&h.Before).Read(before); err != nil {
				return err
			}
		}
		all[id] = h
		return nil
	}, listHeardSQL)
	return all, err
}

// saveHeard keeps what ports heard beside the inspection, so that a list of cables need not read that.
func (t hardwareTx) saveHeard(i *inventory.Inspection) error {
	var heard []inventory.Port
	for _, p := range i.Hardware.Ports {
		if p.Neighbour != nil {
			heard = append(heard, inventory.Port{Name: p.Name, MAC: p.MAC, SpeedMbps: p.SpeedMbps, Neighbour: p.Neighbour})
		}
	}
	text, err := column.JSONText(heard)
	if err != nil {
		return err
	}
	n, err := t.Write(heardAgainSQL, text, column.MS(i.At), string(i.HostID))
	if err != nil || n > 0 || text == "" {
		return err
	}
	return t.Later(nil, heardFirstSQL, string(i.HostID), column.MS(i.At), text)
}

// SaveInspection implements inventory.HardwareTx.
func (t hardwareTx) SaveInspection(i *inventory.Inspection) error {
	if err := t.hasHost(i.HostID); err != nil {
		return err
	}
	texts, err := t.jsonTexts(i.Hardware, i.Changes, i.Faults)
	if err != nil {
		return err
	}
	last, err := t.LastInspection(i.HostID)
	if err != nil {
		return err
	}
	err = t.Later(nil, addInspectionSQL, string(i.HostID), last+1, column.MS(i.At), texts[0], texts[1], texts[2], i.Golden, i.Operation)
	if err != nil {
		return err
	}
	i.N = last + 1
	if err = t.Later(nil, oldInspectionSQL, string(i.HostID), i.N-keptInspections); err != nil {
		return err
	}
	return t.saveHeard(i)
}

// hasHost is NotFound when there is no such host.
func (t *tx) hasHost(id inventory.HostID) error {
	var version int64
	found, err := t.Row([]any{&version}, hostVersionSQL, string(id))
	if err == nil && !found {
		err = absent("host", string(id))
	}
	return err
}

const (
	reportColumns = `id, host_id, kind, machine, body, created_at`

	saveReportSQL = `INSERT INTO reports (` + reportColumns + `) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET host_id = excluded.host_id, kind = excluded.kind, machine = excluded.machine,
body = excluded.body, created_at = excluded.created_at`
	listReportsSQL = `SELECT ` + reportColumns + ` FROM reports WHERE host_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2`
	kindReportsSQL = `SELECT ` + reportColumns + ` FROM reports WHERE host_id = $1 AND kind = $2
ORDER BY created_at DESC, id DESC LIMIT $3`
)

func readReport(s database.Scan) (r inventory.Report, err error) {
	err = s(&r.ID, &r.HostID, &r.Kind, &r.Machine, column.Raw(&r.Body), column.Time(&r.CreatedAt))
	return r, err
}

// SaveReport implements inventory.HardwareTx.
func (t hardwareTx) SaveReport(r inventory.Report) error {
	body, err := column.RawText(r.Body)
	if err != nil {
		return err
	}
	return t.Later(nil, saveReportSQL, r.ID, string(r.HostID), r.Kind, r.Machine, body, column.MS(r.CreatedAt))
}

// ListReports implements inventory.HardwareTx.
func (t hardwareTx) ListReports(h inventory.HostID, kind string, n int) ([]inventory.Report, error) {
	if kind == "" {
		return list(t.tx, readReport, listReportsSQL, string(h), limit(n))
	}
	return list(t.tx, readReport, kindReportsSQL, string(h), kind, limit(n))
}
