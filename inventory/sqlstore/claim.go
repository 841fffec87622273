package sqlstore

import (
	"time"

	"slipway.dev/slipway/inventory"
)

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
func (t *tx) FindClaim(id inventory.ClaimID) (inventory.Claim, error) {
	return find(t, readClaim, "claim", string(id), findClaimSQL, string(id))
}

// FindClaimOfHost implements inventory.MachineTx.
func (t *tx) FindClaimOfHost(id inventory.HostID) (inventory.Claim, error) {
	return find(t, readClaim, "claim", "of host "+string(id), findClaimOfHostSQL, string(id))
}

// FindClaimOfMachine implements inventory.MachineTx.
func (t *tx) FindClaimOfMachine(uid string) (inventory.Claim, error) {
	return find(t, readClaim, "claim", "of machine "+uid, findClaimOfMachineSQL, uid)
}

// CreateClaim implements inventory.MachineTx. It is a change of the host and of the machine: their versions grow.
func (t *tx) CreateClaim(c *inventory.Claim, now time.Time) error {
	// Before the host is touched, so that a caller may try another host after a Conflict.
	m, err := t.FindMachineByUID(c.MachineUID)
	if err != nil {
		return err
	}
	if m.ClaimID != "" {
		return inventory.Errorf(inventory.Conflict, "machine %s has host %s already", m.Name, t.hostName(m.HostID)).
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
		return t.claimed(c.HostID)
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
func (t *tx) claimed(id inventory.HostID) error {
	h, err := t.FindHost(id)
	if err != nil {
		return err
	}
	return inventory.Errorf(inventory.Conflict, "host %s is claimed by machine %s", h.Name, h.Machine).
		WithHint("a host has one machine at a time; it is free again once machine %s is deleted", h.Machine)
}

// hostName returns a host's name for a message, or the id when there is no such host.
func (t *tx) hostName(id inventory.HostID) string {
	name := string(id)
	_, _ = t.row([]any{&name}, hostNameSQL, string(id)) // a lost transaction shows at the caller's next statement
	return name
}

// ListClaimable implements inventory.HostTx.
func (t *tx) ListClaimable() ([]inventory.Claimable, error) {
	var numbers []int
	hosts, err := list(t, func(s scan) (inventory.Host, error) {
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
func (t *tx) DeleteClaim(id inventory.ClaimID) error {
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
