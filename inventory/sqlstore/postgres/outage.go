package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// outageFor is how long callers are answered with the last failure at once. Then one of them tries again.
const outageFor = 2 * time.Second

// outage is why there is no connection. Machines wait for an answer, and should hear why there is none.
type outage struct {
	mu  sync.Mutex
	err error // nil: there is a connection, as far as anybody knows
	at  time.Time
}

// note takes the result of a try. It returns err.
func (o *outage) note(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err, o.at = err, time.Now()
	return err
}

// lately returns the last failure, if it is so new that no other try is worth its time.
func (o *outage) lately() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil || time.Since(o.at) >= outageFor {
		return nil
	}
	return o.err
}

// instead takes the error of a caller that has given up. It returns the reason for that, the outage, if there is one.
func (o *outage) instead(err error) error {
	if !inventory.IsKind(err, inventory.Unavailable) || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	return err
}
