package sqlstore

import (
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

const (
	instanceColumns = `id, name, run, addresses, program, heartbeat_n, is_drained, started_at, seen_at, drained_at, links,
cut_off, cut_off_at`

	findInstanceSQL       = `SELECT ` + instanceColumns + ` FROM instances WHERE id = $1`
	findInstanceByNameSQL = `SELECT ` + instanceColumns + ` FROM instances WHERE name = $1`
	listInstancesSQL      = `SELECT ` + instanceColumns + ` FROM instances ORDER BY name`
	saveInstanceSQL       = `INSERT INTO instances (` + instanceColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, run = excluded.run, addresses = excluded.addresses, program = excluded.program,
heartbeat_n = excluded.heartbeat_n, is_drained = excluded.is_drained, started_at = excluded.started_at, seen_at = excluded.seen_at,
drained_at = excluded.drained_at, links = excluded.links, cut_off = excluded.cut_off, cut_off_at = excluded.cut_off_at`
	heartbeatSQL      = `UPDATE instances SET heartbeat_n = heartbeat_n + 1, seen_at = $1 WHERE id = $2 AND run = $3`
	deleteInstanceSQL = `DELETE FROM instances WHERE id = $1`

	dutyColumns = `name, holder, epoch, since_at, reason, former`

	findDutySQL   = `SELECT ` + dutyColumns + ` FROM duties WHERE name = $1`
	listDutiesSQL = `SELECT ` + dutyColumns + ` FROM duties ORDER BY name`
	heldDutySQL   = `SELECT name FROM duties WHERE holder = $1 ORDER BY name LIMIT 1`
	saveDutySQL   = `INSERT INTO duties (` + dutyColumns + `) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, epoch = excluded.epoch, since_at = excluded.since_at, reason = excluded.reason,
former = excluded.former`
)

func readInstance(s database.Scan) (i inventory.Instance, err error) {
	err = s(&i.ID, column.Name(&i.Name), &i.Run, column.Addresses(&i.Addresses), column.Words(&i.Version), &i.HeartbeatN,
		column.Bool(&i.IsDrained), column.Time(&i.StartedAt), column.Time(&i.SeenAt), column.Time(&i.DrainedAt),
		column.Links(&i.Links), column.Words(&i.CutOff), column.Time(&i.CutOffAt))
	return i, err
}

func readDuty(s database.Scan) (d inventory.Duty, err error) {
	err = s(&d.Name, &d.Holder, &d.Epoch, column.Time(&d.SinceAt), column.Words(&d.Reason), column.Words(&d.Former))
	return d, err
}

// DatabaseTime implements inventory.InstanceTx.
func (t instanceTx) DatabaseTime() (time.Time, error) {
	now, err := t.Now()
	return stamp(now), err
}

// FindInstance implements inventory.InstanceTx.
func (t instanceTx) FindInstance(id string) (inventory.Instance, error) {
	return find(t.tx, readInstance, "instance", id, findInstanceSQL, id)
}

// FindInstanceByName implements inventory.InstanceTx.
func (t instanceTx) FindInstanceByName(name string) (inventory.Instance, error) {
	return find(t.tx, readInstance, "instance", name, findInstanceByNameSQL, name)
}

// ListInstances implements inventory.InstanceTx.
func (t instanceTx) ListInstances() ([]inventory.Instance, error) {
	return list(t.tx, readInstance, listInstancesSQL)
}

// SaveInstance implements inventory.InstanceTx.
func (t instanceTx) SaveInstance(i inventory.Instance) error {
	if other, err := t.FindInstanceByName(i.Name); err == nil && other.ID != i.ID {
		return taken("instance", i.Name)
	} else if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return err
	}
	texts, err := t.jsonTexts(i.Addresses, i.Links)
	if err != nil {
		return err
	}
	return t.Later(nil, saveInstanceSQL, i.ID, i.Name, i.Run, texts[0], i.Version, i.HeartbeatN, column.Bit(i.IsDrained),
		column.MS(i.StartedAt), column.MS(i.SeenAt), column.MS(i.DrainedAt), texts[1], i.CutOff, column.MS(i.CutOffAt))
}

// Heartbeat implements inventory.InstanceTx.
func (t instanceTx) Heartbeat(id, run string, now time.Time) error {
	return t.Later(nil, heartbeatSQL, column.MS(now), id, run)
}

// DeleteInstance implements inventory.InstanceTx.
func (t instanceTx) DeleteInstance(id string) error {
	var duty string
	if found, err := t.Row([]any{&duty}, heldDutySQL, id); err != nil {
		return err
	} else if found {
		return inventory.Errorf(inventory.Conflict, "instance %s holds duty %s", id, duty)
	}
	n, err := t.Write(deleteInstanceSQL, id)
	return changed(n, err, "instance", id)
}

// FindDuty implements inventory.InstanceTx. Every write of a server on PostgreSQL calls it, so that it comes from memory.
func (t instanceTx) FindDuty(name string) (inventory.Duty, error) {
	return setting(t.tx, "duty/"+name, ownSelf, func() (inventory.Duty, error) {
		return find(t.tx, readDuty, "duty", name, findDutySQL, name)
	})
}

// ListDuties implements inventory.InstanceTx.
func (t instanceTx) ListDuties() ([]inventory.Duty, error) {
	return list(t.tx, readDuty, listDutiesSQL)
}

// SaveDuty implements inventory.InstanceTx.
func (t instanceTx) SaveDuty(d inventory.Duty) error {
	if d.Holder != "" {
		if _, err := t.FindInstance(d.Holder); inventory.IsKind(err, inventory.NotFound) {
			return inventory.Errorf(inventory.Invalid, "duty %s: there is no instance %s", d.Name, d.Holder)
		} else if err != nil {
			return err
		}
	}
	return t.Later(nil, saveDutySQL, d.Name, d.Holder, d.Epoch, column.MS(d.SinceAt), d.Reason, d.Former)
}
