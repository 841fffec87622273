package sqlstore

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

var machines = newTable(noun.Noun[inventory.Machine]{
	Facts: noun.Facts{One: "machine", Table: "machines"},
	Name:  func(m *inventory.Machine) *string { return &m.Name },
	Stamps: func(m *inventory.Machine) noun.Stamps {
		return noun.Stamps{Created: &m.CreatedAt, Updated: &m.UpdatedAt, Version: &m.Version}
	},
}, table[inventory.Machine]{
	fixed: columns(`name host_id claim_id`),
	edited: columns(`uid owner profile profile_revision pool placement hostname parameters root_disk keep_disks clean release_after
hooks phase reason hint attempt_n avoid deleted_at is_forced next_at image kernel_args config bootstrap_from drain saved_by
saved_by_admin offered_to refs`),
	orNull: columns(`host_id claim_id image`),
	cells: func(m *inventory.Machine) []column.Column {
		return []column.Column{
			column.Text(&m.Name), column.Text(&m.HostID), column.Text(&m.ClaimID),
			column.Text(&m.UID), column.Text(&m.Owner), column.Text(&m.Profile),
			column.Number(&m.ProfileRevision),
			column.Text(&m.Pool), column.JSON(&m.Placement), column.Text(&m.Hostname), column.JSON(&m.Parameters), column.JSON(&m.RootDisk),
			column.JSON(&m.KeepDisks), column.Text(&m.Clean), column.Text(&m.ReleaseAfter), column.JSON(&m.Hooks),
			column.Text(&m.Phase), column.Text(&m.Reason), column.Text(&m.Hint),
			column.Number(&m.AttemptN),
			column.JSON(&m.Avoid),
			column.Time(&m.DeletedAt),
			column.Bool(&m.IsForced),
			column.Time(&m.NextAt),
			column.Text(&m.Image), column.JSON(&m.KernelArgs), column.Text(&m.Config), column.Text(&m.BootstrapFrom), column.JSON(&m.Drain),
			column.Text(&m.SavedBy),
			column.Bool(&m.SavedByAdmin),
			column.Text(&m.OfferedTo), column.JSON(&m.Refs),
		}
	},
})

// A new machine has no host: that comes with a claim.
func (t machineTx) all() records[inventory.Machine] {
	return records[inventory.Machine]{table: machines, tx: t.tx, may: func(m *inventory.Machine, isNew bool) error {
		if isNew {
			m.HostID, m.ClaimID = "", ""
		}
		if len(m.Refs) > 0 {
			refs, err := t.pooled(m.Refs)
			if err != nil {
				return err
			}
			m.Refs = refs
		}
		return t.checkMachine(m)
	}, last: &t.lastMachine}
}

var (
	findMachineByUIDSQL   = machines.from + ` WHERE uid = $1`
	findMachineByOwnerSQL = machines.from + ` WHERE owner = $1 AND owner <> ''`
	listDueMachinesSQL    = machines.from + ` WHERE next_at > 0 AND next_at <= $1 ORDER BY next_at, name LIMIT $2`
)

const (
	nextMachineSQL = `SELECT next_at FROM machines WHERE next_at > 0 ORDER BY next_at LIMIT 1`
	sameMachineSQL = `SELECT 'UID', uid, name FROM machines WHERE uid = $1
UNION ALL SELECT 'owner', owner, name FROM machines WHERE owner = $2 AND owner <> ''`

	hasPoolSQL = `SELECT name FROM pools WHERE name = $1`

	// poolHosts is closed by the caller, after the condition for the pool.
	poolHosts = `id IN (SELECT host_id FROM claims WHERE machine_uid IN (SELECT uid FROM machines WHERE `
	// inDefaultPool finds the machines of inventory.DefaultPool: those that name none are taken from it as well.
	inDefaultPool = `pool IN ('` + inventory.DefaultPool + `', '')`
)

// FindMachine implements inventory.MachineTx.
func (t machineTx) FindMachine(name string) (inventory.Machine, error) {
	return machines.findLast(t.tx, &t.lastMachine, "name", name, machines.find)
}

// FindMachineByUID implements inventory.MachineTx.
func (t machineTx) FindMachineByUID(uid string) (inventory.Machine, error) {
	return machines.findLast(t.tx, &t.lastMachine, "uid", uid, findMachineByUIDSQL)
}

// FindMachineByOwner implements inventory.MachineTx.
func (t machineTx) FindMachineByOwner(owner string) (inventory.Machine, error) {
	return find(t.tx, machines.readOne, "machine", "of "+owner, findMachineByOwnerSQL, owner)
}

