package ledger

import (
	"errors"

	"slipway.dev/slipway/inventory"
)

// IgnoreNotFound is nil for what the store does not have, else the error.
func IgnoreNotFound(err error) error {
	if inventory.IsKind(err, inventory.NotFound) {
		return nil
	}
	return err
}

// PublicMessage is what an error says to machines and in their timelines: internal causes are for the log.
func PublicMessage(err error) string {
	if e, ok := errors.AsType[*inventory.Error](err); ok {
		return e.Msg
	}
	return "an internal error; the server's log has it"
}

// Because joins what happened with its reason, if there is one.
func Because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}
