package sqlstore

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	machineColumns = `name, uid, owner, profile, profile_revision, pool, placement, hostname, parameters, root_disk, keep_disks,
clean, release_after, hooks, COALESCE(host_id, ''), COALESCE(claim_id, ''), phase, reason, hint, attempt_n, avoid, deleted_at,
is_forced, next_at, COALESCE(image, ''), kernel_args, config, bootstrap_from, drain,
saved_by, saved_by_admin, offered_to, created_at, updated_at, version, refs`

	findMachineSQL        = `SELECT ` + machineColumns + ` FROM machines WHERE name = $1`
	findMachineByUIDSQL   = `SELECT ` + machineColumns + ` FROM machines WHERE uid = $1`
	findMachineByOwnerSQL = `SELECT ` + machineColumns + ` FROM machines WHERE owner = $1 AND owner <> ''`
	listDueMachinesSQL    = `SELECT ` + machineColumns + ` FROM machines
WHERE next_at > 0 AND next_at <= $1 ORDER BY next_at, name LIMIT $2`
	nextMachineSQL    = `SELECT next_at FROM machines WHERE next_at > 0 ORDER BY next_at LIMIT 1`
	machineVersionSQL = `SELECT version FROM machines WHERE name = $1`
	ownerMachineSQL   = `SELECT name FROM machines WHERE owner = $1 AND owner <> ''`
	uidMachineSQL     = `SELECT name FROM machines WHERE uid = $1`
	insertMachineSQL  = `INSERT INTO machines (name, uid, owner, profile, profile_revision, pool, placement, hostname, parameters,
root_disk, keep_disks, clean, release_after, hooks, phase, reason, hint, attempt_n, avoid, deleted_at, is_forced, next_at,
image, kernel_args, config, bootstrap_from, drain, saved_by, saved_by_admin, offered_to, refs, created_at, updated_at, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, NULLIF($23, ''), $24,
$25, $26, $27, $28, $29, $30, $31, $32, $33, 1)`
	updateMachineSQL = `UPDATE machines SET uid = $1, owner = $2, profile = $3, profile_revision = $4, pool = $5, placement = $6,
hostname = $7, parameters = $8, root_disk = $9, keep_disks = $10, clean = $11, release_after = $12, hooks = $13, phase = $14,
reason = $15, hint = $16, attempt_n = $17, avoid = $18, deleted_at = $19, is_forced = $20, next_at = $21, image = NULLIF($22, ''),
kernel_args = $23, config = $24, bootstrap_from = $25, drain = $26, saved_by = $27, saved_by_admin = $28,
offered_to = $29, refs = $30, updated_at = $31, version = version + 1 WHERE name = $32 AND version = $33`
	deleteMachineSQL = `DELETE FROM machines WHERE name = $1`

	hasPoolSQL = `SELECT name FROM pools WHERE name = $1`

	// poolHosts is closed by the caller, after the condition for the pool.
	poolHosts = `id IN (SELECT host_id FROM claims WHERE machine_uid IN (SELECT uid FROM machines WHERE `
	// inDefaultPool finds the machines of inventory.DefaultPool: those that name none are taken from it as well.
	inDefaultPool = `pool IN ('` + inventory.DefaultPool + `', '')`
)

func readMachine(s scan) (m inventory.Machine, err error) {
	err = s(&m.Name, &m.UID, &m.Owner, &m.Profile, &m.ProfileRevision, &m.Pool, jsonColumn(&m.Placement), &m.Hostname,
		jsonColumn(&m.Parameters), jsonColumn(&m.RootDisk), jsonColumn(&m.KeepDisks), &m.Clean, &m.ReleaseAfter,
		jsonColumn(&m.Hooks), &m.HostID, &m.ClaimID, &m.Phase, &m.Reason, &m.Hint, &m.AttemptN, jsonColumn(&m.Avoid),
		timeColumn(&m.DeletedAt), &m.IsForced, timeColumn(&m.NextAt), &m.Image, jsonColumn(&m.KernelArgs),
		&m.Config, &m.BootstrapFrom, jsonColumn(&m.Drain), &m.SavedBy, &m.SavedByAdmin, &m.OfferedTo, timeColumn(&m.CreatedAt), timeColumn(&m.UpdatedAt), &m.Version, jsonColumn(&m.Refs))
	return m, err
}

// FindMachine implements inventory.MachineTx.
func (t machineTx) FindMachine(name string) (inventory.Machine, error) {
	return find(t.tx, readMachine, "machine", name, findMachineSQL, name)
}

