package ledger

import (
	"context"
	"errors"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/foresight"
)

// Asker says who asks the engine for something, and how the engine has to do it. The zero value is nobody, without a witness.
type Asker struct {
	By string // the name in the timeline
	// Witness writes the request into the audit, in the transaction that does it; nil writes nothing. A request of several
	// transactions is written in each.
	Witness Witness
	// DryRun does all that the request does in its transaction, and then undoes it: the error, or none, is what the request
	// would get now. Nothing outside of the database happens, and the witness writes nothing.
	DryRun bool
	// Foresee gets what would begin on the host of a dry run; nil: nobody wants to know.
	Foresee func(foresight.Facts)
}

// By is an asker with no more than a name.
func By(name string) Asker { return Asker{By: name} }

// Witness writes down what somebody asks the engine for.
type Witness interface {
	// Enter runs last in the transaction that does it: what it writes is there if the deed is, and only then. Its error
	// takes the deed back.
	Enter(ctx context.Context, tx inventory.Tx) error
	// Entered runs once that transaction is on disk.
	Entered(ctx context.Context)
}

// errDryRun ends the transaction of a dry run, so that it leaves no trace.
var errDryRun = errors.New("dry run")

// Write is a transaction for what somebody asks for.
func (l *Ledger) Write(ctx context.Context, who Asker, fn func(inventory.Tx) error) error {
	err := l.Store.Write(ctx, func(tx inventory.Tx) error {
		if who.DryRun {
			// The key is the transaction itself, which only this goroutine has. It goes before the store makes the next one.
			l.dryRuns.Store(tx, true)
			defer l.dryRuns.Delete(tx)
		}
		switch err := fn(tx); {
		case err != nil:
			return err
		case who.DryRun:
			// The error makes the store undo everything, as any other error of fn does.
			return errDryRun
		case who.Witness != nil:
			return who.Witness.Enter(ctx, tx)
		}
		return nil
	})
	if errors.Is(err, errDryRun) {
		return nil
	}
	if err == nil && who.Witness != nil {
		who.Witness.Entered(ctx)
	}
	return err
}

// IsDryRun reports whether a transaction is undone when it ends.
func (l *Ledger) IsDryRun(tx inventory.Tx) bool {
	_, is := l.dryRuns.Load(tx)
	return is
}

// FindHost reads a host in a transaction of its own.
func (l *Ledger) FindHost(ctx context.Context, id inventory.HostID) (h inventory.Host, err error) {
	return inventory.Read(ctx, l.Store, func(tx inventory.Tx) (inventory.Host, error) { return tx.FindHost(id) })
}
