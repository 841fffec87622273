package scoped

import (
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
)

// recordTx shows the pools of the caller, the racks in which a host in reach stands and the layers of hosts in reach, and all of the
// other plain nouns.
type recordTx struct{ *sight }

// Pools implements inventory.RecordTx.
func (t recordTx) Pools() inventory.Records[inventory.Pool] {
	return pools{t.sight, open[inventory.Pool]{t.all.Pools()}}
}

// Racks implements inventory.RecordTx.
func (t recordTx) Racks() inventory.Records[inventory.Rack] {
	return racks{t.sight, open[inventory.Rack]{t.all.Racks()}}
}

// Layers implements inventory.RecordTx.
func (t recordTx) Layers() inventory.Records[inventory.Layer] {
	return layers{t.sight, open[inventory.Layer]{t.all.Layers()}}
}

// Classes, golden hardware, images, profiles, subnets and targets belong to nobody: all may read them. Their writes need the role everywhere, and so does
// all of the others.

// Classes implements inventory.RecordTx.
func (t recordTx) Classes() inventory.Records[inventory.Class] {
	return open[inventory.Class]{t.all.Classes()}
}

// Goldens implements inventory.RecordTx.
func (t recordTx) Goldens() inventory.Records[inventory.Golden] {
	return open[inventory.Golden]{t.all.Goldens()}
}

// Images implements inventory.RecordTx.
func (t recordTx) Images() inventory.Records[inventory.Image] {
	return open[inventory.Image]{t.all.Images()}
}

// Profiles implements inventory.RecordTx.
func (t recordTx) Profiles() inventory.Records[inventory.Profile] {
	return open[inventory.Profile]{t.all.Profiles()}
}

// Subnets implements inventory.RecordTx.
func (t recordTx) Subnets() inventory.Records[inventory.Subnet] {
	return open[inventory.Subnet]{t.all.Subnets()}
}

// JoinTargets implements inventory.RecordTx.
func (t recordTx) JoinTargets() inventory.Records[inventory.JoinTarget] {
	return open[inventory.JoinTarget]{t.all.JoinTargets()}
}

// AcceptRules implements inventory.RecordTx.
func (t recordTx) AcceptRules() inventory.Records[inventory.AcceptRule] {
	return open[inventory.AcceptRule]{t.all.AcceptRules()}
}

// Clusters implements inventory.RecordTx.
func (t recordTx) Clusters() inventory.Records[inventory.Cluster] {
	return open[inventory.Cluster]{t.all.Clusters()}
}

// Secrets implements inventory.RecordTx.
func (t recordTx) Secrets() inventory.Records[inventory.Secret] {
	return open[inventory.Secret]{t.all.Secrets()}
}

// Users implements inventory.RecordTx.
func (t recordTx) Users() inventory.Records[inventory.User] {
	return open[inventory.User]{t.all.Users()}
}

// open passes records on as they are. It names each method, so that a new one of inventory.Records does not compile until
// somebody has decided about it.
type open[R any] struct{ all inventory.Records[R] }

func (x open[R]) Find(name string) (R, error)        { return x.all.Find(name) }
func (x open[R]) List(p inventory.Page) ([]R, error) { return x.all.List(p) }
func (x open[R]) Create(r *R, now time.Time) error   { return x.all.Create(r, now) }
func (x open[R]) Update(r *R, now time.Time) error   { return x.all.Update(r, now) }
func (x open[R]) Delete(name string) error           { return x.all.Delete(name) }

// pools are those in which the caller has a role. Their writes need the role everywhere.
type pools struct {
	*sight
	open[inventory.Pool]
}

// Find implements inventory.Records.
func (x pools) Find(name string) (inventory.Pool, error) {
	p, err := x.open.Find(name)
	if err == nil && !x.reach.caller.Grants.In(name).Allows(inventory.Viewer) {
		return inventory.Pool{}, x.reach.enough("", "pool", name)
	}
	return p, err
}

// List implements inventory.Records.
func (x pools) List(p inventory.Page) ([]inventory.Pool, error) {
	return keptPages(p, x.open.List, func(p inventory.Pool) string { return p.Name }, func(p *inventory.Pool) (bool, error) {
		return x.reach.caller.Grants.In(p.Name).Allows(inventory.Viewer), nil
	})
}

// racks are seen by anyone who sees a host in them. Their writes need the role everywhere.
type racks struct {
	*sight
	open[inventory.Rack]
}

// Find implements inventory.Records.
func (x racks) Find(id string) (inventory.Rack, error) {
	r, err := x.open.Find(id)
	if err != nil {
		return r, err
	}
	hosts, err := HostsInRack(hostTx{x.sight}, r)
	if err == nil && len(hosts) == 0 {
		err = x.gone("rack", id)
	}
	if err != nil {
		return inventory.Rack{}, err
	}
	return r, nil
}

// List implements inventory.Records.
func (x racks) List(p inventory.Page) ([]inventory.Rack, error) {
	hosts, err := hostTx{x.sight}.ListHosts(inventory.HostFilter{}, inventory.Page{})
	if err != nil {
		return nil, err
	}
	isSeen := map[string]bool{}
	for _, h := range hosts {
		isSeen[h.Place.RackID()] = true
	}
	return keptPages(p, x.open.List, func(r inventory.Rack) string { return r.ID() }, func(r *inventory.Rack) (bool, error) { return isSeen[r.ID()], nil })
}

// layers are those of hosts in reach, and all that are of no host. Their writes need the role everywhere.
type layers struct {
	*sight
	open[inventory.Layer]
}

// Find implements inventory.Records.
func (x layers) Find(key string) (inventory.Layer, error) {
	if id, isOfHost := strings.CutPrefix(key, string(inventory.ScopeHost)+"/"); isOfHost {
		if err := x.needHost(inventory.HostID(id)); err != nil {
			return inventory.Layer{}, err
		}
	}
	return x.open.Find(key)
}

// List implements inventory.Records.
func (x layers) List(p inventory.Page) ([]inventory.Layer, error) {
	return keptPages(p, x.open.List, func(l inventory.Layer) string { return l.Key() }, func(l *inventory.Layer) (bool, error) {
		if l.Scope != inventory.ScopeHost {
			return true, nil
		}
		return x.seesHost(inventory.HostID(l.Name))
	})
}