// FindMachineByUID implements inventory.MachineTx.
func (t machineTx) FindMachineByUID(uid string) (inventory.Machine, error) {
	return find(t.tx, readMachine, "machine", uid, findMachineByUIDSQL, uid)
}

// FindMachineByOwner implements inventory.MachineTx.
func (t machineTx) FindMachineByOwner(owner string) (inventory.Machine, error) {
	return find(t.tx, readMachine, "machine", "of "+owner, findMachineByOwnerSQL, owner)
}

// ListMachines implements inventory.MachineTx.
func (t machineTx) ListMachines(f inventory.MachineFilter, p inventory.Page) ([]inventory.Machine, error) {
	query, args := machinesSQL(f)
	return list(t.tx, readMachine, query, append(args, p.After, limit(p.Limit))...)
}

// machinesSQL asks for filtered machines; the arguments that it leaves to the caller are the last two, after and limit.
func machinesSQL(f inventory.MachineFilter) (query string, args []any) {
	var where string
	term := func(column, value string) {
		if value != "" {
			args = append(args, value)
			where += fmt.Sprintf("%s = $%d AND ", column, len(args))
		}
	}
	if f.Pool == inventory.DefaultPool {
		where += inDefaultPool + " AND "
	} else {
		term("pool", f.Pool)
	}
	term("phase", string(f.Phase))
	term("profile", f.Profile)
	if f.OwnerPrefix != "" { // the range of all texts that begin like that; no text holds the last character of Unicode
		args = append(args, f.OwnerPrefix, f.OwnerPrefix+"\U0010ffff")
		where += fmt.Sprintf("owner >= $%d AND owner < $%d AND owner <> '' AND ", len(args)-1, len(args))
	}
	n := len(args)
	return fmt.Sprintf(`SELECT %s FROM machines WHERE %sname > $%d ORDER BY name LIMIT $%d`, machineColumns, where, n+1, n+2), args
}

// ListDueMachines implements inventory.MachineTx.
func (t machineTx) ListDueMachines(now time.Time, n int) ([]inventory.Machine, error) {
	return list(t.tx, readMachine, listDueMachinesSQL, ms(now), limit(n))
}

// CreateMachine implements inventory.MachineTx.
func (t machineTx) CreateMachine(m *inventory.Machine, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, machineVersionSQL, m.Name); err != nil {
		return err
	} else if found {
		return taken("machine", m.Name)
	}
	args, err := t.machineArgs(m)
	if err != nil {
		return err
	}
	now = stamp(now)
	args = append([]any{m.Name}, args...)
	if _, err := t.write(insertMachineSQL, append(args, ms(now), ms(now))...); err != nil {
		return err
	}
	m.HostID, m.ClaimID = "", ""
	m.CreatedAt, m.UpdatedAt, m.Version = now, now, 1
	return nil
}

// UpdateMachine implements inventory.MachineTx.
func (t machineTx) UpdateMachine(m *inventory.Machine, now time.Time) error {
	args, err := t.machineArgs(m)
	if err != nil {
		return err
	}
	now = stamp(now)
	n, err := t.write(updateMachineSQL, append(args, ms(now), m.Name, m.Version)...)
	if err := t.updated(n, err, "machine", m.Name, m.Version, machineVersionSQL, m.Name); err != nil {
		return err
	}
	m.UpdatedAt = now
	m.Version++
	return nil
}

// machineArgs refuses what checkMachine does, and returns the arguments that insert and update share, in the order of
// the columns from uid to refs.
func (t machineTx) machineArgs(m *inventory.Machine) ([]any, error) {
	if err := t.checkMachine(m); err != nil {
		return nil, err
	}
	texts, err := t.jsonTexts(m.Placement, m.Parameters, m.RootDisk, m.KeepDisks, m.Hooks, m.Avoid, m.KernelArgs, m.Drain, m.Refs)
	if err != nil {
		return nil, err
	}
	return []any{
		m.UID, m.Owner, m.Profile, m.ProfileRevision, m.Pool, texts[0], m.Hostname, texts[1], texts[2], texts[3],
		string(m.Clean), string(m.ReleaseAfter), texts[4], string(m.Phase), m.Reason, m.Hint, m.AttemptN, texts[5],
		ms(m.DeletedAt), bit(m.IsForced), ms(m.NextAt), m.Image, texts[6], m.Config, m.BootstrapFrom, texts[7],
		m.SavedBy, bit(m.SavedByAdmin), m.OfferedTo, texts[8],
	}, nil
}

