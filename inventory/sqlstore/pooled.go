package sqlstore

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref/pooled"
)

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
	found, err := s.machineTx.Row([]any{&pool}, machinePoolSQL, name)
	if err == nil && !found {
		err = inventory.Errorf(inventory.NotFound, "there is no machine %s", name)
	}
	return pool, err
}

// HasHost implements pooled.Store.
func (s pooledStore) HasHost(name string) (bool, error) {
	var id string
	return s.hostTx.Row([]any{&id}, holderNameSQL, name)
}
