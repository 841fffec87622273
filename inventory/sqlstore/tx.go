package sqlstore

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref/pooled"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// tx is a transaction as the rooms share it.
type tx struct {
	*database.Tx
	store *Store
	idle  inventory.HostID // nothing was being done with this host when it was looked for

	newHost       string // that the transaction has created
	lastHost      lastHost
	lastMachine   database.Row // see lastRow
	lastOperation inventory.Operation
}

// readOperation notes an operation that was read or stored.
func (t *tx) readOperation(o *inventory.Operation, err error) error {
	if err == nil {
		t.lastOperation = inventory.Operation{ID: o.ID, HostID: o.HostID, State: o.State, Version: o.Version}
	}
	return err
}

// whole is what a caller's fn gets: the rooms of a transaction. A room that needs another one opens it, as in t.hosts().
type whole struct {
	recordTx
	hostTx
	networkTx
	addressTx
	imageTx
	configTx
	secretTx
	machineTx
	operationTx
	hardwareTx
	historyTx
	accessTx
	clusterTx
	auditTx
	viewTx
	instanceTx
}

var _ inventory.Tx = (*whole)(nil)

// rooms opens all rooms of a transaction.
func (t *tx) rooms() *whole {
	return &whole{
		recordTx{t},
		hostTx{t},
		networkTx{t},
		addressTx{t},
		imageTx{t},
		configTx{t},
		secretTx{t},
		machineTx{t},
		operationTx{t},
		hardwareTx{t},
		historyTx{t},
		accessTx{t},
		clusterTx{t},
		auditTx{t},
		viewTx{t},
		instanceTx{t},
	}
}

// The rooms. Each has the statements and methods of a few nouns.
type (
	recordTx    struct{ *tx } // the plain nouns
	hostTx      struct{ *tx } // hosts
	networkTx   struct{ *tx } // subnets, reservations and leases
	addressTx   struct{ *tx } // addresses of machines
	imageTx     struct{ *tx } // artefacts, images and profiles
	configTx    struct{ *tx } // layers, revisions and renderings
	secretTx    struct{ *tx } // join tokens, deliveries, locks and keys of the site
	machineTx   struct{ *tx } // machines and claims
	operationTx struct{ *tx } // operations
	hardwareTx  struct{ *tx } // inspections, reports and controllers
	historyTx   struct{ *tx } // sessions, events and issues
	accessTx    struct{ *tx } // tokens and logins
	clusterTx   struct{ *tx } // attached clusters
	auditTx     struct{ *tx } // the audit
	viewTx      struct{ *tx } // views
	instanceTx  struct{ *tx } // instances and duties
)

func (t *tx) records() recordTx    { return recordTx{t} }
func (t *tx) hosts() hostTx        { return hostTx{t} }
func (t *tx) networks() networkTx  { return networkTx{t} }
func (t *tx) addresses() addressTx { return addressTx{t} }
func (t *tx) configs() configTx    { return configTx{t} }
func (t *tx) machines() machineTx  { return machineTx{t} }
func (t *tx) access() accessTx     { return accessTx{t} }

// list collects the rows of a query.
func list[T any](t *tx, read func(database.Scan) (T, error), query string, args ...any) ([]T, error) {
	var all []T
	err := t.Each(func(s database.Scan) error {
		v, err := read(s)
		all = append(all, v)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// find reads the one row of a query; without a row it is NotFound, named by noun and key.
func find[T any](t *tx, read func(database.Scan) (T, error), noun, key, query string, args ...any) (v T, err error) {
	found, err := t.First(func(s database.Scan) (err error) {
		v, err = read(s)
		return err
	}, query, args...)
	if err == nil && !found {
		err = absent(noun, key)
	}
	return v, err
}

// changed turns the outcome of an update or delete into NotFound when it met no row.
func changed(n int64, err error, noun, key string) error {
	if err == nil && n == 0 {
		return absent(noun, key)
	}
	return err
}

// update runs an update that is bound to a version. If this transaction has read that version, it need not wait for the answer: nobody else
// writes meanwhile.
func (t *tx) update(isRead bool, noun, key string, version int64, query, versionQuery string, args ...any) error {
	if isRead {
		return t.Later(nil, query, args...)
	}
	n, err := t.Write(query, args...)
	return t.updated(n, err, noun, key, version, versionQuery, key)
}

// updated explains an update that is bound to a version and met no row: the thing is gone, or it has changed.
func (t *tx) updated(n int64, err error, noun, key string, version int64, versionQuery string, id any) error {
	if err != nil || n > 0 {
		return err
	}
	var now int64
	found, err := t.Row([]any{&now}, versionQuery, id)
	if err != nil {
		return err
	}
	if !found {
		return absent(noun, key)
	}
	return inventory.Errorf(inventory.Conflict, "%s %s has changed meanwhile (version %d, not %d)", noun, key, now, version).
		WithHint("read it again and repeat the change")
}

func absent(noun, key string) error {
	e := inventory.Errorf(inventory.NotFound, "there is no %s %s", noun, key)
	switch noun {
	case "rendering", "delivery", "join token", "lock", "claim", "inspection", "bmc", "site key": // nothing that a person names
		return e
	}
	return e.WithHint("list them with: slipway %s list", noun)
}

const machinePoolSQL = `SELECT pool FROM machines WHERE name = $1`

// pooledStore is what package pooled asks.
type pooledStore struct{ *whole }

// pooled adds to references the pools that their things are in at this moment of the transaction.
func (t *tx) pooled(refs []inventory.Ref) ([]inventory.Ref, error) {
	if len(refs) == 0 {
		return refs, nil
	}
	return pooled.Refs(pooledStore{t.rooms()}, refs)
}

// MachinePool implements pooled.Store.
func (s pooledStore) MachinePool(name string) (pool string, err error) {
	if t := s.machineTx.tx; machines.places.Is(t.lastMachine, "name", name) {
		return machines.places.Text(t.lastMachine, "pool"), nil
	}
	found, err := s.machineTx.Row([]any{&pool}, machinePoolSQL, name)
	if err == nil && !found {
		err = inventory.Errorf(inventory.NotFound, "there is no machine %s", name)
	}
	return pool, err
}

// HasHost implements pooled.Store.
func (s pooledStore) HasHost(name string) (bool, error) {
	if hostPlaces.Is(s.hostTx.lastHost.row, "name", name) || name != "" && name == s.hostTx.newHost {
		return true, nil
	}
	var id string
	return s.hostTx.Row([]any{&id}, holderNameSQL, name)
}
