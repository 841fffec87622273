package ledger

import (
	"context"
	"time"
)

// IsAfter waits, and reports false when ctx ended before.
func IsAfter(ctx context.Context, wait time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}
