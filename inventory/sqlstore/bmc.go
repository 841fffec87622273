package sqlstore

import (
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	bmcColumns = `host_id, driver, address, username, sealed, system, insecure_skip_verify, fingerprint, mac, options, power,
power_at, is_reachable, reason, vendor, model, firmware, capabilities, checked_at, last_check, created_at, updated_at, version, others`

	findBMCSQL    = `SELECT ` + bmcColumns + ` FROM bmcs WHERE host_id = $1`
	listBMCsSQL   = `SELECT ` + bmcColumns + ` FROM bmcs WHERE host_id > $1 ORDER BY host_id LIMIT $2`
	bmcVersionSQL = `SELECT version FROM bmcs WHERE host_id = $1`
	bmcHolderSQL  = `SELECT hosts.id, hosts.name FROM bmcs JOIN hosts ON hosts.id = bmcs.host_id
WHERE bmcs.driver = $1 AND bmcs.address = $2 AND bmcs.system = $3 AND bmcs.driver <> 'wol' AND bmcs.driver <> 'manual'
AND (bmcs.address <> '' OR bmcs.system <> '')`
	insertBMCSQL = `INSERT INTO bmcs (host_id, driver, address, username, sealed, system, insecure_skip_verify, fingerprint, mac,
options, power, power_at, is_reachable, reason, vendor, model, firmware, capabilities, checked_at, last_check, created_at, updated_at,
others, version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, 1)`
	updateBMCSQL = `UPDATE bmcs SET driver = $1, address = $2, username = $3, sealed = $4, system = $5, insecure_skip_verify = $6,
fingerprint = $7, mac = $8, options = $9, power = $10, power_at = $11, is_reachable = $12, reason = $13, vendor = $14, model = $15,
firmware = $16, capabilities = $17, checked_at = $18, last_check = $19, updated_at = $20, others = $21, version = version + 1
WHERE host_id = $22 AND version = $23`
	deleteBMCSQL = `DELETE FROM bmcs WHERE host_id = $1`
)

func readBMC(s scan) (b inventory.BMC, err error) {
	err = s(&b.HostID, &b.Driver, &b.Address, &b.Username, &b.Sealed, &b.System, &b.InsecureSkipVerify, &b.Fingerprint, &b.MAC,
		jsonColumn(&b.Options), &b.Power, timeColumn(&b.PowerAt), &b.IsReachable, &b.Reason, &b.Vendor, &b.Model, &b.Firmware,
		jsonColumn(&b.Capabilities), timeColumn(&b.CheckedAt), jsonColumn(&b.LastCheck), timeColumn(&b.CreatedAt), timeColumn(&b.UpdatedAt), &b.Version, jsonColumn(&b.Others))
	return b, err
}

// FindBMC implements inventory.HardwareTx.
func (t *tx) FindBMC(h inventory.HostID) (inventory.BMC, error) {
	return find(t, readBMC, "bmc", "of host "+string(h), findBMCSQL, string(h))
}

// ListBMCs implements inventory.HardwareTx.
func (t *tx) ListBMCs(p inventory.Page) ([]inventory.BMC, error) {
	return list(t, readBMC, listBMCsSQL, p.After, limit(p.Limit))
}

// SaveBMC implements inventory.HardwareTx.
func (t *tx) SaveBMC(b *inventory.BMC, now time.Time) error {
	if err := t.checkBMC(b); err != nil {
		return err
	}
	texts, err := jsonTexts(b.Options, b.Capabilities, b.LastCheck, b.Others)
	if err != nil {
		return err
	}
	now = stamp(now)
	id := string(b.HostID)
	args := []any{
		string(b.Driver), b.Address, b.Username, blob(b.Sealed), b.System, bit(b.InsecureSkipVerify), b.Fingerprint,
		string(b.MAC), texts[0], string(b.Power), ms(b.PowerAt), bit(b.IsReachable), b.Reason, b.Vendor, b.Model, b.Firmware,
		texts[1], ms(b.CheckedAt), texts[2],
	}
	if b.Version == 0 {
		args = append([]any{id}, args...)
		if _, err := t.write(insertBMCSQL, append(args, ms(now), ms(now), texts[3])...); err != nil {
			return err
		}
		b.CreatedAt = now
	} else {
		n, err := t.write(updateBMCSQL, append(args, ms(now), texts[3], id, b.Version)...)
		if err := t.updated(n, err, "bmc", "of host "+id, b.Version, bmcVersionSQL, id); err != nil {
			return err
		}
	}
	b.UpdatedAt = now
	b.Version++
	return nil
}

// checkBMC refuses a controller that powers another host, and a second one for the same host.
func (t *tx) checkBMC(b *inventory.BMC) error {
	var id inventory.HostID
	var name string
	found, err := t.row([]any{&id, &name}, bmcHolderSQL, string(b.Driver), b.Address, b.System)
	if err != nil {
		return err
	}
	if found && id != b.HostID {
		return inventory.Errorf(inventory.Conflict, "the %s controller at %s powers host %s", b.Driver, b.Address, name).
			WithHint("one controller powers one host: correct the address, or take it away from host %s first", name)
	}
	if b.Version != 0 {
		return nil
	}
	if err := t.hasHost(b.HostID); err != nil {
		return err
	}
	var version int64
	found, err = t.row([]any{&version}, bmcVersionSQL, string(b.HostID))
	if err == nil && found {
		err = inventory.Errorf(inventory.Conflict, "host %s has a BMC already", t.hostName(b.HostID)).
			WithHint("change that one, with its version")
	}
	return err
}

// DeleteBMC implements inventory.HardwareTx.
func (t *tx) DeleteBMC(h inventory.HostID) error {
	n, err := t.write(deleteBMCSQL, string(h))
	return changed(n, err, "bmc", "of host "+string(h))
}
