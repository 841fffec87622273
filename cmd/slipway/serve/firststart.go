package serve

import "slipway.dev/slipway/inventory"

// errInUse is the answer to a second process on one data directory.
func errInUse(dir string) error {
	return inventory.Errorf(inventory.Conflict, "another slipway uses the data directory %s", dir).
		WithHint("stop it, or choose another with --data-dir")
}
