package ledger

import (
	"context"
	"time"

	"slipway.dev/slipway/inventory/sleep"
)

// IsAfter waits, and reports false when ctx ended before.
func IsAfter(ctx context.Context, wait time.Duration) bool {
	return sleep.For(ctx, wait) == nil
}
