package bmc

import (
	"errors"

	"slipway.dev/slipway/inventory"
)

// Silent is the error for an address from which no controller answers, in the same words whether the network refused, nothing
// came, or something else answered: who may choose a controller's address need not be somebody who may look around in that
// network. Why it was is in the cause, which only the log has; package trial tells admins.
func Silent(msg, hint string, cause error) *inventory.Error {
	return &inventory.Error{
		Kind: inventory.Unavailable, Msg: msg, Hint: hint + "; an admin learns at which step it fails: slipway host bmc HOST --test",
		Err: errors.New(inventory.Clean(cause.Error(), 400)), // cleaned: it can hold what was sent
	}
}
