// Package claim binds machines to hosts. It keeps what people and controllers want of machines, finds a host for each one, and
// installs it there. It repairs machines that do not work, and frees the hosts of machines that go.
//
// Start reading at Machines.CreateMachine, then Placer.Place, which claims hosts. Remedies repair, Takeovers give a machine to
// another owner, and a Viewer tells how far a machine is. Package hardware/placement chooses among hosts: it is pure. Package
// operation does the work on a host, and calls this package by functions in its Config.
package claim

import (
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

// Config is everything that claims need.
type Config struct {
	*ledger.Ledger               // with the store, the time and the log
	NewULID        func() string // draws ids of machines and claims
	Operator       *operation.Operator
	Configurer     *configuration.Configurer
	Bootstraps     *delivery.Bootstraps
}
