// Package files has the operations of the REST API that write the inventory into files and read it from them: backup, export and import.
//
// Start reading at Server.Register.
package files

import (
	"context"
	"sync"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// Config is what a Server needs.
type Config struct {
	Frame     *rest.Frame
	Backups   Backups         // nil: no backup can be taken
	Life      context.Context // ends with the server: a backup that is being sent stops
	NewHostID func() inventory.HostID
	Engine    Holder // nil: nobody keeps addresses
}

// Server answers these requests.
type Server struct {
	cfg     Config
	rest    *rest.Frame
	backing sync.Mutex // held while a backup is taken
}

// New returns a Server; Register makes its operations known.
func New(cfg Config) *Server { return &Server{cfg: cfg, rest: cfg.Frame} }

// Register adds the operations to the frame.
func (s *Server) Register() {
	s.addTransfer()
	s.addBackup()
}

// Holder keeps the addresses and names that a host would have, and refuses those of somebody else.
type Holder interface {
	HoldHost(tx inventory.Tx, id inventory.HostID) error
}