// checkMachine refuses a profile, a revision of it, an image or a pool that is not stored, and a UID or owner that another machine
// has.
func (t machineTx) checkMachine(m *inventory.Machine) error {
	var name string
	for _, u := range []struct{ noun, key, query string }{
		{"profile", m.Profile, hasProfileSQL},
		{"image", m.Image, hasImageSQL},
		{"pool", m.Pool, hasPoolSQL},
	} {
		if u.noun != "profile" && u.key == "" || u.noun == "pool" && u.key == inventory.DefaultPool {
			continue
		}
		if found, err := t.row([]any{&name}, u.query, u.key); err != nil {
			return err
		} else if !found {
			return inventory.Errorf(inventory.Invalid, "machine %s names %s %s, which does not exist", m.Name, u.noun, u.key).
				WithHint("list them with: slipway %s list", u.noun)
		}
	}
	if m.ProfileRevision != 0 {
		if _, err := t.configs().FindRevision(inventory.RevisionOfProfile, m.Profile, m.ProfileRevision); inventory.IsKind(err, inventory.NotFound) {
			return inventory.Errorf(inventory.Invalid, "machine %s names revision %d of profile %s, which does not exist", m.Name, m.ProfileRevision, m.Profile).
				WithHint("list them with: slipway profile revisions %s", m.Profile)
		} else if err != nil {
			return err
		}
	}
	for _, u := range []struct{ what, key, query string }{
		{"UID", m.UID, uidMachineSQL},
		{"owner", m.Owner, ownerMachineSQL},
	} {
		if found, err := t.row([]any{&name}, u.query, u.key); err != nil {
			return err
		} else if found && name != m.Name {
			return inventory.Errorf(inventory.Conflict, "the %s %s has machine %s already", u.what, u.key, inventory.MachineRef(name)).
				WithHint("use or delete machine %s", name)
		}
	}
	return nil
}

// DeleteMachine implements inventory.MachineTx.
func (t machineTx) DeleteMachine(name string) error {
	m, err := t.FindMachine(name)
	if err != nil {
		return err
	}
	if m.ClaimID != "" {
		return inventory.Errorf(inventory.Conflict, "machine %s still has host %s", name, inventory.HostRef(t.hostName(m.HostID))).
			WithHint("release it first: slipway machine delete %s", name)
	}
	n, err := t.write(deleteMachineSQL, name)
	return changed(n, err, "machine", name)
}

const (
	findClaimSQL          = `SELECT id, machine_uid, machine, host_id, created_at FROM claims WHERE id = $1`
	findClaimOfHostSQL    = `SELECT id, machine_uid, machine, host_id, created_at FROM claims WHERE host_id = $1`
	findClaimOfMachineSQL = `SELECT id, machine_uid, machine, host_id, created_at FROM claims WHERE machine_uid = $1`

	// A host is taken in one statement: of two who want it, one meets no row.
	claimHostSQL = `UPDATE hosts SET claim_id = $1, machine = $2, updated_at = $3, version = version + 1
WHERE id = $4 AND claim_id IS NULL`
	claimMachineSQL = `UPDATE machines SET claim_id = $1, host_id = $2, updated_at = $3, version = version + 1
WHERE uid = $4 AND claim_id IS NULL`
	insertClaimSQL = `INSERT INTO claims (id, machine_uid, machine, host_id, created_at) VALUES ($1, $2, $3, $4, $5)`

	freeHostSQL    = `UPDATE hosts SET claim_id = NULL, machine = '', version = version + 1 WHERE id = $1 AND claim_id = $2`
	freeMachineSQL = `UPDATE machines SET claim_id = NULL, host_id = NULL, version = version + 1 WHERE uid = $1 AND claim_id = $2`
	deleteClaimSQL = `DELETE FROM claims WHERE id = $1`

	claimableSQL = `SELECT ` + hostColumns + `, (SELECT COALESCE(MAX(i.n), 0) FROM inspections AS i WHERE i.host_id = hosts.id)
FROM hosts WHERE state = 'available' AND claim_id IS NULL AND is_adopted = 0 AND is_protected = 0 AND in_maintenance = 0
AND NOT EXISTS (SELECT 1 FROM operations AS o WHERE o.host_id = hosts.id AND o.is_open = 1) ORDER BY name`

	hostNameSQL = `SELECT name FROM hosts WHERE id = $1`
)

