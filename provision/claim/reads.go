package claim

import (
	"cmp"
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/operation"
)

// imageOf is the image that a machine is installed from: its own, else its profile's.
func imageOf(tx inventory.Tx, m *inventory.Machine) (i inventory.Image, err error) {
	f, err := tx.Profiles().Find(m.Profile)
	if inventory.IsKind(err, inventory.NotFound) {
		return i, inventory.Errorf(inventory.Invalid, "there is no profile %q", inventory.Clean(m.Profile, 64)).
			WithHint("list them with: slipway profile list")
	}
	if err != nil {
		return i, fmt.Errorf("read profile %s: %w", m.Profile, err)
	}
	name := cmp.Or(m.Image, f.Image)
	if i, err = tx.Images().Find(name); inventory.IsKind(err, inventory.NotFound) {
		return i, inventory.Errorf(inventory.Invalid, "there is no image %q", inventory.Clean(name, 64)).
			WithHint("list them with: slipway image list")
	}
	if err != nil {
		return i, fmt.Errorf("read image %s: %w", name, err)
	}
	return i, nil
}

// poolOf is the pool with a name; one that nobody has made has no settings.
func poolOf(tx inventory.Tx, name string) (inventory.Pool, error) {
	p, err := tx.Pools().Find(operation.PoolName(name))
	if inventory.IsKind(err, inventory.NotFound) {
		return inventory.Pool{Name: operation.PoolName(name)}, nil
	}
	return p, err
}

// roadOf is the road that a machine's image takes now, disk when that cannot be known.
func roadOf(tx inventory.Tx, m *inventory.Machine) operation.Road {
	i, err := imageOf(tx, m)
	if err != nil {
		return operation.RoadDisk
	}
	return operation.RoadOf(&i)
}

// operationOf is an operation on the host of a machine, as yet without steps.
func operationOf(kind inventory.OperationKind, m *inventory.Machine, by string) inventory.Operation {
	return inventory.Operation{
		Kind: kind, Machine: m.Name, MachineUID: m.UID, ClaimID: m.ClaimID, Pool: operation.PoolName(m.Pool), By: by,
	}
}

// endOf returns how Slipway cleans the disks of a host when its machine is deleted. staysDirty: they are not
// cleaned, and it is not the pool that asks for this.
func endOf(tx inventory.Tx, m *inventory.Machine, h *inventory.Host) (mode inventory.CleanMode, staysDirty bool, err error) {
	pool, err := poolOf(tx, m.Pool)
	if err != nil {
		return "", false, err
	}
	mode = inventory.CleanMode(cmp.Or(string(m.Clean), string(pool.Clean), string(inventory.CleanQuick)))
	if h.IsRetained {
		mode = inventory.CleanNone
	}
	return mode, mode == inventory.CleanNone && pool.Clean != inventory.CleanNone, nil
}
