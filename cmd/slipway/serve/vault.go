package serve

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"

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

// cookieKey signs what the browser of a user who logs in brings back. All instances have the same.
func cookieKey(reports []byte) []byte { return keyFor("cookies of the admin door", reports) }

// keyFor derives a key for one purpose from one that is kept.
func keyFor(purpose string, key []byte) []byte {
	// Keys for different purposes must not be derivable from each other, and one stored key serves them all.
	m := hmac.New(sha256.New, key)
	m.Write([]byte(purpose))
	return m.Sum(nil)
}
