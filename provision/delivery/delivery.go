// Package delivery gives machines the documents of their boots. It decides where a request comes from, and whether the
// secrets in a document are for that machine. It puts late values in place, and keeps bootstrap data in memory until
// machines fetch them.
package delivery

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// Config is everything a Deliverer needs.
type Config struct {
	Store      inventory.Store
	Now        func() time.Time
	Log        *slog.Logger
	Ledger     *ledger.Ledger
	Refusals   *ledger.Refusals
	Sessions   *session.Table
	Recorder   *recorder.Recorder
	Configurer *configuration.Configurer
	// Renderer reads parts of bootstrap data; nil reads none. Join mints the tokens of those that join a cluster; nil mints none.
	Renderer *render.Renderer
	Join     Minter
	// Confidential is how secrets are sent over TLS only; nil sends them over HTTP, to their host alone.
	Confidential *Confidential
	// ReportKey is a secret of this server; from it come the keys of boots.
	ReportKey []byte
	// Neighbour returns the MAC that uses an address on our own network, where the kernel knows one; nil knows none.
	Neighbour func(netip.Addr) (inventory.MAC, bool)
	Site      string // the first part of provider ids

	// Plan is what a host in a subnet would boot.
	Plan func(tx inventory.Tx, h *inventory.Host, subnet string) (pxe.Plan, error)
	// Given is called after the bootstrap data of a machine have come, with its host, which is "" before it has one.
	Given func(context.Context, inventory.HostID) error
}

// Deliverer answers machines. Its methods may be called from many goroutines, once it is configured.
type Deliverer struct {
	Keys
	cfg        Config
	Bootstraps Bootstraps
	delivered  delivered
}

// Configure gives a Deliverer what it needs.
func (dl *Deliverer) Configure(cfg Config) { dl.cfg, dl.Keys = cfg, Keys{cfg.ReportKey} }
