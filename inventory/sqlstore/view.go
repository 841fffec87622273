package sqlstore

import (
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

const (
	viewColumns = `name, owner, query, columns, group_by, sort_by, pools, created_at, updated_at, version`

	findViewSQL    = `SELECT ` + viewColumns + ` FROM views WHERE owner = $1 AND name = $2`
	listViewsSQL   = `SELECT ` + viewColumns + ` FROM views WHERE owner IN ('', $1) ORDER BY name, owner`
	countViewsSQL  = `SELECT COUNT(*) FROM views WHERE owner = $1`
	viewVersionSQL = `SELECT version FROM views WHERE owner = $1 AND name = $2`
	insertViewSQL  = `INSERT INTO views (owner, name, query, columns, group_by, sort_by, pools, created_at, updated_at, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1)`
	updateViewSQL = `UPDATE views SET query = $1, columns = $2, group_by = $3, sort_by = $4, pools = $5, updated_at = $6, version = version + 1
WHERE owner = $7 AND name = $8 AND version = $9`
	deleteViewSQL = `DELETE FROM views WHERE owner = $1 AND name = $2`
)

func readView(s database.Scan) (v inventory.View, err error) {
	err = s(&v.Name, &v.Owner, &v.Query, column.JSON(&v.Columns), &v.Group, &v.Sort, column.JSON(&v.Pools),
		column.Time(&v.CreatedAt), column.Time(&v.UpdatedAt), &v.Version)
	return v, err
}

// FindView implements inventory.ViewTx.
func (t viewTx) FindView(owner, name string) (inventory.View, error) {
	return find(t.tx, readView, "view", name, findViewSQL, owner, name)
}

// ListViews implements inventory.ViewTx.
func (t viewTx) ListViews(owner string) ([]inventory.View, error) {
	return list(t.tx, readView, listViewsSQL, owner)
}

// viewMax bounds what is kept of views, for each owner.
const viewMax = 200

// CreateView implements inventory.ViewTx.
func (t viewTx) CreateView(v *inventory.View, now time.Time) error {
	var n int
	if found, err := t.Row([]any{&n}, viewVersionSQL, v.Owner, v.Name); err != nil {
		return err
	} else if found {
		return taken("view", v.Name)
	}
	if _, err := t.Row([]any{&n}, countViewsSQL, v.Owner); err != nil {
		return err
	}
	if n >= viewMax {
		return inventory.Errorf(inventory.Conflict, "%d views are kept already", n).WithHint("delete one that nobody needs")
	}
	texts, err := t.jsonTexts(v.Columns, v.Pools)
	if err != nil {
		return err
	}
	now = stamp(now)
	if err := t.Later(nil, insertViewSQL, v.Owner, v.Name, v.Query, texts[0], v.Group, v.Sort, texts[1], column.MS(now), column.MS(now)); err != nil {
		return err
	}
	v.CreatedAt, v.UpdatedAt, v.Version = now, now, 1
	return nil
}

// UpdateView implements inventory.ViewTx.
func (t viewTx) UpdateView(v *inventory.View, now time.Time) error {
	texts, err := t.jsonTexts(v.Columns, v.Pools)
	if err != nil {
		return err
	}
	now = stamp(now)
	n, err := t.Write(updateViewSQL, v.Query, texts[0], v.Group, v.Sort, texts[1], column.MS(now), v.Owner, v.Name, v.Version)
	if err != nil {
		return err
	}
	if n == 0 {
		is, err := t.FindView(v.Owner, v.Name)
		if err != nil {
			return err
		}
		return inventory.Errorf(inventory.Conflict, "view %s was changed meanwhile: it has version %d, not %d", v.Name, is.Version, v.Version).
			WithHint("read it again and make your change to that")
	}
	v.UpdatedAt = now
	v.Version++
	return nil
}

// DeleteView implements inventory.ViewTx.
func (t viewTx) DeleteView(owner, name string) error {
	n, err := t.Write(deleteViewSQL, owner, name)
	return changed(n, err, "view", name)
}

// extrasSQL asks for what other tables know of n hosts.
func extrasSQL(n int) string {
	return `SELECT hosts.id, COALESCE(bmcs.driver, ''), COALESCE(bmcs.power, ''), COALESCE(bmcs.is_reachable, 0),
COALESCE((SELECT machines.pool FROM claims JOIN machines ON machines.uid = claims.machine_uid WHERE claims.host_id = hosts.id), '')
FROM hosts LEFT JOIN bmcs ON bmcs.host_id = hosts.id WHERE hosts.id IN (` + marks(n) + `)`
}

// HostExtras implements inventory.ViewTx.
func (t viewTx) HostExtras(ids []inventory.HostID) (map[inventory.HostID]inventory.HostExtra, error) {
	all := make(map[inventory.HostID]inventory.HostExtra, len(ids))
	return all, column.InParts(ids, func(args []any) error {
		err := t.Each(func(s database.Scan) error {
			var (
				id inventory.HostID
				x  inventory.HostExtra
			)
			err := s(&id, &x.Driver, &x.Power, &x.IsReachable, &x.Pool)
			all[id] = x
			return err
		}, extrasSQL(len(args)), args...)
		if err != nil {
			return err
		}
		return t.addAddresses(all, args)
	})
}

// addAddresses adds to each host the address of its latest lease that is bound.
func (t viewTx) addAddresses(all map[inventory.HostID]inventory.HostExtra, ids []any) error {
	type card struct {
		host inventory.HostID
		mac  inventory.MAC
	}
	cards, err := list(t.tx, func(s database.Scan) (c card, err error) {
		err = s(&c.host, &c.mac, new(any), new(any), new(any), new(any))
		return c, err
	}, nicsSQL(len(ids)), ids...)
	if err != nil {
		return err
	}
	latest := map[inventory.HostID]time.Time{}
	for _, c := range cards {
		leases, err := t.networks().leasesOf4(c.mac)
		if err != nil {
			return err
		}
		for _, l := range leases {
			if l.State != inventory.LeaseBound || !l.StartsAt.After(latest[c.host]) {
				continue
			}
			latest[c.host] = l.StartsAt
			x := all[c.host]
			x.Address = l.Address
			all[c.host] = x
		}
	}
	return nil
}
