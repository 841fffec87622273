package serve

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"

	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/secret"
	"slipway.dev/slipway/kubernetes/join"
	"slipway.dev/slipway/web/wire"
)

// vault opens stored secrets by name, and seals what is not stored under one.
type vault struct {
	*secret.Box
	store inventory.Store
}

// secretsOf is the vault as package join wants it.
type secretsOf struct{ vault }

// Open implements join.Secrets.
func (v secretsOf) Open(ctx context.Context, name string) (plain []byte, err error) {
	err = v.store.Read(ctx, func(tx inventory.Tx) error {
		s, err := tx.Secrets().Find(name)
		if err != nil {
			return err
		}
		// The name is bound into the seal: a sealed text that was moved to another row does not open.
		plain, err = v.Box.Open(name, s.Sealed)
		return err
	})
	return plain, err
}

// Unseal implements join.Secrets.
func (v secretsOf) Unseal(label string, sealed []byte) ([]byte, error) {
	return v.Box.Open(label, sealed)
}

// checkTarget looks whether hosts can join a target.
func checkTarget(ctx context.Context, joiner *join.Joiner, t inventory.JoinTarget) wire.TargetCheck {
	found := joiner.Check(ctx, t)
	out := wire.TargetCheck{Target: found.Target, Version: found.Version, IsGood: found.IsGood(), Results: []wire.TargetCheckResult{}}
	for _, r := range found.Results {
		out.Results = append(out.Results, wire.TargetCheckResult(r))
	}
	return out
}

// keyFor derives a key for one purpose from one that is kept.
func keyFor(purpose string, key []byte) []byte {
	// Keys for different purposes must not be derivable from each other, and one stored key serves them all.
	m := hmac.New(sha256.New, key)
	m.Write([]byte(purpose))
	return m.Sum(nil)
}

// openSecrets opens the box, having counted what is sealed already.
func openSecrets(ctx context.Context, store inventory.Store, dataDir string) (box *secret.Box, reportKey []byte, err error) {
	storedN := 0
	err = store.Read(ctx, func(tx inventory.Tx) error {
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
	return keys.OpenBox(dataDir, storedN)
}