// ListMachines implements inventory.MachineTx.
func (t machineTx) ListMachines(f inventory.MachineFilter, p inventory.Page) ([]inventory.Machine, error) {
	query, args := machinesSQL(f)
	return list(t.tx, machines.readOne, query, append(args, p.After, limit(p.Limit))...)
}

// machinesSQL asks for filtered machines; the arguments that it leaves to the caller are the last two, after and limit.
func machinesSQL(f inventory.MachineFilter) (query string, args []any) {
	var w column.Where
	if f.Pool == inventory.DefaultPool {
		w.Text += inDefaultPool + " AND "
	} else {
		w.Is("pool", f.Pool)
	}
	w.Is("phase", string(f.Phase))
	w.Is("profile", f.Profile)
	if f.OwnerPrefix != "" { // the range of all texts that begin like that; no text holds the last character of Unicode
		w.Args = append(w.Args, f.OwnerPrefix, f.OwnerPrefix+"\U0010ffff")
		w.Text += fmt.Sprintf("owner >= $%d AND owner < $%d AND owner <> '' AND ", len(w.Args)-1, len(w.Args))
	}
	n := len(w.Args)
	return fmt.Sprintf(`%s WHERE %sname > $%d ORDER BY name LIMIT $%d`, machines.from, w.Text, n+1, n+2), w.Args
}

// ListDueMachines implements inventory.MachineTx.
func (t machineTx) ListDueMachines(now time.Time, n int) ([]inventory.Machine, error) {
	return list(t.tx, machines.readOne, listDueMachinesSQL, column.MS(now), limit(n))
}

// CreateMachine implements inventory.MachineTx.
func (t machineTx) CreateMachine(m *inventory.Machine, now time.Time) error {
	t.Ahead(sameMachineSQL, m.UID, m.Owner)
	return t.all().Create(m, now)
}

