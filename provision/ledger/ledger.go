// Package ledger writes what happens to hosts: changes of state with the event that says why, issues, and ends of boot
// sessions. It also writes the requests of people, with their dry runs. It decides nothing: the rooms above it do, and say
// what to write.
package ledger

import (
	"log/slog"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
)

// Base is what the ledger and every room above it use.
type Base struct {
	Store inventory.Store
	Now   func() time.Time
	Log   *slog.Logger
}

// Config is everything a Ledger needs.
type Config struct {
	Base
	Sessions *session.Table
	Recorder *recorder.Recorder
	// KeepHistory is how long events, ended sessions and closed issues stay; 0 means without end.
	KeepHistory time.Duration
	// Freed runs in the transaction in which a host becomes available.
	Freed func(inventory.Tx, *inventory.Host) error
	// Ended runs in the transaction in which a boot session ends.
	Ended func(inventory.Tx, *inventory.BootSession) error
}

// Ledger is the only writer of state changes, issues and ends of sessions. Its methods may be called from many goroutines,
// once it is configured.
type Ledger struct {
	Base
	Refusals Refusals
	cfg      Config
	crowds   crowds
	dryRuns  sync.Map // their transactions, by inventory.Tx
}

// Configure gives a Ledger what it needs.
func (l *Ledger) Configure(cfg Config) { l.Base, l.cfg = cfg.Base, cfg }
