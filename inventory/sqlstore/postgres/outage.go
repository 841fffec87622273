package postgres

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
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

// instead returns the outage in place of the error of a caller who has given up: it is the reason for that.
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

// Write is that of database.Writer. While the server cannot be reached, it returns that error at once, and stores nothing.
func (d *DB) Write(ctx context.Context, fn func(*database.Tx) error) error {
	if err := d.noWriter.lately(); err != nil {
		return err
	}
	return d.noWriter.instead(d.Writer.Write(ctx, fn))
}

// connected makes a connection for a reader, unless one could not be made just now.
func (d *DB) connected() (*conn, error) {
	if err := d.noReader.lately(); err != nil {
		return nil, err
	}
	c, err := d.dial()
	if err != nil {
		return nil, d.noReader.note(d.said(err))
	}
	return c, d.noReader.note(nil)
}

// reason is the innermost of the errors of a connection: "connection refused", and not the whole way to it.
func reason(err error) string {
	for {
		switch e := err.(type) { //nolint:errorlint // it goes down the chain itself
		case *fs.PathError: // it names the file
			return inventory.Clean(e.Error(), 200)
		case interface{ Unwrap() error }:
			if next := e.Unwrap(); next != nil {
				err = next
				continue
			}
		case interface{ Unwrap() []error }:
			if all := e.Unwrap(); len(all) > 0 {
				err = all[len(all)-1]
				continue
			}
		}
		return inventory.Clean(err.Error(), 200)
	}
}