func readClaim(s scan) (c inventory.Claim, err error) {
	err = s(&c.ID, &c.MachineUID, &c.Machine, &c.HostID, timeColumn(&c.CreatedAt))
	return c, err
}

// FindClaim implements inventory.MachineTx.
func (t machineTx) FindClaim(id inventory.ClaimID) (inventory.Claim, error) {
	return find(t.tx, readClaim, "claim", string(id), findClaimSQL, string(id))
}

// FindClaimOfHost implements inventory.MachineTx.
func (t machineTx) FindClaimOfHost(id inventory.HostID) (inventory.Claim, error) {
	return find(t.tx, readClaim, "claim", "of host "+string(id), findClaimOfHostSQL, string(id))
}

// FindClaimOfMachine implements inventory.MachineTx.
func (t machineTx) FindClaimOfMachine(uid string) (inventory.Claim, error) {
	return find(t.tx, readClaim, "claim", "of machine "+uid, findClaimOfMachineSQL, uid)
}

// CreateClaim implements inventory.MachineTx. It changes the host and the machine, whose versions grow. All three rows are in
// one transaction: after a crash there is the whole claim, or nothing of it.
func (t machineTx) CreateClaim(c *inventory.Claim, now time.Time) error {
	// Before the host is touched, so that a caller may try another host after a Conflict.
	m, err := t.FindMachineByUID(c.MachineUID)
	if err != nil {
		return err
	}
	if m.ClaimID != "" {
		return inventory.Errorf(inventory.Conflict, "machine %s has host %s already", m.Name, inventory.HostRef(t.hostName(m.HostID))).
			WithHint("a machine has one host at a time")
	}
	if _, err := t.FindClaim(c.ID); err == nil {
		return taken("claim", string(c.ID))
	} else if !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	now = stamp(now)
	n, err := t.write(claimHostSQL, string(c.ID), m.Name, ms(now), string(c.HostID))
	if err != nil {
		return err
	}
	if n == 0 {
		return t.claimed(c.HostID) // another claim was faster, in this commit or before
	}
	n, err = t.write(claimMachineSQL, string(c.ID), string(c.HostID), ms(now), c.MachineUID)
	if err := changed(n, err, "machine", m.Name); err != nil {
		return err
	}
	if _, err := t.write(insertClaimSQL, string(c.ID), c.MachineUID, m.Name, string(c.HostID), ms(now)); err != nil {
		return err
	}
	c.Machine, c.CreatedAt = m.Name, now
	return nil
}

// claimed says whose a host is that could not be claimed; NotFound when there is no such host.
func (t machineTx) claimed(id inventory.HostID) error {
	h, err := t.hosts().FindHost(id)
	if err != nil {
		return err
	}
	return inventory.Errorf(inventory.Conflict, "host %s is claimed by machine %s", h.Name, inventory.MachineRef(h.Machine)).
		WithHint("a host has one machine at a time; it is free again once machine %s is deleted", h.Machine)
}

// hostName returns a host's name for a message, or the id when there is no such host.
func (t *tx) hostName(id inventory.HostID) string {
	name := string(id)
	_, _ = t.row([]any{&name}, hostNameSQL, string(id)) // a lost transaction shows at the caller's next statement
	return name
}

// ListClaimable implements inventory.HostTx.
func (t hostTx) ListClaimable() ([]inventory.Claimable, error) {
	var numbers []int
	hosts, err := list(t.tx, func(s scan) (inventory.Host, error) {
		var n int
		h, err := readHost(func(dest ...any) error { return s(append(dest, &n)...) })
		numbers = append(numbers, n)
		return h, err
	}, claimableSQL)
	if err != nil {
		return nil, err
	}
	if err := t.attachNICs(hosts); err != nil {
		return nil, err
	}
	all := make([]inventory.Claimable, len(hosts))
	for i, h := range hosts {
		all[i] = inventory.Claimable{Host: h, InspectionN: numbers[i]}
	}
	return all, nil
}

// DeleteClaim implements inventory.MachineTx. The versions of host and machine grow.
func (t machineTx) DeleteClaim(id inventory.ClaimID) error {
	c, err := t.FindClaim(id)
	if err != nil {
		return err
	}
	if _, err := t.write(freeHostSQL, string(c.HostID), string(id)); err != nil {
		return err
	}
	if _, err := t.write(freeMachineSQL, c.MachineUID, string(id)); err != nil {
		return err
	}
	n, err := t.write(deleteClaimSQL, string(id))
	return changed(n, err, "claim", string(id))
}
