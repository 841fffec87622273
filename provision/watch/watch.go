// Package watch notices what does not happen. It finds boots that have stopped, machines that get no answer to DHCP, other
// DHCP servers, and addresses in use by others. It says what should happen next with a host, and why it does not.
package watch

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// Config is everything a Watch needs.
type Config struct {
	Store    inventory.Store
	Now      func() time.Time
	Log      *slog.Logger
	Ledger   *ledger.Ledger
	Sessions *session.Table
	Recorder *recorder.Recorder
	Vendor   func(m inventory.MAC) string // who made a network card; "" when unknown
	// Deadlines replace how long steps of boots may take, by the kinds of their events: see Steps.
	Deadlines map[string]time.Duration
	// Wire is the record of what machines said, nil when there is none; Ours returns our addresses, and BootPort is the TCP
	// port of the boot door. Diagnoses are made of them.
	Wire     Wire
	Ours     func() []netip.Addr
	BootPort int

	// Known returns the host of a MAC, nil when nobody knows it, and what it would boot in a subnet. Plan is the same for a
	// host.
	Known func(tx inventory.Tx, mac inventory.MAC, subnet string) (*inventory.Host, pxe.Plan, error)
	Plan  func(tx inventory.Tx, h *inventory.Host, subnet string) (pxe.Plan, error)
	// Heard finds or begins the boot of a machine that sends a packet.
	Heard func(c pxe.Client, kind string) inventory.BootSession
	// Operation is what an open operation expects next.
	Operation func(*inventory.Operation, *inventory.Host) *Expected
}

// Watch looks at boots. Its methods may be called from many goroutines, once it is configured.
type Watch struct {
	cfg       Config
	stalled   stalled
	silences  silences
	conflicts conflicts
}

// Configure gives a Watch what it needs.
func (w *Watch) Configure(cfg Config) { w.cfg = cfg }

// Serve looks at the boots until ctx is done.
func (w *Watch) Serve(ctx context.Context) error {
	wait := lookEvery
	for ledger.IsAfter(ctx, wait) {
		hasMore, err := w.WatchBoots(ctx)
		if err != nil && ctx.Err() == nil {
			w.cfg.Log.Warn("boots not checked", "err", err)
		}
		if wait = lookEvery; hasMore {
			wait = lookOnAfter
		}
	}
	return nil
}
