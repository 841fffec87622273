package serve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"slipway.dev/slipway/inventory"
)

// errInUse is the answer to a second process on one data directory.
func errInUse(dir string) error {
	return inventory.Errorf(inventory.Conflict, "another slipway uses the data directory %s", dir).
		WithHint("stop it, or choose another with --data-dir")
}

// ensureToken makes the admin token of a first start and returns its secret, or "" when there are tokens already.
func ensureToken(ctx context.Context, store inventory.Store, now time.Time) (secret string, err error) {
	err = store.Write(ctx, func(tx inventory.Tx) error {
		tokens, err := tx.ListTokens()
		if err != nil || len(tokens) > 0 {
			return err
		}
		b := make([]byte, 32)
		_, _ = rand.Read(b) // never fails
		secret = "slipway_" + hex.EncodeToString(b)
		sum := sha256.Sum256([]byte(secret))
		return tx.CreateToken(&inventory.Token{Name: "admin", Hash: hex.EncodeToString(sum[:]), Grants: inventory.AdminEverywhere()}, now)
	})
	return secret, err
}
