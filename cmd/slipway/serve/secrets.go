package serve

import (
	"context"
	"fmt"

	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/secret"
)

// openSecrets opens the box, having counted what is sealed already.
func (a *appliance) openSecrets(ctx context.Context) (box *secret.Box, reportKey []byte, err error) {
	storedN := 0
	err = a.store.Read(ctx, func(tx inventory.Tx) error {
		all, err := tx.Secrets().List(inventory.Page{})
		if err != nil {
			return err
		}
		controllers, err := tx.ListBMCs(inventory.Page{})
		storedN = len(all)
		for _, b := range controllers {
			if len(b.Sealed) > 0 {
				// With something sealed, a missing key file is an error; without, it is a first start and OpenBox makes a key.
				storedN++
			}
		}
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list secrets: %w", err)
	}
	return keys.OpenBox(a.cfg.DataDir, storedN)
}
