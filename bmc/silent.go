package bmc

import (
	"errors"

	"slipway.dev/slipway/inventory"
)

// Silent is the error for an address without an answer from a controller. The words are the same for a refusal, for
// silence, and for another service. Admins of one pool choose addresses of controllers, and must not scan the network with
// them. The cause goes to the log; package trial shows it to admins.
func Silent(msg, hint string, cause error) *inventory.Error {
	return &inventory.Error{
		Kind: inventory.Unavailable, Msg: msg, Hint: hint + "; an admin learns at which step it fails: slipway host bmc HOST --test",
		Err: errors.New(inventory.Clean(cause.Error(), 400)), // cleaned: it can hold what was sent
	}
}