// UpdateMachine implements inventory.MachineTx.
func (t machineTx) UpdateMachine(m *inventory.Machine, now time.Time) error {
	return t.all().Update(m, now)
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
		found, err := setting(t.tx, "has "+u.noun+"/"+u.key, ownSelf, func() (bool, error) { return t.Row([]any{&name}, u.query, u.key) })
		if err != nil {
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
	is := func(column, value string) bool { return machines.places.Is(t.lastMachine, column, value) }
	if is("name", m.Name) && is("uid", m.UID) && is("owner", m.Owner) { // they are its own
		return nil
	}
	return t.Each(func(s database.Scan) error {
		var what, key string
		if err := s(&what, &key, &name); err != nil || name == m.Name {
			return err
		}
		return inventory.Errorf(inventory.Conflict, "the %s %s has machine %s already", what, key, inventory.MachineRef(name)).
			WithHint("use or delete machine %s", name)
	}, sameMachineSQL, m.UID, m.Owner)
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
	t.lastMachine = nil
	return t.all().Delete(name)
}

const (
	findClaimSQL          = `SELECT id, machine_uid, machine, host_id, created_at FROM claims WHERE id = $1`
	findClaimOfHostSQL    = `SELECT id, machine_uid, machine, host_id, created_at FROM claims WHERE host_id = $1`
	findClaimOfMachineSQL = `SELECT id, machine_uid, machine, host_id, created_at FROM claims WHERE machine_uid = $1`

	claimHostSQL = `UPDATE hosts SET claim_id = $1, machine = $2, updated_at = $3, version = version + 1
WHERE id = $4 AND claim_id IS NULL`
	claimMachineSQL = `UPDATE machines SET claim_id = $1, host_id = $2, updated_at = $3, version = version + 1
WHERE uid = $4 AND claim_id IS NULL`
	insertClaimSQL = `INSERT INTO claims (id, machine_uid, machine, host_id, created_at) VALUES ($1, $2, $3, $4, $5)`

	freeHostSQL    = `UPDATE hosts SET claim_id = NULL, machine = '', version = version + 1 WHERE id = $1 AND claim_id = $2`
	freeMachineSQL = `UPDATE machines SET claim_id = NULL, host_id = NULL, version = version + 1 WHERE uid = $1 AND claim_id = $2`
	deleteClaimSQL = `DELETE FROM claims WHERE id = $1`

	// claimableSQL says of each such host in which version it is. Most are known in that version from the last time.
	claimableSQL = `SELECT id, version, updated_at, (SELECT COALESCE(MAX(i.n), 0) FROM inspections AS i WHERE i.host_id = hosts.id),
EXISTS (SELECT 1 FROM bmcs AS b WHERE b.host_id = hosts.id AND b.driver <> 'manual')
FROM hosts WHERE state = 'available' AND claim_id IS NULL AND is_adopted = 0 AND is_protected = 0 AND in_maintenance = 0
AND NOT EXISTS (SELECT 1 FROM operations AS o WHERE o.host_id = hosts.id AND o.is_open = 1) ORDER BY name`

	hostNameSQL = `SELECT name FROM hosts WHERE id = $1`
)

func readClaim(s database.Scan) (c inventory.Claim, err error) {
	err = s(&c.ID, &c.MachineUID, &c.Machine, &c.HostID, column.Time(&c.CreatedAt))
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
// one transaction: after a crash there is the whole claim, or nothing of it. Nobody else writes meanwhile, so that a host which is free
// when it is read stays so. In any case the database refuses a second claim of a host or a machine.
func (t machineTx) CreateClaim(c *inventory.Claim, now time.Time) error {
	m, err := t.FindMachineByUID(c.MachineUID)
	if err != nil {
		return err
	}
	if m.ClaimID != "" {
		return inventory.Errorf(inventory.Conflict, "machine %s has host %s already", m.Name, inventory.HostRef(t.hostName(m.HostID))).
			WithHint("a machine has one host at a time")
	}
	h, err := t.hosts().FindHost(c.HostID)
	if err != nil {
		return err
	}
	if h.ClaimID != "" { // another claim was faster, in this commit or before
		return inventory.Errorf(inventory.Conflict, "host %s is claimed by machine %s", h.Name, inventory.MachineRef(h.Machine)).
			WithHint("a host has one machine at a time; it is free again once machine %s is deleted", h.Machine)
	}
	now = stamp(now)
	id, ms := string(c.ID), column.MS(now)
	// Its id is compared by the database, before the host is touched: after a Conflict a caller may try again.
	if err := t.Later(ifTaken("claim", id), insertClaimSQL, id, m.UID, m.Name, string(h.ID), ms); err != nil {
		return err
	}
	if err := t.Later(nil, claimHostSQL, id, m.Name, ms, string(h.ID)); err != nil {
		return err
	}
	if err := t.Later(nil, claimMachineSQL, id, string(h.ID), ms, m.UID); err != nil {
		return err
	}
	hostPlaces.Set(t.lastHost.row, map[string]any{"claim_id": id, "machine": m.Name, "updated_at": ms, "version": h.Version + 1})
	machines.places.Set(t.lastMachine, map[string]any{"claim_id": id, "host_id": string(h.ID), "updated_at": ms, "version": m.Version + 1})
	c.Machine, c.CreatedAt = m.Name, now
	return nil
}

// hostName returns a host's name for a message, or the id when there is no such host.
func (t *tx) hostName(id inventory.HostID) string {
	name := string(id)
	_, _ = t.Row([]any{&name}, hostNameSQL, string(id)) // a lost transaction shows at the caller's next statement
	return name
}

// ListClaimable implements inventory.HostTx.
func (t hostTx) ListClaimable(known map[inventory.HostID]*inventory.Host) (all []inventory.Claimable, err error) {
	var missing []inventory.HostID
	err = t.Each(func(s database.Scan) error {
		var c inventory.Claimable
		var id inventory.HostID
		var version int64
		var at time.Time
		if err := s(&id, &version, column.Time(&at), &c.InspectionN, &c.HasPower); err != nil {
			return err
		}
		if c.Host = known[id]; c.Host == nil || c.Version != version || !c.UpdatedAt.Equal(at) {
			c.Host = &inventory.Host{ID: id}
			missing = append(missing, id)
		}
		all = append(all, c)
		return nil
	}, claimableSQL)
	if err != nil || len(missing) == 0 {
		return all, err
	}
	read, err := t.readHosts(missing)
	for i := range all {
		if h := read[all[i].ID]; h != nil {
			all[i].Host = h
		}
	}
	return all, err
}

// DeleteClaim implements inventory.MachineTx. The versions of host and machine grow. The statements name the claim, so that a host or a
// machine that has another one by now keeps it.
func (t machineTx) DeleteClaim(id inventory.ClaimID) error {
	c, err := t.FindClaim(id)
	if err != nil {
		return err
	}
	t.lastMachine, t.lastHost = nil, lastHost{}
	if err := t.Later(nil, freeHostSQL, string(c.HostID), string(id)); err != nil {
		return err
	}
	if err := t.Later(nil, freeMachineSQL, c.MachineUID, string(id)); err != nil {
		return err
	}
	n, err := t.Write(deleteClaimSQL, string(id))
	return changed(n, err, "claim", string(id))
}
