// Package claim binds machines to hosts. It counts what pools have, and lets the objects of a cluster take over machines.
package claim

import (
	"log/slog"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

// Config is everything that claims need.
type Config struct {
	Store    inventory.Store
	Now      func() time.Time
	Log      *slog.Logger
	Ledger   *ledger.Ledger
	Operator *operation.Operator
}

// Claims are the claims of machines on hosts. Their methods may be called from many goroutines, once they are configured.
type Claims struct {
	*Takeovers
	cfg Config
}

// New returns Claims that are to be configured.
func New() *Claims {
	c := &Claims{}
	c.Takeovers = &Takeovers{cfg: &c.cfg}
	return c
}

// Configure gives Claims what they need.
func (c *Claims) Configure(cfg Config) { c.cfg = cfg }
