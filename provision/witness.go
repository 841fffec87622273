package provision

import (
	"context"

	"slipway.dev/slipway/inventory"
)

// Witness writes down what somebody asks the engine for.
type Witness interface {
	// Enter is called last in the transaction that does it: what it writes is there if the deed is, and only then. Its error
	// takes the deed back.
	Enter(ctx context.Context, tx inventory.Tx) error
	// Entered is called once that transaction is on disk.
	Entered(ctx context.Context)
}

type witnessKey struct{}

// Witnessed returns a context in which what is asked of the engine is told to w. A request that the engine needs several
// transactions for is told of in each.
func Witnessed(ctx context.Context, w Witness) context.Context {
	return context.WithValue(ctx, witnessKey{}, w)
}

// write is a transaction for what somebody asks for.
func (e *Engine) write(ctx context.Context, fn func(inventory.Tx) error) error {
	w, _ := ctx.Value(witnessKey{}).(Witness)
	if w == nil {
		return e.cfg.Store.Write(ctx, fn)
	}
	err := e.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return w.Enter(ctx, tx)
	})
	if err == nil {
		w.Entered(ctx)
	}
	return err
}
