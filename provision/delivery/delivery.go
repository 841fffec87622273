// Package delivery gives machines the documents of their boots. An Admission decides whether a request comes from the machine of
// a boot. A Guard decides whether that machine may have the secrets in a document. Values are put in place when the machine asks. A
// Bootstrapper keeps bootstrap data in memory until machines fetch them. A Deliverer answers with the documents.
package delivery

import (
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
)

// Config is everything a Deliverer needs.
type Config struct {
	*ledger.Ledger // with the store, the time and the log
	Sessions       *session.Table
	Recorder       *recorder.Recorder
	Admission      *Admission
	Guard          *Guard
	Values         *Values
	Join           Minter // ends the tokens of those that join a cluster; nil: there are none
	// Confidential is how secrets are sent over TLS only; nil sends them over HTTP, to their host alone.
	Confidential *Confidential
}

// Deliverer answers machines. Its methods may be called from many goroutines.
type Deliverer struct {
	cfg       Config
	delivered delivered
}

// New returns a Deliverer.
func New(cfg Config) *Deliverer { return &Deliverer{cfg: cfg} }
