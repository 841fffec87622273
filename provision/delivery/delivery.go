// Package delivery gives machines the documents of their boots. An Admission decides whether a request comes from the machine of
// a boot. A Guard decides whether that machine may have the secrets in a document. Values are put in place when the machine asks. A
// Bootstrapper keeps bootstrap data in memory until machines fetch them. A Deliverer answers with the documents.
package delivery

import (
	"sync"

	"slipway.dev/slipway/inventory"
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

// delivered remembers renderings that are being fetched: a machine asks for several documents of one, and a digest
// stands for the same bytes for ever.
type delivered struct {
	mu       sync.Mutex
	byDigest map[inventory.Digest]inventory.Rendering
}

// maxDelivered bounds the memory; a rendering has some 10 KB.
const maxDelivered = 2000

func (c *delivered) find(tx inventory.Tx, d inventory.Digest) (inventory.Rendering, error) {
	c.mu.Lock()
	r, ok := c.byDigest[d]
	c.mu.Unlock()
	if ok {
		return r, nil
	}
	r, err := tx.FindRendering(d)
	if err != nil {
		return r, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The whole memory goes at once. It holds copies of the store, which are read again when they are needed.
	if c.byDigest == nil || len(c.byDigest) >= maxDelivered {
		c.byDigest = map[inventory.Digest]inventory.Rendering{}
	}
	c.byDigest[d] = r
	return r, nil
}
