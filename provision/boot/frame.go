package boot

import (
	"log/slog"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
)

// Frame is what all parts of this package use.
type Frame struct {
	Store    inventory.Store
	Now      func() time.Time
	Log      *slog.Logger
	Ledger   *ledger.Ledger
	Sessions *session.Table
	Recorder *recorder.Recorder
}
