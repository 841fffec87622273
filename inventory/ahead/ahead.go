// Package ahead lets a caller say what a transaction is going to read, so that a database behind a network answers all of it at once. It
// never changes what a transaction finds.
package ahead

import (
	"context"

	"slipway.dev/slipway/inventory"
)

// Store is a store that makes use of that.
type Store interface {
	inventory.Store
	// WriteAhead is Write. Before the transactions of a commit, the store calls expect of each. Expect calls the methods that fn is going
	// to call, and ignores what they return. It changes nothing, and need not be complete.
	WriteAhead(ctx context.Context, expect func(inventory.Tx), fn func(inventory.Tx) error) error
}

// Write writes to any store.
func Write(ctx context.Context, s inventory.Store, expect func(inventory.Tx), fn func(inventory.Tx) error) error {
	if s, ok := s.(Store); ok {
		return s.WriteAhead(ctx, expect, fn)
	}
	return s.Write(ctx, fn)
}
