package configuration

import (
	"fmt"
	"sync"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/reference"
)

// MayUse asks, for the host of a rendering, whether a part of its configuration may name what it names. It reads the pools
// of the host at the first question.
func MayUse(tx inventory.Tx, h *inventory.Host) func(inventory.Use) error {
	place := sync.OnceValues(func() (reference.Place, error) { return reference.PlaceOf(tx, h) })
	return func(u inventory.Use) error {
		at, err := place()
		if err != nil {
			return err
		}
		return reference.Check(tx, u, at)
	}
}

// placeKey is what of a host's place a rendering depends on.
func placeKey(tx inventory.Tx, h *inventory.Host) (any, error) {
	if h.Machine != "" {
		return reference.PlaceOf(tx, h)
	}
	pools, err := tx.Pools().List(inventory.Page{})
	if err != nil {
		return nil, fmt.Errorf("list pools: %w", err)
	}
	key := make([]any, 0, 2*len(pools))
	for _, p := range pools {
		key = append(key, p.Name, p.CreatedAt, p.Version)
	}
	return key, nil
}
