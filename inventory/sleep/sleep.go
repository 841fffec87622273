// Package sleep waits for as long as a context lasts.
package sleep

import (
	"context"
	"time"
)

// For waits, or returns the error of ctx when that ends before.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
